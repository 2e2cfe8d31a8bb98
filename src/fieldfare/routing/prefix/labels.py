"""`Label`: the condition of a node of a Routing Tree; and `Order`: the order of labels on a path.

A box of a filter is a path of labels in an order that all brokers share: with common attributes first, paths share more
nodes. A label *splits* if its set consists of intervals, single values and kinds, for which intersection and difference
are exact and cheap. All other labels (patterns with a wildcard inside, quantifiers over lists, computed values) are
`whole`: they are compared by equality only, and may overlap others.
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
    """True for a label that must not be split"""

    def matches(self, fields: Mapping[str, object]) -> bool:
        """Tell whether the fields of an event satisfy the label."""
        return satisfied(self.dimension, self.constraint, fields, "overlaps")

    @property
    def filter(self) -> Filter:
        """The label as a filter, which has a text."""
        return Filter.where(self.dimension, self.constraint)


Path: TypeAlias = tuple[Label, ...]


def label_of(filter: Filter, whole: bool) -> Label:
    """Return the label of a filter with a single condition.

    The implied conditions of a computed dimension are left out.
    """
    (box,) = filter.boxes
    *_, dimension = box  # computed dimensions come last
    return Label(dimension, box[dimension], whole)


def splits(dimension: Dimension, constraint: Constraint) -> bool:
    """Tell whether a label can be split exactly and cheaply."""
    return isinstance(dimension, str) and constraint.is_plain and isinstance(constraint.values.strings, Intervals)


class Order(NamedTuple):
    """The order of labels: first the named attributes, then the others by name, then computed dimensions."""

    first: tuple[str, ...] = ()

    def path(self, box: Branch) -> Path:
        """Return the labels of a box in order.

        Labels without a text are left out: too many events may pass, never too few.
        """
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
    """Tell whether other brokers read the same label from its text.

    The opposite of a HAS, for example, becomes alternatives.
    """
    label = Label(dimension, wanted, True)
    heard = parse(str(label.filter))
    return len(heard.boxes) == 1 and label_of(heard, True) == label


ALPHABET: Final = Order()


def by_popularity(boxes: Iterable[Branch]) -> Order:
    """Return the order with the most frequent attributes of the boxes first: paths share more nodes."""
    asked = Counter(name for box in boxes for name in box if isinstance(name, str))
    return Order(tuple(sorted(asked, key=lambda name: (-asked[name], name))))


def by_selectivity(boxes: Iterable[Branch], events: Sequence[Mapping[str, object]]) -> Order:
    """Return the order with the most selective attributes first, by a sample of events: walks end early."""
    seen = [fields_of(event) for event in events]
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for box in boxes:
        for name, wanted in box.items():
            if isinstance(name, str):
                hits = sum(satisfied(name, wanted, fields, "overlaps") for fields in seen)
                shares[name].append(hits / max(1, len(seen)))
    return Order(tuple(sorted(shares, key=lambda name: (sum(shares[name]) / len(shares[name]), name))))
