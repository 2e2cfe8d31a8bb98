"""The list of modules in docs/architecture.md is complete and current."""

from __future__ import annotations

from tools import modules


def test_the_page_lists_every_module() -> None:
    _, mark, listed = modules.PAGE.read_text().partition(modules.MARK)
    assert mark, "docs/architecture.md has no place for the list"
    assert listed.strip() == modules.listing().strip(), "run: python -m tools.modules"


def test_every_module_has_a_sentence() -> None:
    lines = [line for line in modules.listing().splitlines() if line.startswith("| `")]
    assert len(lines) > 400
    assert not [line for line in lines if line.endswith("|  |")]
