"""`TableRoutes`: routes by tables of filters. Each strategy is a choice of tables.

A table of subscriptions says which neighbours must know what (`tables.updates`): all filters by name (*simple*),
those of different meaning (*identity*), those that no other covers (*covering*). A merger behind it makes them fewer.
With advertisements there is a second table, of what will be published, and subscriptions only go where it points.

A neighbour's role says what it is told and given. All peers: peer-to-peer routing. All parents and children:
hierarchical routing. Peers among parents: hybrid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Role
from fieldfare.routing.routes import LOCAL, LinkRoutes, To
from fieldfare.tables.advertised import AdvertisedTable
from fieldfare.tables.base import MakeIndex, Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging.per_interface import MergingTable
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.updates import Update, Updates, apply, exported

if TYPE_CHECKING:
    from fieldfare.routing.strategies import Strategy

_NOTHING = Update()


class TableRoutes(LinkRoutes):
    """Routes by filters."""

    def __init__(self, strategy: Strategy, index: MakeIndex = Index) -> None:
        """No neighbours and no filters yet."""
        super().__init__()
        assert strategy.table is not None
        self.subscriptions: Table[str] = strategy.table(towards=self._towards, index=index)
        self.advertised: AdvertisedTable[str] | None = None
        if strategy.advertisements is not None:
            promises = strategy.advertisements(towards=lambda _: self._told, index=index)
            self.advertised = AdvertisedTable(promises, self.subscriptions)
        self._merger: NeighbourMerger[str] | None = None
        self._merging: MergingTable[str] | None = None
        if strategy.merging is not None and strategy.merge_stored:
            self._merging = MergingTable(self.subscriptions, strategy.merging, keeps=lambda _: False)
        elif strategy.merging is not None:
            self._merger = NeighbourMerger((), strategy.merging)
        self._told: frozenset[str] = frozenset()
        self._parents: frozenset[str] = frozenset()
        self._locals = {
            about: IndexedTable[str]([LOCAL], redundant=True, index=index)
            for about, table in self._tables().items()
            if not table.redundant
        }

    def _tables(self) -> dict[About, Table[str]]:
        both: dict[About, Table[str]] = {"subscriptions": self.subscriptions}
        return both if self.advertised is None else {**both, "advertisements": self.advertised.advertisements}

    def _towards(self, filter: Filter) -> frozenset[str]:
        """Where a subscription may go: to all that are told anything, but to a peer only if it advertises something."""
        if self.advertised is None:
            return self._told
        table = self.advertised.advertisements
        promising = {one for other in table.overlapping(filter) for one in table.interfaces(other)}
        return self._told & (promising | self._parents)

    # Neighbours

    def connect(self, neighbour: str, role: Role) -> list[To]:
        """Tell a new neighbour all that it must know."""
        self._set_neighbours({**self.roles, neighbour: role})
        return self._introduce(neighbour)

    def disconnect(self, neighbour: str) -> list[To]:
        """Let what a neighbour wanted and promised be removed, as if it had said so."""
        if self._merger is not None:
            self._forget_told(neighbour)
        told = []
        for about in self._tables():
            gone = self.told_by(neighbour, about)
            told += self.tell(FilterUpdate(removed=gone, about=about), neighbour) if gone else []
        self._set_neighbours({other: role for other, role in self.roles.items() if other != neighbour})
        return [to for to in told if to.neighbour != neighbour]

    def turn(self, neighbour: str, role: Role) -> list[To]:
        """Let a neighbour have another role from now on. What it told us stays; what we told it we take back."""
        told = self._take_back(neighbour)
        self._set_neighbours({**self.roles, neighbour: role})
        return told + self._introduce(neighbour)

    def _set_neighbours(self, roles: dict[str, Role]) -> None:
        self.roles = roles
        self._told = frozenset(one for one, role in roles.items() if role in (Role.PEER, Role.PARENT))
        self._parents = frozenset(one for one, role in roles.items() if role is Role.PARENT)
        for table in self._tables().values():
            table.neighbours = frozenset(roles)

    def _introduce(self, neighbour: str) -> list[To]:
        told = []
        if self.advertised is not None:
            promises = exported(self.advertised.advertisements, neighbour)
            told += _as_tells({neighbour: Update(added=promises)}, "advertisements")
        return told + self._merged({neighbour: Update(added=exported(self.subscriptions, neighbour))})

    def _take_back(self, neighbour: str) -> list[To]:
        told = []
        if self.advertised is not None:
            promises = exported(self.advertised.advertisements, neighbour)
            told += _as_tells({neighbour: Update(removed=promises)}, "advertisements")
        return told + self._forget_told(neighbour)

    def _forget_told(self, neighbour: str) -> list[To]:
        """Whatever a neighbour was told of subscriptions, it is to know no more."""
        return self._merged({neighbour: Update(removed=exported(self.subscriptions, neighbour))})

    def subjects(self) -> tuple[About, ...]:
        """Promises first: subscriptions follow them."""
        return tuple(sorted(self._tables()))

    def exports(self, neighbour: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """All that a neighbour must know, merged if that is how it was told."""
        if about == "advertisements":
            return exported(self._tables()[about], neighbour)
        if self._merger is not None:
            return tuple(sorted(self._merger.exported(neighbour), key=str))
        return exported(self.subscriptions, neighbour)

    def told_by(self, interface: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """What an interface wants, or promises."""
        if about == "subscriptions" and self._merging is not None:
            return tuple(self._merging.wanted(interface))
        table = self._tables()[about]
        return tuple(filter for filter in table.filters() if interface in table.interfaces(filter))

    # Filters

    def tell(self, tell: FilterUpdate, sender: str) -> list[To]:
        """An interface changes what it wants or promises."""
        if tell.about == "advertisements" and self.advertised is None:
            return []  # nobody's way depends on promises
        update = Update(tell.added, tell.removed)
        if tell.all:
            had, added = dict.fromkeys(self.told_by(sender, tell.about)), dict.fromkeys(tell.added)
            update = Update(tuple(f for f in added if f not in had), tuple(f for f in had if f not in added))
        if sender == LOCAL and tell.about in self._locals:
            # Neighbours need not notice what a client says if others say more.
            update = apply(self._locals[tell.about], update, "client").get(LOCAL, _NOTHING)
        if tell.about == "advertisements" and self.advertised is not None:
            told = self.advertised.advertise(update, sender)
            return _as_tells(told.advertisements, "advertisements") + self._merged(told.subscriptions)
        if self._merging is not None:
            return _as_tells(self._merging.apply(update, sender))
        return self._merged(apply(self.subscriptions, update, sender))

    def _merged(self, updates: Updates[str]) -> list[To]:
        return _as_tells(updates if self._merger is None else self._merger.change(updates))

    # Events

    def match(self, event: Forward, sender: str) -> set[str]:
        """Those that want the event, and the parents."""
        found = self.subscriptions.match(event.event) | self._parents
        if sender != LOCAL:
            found.discard(sender)
        return found

    @property
    def entries(self) -> int:
        """All pairs of subscriptions, and of advertisements."""
        tables = self._tables().values()
        return sum(len(table.interfaces(filter)) for table in tables for filter in table.filters())


def _as_tells(updates: Updates[str], about: About = "subscriptions") -> list[To]:
    return [
        To(neighbour, FilterUpdate(update.added, update.removed, about))
        for neighbour, update in updates.items()
        if neighbour != LOCAL and update != _NOTHING
    ]
