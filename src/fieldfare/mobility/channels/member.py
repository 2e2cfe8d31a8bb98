"""`ChannelMember`: an access server as the channels of a domain see it.

It tells a channel of a filter only if nothing that it has told it covers that, merged with others if the domain says
so. What it has told is *in force* when the channel has received it and all servers that promise such events know of it.
How events travel the two kinds of members say: `ordered` and `causal`.
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
"""a channel, and the number of what it was told"""
Mark: TypeAlias = tuple[str, int]
"""who counted an event, and its number: see `Position`"""
_UP: Final = "channel"
_CLIENTS: Final = "clients"


class ChannelInterest:
    """What a channel must know of the filters of all clients together."""

    def __init__(self, merging: Merging | None) -> None:
        """Nothing told yet."""
        self.table: IndexedTable[str] = IndexedTable([_UP], redundant=True)
        self._merger = None if merging is None else NeighbourMerger([_UP], merging)

    def change(self, added: tuple[Filter, ...], removed: tuple[Filter, ...]) -> TableUpdate:
        """Let clients want other filters; gives what the channel is to be told, often nothing."""
        updates = apply(self.table, TableUpdate(added, removed), _CLIENTS)
        if self._merger is not None:
            updates = self._merger.change(updates)
        return updates.get(_UP, TableUpdate())


class ChannelMember(ABC):
    """An access server in a domain."""

    def __init__(self, name: str, domain: Domain) -> None:
        """Nothing said yet."""
        self.name = name
        self.domain = domain
        self.clock = 0
        self.arrived: list[tuple[Mark, Forward]] = []
        """events in their order, to be taken away by whoever has the clients"""
        self.past: list[tuple[str, PastEvents]] = []
        """the same, of old events for one session"""
        self.updates = 0
        """how often channels were told of a change of what is wanted or promised"""
        self.proxies: dict[str, IndexedTable[str]] = {}
        """what other access servers want, of what is promised here, by channel"""
        self.news: list[tuple[str, ServerInterest]] = []
        """changes of proxies, to be taken away; those with a number are to be confirmed"""
        self._interests: dict[tuple[About, str], ChannelInterest] = {}
        self._where: dict[str, str] = {}
        self._requests: dict[str, int] = {}
        self._replies: dict[str, int] = {}
        self._early: dict[str, dict[int, ChannelReply]] = {}
        self._advertised_all: set[str] = set()
        """the channels to which all was promised"""
        self._last_advertise: dict[str, int] = {}
        """the number of the last promise to each"""
        self._open: dict[Ticket, set[str] | None] = {}
        """who has not confirmed yet; None: not even the channel"""
        self._confirmed: dict[Ticket, set[str]] = {}
        """by those whose confirmation came before the channel's own"""

    # What channels are told

    def apply(self, update: FilterUpdate) -> list[Send]:
        """Clients, together, want or promise something else."""
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
        """Ask for old events for a session; gives also the numbers of the questions."""
        channels = self.domain.channels_of(filter)
        sends = [send for channel in channels for send in self.request(channel, PastRequest(session, filter, last))]
        return sends, {(channel, self._requests[channel]) for channel in channels}

    def request(self, channel: str, content: Message) -> list[Send]:
        """Say something to a channel."""
        number = self._requests[channel] = self._requests.get(channel, 0) + 1
        self._open[channel, number] = None
        if isinstance(content, ChannelAdvertise):
            self._last_advertise[channel] = number
        to = self._where.get(channel) or self.domain.home(channel)
        return [Send(to, ChannelRequest(channel, self.name, number, self.clock, content))]

    def tickets(self, filters: Iterable[Filter]) -> frozenset[Ticket]:
        """All that the channels of some filters were told, and that is not in force yet."""
        channels = {channel for filter in filters for channel in self.domain.channels_of(filter)}
        return frozenset(ticket for ticket in self._open if ticket[0] in channels)

    def in_force(self, tickets: Iterable[Ticket]) -> bool:
        """Is it now?"""
        return not any(ticket in self._open for ticket in tickets)

    def advertise_all(self, channel: str) -> list[Send]:
        """Promise whatever there may be, once."""
        if channel in self._advertised_all:
            return []
        self._advertised_all.add(channel)
        self.updates += 1
        return self.request(channel, ChannelAdvertise((parse("TRUE"),)))

    def awaits_interest(self, channel: str) -> bool:
        """Is there a promise that the channel has not answered yet with all that others want of it?"""
        return (channel, self._last_advertise.get(channel, 0)) in self._open

    # What channels say

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Take a message of a server of the domain."""
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
        """A channel has received something."""

    @abstractmethod
    def publish(self, publisher: str, event: Forward) -> list[Send]:
        """Let an event go its way, behind those that the publisher published before."""

    @abstractmethod
    def idle(self, publisher: str) -> bool:
        """Is nothing of a publisher waiting here, or on a way that others might overtake?"""

    @abstractmethod
    def confirm(self, server: str, heard: InterestConfirmation) -> list[Send]:
        """Say to a server that its wish is known here."""

    @abstractmethod
    def position(self) -> Position:
        """How far events have arrived here."""

    @abstractmethod
    def cut(self, source: str) -> Position:
        """How far another server must get so that together with what arrives here from now on nothing is missing."""

    @abstractmethod
    def reach(self, cut: Position) -> tuple[bool, list[Send]]:
        """Has this server got that far? If not, do what is needed."""

    @abstractmethod
    def context(self) -> Matrix:
        """What may have been caused by anything that was here."""

    @abstractmethod
    def learn(self, context: Matrix) -> list[Send]:
        """Let nothing from here overtake that."""


def is_new(mark: Mark, position: Position) -> bool:
    """Is an event beyond a position?"""
    return mark[1] > position.get(mark[0], 0)


def farther(one: Position, other: Position) -> Position:
    """The position of who has had all of both."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
