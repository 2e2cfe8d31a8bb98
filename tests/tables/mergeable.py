"""Filters that merge often, and what they mean: what the tests of merging share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import strategies as st

from fieldfare.filters import EVERYTHING, Filter, parse
from fieldfare.tables.merging.roots import Merger
from fieldfare.tables.merging.rules import Merging

RANGES = list(itertools.combinations_with_replacement(range(4), 2))
POOL: list[Filter] = [
    EVERYTHING,
    *(parse(f"x BETWEEN {a} AND {b} AND y BETWEEN {c} AND {d}") for a, b in RANGES for c, d in RANGES),
    *(parse(f"x BETWEEN {a} AND {b}{also}") for a, b in RANGES for also in ("", " AND z = 1", " AND z != 1", " AND y = 1")),
    *(parse(text) for text in ("x < 2", "x >= 2", "x != 1", "y = 1", "y != 1", "EXISTS x", "EXISTS y", "NOT EXISTS z")),
    *(parse(f"z IN {numbers}{also}") for numbers in ("(0, 1)", "(2)", "(3, 0)") for also in ("", " AND y > 1")),
    # several branches, and what none of the others has
    parse("(x <= 2 AND y <= 1) OR (x <= 1 AND y <= 2)"),
    parse("(x = 1 AND y = 1) OR z = 1"),
    parse("(x = 1 AND y = 1) OR z = 2"),
    parse("x < 1 OR y < 1"),
    parse("x < $y"),
    parse("x >= $y"),
    parse("NOT (x < $y) AND x <= $y"),
    parse("s LIKE 'a%' AND x > 1"),
    parse("s LIKE '%b' AND x > 1"),
    parse("ANY z = 1 AND ANY z = 2"),
    parse("ANY z = 3"),
    parse("ANY z = 1 AND x = 1"),
    parse("ANY z = 2 AND x = 1"),
]  # fmt: skip
pool = st.sampled_from(POOL)

_ABSENT = object()
_VALUES = [_ABSENT, 0, 0.5, 1, 2, 3]
EVENTS: list[dict[str, object]] = [
    {name: value for name, value in zip("xyz", values, strict=True) if value is not _ABSENT}
    for values in itertools.product(_VALUES, _VALUES, [*_VALUES, (1, 2)])
] + [{"s": s, "x": x} for s in ("a", "b", "ab", "c") for x in (1, 2)]


@cache
def meaning(filter: Filter) -> int:
    """The events of a small universe that match, as bits."""
    return sum(filter.matches(event) << number for number, event in enumerate(EVENTS))


def joint(filters: Iterable[Filter]) -> int:
    """What several filters mean together."""
    result = 0
    for filter in filters:
        result |= meaning(filter)
    return result


def union(filters: Iterable[Filter]) -> Filter:
    return Filter(branch for filter in filters for branch in filter.branches)


def incomparable(filters: Sequence[Filter]) -> bool:
    return not any(a.covers(b) for a, b in itertools.permutations(filters, 2))


@contextmanager
def remembered() -> Iterator[None]:
    """Remember what covers and merges: the tests try the same few filters over and over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Filter, "covers", cache(Filter.covers))
        patch.setattr(Filter, "merge", cache(Filter.merge))
        yield


def check_mergers(mergers: Sequence[Merger], roots: Iterable[Filter], exported: Sequence[Filter], how: Merging) -> None:
    """The invariants I1 to I5 of the specification, §13.6."""
    wanted = set(roots)
    assert all(any(e.covers(root) for e in exported) for root in wanted)  # I1
    assert joint(exported) | joint(wanted) == joint(exported)
    if not how.imperfect and not how.lazy:  # I2
        assert joint(exported) == joint(wanted)
        for m in mergers:
            assert meaning(m.filter) == joint(m.components)
            assert union(m.components).covers(m.filter)
    assert all(m.waste <= how.budget for m in mergers)
    components = [root for m in mergers for root in m.components]  # I3
    assert len(set(components)) == len(components)
    assert set(components) <= wanted
    assert all(len(m.components) > 1 for m in mergers)
    covered = [root for m in mergers for root in m.covered]  # I4: each covered root is kept, once
    assert len({*components, *covered}) == len(components) + len(covered)
    assert all(m.filter.covers(root) for m in mergers for root in (*m.components, *m.covered))
    free = wanted - {*components, *covered}
    assert not any(m.filter.covers(root) for m in mergers for root in free)
    assert set(exported) == {m.filter for m in mergers} | free
    assert len(set(exported)) == len(exported)
    assert incomparable(exported)  # I5, and more
