"""`SplitTable`: one table for the clients of a broker, one for its neighbours; and well-tried choices of the two.

Clients are many and come and go; neighbours are few and should not notice. So the clients have a table of their own,
and all that the other one sees of it is its roots, as the filters of one more interface, `LOCAL`. An event is matched
with the small table first, and with the clients' only if it concerns `LOCAL`: there a dedicated matcher may do it.

The clients' table does not know that it is one. Its only neighbour is `LOCAL`, to whom it tells what becomes a root and
what no longer is one, like a broker to its master.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.matching.base import Matcher
from fieldfare.matching.index import Index
from fieldfare.tables.advertised import AdvertisedTable, Told, advertisers
from fieldfare.tables.base import Interface, Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.structures.forest_tables import NonRedundantForest, PosetForest
from fieldfare.tables.structures.poset import Poset
from fieldfare.tables.updates import Update, Updates, apply


class Inside(Enum):
    """Interfaces that lead to no neighbour and to no single client."""

    LOCAL = "all clients together"
    RENDEZVOUS = "the broker itself, as if it published what meets at it"


LOCAL: Final = Inside.LOCAL

AnyInterface: TypeAlias = Interface | Inside


class Recipients(NamedTuple, Generic[Interface]):
    """Whom an event concerns, be it those that it came from."""

    neighbours: set[Interface]
    clients: set[Interface]


class Clients(Generic[Interface]):
    """The filters of the clients; others see their roots, as filters of `LOCAL`."""

    def __init__(
        self, table: Table[AnyInterface[Interface]], matcher: Matcher[tuple[Interface, Filter]] | None = None
    ) -> None:
        """No clients yet: the table is empty and has the one neighbour `LOCAL`. A matcher finds them in its place."""
        self.table = table
        self.matcher = matcher
        self._filters: dict[Interface, dict[Filter, None]] = {}

    def add(self, filter: Filter, client: Interface) -> Update:
        """Give a client a filter; gives what changes for `LOCAL`."""
        told = self._apply(Update(added=(filter,)), client)
        mine = self._filters.setdefault(client, {})
        if self.matcher is not None and filter not in mine:
            self.matcher.add((client, filter), filter)
        mine[filter] = None
        return told

    def remove(self, filter: Filter, client: Interface) -> Update:
        """Take a filter from a client."""
        return self._remove([filter] if filter in self._filters.get(client, {}) else [], client)

    def leave(self, client: Interface) -> Update:
        """Take all filters from a client."""
        return self._remove(list(self._filters.get(client, {})), client)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The clients that want an event."""
        if self.matcher is not None:
            return {client for client, _ in self.matcher.match(event)}
        return {client for client in self.table.match(event) if not isinstance(client, Inside)}

    def _remove(self, gone: list[Filter], client: Interface) -> Update:
        mine = self._filters.get(client, {})
        for filter in gone:
            del mine[filter]
            if self.matcher is not None:
                self.matcher.remove((client, filter))
        if not mine:
            self._filters.pop(client, None)
        # A table that is not redundant forgot what they covered. The client need not care: we say it again for it.
        forgotten = [] if self.table.redundant else [f for f in mine if any(larger.covers(f) for larger in gone)]
        return self._apply(Update(tuple(forgotten), tuple(gone)), client)

    def _apply(self, update: Update, client: Interface) -> Update:
        return apply(self.table, update, client).get(LOCAL, Update())


class SplitTable(Generic[Interface]):
    """The clients and the table of the neighbours, joined."""

    def __init__(
        self,
        clients: Clients[Interface],
        external: Table[AnyInterface[Interface]],
        *,
        always: Iterable[Interface] = (),
    ) -> None:
        """Join the two; neighbours in `always` get every event."""
        self.clients = clients
        self.external = external
        self.always = frozenset(always)

    def client_add(self, filter: Filter, client: Interface) -> Updates[Interface]:
        """Give a client a filter; gives what to tell the neighbours."""
        return self._local(self.clients.add(filter, client))

    def client_remove(self, filter: Filter, client: Interface) -> Updates[Interface]:
        """Take a filter from a client; gives what to tell the neighbours."""
        return self._local(self.clients.remove(filter, client))

    def client_leave(self, client: Interface) -> Updates[Interface]:
        """Take all filters from a client; gives what to tell the neighbours."""
        return self._local(self.clients.leave(client))

    def update(self, update: Update, neighbour: Interface) -> Updates[Interface]:
        """Let a neighbour change its filters; gives what to tell the others."""
        return outside(self._apply(update, neighbour))

    def match(self, event: Mapping[str, object]) -> Recipients[Interface]:
        """Whom an event concerns."""
        found = self.external.match(event)
        neighbours = {one for one in found if not isinstance(one, Inside)}
        return Recipients(neighbours | self.always, self.clients.match(event) if LOCAL in found else set())

    def _local(self, update: Update) -> Updates[Interface]:
        return outside(self._apply(update, LOCAL)) if update != Update() else {}

    def _apply(self, update: Update, sender: AnyInterface[Interface]) -> Updates[AnyInterface[Interface]]:
        return apply(self.external, update, sender)


