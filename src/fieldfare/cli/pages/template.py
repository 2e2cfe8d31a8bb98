"""Web pages from a template, with style, script and data in the same file.

The content security policy of a page lets the browser run only this script and load nothing, whatever text a filter or
an event contains.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Final

from fieldfare.cli.formats.values import printable
from fieldfare.cli.pages.table_svg import STYLE

_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def made(
    template: str, title: str, words: Mapping[str, str], data: object, *, styles: Sequence[str], scripts: Sequence[str]
) -> str:
    """Return the page of a template, in which `@@WORD@@` stands for a word; files are named below `fieldfare/data`.

    A file of another package has the name of the package in front: `fieldfare_lab:city/page.css`.
    """
    style = STYLE + "".join(map(read, styles))
    script = "".join(map(read, scripts))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    known = {
        "TITLE": escape(printable(title)),
        "POLICY": escape(policy),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _for_script(data),
        **words,
    }
    parts = read(template).split("@@")  # not replace(): what is put in is never looked through again
    return "".join(known[part] if number % 2 else part for number, part in enumerate(parts))


def read(path: str) -> str:
    """Return the text of a file in a package."""
    package, _, name = path.rpartition(":")
    return resources.files(package or "fieldfare").joinpath("data", *name.split("/")).read_text("utf-8")


def _for_script(tree: object) -> str:
    """Return JSON that may stand in a script element: nothing in the text looks like a tag."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
