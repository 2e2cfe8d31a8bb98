from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.suite import POOL

from fieldfare.filters.filter import NOTHING, Filter
from fieldfare.tables.structures.distinct import DistinctTable
from fieldfare.tables.updates import TableUpdate, apply

NEIGHBOURS = ("n", "s")
INTERFACES = (*NEIGHBOURS, "ana")
Pair = tuple[Filter, str]
filters = st.sampled_from(POOL)
steps = st.lists(st.tuples(st.booleans(), filters, st.sampled_from(INTERFACES)), max_size=30)
EVENTS = [{"x": x, "y": y, "s": "abc"} for x in range(4) for y in (0, 2)]


@given(steps)
def test_is_a_set_of_pairs(steps: list[tuple[bool, Filter, str]]) -> None:
    table: DistinctTable[str] = DistinctTable(NEIGHBOURS)
    told: dict[str, set[Filter]] = {neighbour: set() for neighbour in NEIGHBOURS}
    pairs: set[Pair] = set()
    for add, filter, interface in steps:
        update = TableUpdate((filter,), ()) if add else TableUpdate((), (filter,))
        for neighbour, change in apply(table, update, interface).items():
            assert neighbour != interface
            told[neighbour] = told[neighbour] - set(change.removed) | set(change.added)
        pairs = pairs | {(filter, interface)} if add else pairs - {(filter, interface)}
        assert {(f, i) for f in table.filters() for i in table.interfaces(f)} == pairs
        for neighbour in NEIGHBOURS:
            assert told[neighbour] == {f for f, i in pairs if i != neighbour}
            assert told[neighbour] == {f for f in table.filters() if neighbour in table.forwards(f)}
        for event in EVENTS:
            assert table.match(event) == {i for f, i in pairs if f.matches(event)}
    assert table.roots() == list(table.filters())
    assert len(table) == len({f for f, _ in pairs})
    for filter in POOL:
        assert set(table.overlapping(filter)) == {f for f, _ in pairs if f.overlaps(filter)}
        assert table.covering(filter) == table.covered(filter) == ([filter] if filter in table else [])
        assert table.beneath(filter) == []


def test_refuses_what_nothing_matches() -> None:
    with pytest.raises(ValueError, match="no event can match"):
        DistinctTable(NEIGHBOURS).add(NOTHING, "ana")
