"""`Pairing`: profiles on one side, queries on the other, and the pairs between them.

A *profile* describes a thing or a place: a filter over a region of possible events, down to a point. Unlike an event, a
profile stays until its removal. A *query* stays as well. Each addition and removal returns the partners on the other
side: the queries that *cover* the profile, or *overlap* it.

Several ids may share a filter: the objects with a profile, the askers with a query. Expected filters can be
*preloaded*: their partners are found beforehand, so that the first id costs no comparison. Answers name only partners
with an id at present.

All structures give the same answers, in order of arrival; they differ in the number of comparisons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Tests, satisfiable

Operator: TypeAlias = Literal["cover", "overlap"]
"""the relation in which a query must stand to a profile"""

Id = TypeVar("Id", bound=Hashable)
Object = TypeVar("Object", bound=Hashable)
Asker = TypeVar("Asker", bound=Hashable)


class Pairing(ABC, Generic[Object, Asker]):
    """Two sides: `profiles`, whose ids are objects, and `queries`, whose ids are askers.

    For all stored p and q: q is a partner of p, and p a partner of q, exactly if q covers (or overlaps) p.
    """

    def __init__(self, operator: Operator = "cover") -> None:
        if operator not in get_args(Operator):
            raise ValueError(f"the operator is 'cover' or 'overlap', not {operator!r}")
        self.operator: Operator = operator
        self.tests = Tests()
        self.profiles: Side[Object] = Side(self)
        self.queries: Side[Asker] = Side(self)

    def meets(self, query: Filter, profile: Filter) -> bool:
        """Tell whether a query covers (or overlaps) a profile, and count the comparison."""
        return self.tests.covers(query, profile) if self.operator == "cover" else self.tests.overlaps(query, profile)

    def pairs(self) -> Iterator[tuple[Filter, Filter]]:
        """Yield all pairs of a profile and a query that have ids."""
        for profile in self.profiles:
            for query in self.profiles.partners(profile):
                yield profile, query

    # For implementations

    @abstractmethod
    def _find(self, side: Side[Any], filter: Filter) -> Iterable[Filter]:
        """Return the partners of a filter on the other side, also those without ids, in any order."""

    def _store(self, side: Side[Any], filter: Filter) -> None:
        """Prepare the structure for a new filter; `_find` is called right after."""

    def _drop(self, side: Side[Any], filter: Filter) -> None:
        """Remove all traces of a filter."""


@dataclass(eq=False, slots=True)
class _Stored(Generic[Id]):
    """A stored filter with its ids and its partners. Dicts, because sets of filters have no order."""

    number: int
    ids: dict[Id, None] = field(default_factory=dict)
    partners: dict[Filter, None] = field(default_factory=dict)
    expected: bool = False
    """preloaded, so that the filter stays without ids"""


class Side(Generic[Id]):
    """The filters of one side of a pairing, with their ids."""

    def __init__(self, pairing: Pairing[Any, Any]) -> None:
        self._pairing = pairing
        self._stored: dict[Filter, _Stored[Id]] = {}
        self._count = 0

    @property
    def other(self) -> Side[Any]:
        """The opposite side of the pairing."""
        return self._pairing.queries if self is self._pairing.profiles else self._pairing.profiles

    # Changes

    def add(self, filter: Filter, id: Id) -> list[Filter]:
        """Give an id a filter and return the partners. A filter that no event can match is a ValueError."""
        stored = self._kept(filter)
        stored.ids[id] = None
        return self._live(stored)

    def remove(self, filter: Filter, id: Id) -> list[Filter]:
        """Take a filter from an id and return the partners. A filter which the id does not have is a KeyError."""
        stored = self._stored[filter]
        del stored.ids[id]
        partners = self._live(stored)
        self._tidy(filter, stored)
        return partners

    def preload(self, filters: Iterable[Filter]) -> None:
        """Keep filters from now on, with or without ids."""
        for filter in filters:
            self._kept(filter).expected = True

    def forget(self, filters: Iterable[Filter]) -> None:
        """Undo `preload`: keep filters only while they have ids."""
        for filter in filters:
            stored = self._stored.get(filter)
            if stored is not None:
                stored.expected = False
                self._tidy(filter, stored)

    # Questions

    def partners(self, filter: Filter) -> list[Filter]:
        """Return the partners of a filter with ids at present. The filter need not be stored."""
        stored = self._stored.get(filter)
        if stored is not None:
            return self._live(stored)
        return [f for f in self.other._in_order(self._pairing._find(self, satisfiable(filter))) if self.other.ids(f)]

    def ids(self, filter: Filter) -> AbstractSet[Id]:
        """Return the ids that have a filter."""
        stored = self._stored.get(filter)
        return stored.ids.keys() if stored is not None else frozenset()

    def stored(self) -> list[Filter]:
        """Return all stored filters, also those without ids."""
        return list(self._stored)

    def __iter__(self) -> Iterator[Filter]:
        return iter([filter for filter, stored in self._stored.items() if stored.ids])

    def __len__(self) -> int:
        """Return the number of filters with ids."""
        return sum(1 for stored in self._stored.values() if stored.ids)

    def __contains__(self, filter: object) -> bool:
        return isinstance(filter, Filter) and bool(self.ids(filter))

    # The links between the sides

    def _kept(self, filter: Filter) -> _Stored[Id]:
        stored = self._stored.get(filter)
        if stored is None:
            self._pairing._store(self, satisfiable(filter))
            found = self.other._in_order(self._pairing._find(self, filter))
            self._count += 1
            stored = self._stored[filter] = _Stored(self._count, partners=dict.fromkeys(found))
            for partner in found:  # the newest comes last: partners stay in order of arrival
                self.other._stored[partner].partners[filter] = None
        return stored

    def _tidy(self, filter: Filter, stored: _Stored[Id]) -> None:
        if stored.ids or stored.expected:
            return
        del self._stored[filter]
        for partner in stored.partners:
            del self.other._stored[partner].partners[filter]
        self._pairing._drop(self, filter)

    def _live(self, stored: _Stored[Id]) -> list[Filter]:
        theirs = self.other._stored
        return [partner for partner in stored.partners if theirs[partner].ids]

    def _known(self, filter: Filter) -> dict[Filter, None]:
        """Return the partners of a stored filter, also those without ids: bounds for the filters around."""
        return self._stored[filter].partners

    def _in_order(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self._stored[filter].number)


class NaivePairing(Pairing[Object, Asker]):
    """The definition itself: a new filter is compared with every filter on the other side."""

    def _find(self, side: Side[Any], filter: Filter) -> list[Filter]:
        if side is self.profiles:
            return [query for query in self.queries.stored() if self.meets(query, filter)]
        return [profile for profile in self.profiles.stored() if self.meets(filter, profile)]
