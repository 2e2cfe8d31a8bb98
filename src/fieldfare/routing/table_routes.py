"""`TableRoutes`: routes by tables of filters. Each strategy is a choice of tables.

The table of subscriptions determines the filters which neighbours learn (`tables.updates`): all filters by name
(*simple*), those of different meaning (*identity*), those that no other covers (*covering*). A merger behind the table
makes them fewer. With advertisements there is a second table, and subscriptions only go towards advertisements.

The role of a neighbour decides which filters and events the neighbour gets. All peers: peer-to-peer routing. All
parents and children: hierarchical routing. Peers among parents: hybrid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Role
from fieldfare.routing.routes import LOCAL, LinkRoutes, Outgoing
from fieldfare.tables.advertised import AdvertisedTable
from fieldfare.tables.base import Table
from fieldfare.tables.cover_set import CoverSet
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.shared_index import Entries, SharedIndex
from fieldfare.tables.updates import TableUpdate, TableUpdates, apply, exported

if TYPE_CHECKING:
    from fieldfare.routing.strategies import Strategy
    from fieldfare.tables.merging.per_interface import MergingTable

_NOTHING = TableUpdate()


class TableRoutes(LinkRoutes):
    """Routes by the filters of interfaces."""

    def __init__(self, strategy: Strategy, index: SharedIndex) -> None:
        """Make routes without neighbours and filters. Subscriptions stand in the index of the broker."""
        super().__init__()
        assert strategy.table is not None
        self.subscriptions: Table[str] = strategy.table(towards=self._towards, index=index)
        self.advertised: AdvertisedTable[str] | None = None
        if strategy.advertisements is not None:
            advertisements = strategy.advertisements(towards=lambda _: self._informed, index=index.beside())
            self.advertised = AdvertisedTable(advertisements, self.subscriptions)
        self._merger: NeighbourMerger[str] | None = None
        self._merging: MergingTable[str] | None = None
        if strategy.merging is not None and strategy.merge_stored:
            from fieldfare.tables.merging.per_interface import MergingTable  # noqa: PLC0415 - imports forests

            self._merging = MergingTable(self.subscriptions, strategy.merging, keeps=lambda _: False)
        elif strategy.merging is not None:
            self._merger = NeighbourMerger((), strategy.merging)
        self._informed: frozenset[str] = frozenset()
        self._parents: frozenset[str] = frozenset()
        self._locals = {
            about: CoverSet(index if about == "subscriptions" else index.beside())
            for about, table in self._tables().items()
            if not table.redundant
        }

    def _tables(self) -> dict[About, Table[str]]:
        both: dict[About, Table[str]] = {"subscriptions": self.subscriptions}
        return both if self.advertised is None else {**both, "advertisements": self.advertised.advertisements}

    def _towards(self, filter: Filter) -> frozenset[str]:
        """Return the neighbours that may learn a subscription: parents, and peers with an overlapping advertisement."""
        if self.advertised is None:
            return self._informed
        table = self.advertised.advertisements
        advertising = {one for other in table.overlapping(filter) for one in table.interfaces(other)}
        return self._informed & (advertising | self._parents)

    # Neighbours

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Add a neighbour and send the neighbour all exported filters."""
        self._set_neighbours({**self.roles, neighbour: role})
        return self._introduce(neighbour)

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Remove all filters of a neighbour, as if the neighbour had withdrawn them, and then the neighbour."""
        if self._merger is not None:
            self._withdraw_subscriptions(neighbour)
        outgoing = []
        for about in self._tables():
            gone = self.filters_of(neighbour, about)
            outgoing += self.apply(FilterUpdate(removed=gone, about=about), neighbour) if gone else []
        self._set_neighbours({other: role for other, role in self.roles.items() if other != neighbour})
        return [to for to in outgoing if to.neighbour != neighbour]

    def set_role(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Withdraw the filters sent to a neighbour, change its role, and send the filters of the new role."""
        outgoing = self._withdraw(neighbour)
        self._set_neighbours({**self.roles, neighbour: role})
        return outgoing + self._introduce(neighbour)

    def _set_neighbours(self, roles: dict[str, Role]) -> None:
        self.roles = roles
        self._informed = frozenset(one for one, role in roles.items() if role in (Role.PEER, Role.PARENT))
        self._parents = frozenset(one for one, role in roles.items() if role is Role.PARENT)
        for table in self._tables().values():
            table.neighbours = frozenset(roles)

    def _introduce(self, neighbour: str) -> list[Outgoing]:
        outgoing = []
        if self.advertised is not None:
            advertisements = exported(self.advertised.advertisements, neighbour)
            outgoing += _as_outgoing({neighbour: TableUpdate(added=advertisements)}, "advertisements")
        return outgoing + self._merged({neighbour: TableUpdate(added=exported(self.subscriptions, neighbour))})

    def _withdraw(self, neighbour: str) -> list[Outgoing]:
        outgoing = []
        if self.advertised is not None:
            advertisements = exported(self.advertised.advertisements, neighbour)
            outgoing += _as_outgoing({neighbour: TableUpdate(removed=advertisements)}, "advertisements")
        return outgoing + self._withdraw_subscriptions(neighbour)

    def _withdraw_subscriptions(self, neighbour: str) -> list[Outgoing]:
        """Withdraw all subscriptions which a neighbour knows."""
        return self._merged({neighbour: TableUpdate(removed=exported(self.subscriptions, neighbour))})

    def subjects(self) -> tuple[About, ...]:
        """Return advertisements before subscriptions, because subscriptions follow advertisements."""
        return tuple(sorted(self._tables()))

    def exports(self, neighbour: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """Return all filters which a neighbour must know, merged if the strategy merges."""
        if about == "advertisements":
            return exported(self._tables()[about], neighbour)
        if self._merger is not None:
            return tuple(sorted(self._merger.exported(neighbour), key=str))
        return exported(self.subscriptions, neighbour)

    def filters_of(self, interface: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """Return the subscriptions or advertisements of an interface."""
        if about == "subscriptions" and self._merging is not None:
            return tuple(self._merging.wanted(interface))
        table = self._tables()[about]
        return tuple(filter for filter in table.filters() if interface in table.interfaces(filter))

    # Filters

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Apply a change of an interface's subscriptions or advertisements to the tables."""
        if update.about == "advertisements" and self.advertised is None:
            return []  # no direction depends on advertisements
        change = TableUpdate(update.added, update.removed)
        if update.all:
            had, added = dict.fromkeys(self.filters_of(sender, update.about)), dict.fromkeys(update.added)
            change = TableUpdate(tuple(f for f in added if f not in had), tuple(f for f in had if f not in added))
        if sender == LOCAL and update.about in self._locals:
            # Neighbours need no update for a filter below the filter of another client.
            change = self._locals[update.about].apply(change)
            if change == _NOTHING:
                return []
        if update.about == "advertisements" and self.advertised is not None:
            updates = self.advertised.advertise(change, sender)
            return _as_outgoing(updates.advertisements, "advertisements") + self._merged(updates.subscriptions)
        if self._merging is not None:
            return _as_outgoing(self._merging.apply(change, sender))
        return self._merged(apply(self.subscriptions, change, sender))

    def _merged(self, updates: TableUpdates[str]) -> list[Outgoing]:
        return _as_outgoing(updates if self._merger is None else self._merger.change(updates))

    # Events

    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return the neighbours with a matching subscription, and the parents; the sender is left out."""
        found = self.subscriptions.recipients(event.event, matched, LOCAL)
        found |= self._parents
        found.discard(sender)
        return found

    def note_forwards(self, neighbour: str, wanted: int, unwanted: Sequence[Event]) -> None:
        """Tell the merger the number of events in vain, for merging with a budget."""
        if self._merger is not None:
            self._merger.note_forwards(neighbour, wanted, unwanted)

    @property
    def wakes(self) -> float | None:
        """At once, if a neighbour forwards too many unwanted events."""
        return 0.0 if self._merger is not None and self._merger.overdue else None

    def tick(self, now: float) -> list[Outgoing]:
        """Send narrower filters to neighbours with too many unwanted events."""
        merger = self._merger
        return [] if merger is None else _as_outgoing({one: merger.relieve(one) for one in merger.overdue})

    @property
    def entries(self) -> int:
        """The number of (filter, interface) pairs, of subscriptions and of advertisements."""
        tables = self._tables().values()
        return sum(len(table.interfaces(filter)) for table in tables for filter in table.filters())


def _as_outgoing(updates: TableUpdates[str], about: About = "subscriptions") -> list[Outgoing]:
    return [
        Outgoing(neighbour, FilterUpdate(update.added, update.removed, about))
        for neighbour, update in updates.items()
        if neighbour != LOCAL and update != _NOTHING
    ]
