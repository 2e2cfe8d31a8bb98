"""`DistinctTable`: filters that are compared for equality only.

A neighbour must know every filter that did not come from it alone. That is identity-based routing; and simple routing,
if no two filters are equal, since each has a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables.base import Interface, MakeIndex, Table, Towards, satisfiable


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
        index: MakeIndex = Index,
    ) -> None:
        """An empty table; `index` makes what it asks, an `Index` or a part of a `Universe`."""
        super().__init__(neighbours, towards=towards)
        self._interfaces: dict[Filter, set[Interface]] = {}
        self._index = index()

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair."""
        known = self._interfaces.get(filter)
        if known is None:
            self._index.add(satisfiable(filter), filter)
            known = self._interfaces[filter] = set()
        if interface in known:
            return False
        known.add(interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair."""
        known = self._interfaces.get(filter, set())
        if interface not in known:
            return False
        known.remove(interface)
        if not known:
            del self._interfaces[filter]
            self._index.remove(filter)
        return True

    def filters(self) -> Iterator[Filter]:
        """All stored filters."""
        return iter(list(self._interfaces))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Where a filter came from."""
        return self._interfaces.get(filter, frozenset())

    def __len__(self) -> int:
        return len(self._interfaces)

    def roots(self) -> list[Filter]:
        """All of them."""
        return list(self._interfaces)

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """The neighbours that must know a filter: all but the only one it came from."""
        return self._told(filter) if filter in self._interfaces else frozenset()

    def beneath(self, filter: Filter) -> list[Filter]:
        """Nothing: no filter hides another."""
        return []

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""
        return set().union(*(self._interfaces[filter] for filter in self._index.match(event)))

    def covering(self, filter: Filter) -> list[Filter]:
        """The filter itself, if it is stored."""
        return [filter] if filter in self._interfaces else []

    def covered(self, filter: Filter) -> list[Filter]:
        """The filter itself, if it is stored."""
        return self.covering(filter)

    def overlapping(self, filter: Filter) -> list[Filter]:
        """The stored filters that overlap a given one; here meaning counts, for that is how advertisements work."""
        found = set(self._index.overlapping(filter))
        return [stored for stored in self._interfaces if stored in found] if found else []
