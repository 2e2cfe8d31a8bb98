"""The pages for contributors name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = re.compile(r"`((?:src|lab|tests|tools|benchmarks|docs)/[\w./-]+|[A-Z]+\.md)`|\]\(([\w./-]+)(?:#[\w-]+)?\)")


def named(page: str) -> list[str]:
    """Paths in backticks and targets of links, but for those with a NAME to fill in."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return sorted({path or link for path, link in PATH.findall(text) if "NAME" not in path})


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "docs/reference/versions.md"])
def test_every_file_is_there(page: str) -> None:
    assert [path for path in named(page) if not (ROOT / path).exists()] == []
