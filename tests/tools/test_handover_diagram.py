"""The pictures and the table of docs/explanation/mobility.md are those of the handover table."""

from __future__ import annotations

import pytest

from fieldfare.core.handover_table import TRANSITIONS
from tools import handover_diagram

HINT = "run: python -m tools.handover_diagram"


@pytest.mark.parametrize("name", handover_diagram.PICTURES)
def test_the_pictures_are_current(name: str) -> None:
    path = handover_diagram.FOLDER / f"{name}.svg"
    assert path.read_text() == handover_diagram.svg(handover_diagram.PICTURES[name]), HINT


def test_the_table_is_current() -> None:
    _, begin, rest = handover_diagram.PAGE.read_text().partition(handover_diagram.BEGIN)
    listed, end, _ = rest.partition(handover_diagram.END)
    assert all((begin, end)), "docs/explanation/mobility.md has no place for the table"
    assert listed.strip() == handover_diagram.table().strip(), HINT


def test_every_change_of_state_is_in_a_picture() -> None:
    changes = {(a, b) for a, row in TRANSITIONS.items() for states in row.values() for b in states if a is not b}
    assert changes == {
        edge for picture in handover_diagram.PICTURES.values() for edge in handover_diagram.edges(picture)
    }
