"""Filters of every kind and events that tell them apart, for trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product

from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.events.values import Interval
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.tree import Tree
from fieldfare.routing.prefix.updates import TreeUpdate
from tools.samples import FILTERS as RANGES
from tools.samples import UNIVERSE as POINTS

TEXTS = (
    "TRUE", "x > 1", "x < 2", "x != 2", "NOT x = 1", "x IS MISSING", "EXISTS x", "x IN (0, 2)", "x = 1 OR y = 2",
    "x < 2 OR y > 2 OR s = 'a'", "x IS STRING", "s = 'a'", "s STARTS WITH 'a'", "s CONTAINS 'b'", "s LIKE 'a%b'",
    "s NOT LIKE '%a%'", "s > 'a' AND x < 3", "x > 0 AND s ILIKE 'AB'", "ANY tags = 'a'", "ALL tags != 'b'",
    "ANY tags = 'a' AND ANY tags = 'b'", "tags IS LIST AND x = 1", "x < $y", "x + y > 3 AND x > 0", "NOT x < $y",
    "items HAS (n = 1 AND c = 'r')", "items HAS (n = 2) AND x < 2",
    "x = TRUE", "x IS NULL OR x >= 2.5", "ABS(x) = 1", "EXISTS y AND s IS MISSING",
)  # fmt: skip
MIXED: tuple[Filter, ...] = tuple(map(parse, TEXTS))
UNSAID = parse("x < 3 AND NOT items HAS (n = 1 AND c = 'r')")
"""a part of which has no text of its own, so that trees leave it out"""

EVENTS: tuple[Event, ...] = (
    *POINTS,
    *(Event({"x": x, "s": s}) for x, s in product((1, 3), ("", "a", "b", "ab", "AB", "axb"))),
    *(Event({"y": 2, "tags": tags}) for tags in ((), ("a",), ("a", "b"), ("c",), "a")),
    Event({}), Event({"x": None}), Event({"x": True}), Event({"x": "a", "y": 1}), Event({"x": float("nan")}),
    Event({"x": Interval(0, 2), "y": 1}), Event({"x": Interval(2, 3), "s": "ab"}), Event({"x": -1, "y": 3}),
    Event({"items": [{"n": 1, "c": "r"}, {"n": 2, "c": "g"}]}),
    Event({"items": [{"n": 1, "c": "g"}, {"n": 2, "c": "r"}]}),
    Event({"x": 1, "items": [{"n": Interval(1, 2), "c": "r"}]}),
)  # fmt: skip

filters = st.one_of(st.sampled_from(RANGES), st.sampled_from(MIXED))
all_filters = filters | st.just(UNSAID)
events = st.sampled_from(EVENTS)
limits = st.none() | st.integers(0, 4)


def optimized(filters: Iterable[Filter], splits: int = 64) -> Optimizer:
    """An optimizer that knows all filters."""
    return Optimizer(boxes=chain.from_iterable(filter.boxes for filter in filters), splits=splits)


def want(places: Placements, filter: Filter, interface: str) -> None:
    for box in filter.boxes:
        places.add(box, interface)


def drop(places: Placements, filter: Filter, interface: str) -> None:
    for box in filter.boxes:
        places.remove(box, interface)


def placed(filters: Sequence[Filter], update: TreeUpdate | None) -> Placements:
    """A broker at which every filter has an interface of its own, and which has heard of the tree."""
    places = Placements(Tree())
    for number, filter in enumerate(filters):
        want(places, filter, str(number))
    if update is not None:
        places.apply(update)
    return places


def exact(filters: Sequence[Filter], event: Event) -> set[str]:
    return {str(number) for number, filter in enumerate(filters) if filter.matches(event)}
