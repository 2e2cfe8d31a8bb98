"""The page docs/reference/versions.md has the numbers that the code has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from fieldfare.matching.store import layout, snapshot
from fieldfare.node.storage import raw_format as records
from fieldfare.node.storage import rows as store
from fieldfare.protocol import journal, versions
from fieldfare.routing import broker

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")

VERSIONS: dict[str, int | str | None] = {
    "client frames": versions.NEWEST,
    "link frames": versions.NEWEST,
    "link messages, overlay messages": versions.NEWEST,
    "handover messages": versions.NEWEST,
    "channel messages": versions.NEWEST,
    "pattern messages": versions.NEWEST,
    "journal entry, details": journal.VERSION,
    "broker snapshot": broker._Snapshot.__struct_defaults__[-1],
    "log, raw segment": records._VERSION,
    "log, Parquet segment": None,
    "rows (`node.sqlite`)": store.FORMAT,
    "index snapshot (`.ff`)": snapshot.FORMAT,
    "index arena, inside a snapshot": layout.FORMAT,
    "catalogue of subscriptions": None,
    "lake": None,
    "HTTP API": None,
}
"""by the name of the form on the page; None: the form has no number of its own"""


def rows() -> dict[str, str]:
    """The table of the page: forms and their versions."""
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    return dict(found[1:])


def test_every_form_is_there_with_its_version() -> None:
    assert rows() == {form: "–" if version is None else str(version) for form, version in VERSIONS.items()}


def test_the_package_has_a_section_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
