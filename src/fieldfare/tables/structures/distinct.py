"""`DistinctTable`: filters that are compared for equality only.

A neighbour must know every filter, except a filter that came from the neighbour alone. The result is identity-based
routing; or simple routing, if named filters make all filters different.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards, satisfiable
from fieldfare.tables.shared_index import Entries, Part, SharedIndex


class DistinctTable(Table[Interface]):
    """Filters and their interfaces, where a filter covers nothing but itself.

    >>> from fieldfare.filters import parse
    >>> table = DistinctTable(["north", "south"])
    >>> table.add(parse("x < 5"), "ana"), table.add(parse("x < 3"), "north")
    (True, True)
    >>> [sorted(table.forwards(filter)) for filter in table.roots()]
    [['north', 'south'], ['south']]
    """

    redundant = True

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        index: SharedIndex | None = None,
    ) -> None:
        """Make an empty table, over a shared index or an index of its own."""
        super().__init__(neighbours, towards=towards)
        self._interfaces: dict[Filter, set[Interface]] = {}
        self._part: Part[tuple[Filter, set[Interface]]] = (SharedIndex() if index is None else index).part()

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair; no other pair is affected."""
        known = self._interfaces.get(filter)
        if known is None:
            known = self._interfaces[satisfiable(filter)] = set()
            self._part.add((filter, known), filter)
        if interface in known:
            return False
        known.add(interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair; no other pair is affected."""
        known = self._interfaces.get(filter, set())
        if interface not in known:
            return False
        known.remove(interface)
        if not known:
            del self._interfaces[filter]
            self._part.remove(filter)
        return True

    def filters(self) -> Iterator[Filter]:
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self._interfaces))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        return self._interfaces.get(filter, frozenset())

    def __len__(self) -> int:
        return len(self._interfaces)

    def roots(self) -> list[Filter]:
        """Return all filters: no filter covers another here."""
        return list(self._interfaces)

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return all neighbours, except the only interface from which the filter came."""
        return self._told(filter) if filter in self._interfaces else frozenset()

    def beneath(self, filter: Filter) -> list[Filter]:
        """Return an empty list: no filter hides another."""
        return []

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return self._interfaces_of(self._part.shared.match(event))

    def recipients(self, event: Mapping[str, object], matched: Entries, without: Interface) -> set[Interface]:
        """Return the interfaces of the filters that an event matches, given the matches of the shared index."""
        found = self._interfaces_of(matched)
        found.discard(without)
        return found

    def _interfaces_of(self, matched: Entries) -> set[Interface]:
        return set().union(*(interfaces for _, interfaces in self._part.select(matched)))

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the filter itself, if the filter is stored."""
        return [filter] if filter in self._interfaces else []

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the filter itself, if the filter is stored."""
        return self.covering(filter)

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter by meaning, as advertisements need."""
        found = {stored for stored, _ in self._part.overlapping(filter)}
        return [stored for stored in self._interfaces if stored in found] if found else []
