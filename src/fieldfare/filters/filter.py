"""`Filter`: a predicate on events, as a union of boxes in normal form.

A filter is immutable and hashable. Filters of equal meaning are equal, however they were written (short of the limits
named in `branch`, and of predicates that cannot be analysed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fieldfare.events.event import fields_of
from fieldfare.filters.branch import MAX_BRANCHES, Branch, Dimension, independent, normal_form
from fieldfare.filters.budget import spend
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.mergers import imperfect
from fieldfare.filters.printer import in_order, render
from fieldfare.filters.sizes import expect_small, size_of
from fieldfare.filters.statistics import Statistics, Uniform


class Filter:
    """A predicate on events with the algebra of sets.

    >>> from fieldfare.filters import parse
    >>> cheap, cheaper = parse("price < 10"), parse("price < 5 AND symbol = 'IBM'")
    >>> cheap.covers(cheaper), cheaper.covers(cheap), cheap.overlaps(parse("price > 7"))
    (True, False, True)
    >>> str(cheap & ~cheaper)
    "(price < 10 AND NOT symbol = 'IBM') OR (price >= 5 AND price < 10)"
    """

    __slots__ = ("__dict__", "boxes")

    boxes: tuple[Branch, ...]
    """the branches in the order of discovery, for operations that do not depend on the order; sorting takes time"""

    def __init__(self, branches: Iterable[Branch]) -> None:
        """Make the union of branches and bring the union to normal form."""
        given = tuple(branches)
        self.boxes = given if len(given) < 2 else tuple(normal_form(given))
        _expect_few(len(self.boxes))
        expect_small(size_of(self.boxes))

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The largest boxes inside the filter, in a fixed order.

        A filter that matches nothing has no branch, and a filter that matches everything has an empty branch.
        """
        return self.boxes if len(self.boxes) < 2 else self._in_order

    @cached_property
    def _in_order(self) -> tuple[Branch, ...]:
        return tuple(in_order(self.boxes))

    @classmethod
    def where(cls, dimension: Dimension, wanted: Constraint) -> Filter:
        """Return the filter with a single constraint."""
        if wanted.is_empty:
            return NOTHING
        return cls([Branch({} if wanted.is_full else {dimension: wanted})])

    def matches(self, event: Mapping[str, object], mode: Mode = "overlaps") -> bool:
        """Tell whether an event matches the filter.

        An event with intervals stands for all points inside: `mode="overlaps"` asks whether some point matches,
        `mode="covers"` whether all points match.
        """
        if mode not in ("overlaps", "covers"):
            raise ValueError(f"mode must be 'overlaps' or 'covers', not {mode!r}")
        if not isinstance(event, Mapping):
            raise TypeError(f"an event is a mapping of fields, not {type(event).__name__}")
        return self.matches_fields(fields_of(event), mode)

    def matches_fields(self, fields: Mapping[str, object], mode: Mode = "overlaps") -> bool:
        """Tell whether flat fields, as in `Event.fields`, match the filter."""
        return any(branch.matches(fields, mode) for branch in self.boxes)

    def covers(self, other: Filter) -> bool:
        """Tell whether every event that matches the other filter matches this filter.

        A "yes" is always right. A "no" is seldom wrong: see the limits in `branch`.
        """
        _expect_filter(other)
        if len(self.boxes) == len(other.boxes) == 1:  # as most have
            return self.boxes[0].covers(other.boxes[0])
        return all(any(mine.covers(theirs) for mine in self.boxes) for theirs in other.boxes)

    def overlaps(self, other: Filter) -> bool:
        """Tell whether some event can match both filters. A "no" is always right."""
        _expect_filter(other)
        if len(self.boxes) == len(other.boxes) == 1:
            return self.boxes[0].overlaps(other.boxes[0])
        return any(mine.overlaps(theirs) for mine in self.boxes for theirs in other.boxes)

    def intersect(self, other: Filter) -> Filter:
        """Return the filter for events that match both filters."""
        _expect_filter(other)
        if independent(self.boxes, other.boxes):
            return self._times(other)
        try:
            return Filter(branch for branch in self._joined(other) if branch is not None)
        except TooComplex as error:
            raise FilterTooComplex(f"the string patterns of a field cannot be combined: {error}") from None

    __and__ = intersect

    def _joined(self, other: Filter) -> Iterator[Branch | None]:
        """Yield the intersections of each box with each box of the other filter."""
        for mine in self.boxes:
            for theirs in other.boxes:
                spend(4 + len(mine) + len(theirs))
                yield mine & theirs

    def _times(self, other: Filter) -> Filter:
        """Return the intersection of filters on different dimensions: exactly the products of the largest boxes."""
        _expect_few(len(self.boxes) * len(other.boxes))
        size = size_of(self.boxes) * len(other.boxes) + size_of(other.boxes) * len(self.boxes)
        expect_small(size)
        spend(size // 16)
        product = Filter(())
        product.boxes = tuple(
            Branch(dict([*mine.items(), *theirs.items()])) for mine in self.boxes for theirs in other.boxes
        )
        return product

    def __or__(self, other: Filter) -> Filter:
        _expect_filter(other)
        return Filter([*self.boxes, *other.boxes])

    def __invert__(self) -> Filter:
        result = EVERYTHING
        for branch in self.boxes:
            result = result.intersect(Filter(branch.complement()))
        return result

    def __sub__(self, other: Filter) -> Filter:
        return self & ~other

    @property
    def is_empty(self) -> bool:
        """Tell whether no event can match."""
        return not self.boxes

    @property
    def is_full(self) -> bool:
        """Tell whether every event matches."""
        return any(not branch for branch in self.boxes)

    def fields(self) -> frozenset[str]:
        """Return the paths of all fields that the filter reads."""
        return frozenset(path for branch in self.boxes for path in branch.fields())

    def merge(self, other: Filter) -> Filter | None:
        """Return the union if the union needs no more branches than the larger filter (a perfect merger), else None."""
        union = self | other
        return union if len(union.boxes) <= max(len(self.boxes), len(other.boxes)) else None

    def merge_imperfect(self, other: Filter, statistics: Statistics | None = None) -> Merger:
        """Return a single branch that covers both filters, with an estimate of the precision."""
        known = statistics or Uniform()
        if self.is_empty and other.is_empty:
            return Merger(NOTHING, 1.0, True)
        merged, *others = (*self.branches, *other.branches)
        estimate, exact = 1.0, True
        for branch in others:
            step = imperfect(merged, branch, known)
            merged, estimate, exact = step.branch, estimate * step.precision, exact and step.exact
        return Merger(Filter([merged]), estimate, exact)

    @cached_property
    def _text(self) -> str:
        return render(self.branches)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return self.boxes == other.boxes or frozenset(self.boxes) == frozenset(other.boxes)

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.boxes))

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        raise TypeError(
            "a filter is neither true nor false: combine filters with & | ~ (not with and, or, not), write"
            " (1 < x) & (x < 5) for 1 < x < 5, and use is_empty or is_full"
        )

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.branches)


def _expect_few(boxes: int) -> None:
    if boxes > MAX_BRANCHES:
        raise FilterTooComplex(f"the filter has {boxes} alternatives, more than {MAX_BRANCHES}")


def _expect_filter(other: object) -> None:
    if not isinstance(other, Filter):
        raise TypeError(f"expected a Filter, not {type(other).__name__}: parse() makes one of a text")


@dataclass(frozen=True, slots=True)
class Merger:
    """A filter that covers two others, the result of a merge."""

    filter: Filter
    precision: float
    """estimated share of the matching events that match one of the two filters: 1 if exact"""
    exact: bool


NOTHING: Final = Filter([])
EVERYTHING: Final = Filter([Branch({})])
