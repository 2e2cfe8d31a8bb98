"""`IndexedPairing`: profiles against queries, with look-ups in the matching index instead of walks in forests.

The index that matches events also finds the filters above, below and across a given filter. So the partners of a filter
are a single look-up, whatever else is stored; the pairing has no bounds to use and no forest to maintain. The
comparisons of the index are not counted in `tests`.
"""

from __future__ import annotations

from typing import Any

from fieldfare.filters.filter import Filter
from fieldfare.profiles.pairs import Asker, Object, Operator, Pairing, Side
from fieldfare.tables.base import FilterIndex


class IndexedPairing(Pairing[Object, Asker]):
    """Profiles against queries, each side in an index of its own.

    >>> from fieldfare import Index, parse
    >>> space: IndexedPairing[str, str] = IndexedPairing(Index(), Index(), "overlap")
    >>> space.queries.add(parse("price < 10"), "ana")
    []
    >>> space.profiles.add(parse("price BETWEEN 8 AND 12"), "book 7")
    [parse('price < 10')]
    """

    def __init__(self, profiles: FilterIndex, queries: FilterIndex, operator: Operator = "cover") -> None:
        """Make a pairing over two empty indexes, which nobody else may change.

        They come from the caller, as they use threads.
        """
        super().__init__(operator)
        self._profile_index = profiles
        self._query_index = queries

    def _store(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).add(filter, filter)

    def _drop(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).remove(filter)

    def _own(self, side: Side[Any]) -> FilterIndex:
        return self._profile_index if side is self.profiles else self._query_index

    def _find(self, side: Side[Any], filter: Filter) -> list[Filter]:
        across = self._own(side.other)
        if self.operator == "overlap":
            return across.overlapping(filter)
        return across.covering(filter) if side is self.profiles else across.covered(filter)
