"""Web pages in one file, with nothing from elsewhere: a template with style, script and data put in.

The policy of a page lets its browser run just this script and load nothing: not even what a filter or an event says can
change that.
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
    """The page of a template, where `@@WORD@@` stands for a word; a file is named below `fieldfare/data`.

    A file of another package has the name of the package before it: `fieldfare_lab:city/page.css`.
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
    """Read a file of a package."""
    package, _, name = path.rpartition(":")
    return resources.files(package or "fieldfare").joinpath("data", *name.split("/")).read_text("utf-8")


def _for_script(tree: object) -> str:
    """JSON that may stand in a script element: nothing in it looks like a tag."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
