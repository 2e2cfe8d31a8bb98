"""The pages for contributors name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = re.compile(r"`((?:src|lab|tests|tools|benchmarks|docs)/[\w./-]+|[A-Z]+\.md)`|\]\(([\w./-]+)(?:#[\w-]+)?\)")


def named(page: str) -> list[str]:
    """Paths in backticks and targets of links, but for those with a NAME to fill in."""
    text, folder = (ROOT / page).read_text(encoding="utf-8"), (ROOT / page).parent
    found = {ROOT / path if path else folder / link for path, link in PATH.findall(text) if "NAME" not in path}
    return sorted(map(str, found))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "docs/reference/versions.md"])
def test_every_file_is_there(page: str) -> None:
    assert [path for path in named(page) if not Path(path).exists()] == []
