"""`ChannelMember`: an access server as the channels of a domain see it.

A member sends a channel a filter only if no sent filter covers it, merged with others if the domain merges. A filter is
*in force* when the channel has processed it and all servers with overlapping advertisements know it. The two kinds of
members differ in the way of events: `ordered` and `causal`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, TypeAlias

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels.domain import Domain, by_channel
from fieldfare.mobility.channels.messages import (
    ChannelAdvertise,
    ChannelRedirect,
    ChannelReply,
    ChannelRequest,
    ChannelSubscribe,
    InterestConfirmation,
    Matrix,
    PastEvents,
    PastRequest,
    Position,
    RequestDone,
    ServerInterest,
)
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Message, Send
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.merging.rules import Merging
from fieldfare.tables.updates import TableUpdate, apply

Ticket: TypeAlias = tuple[str, int]
"""a channel, and the number of a request to the channel"""
Mark: TypeAlias = tuple[str, int]
"""the counter of an event, and its number: see `Position`"""
_UP: Final = "channel"
_CLIENTS: Final = "clients"


class ChannelInterest:
    """The filters which a channel must know, for all clients together."""

    def __init__(self, merging: Merging | None) -> None:
        self.table: IndexedTable[str] = IndexedTable([_UP], redundant=True)
        self._merger = None if merging is None else NeighbourMerger([_UP], merging)

    def change(self, added: tuple[Filter, ...], removed: tuple[Filter, ...]) -> TableUpdate:
        """Change the filters of clients; return the update for the channel, which is often empty."""
        updates = apply(self.table, TableUpdate(added, removed), _CLIENTS)
        if self._merger is not None:
            updates = self._merger.change(updates)
        return updates.get(_UP, TableUpdate())


class ChannelMember(ABC):
    """An access server in a domain."""

    def __init__(self, name: str, domain: Domain) -> None:
        self.name = name
        self.domain = domain
        self.clock = 0
        self.arrived: list[tuple[Mark, Forward]] = []
        """events in their order, for the owner of the clients to take"""
        self.past: list[tuple[str, PastEvents]] = []
        """past events for sessions, for the owner to take"""
        self.updates = 0
        """number of filter changes sent to channels"""
        self.proxies: dict[str, IndexedTable[str]] = {}
        """filters of other access servers that overlap the advertisements here, by channel"""
        self.news: list[tuple[str, ServerInterest]] = []
        """changes of proxies, for the owner to take; those with a number need a confirmation"""
        self._interests: dict[tuple[About, str], ChannelInterest] = {}
        self._where: dict[str, str] = {}
        self._requests: dict[str, int] = {}
        self._replies: dict[str, int] = {}
        self._early: dict[str, dict[int, ChannelReply]] = {}
        self._advertised_all: set[str] = set()
        """channels with an advertisement of everything"""
        self._last_advertise: dict[str, int] = {}
        """number of the last advertisement to each channel"""
        self._open: dict[Ticket, set[str] | None] = {}
        """servers whose confirmations are missing; None: the channel's own is missing, too"""
        self._confirmed: dict[Ticket, set[str]] = {}
        """servers whose confirmations came before the channel's own"""

    # What channels are told

    def apply(self, update: FilterUpdate) -> list[Send]:
        """Apply a change of the clients' subscriptions or advertisements, and send the channels their updates."""
        added, removed = by_channel(self.domain, update.added), by_channel(self.domain, update.removed)
        sends = []
        for channel in dict.fromkeys((*added, *removed)):
            interest = self._interests.setdefault((update.about, channel), ChannelInterest(self.domain.merging))
            change = interest.change(added.get(channel, ()), removed.get(channel, ()))
            if change != TableUpdate():
                kind = ChannelSubscribe if update.about == "subscriptions" else ChannelAdvertise
                self.updates += 1
                sends += self.request(channel, kind(change.added, change.removed))
        return sends

    def request_past(self, session: str, filter: Filter, last: int) -> tuple[list[Send], set[Ticket]]:
        """Request past events for a session; return also the tickets of the requests."""
        channels = self.domain.channels_of(filter)
        sends = [send for channel in channels for send in self.request(channel, PastRequest(session, filter, last))]
        return sends, {(channel, self._requests[channel]) for channel in channels}

    def request(self, channel: str, content: Message) -> list[Send]:
        """Send a numbered request to a channel."""
        number = self._requests[channel] = self._requests.get(channel, 0) + 1
        self._open[channel, number] = None
        if isinstance(content, ChannelAdvertise):
            self._last_advertise[channel] = number
        to = self._where.get(channel) or self.domain.home(channel)
        return [Send(to, ChannelRequest(channel, self.name, number, self.clock, content))]

    def tickets(self, filters: Iterable[Filter]) -> frozenset[Ticket]:
        """Return the open requests to the channels of some filters."""
        channels = {channel for filter in filters for channel in self.domain.channels_of(filter)}
        return frozenset(ticket for ticket in self._open if ticket[0] in channels)

    def in_force(self, tickets: Iterable[Ticket]) -> bool:
        """Tell whether all requests of some tickets are in force."""
        return not any(ticket in self._open for ticket in tickets)

    def advertise_all(self, channel: str) -> list[Send]:
        """Advertise all events to a channel, once."""
        if channel in self._advertised_all:
            return []
        self._advertised_all.add(channel)
        self.updates += 1
        return self.request(channel, ChannelAdvertise((parse("TRUE"),)))

    def awaits_interest(self, channel: str) -> bool:
        """Tell whether an advertisement still waits for the channel's answer with the other servers' filters."""
        return (channel, self._last_advertise.get(channel, 0)) in self._open

    # What channels say

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Process a message of a server of the domain."""
        match message:
            case ChannelRedirect(channel=channel, server=server):
                self._where[channel] = server
            case ChannelReply(channel=channel):
                return self._take(message)
            case InterestConfirmation(channel=channel, number=number):
                self._confirm((channel, number), sender)
        return []

    def _take(self, reply: ChannelReply) -> list[Send]:
        early = self._early.setdefault(reply.channel, {})
        early[reply.number] = reply
        sends: list[Send] = []
        while (following := early.pop(self._replies.get(reply.channel, 0) + 1, None)) is not None:
            self._replies[reply.channel] = following.number
            sends += self._handle(reply.channel, following.content)
        return sends

    def _handle(self, channel: str, content: Message) -> list[Send]:
        match content:
            case RequestDone(number=number, audience=audience):
                self._open[channel, number] = set(audience) - self._confirmed.pop((channel, number), set())
                self._close((channel, number))
                return self._done(channel, content)
            case ServerInterest(server=server, added=added, removed=removed):
                table = self.proxies.setdefault(channel, IndexedTable(redundant=True))
                for filter in removed:
                    table.remove(filter, server)
                table.add_many((filter, server) for filter in added)
                self.news.append((channel, content))
            case PastEvents():
                self.past.append((channel, content))
        return []

    def _confirm(self, ticket: Ticket, server: str) -> None:
        waiting = self._open.get(ticket)
        if waiting is None:
            self._confirmed.setdefault(ticket, set()).add(server)
        else:
            waiting.discard(server)
            self._close(ticket)

    def _close(self, ticket: Ticket) -> None:
        if not self._open[ticket]:
            del self._open[ticket]

    # How events travel

    @abstractmethod
    def _done(self, channel: str, done: RequestDone) -> list[Send]:
        """Note that a channel has processed a request."""

    @abstractmethod
    def publish(self, publisher: str, event: Forward) -> list[Send]:
        """Publish an event, behind the earlier events of its publisher."""

    @abstractmethod
    def idle(self, publisher: str) -> bool:
        """Tell whether no event of a publisher waits here, or is where others might overtake it."""

    @abstractmethod
    def confirm(self, server: str, heard: InterestConfirmation) -> list[Send]:
        """Tell a server that its filter is known here."""

    @abstractmethod
    def position(self) -> Position:
        """Return the position up to which events have arrived here."""

    @abstractmethod
    def cut(self, source: str) -> Position:
        """Return the position up to which another server must have the events, so that none is missing."""

    @abstractmethod
    def reach(self, cut: Position) -> tuple[bool, list[Send]]:
        """Tell whether this server has reached a position; if not, return the messages that help."""

    @abstractmethod
    def context(self) -> Matrix:
        """Return the context of all events here, which may have caused later events."""

    @abstractmethod
    def learn(self, context: Matrix) -> list[Send]:
        """Let no message from here overtake the events of a context."""


def is_new(mark: Mark, position: Position) -> bool:
    """Tell whether an event is beyond a position."""
    return mark[1] > position.get(mark[0], 0)


def farther(one: Position, other: Position) -> Position:
    """Return the position after all events of two positions."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
