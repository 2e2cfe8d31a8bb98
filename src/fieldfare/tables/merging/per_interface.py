"""`MergingTable`: merging inside a table.

The filters of an interface are stored as fewer filters with the same meaning.

The inner table holds, for each interface, the mergers of its filters and the filters that merged with none; only the
wrapper knows the original filters. When an original filter goes, its merger is made anew or taken apart (as in `roots`,
for exported filters): the inner table always means exactly the filters of the interface. Only filters of the same
interface merge, so no interface gets another's events.

Are covered filters remembered? Those of a client are: they count again when the larger filter goes. Those of a
neighbour are not: a neighbour that removes a larger filter sends the uncovered filters itself, and filters which the
neighbour removed silently must not come back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Generic

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, satisfiable
from fieldfare.tables.merging.roots import Merger, RootMerger
from fieldfare.tables.merging.rules import PERFECT, Merging
from fieldfare.tables.structures.forest import Forest
from fieldfare.tables.updates import TableUpdate, TableUpdates, apply


class _InterfaceFilters:
    """The original filters of an interface, with their mergers."""

    def __init__(self, merging: Merging, table: Table[Interface]) -> None:
        self.asked: dict[Filter, None] = {}
        self.forest = Forest(table.tests)
        self.merger = RootMerger(merging, table.tests)

    def add(self, filter: Filter, *, keep: bool) -> None:
        """Add a filter; without `keep`, covered filters are forgotten."""
        if filter in self.asked:
            return
        node = self.forest.add(filter)
        self.asked[filter] = None
        if not keep:
            covered = [filter] if not self.forest.is_root(node) else [below.filter for below in node.below()][1:]
            for smaller in covered:
                self.remove(smaller)

    def remove(self, filter: Filter) -> None:
        """Remove a filter, if the filter is there."""
        if filter in self.asked:
            del self.asked[filter]
            self.forest.remove(filter)


class MergingTable(Generic[Interface]):
    """A table whose filters are merged for each interface.

    `MergingTable` is no `Table`, because stored filters are not the added filters. Add and remove filters here, and ask
    `inner`.

    >>> from fieldfare.filters import parse
    >>> from fieldfare.tables.structures.naive import NaiveTable
    >>> table: MergingTable[str] = MergingTable(NaiveTable())
    >>> table.add(parse("x BETWEEN 0 AND 5"), "ana"), table.add(parse("x BETWEEN 5 AND 9"), "ana")
    (True, True)
    >>> list(table.inner.filters())
    [parse('x BETWEEN 0 AND 9')]
    """

    def __init__(
        self,
        inner: Table[Interface],
        merging: Merging = PERFECT,
        *,
        keeps: Callable[[Interface], bool] | None = None,
    ) -> None:
        """Wrap an empty table, which must be changed only through the wrapper.

        `keeps` tells whether covered filters of an interface are remembered; by default those of clients are, and those
        of neighbours if the table is redundant. Clients get exact filters: imperfect and lazy merging is for neighbours
        only.
        """
        self.inner = inner
        self.merging = merging
        self._keeps = keeps or (lambda interface: inner.redundant or interface not in inner.neighbours)
        self._filters: dict[Interface, _InterfaceFilters] = {}

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Add a filter to an interface.

        False if known, or if the filter is covered and the interface forgets covered filters.
        """
        before = filter in self._asked(interface)
        self._store(self._merged(TableUpdate(added=(filter,)), interface), interface)
        return not before and filter in self._asked(interface)

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Remove a filter from an interface; False if the interface did not have the filter."""
        before = filter in self._asked(interface)
        self._store(self._merged(TableUpdate(removed=(filter,)), interface), interface)
        return before

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget an interface and return its original filters."""
        gone = self.wanted(interface)
        self._store(self._merged(TableUpdate(removed=tuple(gone)), interface), interface)
        return gone

    def replace(self, interface: Interface, filters: Iterable[Filter]) -> None:
        """Give an interface exactly these filters and no others."""
        wanted = tuple(filters)
        gone = tuple(filter for filter in self._asked(interface) if filter not in wanted)
        self._store(self._merged(TableUpdate(wanted, gone), interface), interface)

    def apply(self, update: TableUpdate, sender: Interface) -> TableUpdates[Interface]:
        """Apply a change of an interface's filters; return the updates for neighbours.

        The result is merging-based routing.
        """
        return apply(self.inner, self._merged(update, sender), sender)

    def wanted(self, interface: Interface) -> list[Filter]:
        """Return the original filters of an interface, as far as they are remembered."""
        return list(self._asked(interface))

    def mergers(self, interface: Interface) -> list[Merger]:
        """Return the mergers made of an interface's filters."""
        return self._filters[interface].merger.mergers() if interface in self._filters else []

    def interfaces(self) -> list[Interface]:
        """Return all interfaces with a filter."""
        return list(self._filters)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return self.inner.match(event)

    def _asked(self, interface: Interface) -> Mapping[Filter, None]:
        return self._filters[interface].asked if interface in self._filters else {}

    def _merged(self, update: TableUpdate, interface: Interface) -> TableUpdate:
        """Translate an update into an update of the inner table: first all removals, then all additions."""
        for filter in update.added:
            satisfiable(filter)
        own = self._filters.get(interface) or _InterfaceFilters(self._merging(interface), self.inner)
        for filter in update.removed:
            own.remove(filter)
        keep = self._keeps(interface)
        for filter in update.added:
            own.add(filter, keep=keep)
        if own.asked:
            self._filters[interface] = own
        else:
            self._filters.pop(interface, None)
        return own.merger.follow(own.forest.roots())

    def _merging(self, interface: Interface) -> Merging:
        if interface in self.inner.neighbours:
            return self.merging
        return dataclasses.replace(self.merging, imperfect=False, lazy=False, budget=0.0)

    def _store(self, update: TableUpdate, interface: Interface) -> None:
        # Removals first: a non-redundant table would refuse the parts of a merger while the merger is stored.
        for filter in update.removed:
            self.inner.remove(filter, interface)
        for filter in update.added:
            self.inner.add(filter, interface)