class RendezvousTable(SplitTable[Interface]):
    """A split table with advertisements, of publishers and of rendezvous.

    For each type of events there is a broker where subscriptions and events of that type meet. It advertises the type
    itself, though it publishes nothing: this *virtual* advertisement draws the subscriptions towards it. Publishers may
    advertise as well; then the subscriptions come to them, and events need not pass the rendezvous. The events of
    those who do not must also go `upstream`.
    """

    def __init__(
        self,
        clients: Clients[Interface],
        publishers: Clients[AnyInterface[Interface]],
        advertised: AdvertisedTable[AnyInterface[Interface]],
    ) -> None:
        """Join what clients want, what they advertise, and what neighbours want and advertise."""
        super().__init__(clients, advertised.subscriptions)
        self.publishers = publishers
        self.advertised = advertised

    def host(self, type: Filter) -> Told[Interface]:
        """Become the rendezvous of some events; gives what to tell the neighbours."""
        return self._advertise(self.publishers.add(type, Inside.RENDEZVOUS), LOCAL)

    def unhost(self, type: Filter) -> Told[Interface]:
        """Be their rendezvous no longer."""
        return self._advertise(self.publishers.remove(type, Inside.RENDEZVOUS), LOCAL)

    def client_advertise(self, filter: Filter, client: Interface) -> Told[Interface]:
        """Let a client advertise; gives what to tell the neighbours."""
        return self._advertise(self.publishers.add(filter, client), LOCAL)

    def client_unadvertise(self, filter: Filter, client: Interface) -> Told[Interface]:
        """Let a client take an advertisement back; gives what to tell the neighbours."""
        return self._advertise(self.publishers.remove(filter, client), LOCAL)

    def advertise(self, update: Update, neighbour: Interface) -> Told[Interface]:
        """Let a neighbour change its advertisements; gives what to tell it and the others."""
        return self._advertise(update, neighbour)

    def may_publish(self, event: Mapping[str, object], client: Interface) -> bool:
        """Has the client advertised such an event?"""
        return client in self.publishers.match(event)

    def upstream(self, event: Mapping[str, object]) -> set[Interface]:
        """The neighbours on the way to a rendezvous, or to others who publish such an event."""
        return {one for one in self.advertised.advertisements.match(event) if not isinstance(one, Inside)}

    def _advertise(self, update: Update, sender: AnyInterface[Interface]) -> Told[Interface]:
        told = self.advertised.advertise(update, sender)
        return Told(outside(told.advertisements), outside(told.subscriptions))

    def _apply(self, update: Update, sender: AnyInterface[Interface]) -> Updates[AnyInterface[Interface]]:
        return self.advertised.subscribe(update, sender)


def outside(updates: Updates[AnyInterface[Interface]]) -> Updates[Interface]:
    """What neighbours are told."""
    return {neighbour: update for neighbour, update in updates.items() if not isinstance(neighbour, Inside)}


# Choices


def forest_and_poset(neighbours: Iterable[Any]) -> SplitTable[Any]:
    """For peers: what clients do reaches the poset only if it changes the roots."""
    return SplitTable(Clients(PosetForest([LOCAL])), Poset(neighbours))


def two_forests(neighbours: Iterable[Any]) -> SplitTable[Any]:
    """For peers with very many clients: cheaper to change, dearer to ask whom to tell."""
    return SplitTable(Clients(NonRedundantForest([LOCAL])), NonRedundantForest(neighbours))


def hierarchy(master: Iterable[Any]) -> SplitTable[Any]:
    """For a tree of brokers: filters and all events go to the master, if there is one; slaves are told nothing."""
    masters = frozenset(master)
    if len(masters) > 1:
        raise ValueError("a broker has one master at most")
    return SplitTable(Clients(NonRedundantForest([LOCAL])), NonRedundantForest(masters), always=masters)


def matcher_and_poset(neighbours: Iterable[Any]) -> SplitTable[Any]:
    """For peers with clients that get many events: the forest finds the roots, the engine the clients."""
    return SplitTable(Clients(PosetForest([LOCAL]), Index()), Poset(neighbours))


def engine(neighbours: Iterable[Any]) -> SplitTable[Any]:
    """For peers of any size: both tables on the engine's index. Not of the thesis."""
    return SplitTable(Clients(IndexedTable([LOCAL], redundant=True)), IndexedTable(neighbours))


def rendezvous(neighbours: Iterable[Any]) -> RendezvousTable[Any]:
    """For types of events, each with a broker where they meet."""
    around = frozenset(neighbours)
    advertisements: NonRedundantForest[Any] = NonRedundantForest(around)
    subscriptions: NonRedundantForest[Any] = NonRedundantForest(around, towards=advertisers(advertisements))
    return RendezvousTable(
        Clients(PosetForest([LOCAL])), Clients(PosetForest([LOCAL])), AdvertisedTable(advertisements, subscriptions)
    )


CONFIGURATIONS: Final[dict[str, Callable[[Iterable[Any]], SplitTable[Any]]]] = {
    "pf+fp": forest_and_poset,
    "nrf+nrf": two_forests,
    "hierarchical": hierarchy,
    "pf+matcher+fp": matcher_and_poset,
    "engine": engine,
    "rendezvous": rendezvous,
}
"""by the names of their tables; each is made for the neighbours that are to be told of filters"""
