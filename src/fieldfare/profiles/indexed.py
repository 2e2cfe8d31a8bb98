"""`IndexedPairing`: profiles against queries, looked up in the matching index instead of walked to in forests.

The index that matches events also finds the filters that cover a given one, are covered by it, or overlap it. So a
filter's partners are one lookup, whatever else is stored; there are no neighbours to learn from, and none to maintain.
What the index compares is not counted in `tests`.
"""

from __future__ import annotations

from typing import Any, Protocol

from fieldfare.filters.filter import Filter
from fieldfare.profiles.pairs import Asker, Object, Operator, Pairing, Side


class Relations(Protocol):
    """The part of `fieldfare.matching.index.Index` that is needed; it comes from outside, since it uses threads."""

    def add(self, id: Filter, filter: Filter) -> None:
        """Store a filter under an id."""

    def remove(self, id: Filter) -> None:
        """Forget the filter of an id."""

    def covering(self, filter: Filter) -> list[Filter]:
        """The ids of the filters that cover a given one."""

    def covered(self, filter: Filter) -> list[Filter]:
        """The ids of the filters that a given one covers."""

    def overlapping(self, filter: Filter) -> list[Filter]:
        """The ids of the filters that overlap a given one."""


class IndexedPairing(Pairing[Object, Asker]):
    """Profiles against queries, each side in an index of its own.

    >>> from fieldfare import Index, parse
    >>> space: IndexedPairing[str, str] = IndexedPairing(Index(), Index(), "overlap")
    >>> space.queries.add(parse("price < 10"), "ana")
    []
    >>> space.profiles.add(parse("price BETWEEN 8 AND 12"), "book 7")
    [parse('price < 10')]
    """

    def __init__(self, profiles: Relations, queries: Relations, operator: Operator = "cover") -> None:
        """Nothing on either side: the indexes must be empty, and are not to be used by others."""
        super().__init__(operator)
        self._profile_index = profiles
        self._query_index = queries

    def _store(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).add(filter, filter)

    def _drop(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).remove(filter)

    def _own(self, side: Side[Any]) -> Relations:
        return self._profile_index if side is self.profiles else self._query_index

    def _find(self, side: Side[Any], filter: Filter) -> list[Filter]:
        across = self._own(side.other)
        if self.operator == "overlap":
            return across.overlapping(filter)
        return across.covering(filter) if side is self.profiles else across.covered(filter)
