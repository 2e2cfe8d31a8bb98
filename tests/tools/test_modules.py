"""The list of modules in docs/architecture.md is complete and current."""

from __future__ import annotations

from pathlib import Path

from tools import modules

ROOT = Path(__file__).parents[2]


def test_the_page_lists_every_module() -> None:
    _, mark, listed = modules.PAGE.read_text().partition(modules.MARK)
    assert mark, "docs/architecture.md has no place for the list"
    assert listed.strip() == modules.listing().strip(), "run: python -m tools.modules"


def test_every_module_has_a_sentence() -> None:
    lines = [line for line in modules.listing().splitlines() if line.startswith("| `")]
    assert len(lines) > 400
    assert not [line for line in lines if line.endswith("|  |")]


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    modules = [path for place in ("src", "lab", "tools") for path in (ROOT / place).rglob("*.py")]
    assert len(modules) > 400
    assert not [path for path in modules if len(path.read_text(encoding="utf-8").splitlines()) > 400]
