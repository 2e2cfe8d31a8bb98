from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.tables.suite import POOL

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.tables.cover_set import CoverSet
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.shared_index import SharedIndex
from fieldfare.tables.updates import TableUpdate

some = st.lists(st.sampled_from(POOL), max_size=4, unique=True).map(tuple)


@given(st.lists(st.tuples(some, some), max_size=25))
def test_the_cover_is_minimal_and_a_receiver_can_follow(updates: list[tuple[tuple[Filter, ...], ...]]) -> None:
    """The receiver does as a non-redundant table: removals first, and an added filter drops those below."""
    filters = CoverSet(SharedIndex())
    known: dict[Filter, None] = {}
    received: list[Filter] = []
    for added, removed in updates:
        change = filters.apply(TableUpdate(added, removed))
        for filter in removed:
            known.pop(filter, None)
        known.update(dict.fromkeys(added))
        assert len(filters) == len(known)
        cover = list(filters.cover())
        assert len(cover) == len(minimal_cover(known))
        assert all(any(root.covers(filter) for root in cover) for filter in known)
        assert set(change.removed) <= set(received)
        received = [filter for filter in received if filter not in change.removed]
        for filter in change.added:
            assert not any(other.covers(filter) for other in received)
            received = [other for other in received if not filter.covers(other)]
            received.append(filter)
        assert set(received) == set(cover)


def test_filters_of_the_same_meaning_are_no_witnesses_of_each_other() -> None:
    """Else both would be hidden, and no neighbour would learn either."""
    a, b = parse("x = 1 OR (x = 2 AND y = 1)"), parse("(x = 1 OR x = 2) AND (x = 1 OR y = 1)")
    wide = parse("x = 1 OR x = 2")
    assert a.covers(b)
    assert b.covers(a)
    for first, second in ((a, b), (b, a)):
        filters = CoverSet(SharedIndex())
        assert filters.apply(TableUpdate((first, second, wide))).added == (wide,)
        assert filters.apply(TableUpdate(removed=(wide,))).added == (first,)
