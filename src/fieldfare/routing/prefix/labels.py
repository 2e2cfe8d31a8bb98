"""`Label`: what a node of a Routing Tree asks of an event; and `Order`: which question comes first.

A box of a filter is a path of labels, sorted by an order that all brokers share: where common questions come first,
paths have more in common. A label *splits* if its set is made of intervals, single values and kinds, for which
intersection and difference are exact and cheap. What does not (patterns with a wildcard inside, quantifiers over lists,
anything computed) is `whole`: it is told apart from others by equality only, and may overlap them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from fieldfare.events.event import fields_of
from fieldfare.filters import parse
from fieldfare.filters.branch import Branch, Dimension, satisfied
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.expressions import Expression
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals


class Label(NamedTuple):
    """A constraint on a dimension."""

    dimension: Dimension
    constraint: Constraint
    whole: bool
    """must it stay as it is, or may it be split?"""

    def matches(self, fields: Mapping[str, object]) -> bool:
        """Does an event with such fields satisfy it?"""
        return satisfied(self.dimension, self.constraint, fields, "overlaps")

    @property
    def filter(self) -> Filter:
        """The same as a filter, which has a text."""
        return Filter.where(self.dimension, self.constraint)


Path: TypeAlias = tuple[Label, ...]


def label_of(filter: Filter, whole: bool) -> Label:
    """The label that gave the filter. A computed dimension brings what follows from it, which is not meant."""
    (box,) = filter.boxes
    *_, dimension = box  # what is computed comes last
    return Label(dimension, box[dimension], whole)


def splits(dimension: Dimension, constraint: Constraint) -> bool:
    """Can it be split exactly and cheaply?"""
    return isinstance(dimension, str) and constraint.is_plain and isinstance(constraint.values.strings, Intervals)


class Order(NamedTuple):
    """Attributes that come first, in this order; then the others by name; what is computed comes last."""

    first: tuple[str, ...] = ()

    def path(self, box: Branch) -> Path:
        """The labels of a box, sorted. What cannot be said in a text is left out: events may pass that need not."""
        rank = {name: place for place, name in enumerate(self.first)}
        last = len(rank)
        return tuple(
            Label(dimension, wanted, not splits(dimension, wanted))
            for dimension, wanted in sorted(box.items(), key=lambda side: _key(side[0], rank, last))
            if isinstance(dimension, str) or _can_be_said(dimension, wanted)
        )


def _key(dimension: Dimension, rank: Mapping[str, int], last: int) -> tuple[bool, int, str]:
    if isinstance(dimension, str):
        return False, rank.get(dimension, last), dimension
    return True, last, dimension.text


@lru_cache(maxsize=10_000)
def _can_be_said(dimension: Expression, wanted: Constraint) -> bool:
    """Do other brokers read in its text what it means? The opposite of a HAS, for one, comes back as alternatives."""
    label = Label(dimension, wanted, True)
    heard = parse(str(label.filter))
    return len(heard.boxes) == 1 and label_of(heard, True) == label


ALPHABET: Final = Order()


def by_popularity(boxes: Iterable[Branch]) -> Order:
    """The attributes that most boxes ask about first: paths share more."""
    asked = Counter(name for box in boxes for name in box if isinstance(name, str))
    return Order(tuple(sorted(asked, key=lambda name: (-asked[name], name))))


def by_selectivity(boxes: Iterable[Branch], events: Sequence[Mapping[str, object]]) -> Order:
    """The attributes whose constraints the fewest of some events satisfy first: walks end early."""
    seen = [fields_of(event) for event in events]
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for box in boxes:
        for name, wanted in box.items():
            if isinstance(name, str):
                hits = sum(satisfied(name, wanted, fields, "overlaps") for fields in seen)
                shares[name].append(hits / max(1, len(seen)))
    return Order(tuple(sorted(shares, key=lambda name: (sum(shares[name]) / len(shares[name]), name))))
