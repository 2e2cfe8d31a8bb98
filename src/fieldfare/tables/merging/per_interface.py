"""`MergingTable`: merging inside a table. What one interface wants is stored as fewer filters that mean the same.

The table within holds, for each interface, the mergers of its filters and those that merged with none; only this
wrapper knows which filters were really asked for. When one of them goes, the merger it was in is made anew or taken
apart (see `rootmerging`, which does the same for what is exported): what the table says of an interface is always
exactly what the interface said. Only filters of the same interface merge, so nobody gets another's events.

Are covered filters remembered? A client's are: they count again when the larger one goes. A neighbour's are not: when a
neighbour takes back a larger filter, it says itself what that uncovers, and what it has taken back in silence must not
come to life again.
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


class _Wishes:
    """What one interface asked for, and the mergers of it."""

    def __init__(self, merging: Merging, table: Table[Interface]) -> None:
        self.asked: dict[Filter, None] = {}
        self.forest = Forest(table.tests)
        self.merger = RootMerger(merging, table.tests)

    def add(self, filter: Filter, *, keep: bool) -> None:
        """Let it want a filter; without `keep`, covered filters are forgotten."""
        if filter in self.asked:
            return
        node = self.forest.add(filter)
        self.asked[filter] = None
        if not keep:
            covered = [filter] if not self.forest.is_root(node) else [below.filter for below in node.below()][1:]
            for smaller in covered:
                self.remove(smaller)

    def remove(self, filter: Filter) -> None:
        """Let it want a filter no more."""
        if filter in self.asked:
            del self.asked[filter]
            self.forest.remove(filter)


class MergingTable(Generic[Interface]):
    """A table whose filters are merged for each interface.

    It is no `Table`: what one adds is not what is stored. Add and remove filters here, and ask `inner`.

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
        """Over an empty table, which is to be changed only through this one.

        `keeps` says whether the covered filters of an interface are remembered; if not given, those of clients are,
        and those of neighbours if the table is redundant. Clients get what they asked for: imperfect and lazy merging
        is for neighbours only.
        """
        self.inner = inner
        self.merging = merging
        self._keeps = keeps or (lambda interface: inner.redundant or interface not in inner.neighbours)
        self._wishes: dict[Interface, _Wishes] = {}

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Let an interface want a filter; False if it did already, or wants more and what is covered is forgotten."""
        before = filter in self._asked(interface)
        self._store(self._merged(TableUpdate(added=(filter,)), interface), interface)
        return not before and filter in self._asked(interface)

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Let an interface want a filter no more; False if it did not."""
        before = filter in self._asked(interface)
        self._store(self._merged(TableUpdate(removed=(filter,)), interface), interface)
        return before

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget an interface; gives the filters that it wanted."""
        gone = self.wanted(interface)
        self._store(self._merged(TableUpdate(removed=tuple(gone)), interface), interface)
        return gone

    def replace(self, interface: Interface, filters: Iterable[Filter]) -> None:
        """Let an interface want just these filters."""
        wanted = tuple(filters)
        gone = tuple(filter for filter in self._asked(interface) if filter not in wanted)
        self._store(self._merged(TableUpdate(wanted, gone), interface), interface)

    def apply(self, update: TableUpdate, sender: Interface) -> TableUpdates[Interface]:
        """Let an interface change its filters; gives what each neighbour must be told: routing based on merging."""
        return apply(self.inner, self._merged(update, sender), sender)

    def wanted(self, interface: Interface) -> list[Filter]:
        """The filters that an interface asked for, as far as they are remembered."""
        return list(self._asked(interface))

    def mergers(self, interface: Interface) -> list[Merger]:
        """The mergers of an interface."""
        return self._wishes[interface].merger.mergers() if interface in self._wishes else []

    def interfaces(self) -> list[Interface]:
        """All that want something."""
        return list(self._wishes)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""
        return self.inner.match(event)

    def _asked(self, interface: Interface) -> Mapping[Filter, None]:
        return self._wishes[interface].asked if interface in self._wishes else {}

    def _merged(self, update: TableUpdate, interface: Interface) -> TableUpdate:
        """What an update means for the table within: first all removals, then all additions."""
        for filter in update.added:
            satisfiable(filter)
        wishes = self._wishes.get(interface) or _Wishes(self._merging(interface), self.inner)
        for filter in update.removed:
            wishes.remove(filter)
        keep = self._keeps(interface)
        for filter in update.added:
            wishes.add(filter, keep=keep)
        if wishes.asked:
            self._wishes[interface] = wishes
        else:
            self._wishes.pop(interface, None)
        return wishes.merger.follow(wishes.forest.roots())

    def _merging(self, interface: Interface) -> Merging:
        if interface in self.inner.neighbours:
            return self.merging
        return dataclasses.replace(self.merging, imperfect=False, lazy=False, budget=0.0)

    def _store(self, update: TableUpdate, interface: Interface) -> None:
        # Removals first: a table that forgets what is covered would refuse the parts while it has their merger.
        for filter in update.removed:
            self.inner.remove(filter, interface)
        for filter in update.added:
            self.inner.add(filter, interface)
