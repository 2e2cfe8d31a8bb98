"""`NaiveTable`: the definitions by brute force, as an oracle for tests of the other tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards, satisfiable
from fieldfare.tables.covers import minimal_cover


class NaiveTable(Table[Interface]):
    """A dict from filter to interfaces, redundant or not."""

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        redundant: bool = False,
    ) -> None:
        super().__init__(neighbours, towards=towards)
        self.redundant = redundant
        self._interfaces: dict[Filter, set[Interface]] = {}

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair after a comparison with all filters of the interface."""
        satisfiable(filter)
        mine = [other for other, them in self._interfaces.items() if interface in them]
        if filter in mine or (not self.redundant and any(self.tests.covers(other, filter) for other in mine)):
            return False
        if not self.redundant:
            for other in mine:
                if self.tests.covers(filter, other):
                    self.remove(other, interface)
        self._interfaces.setdefault(filter, set()).add(interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair, and a filter without interfaces."""
        them = self._interfaces.get(filter, set())
        if interface not in them:
            return False
        them.remove(interface)
        if not them:
            del self._interfaces[filter]
        return True

    def filters(self) -> Iterator[Filter]:
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self._interfaces))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        return self._interfaces.get(filter, frozenset())

    def roots(self) -> list[Filter]:
        """Return the minimal cover, computed from scratch."""
        return minimal_cover(self._interfaces, self.tests)

    def exported(self, neighbour: Interface) -> list[Filter]:
        """Return the minimal cover of the filters from other interfaces that the neighbour may learn."""
        return minimal_cover(
            (f for f, them in self._interfaces.items() if them - {neighbour} and neighbour in self.towards(f)),
            self.tests,
        )

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours to whose exported sets a filter belongs."""
        return frozenset(neighbour for neighbour in self.neighbours if filter in self.exported(neighbour))

    def beneath(self, filter: Filter) -> list[Filter]:
        """Return all other filters which the filter covers."""
        return [other for other in self.covered(filter) if other != filter]

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return {i for f, them in self._interfaces.items() if self.tests.matches(f, event) for i in them}

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter."""
        return [other for other in self._interfaces if self.tests.covers(other, filter)]

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers."""
        return [other for other in self._interfaces if self.tests.covers(filter, other)]

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter."""
        return [other for other in self._interfaces if self.tests.overlaps(filter, other)]
