from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.suite import POOL

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables import network_index
from fieldfare.tables.network_index import NetworkIndex
from fieldfare.tables.shared_index import Part, SharedIndex

filters = st.sampled_from(POOL)
EVENTS = [{"x": x, "y": y, "s": s} for x in range(4) for y in (0, 2) for s in ("abc", "b")]


class LargeNetworkIndex(NetworkIndex):
    """A network's index that is soon too large for a comparison one by one."""

    few = 3


@pytest.mark.parametrize("kind", [SharedIndex, NetworkIndex, LargeNetworkIndex])
@given(st.lists(st.tuples(st.integers(0, 1), filters, st.booleans()), max_size=30), filters)
def test_a_part_answers_like_an_index_of_its_own(
    kind: type[SharedIndex], steps: list[tuple[int, Filter, bool]], asked: Filter
) -> None:
    shared = kind()
    parts: list[Part[Filter]] = [shared.part(), shared.part()]
    indexes: list[Index[Filter]] = [Index(), Index()]
    for which, filter, add in steps:
        part, index = parts[which], indexes[which]
        assert (part.find(filter) is not None) == (filter in index)
        if add and filter not in index:
            index.add(filter, filter)
            part.add(filter, filter)
        elif not add and filter in index:
            index.remove(filter)
            assert part.remove(filter) == filter
        assert set(part.covering(filter)) == set(index.covering(filter))
        for event in EVENTS[:3]:
            assert set(part.match(event)) == set(index.match(event))
    for part, index in zip(parts, indexes, strict=True):
        assert set(part) == set(index)
        assert len(part) == len(index)
        assert set(part.covering(asked)) == set(index.covering(asked))
        assert set(part.covered(asked)) == set(index.covered(asked))
        assert set(part.overlapping(asked)) == set(index.overlapping(asked))
        for event in EVENTS:
            assert set(part.match(event)) == set(index.match(event))
    if kind is SharedIndex:
        assert set(shared) == {filter for index in indexes for filter in index}


def test_a_filter_is_forgotten_with_its_last_part() -> None:
    shared = SharedIndex()
    here, there = shared.part(), shared.part()
    filter = parse("x < 5")
    here.add(1, filter)
    there.add(2, parse("x < 5"))
    assert len(shared) == 1
    here.remove(filter)
    assert filter in shared
    assert there.match({"x": 3}) == [2]
    there.remove(filter)
    assert filter not in shared
    assert list(shared.match({"x": 3})) == []
    with pytest.raises(KeyError):
        there.remove(filter)


def test_a_part_has_a_filter_once() -> None:
    part = SharedIndex().part()
    part.add(1, parse("x < 5"))
    with pytest.raises(KeyError):
        part.add(2, parse("x < 5"))
    assert part.remove(parse("x < 5")) == 1


def test_a_network_forgets_filters_that_nobody_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_index, "_LOOSE", 10)
    shared = NetworkIndex()
    part = shared.part()
    part.add("all", parse("x >= 0"))
    for number in range(100):
        part.add("some", parse(f"x = {number}"))
        assert sorted(part.covering(parse(f"x = {number}"))) == ["all", "some"]
        assert list(part.covering(parse(f"x BETWEEN {number} AND {number + 1}"))) == ["all"]
        part.remove(parse(f"x = {number}"))
    assert len(shared) <= 12
    assert part.covered(parse("x >= -1")) == ["all"]


@given(st.lists(st.tuples(filters, st.booleans()), max_size=30))
def test_holders_are_counted(steps: list[tuple[Filter, bool]]) -> None:
    shared = SharedIndex()
    held: Counter[Filter] = Counter()
    for filter, hold in steps:
        if hold:
            shared.hold([filter, filter])
            held[filter] += 2
        elif held[filter]:
            entry = shared.entry(filter)
            assert entry is not None
            shared.release(entry)
            held[filter] -= 1
        assert set(shared) == set(+held)
