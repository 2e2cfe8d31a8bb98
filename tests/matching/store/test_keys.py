from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fieldfare.matching.store.keys import NUMBER, key_range, key_ranges

numbers = st.one_of(st.floats(allow_nan=False), st.integers(-(10**400), 10**400), st.integers(-3, 3))
cuts = st.lists(st.tuples(numbers, st.integers(0, 1)), max_size=5)


@given(cuts)
def test_ranges_are_those_between_each_two_cuts(given: list[tuple[float, int]]) -> None:
    edges = [None, *given, None]
    assert key_ranges(NUMBER, given) == [key_range(NUMBER, low, high) for low, high in itertools.pairwise(edges)]
