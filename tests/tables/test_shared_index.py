from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.tables.suite import POOL

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables.shared_index import SharedIndex, SharedIndexPart

filters = st.sampled_from(POOL)
EVENTS = [{"x": x, "y": y, "s": s} for x in range(4) for y in (0, 2) for s in ("abc", "b")]


@given(st.lists(st.tuples(st.integers(0, 1), filters, st.booleans()), max_size=30), filters)
def test_a_part_answers_like_an_index_of_its_own(steps: list[tuple[int, Filter, bool]], asked: Filter) -> None:
    universe = SharedIndex()
    parts: list[SharedIndexPart] = [universe.part(), universe.part()]
    indexes: list[Index[Filter]] = [Index(), Index()]
    for which, filter, add in steps:
        for table in (parts[which], indexes[which]):
            if add and filter not in table:
                table.add(filter, filter)
            elif not add and filter in table:
                table.remove(filter)
        for event in EVENTS[:3]:
            assert set(parts[which].match(event)) == set(indexes[which].match(event))
    for part, index in zip(parts, indexes, strict=True):
        assert set(part) == set(index)
        assert len(part) == len(index)
        assert set(part.covering(asked)) == set(index.covering(asked))
        assert set(part.covered(asked)) == set(index.covered(asked))
        assert set(part.overlapping(asked)) == set(index.overlapping(asked))
        for event in EVENTS:
            assert set(part.match(event)) == set(index.match(event))
