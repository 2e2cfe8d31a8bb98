"""`Location`: subscriptions that depend on the place of the client, without a wait after a move.

A broker i hops away keeps a filter F_i for its neighbour: the events which the client may match at the time of their
arrival, at any place reachable meanwhile. The client's own broker keeps F_0, the filter for the present place. A move
changes F_0 at once; the others follow when the news reach them, and no event is missed in between.

These filters are kept beside the routing tables, because they grow and shrink on their own. Location updates go to all
brokers, regardless of advertisements.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from fieldfare.events.event import Event
from fieldfare.filters import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.mobility.location_messages import Locate, LocationUpdate
from fieldfare.mobility.places import World
from fieldfare.mobility.side_table import Recipients, SideTable
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Message, Send
from fieldfare.tables.structures.distinct import DistinctTable


class LocatedSubscription(NamedTuple):
    """A subscription with a place, as a broker knows the subscription."""

    name: str
    template: str
    place: str
    hop: int
    filter: Filter
    """F_i for the broker's number of hops"""

    def next_update(self, place: str | None = None) -> LocationUpdate:
        """Return the update for the next broker."""
        return LocationUpdate(self.name, self.template, self.place if place is None else place, self.hop + 1)


class Location(SideTable):
    """The part of a broker for subscriptions that depend on a place."""

    handles: ClassVar[tuple[type[Message], ...]] = (
        *SideTable.handles,
        *(Locate, LocationUpdate, m.Subscribe, m.Unsubscribe, m.Leave, m.Connect, m.Disconnect),
    )

    def __init__(self, world: World, *, stop: bool = True) -> None:
        """Make the part; with `stop`, a location update goes no farther than it changes filters."""
        self.world = world
        self.stop = stop
        self.subscriptions: dict[tuple[str, str], LocatedSubscription] = {}
        """by client and id, and by neighbour and name"""
        self._table: DistinctTable[tuple[str, str]] = DistinctTable()

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a location message or an event, and pass other messages to the broker."""
        match message:
            case m.Publish() | m.Forward():
                return self.route(message, sender, now)
            case Locate():
                return self._locate(message, sender, now)
            case LocationUpdate():
                key = sender, message.name
                return self._follow(key, message) if message.place else self._forget([key])
            case m.Subscribe() | m.Unsubscribe() if (sender, message.id) not in self.subscriptions:
                return self.base.submit(message, sender, now)
            case m.Subscribe():
                return [*self.base.submit(message, sender, now), *self._forget([(sender, message.id)])]
            case m.Unsubscribe():
                return self._forget([(sender, message.id)])
        gone = self._forget([key for key in self.subscriptions if key[0] == sender])
        said = self.base.submit(message, sender, now)
        if isinstance(message, m.Connect):
            said += [Send(sender, kept.next_update()) for kept in self.subscriptions.values()]
        return [*gone, *said]

    # Places

    def _locate(self, message: Locate, client: str, now: float) -> list[Send]:
        try:
            here = self.world.filter(message.template, self.world.near(message.place, 0))
            if here.is_empty and self.world.filter(message.template, frozenset(self.world.graph)).is_empty:
                raise ValueError("no event can match this filter, wherever one is")
        except (ValueError, FilterTooComplex) as problem:
            return [Send(client, m.Refuse(str(problem), message.id))]
        name = f"{self.base.name}/{client}/{message.id}"
        sends = self._follow((client, message.id), LocationUpdate(name, message.template, message.place, 0))
        return [*sends, *self.base.submit(m.Unsubscribe(message.id), client, now)]

    def _follow(self, key: tuple[str, str], news: LocationUpdate) -> list[Send]:
        old, near = self.subscriptions.get(key), self.world.near(news.place, news.hop)
        new = LocatedSubscription(
            news.name, news.template, news.place, news.hop, self.world.filter(news.template, near)
        )
        self._keep(key, new)
        # The possible places decide, not the filter: two places may have the same filter here, and differ farther on.
        same = old is not None and (old.template, self.world.near(old.place, old.hop)) == (new.template, near)
        return [] if same and self.stop else self._pass_on(key[0], new.next_update())

    def _forget(self, keys: list[tuple[str, str]]) -> list[Send]:
        return [send for key in keys for send in self._forget_one(key)]

    def _forget_one(self, key: tuple[str, str]) -> list[Send]:
        old = self.subscriptions.get(key)
        self._keep(key, None)
        return [] if old is None else self._pass_on(key[0], old.next_update(""))

    def _keep(self, key: tuple[str, str], new: LocatedSubscription | None) -> None:
        old = self.subscriptions.pop(key, None)
        if old is not None:
            self._table.remove(old.filter, key)
        if new is not None:
            self.subscriptions[key] = new
            if not new.filter.is_empty:
                self._table.add(new.filter, key)

    def _pass_on(self, sender: str, news: LocationUpdate) -> list[Send]:
        return [Send(neighbour, news) for neighbour in self.base.broker.neighbours if neighbour != sender]

    # Events

    def recipients(self, event: Event) -> Recipients:
        """Return the clients by F_0, and the neighbours by their F_i."""
        clients: dict[str, list[str]] = {}
        neighbours = set()
        for who, id in sorted(self._table.match(event)):
            if self.subscriptions[who, id].hop:
                neighbours.add(who)
            else:
                clients.setdefault(who, []).append(id)
        return Recipients(clients, neighbours)
