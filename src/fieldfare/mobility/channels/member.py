"""`Member`: an access server as the channels of a domain see it. What it has told them, and what it was answered.

It tells a channel of a filter only if nothing that it has told it covers that, merged with others if the domain says
so. What it has told is *in force* when the channel has taken it and all servers that promise such events know of it.
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
    Done,
    Heard,
    Matrix,
    Past,
    Position,
    Promise,
    Proxy,
    Redirect,
    Remember,
    Reply,
    Say,
    Want,
)
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Message, Send
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.merging.rules import Merging
from fieldfare.tables.updates import Update, apply

Ticket: TypeAlias = tuple[str, int]
"""a channel, and the number of what it was told"""
Mark: TypeAlias = tuple[str, int]
"""who counted an event, and its number: see `Position`"""
_UP: Final = "channel"
_CLIENTS: Final = "clients"


class Interest:
    """What a channel must know of the filters of all clients together."""

    def __init__(self, merging: Merging | None) -> None:
        """Nothing told yet."""
        self.table: IndexedTable[str] = IndexedTable([_UP], redundant=True)
        self._merger = None if merging is None else NeighbourMerger([_UP], merging)

    def change(self, added: tuple[Filter, ...], removed: tuple[Filter, ...]) -> Update:
        """Let clients want other filters; gives what the channel is to be told, often nothing."""
        updates = apply(self.table, Update(added, removed), _CLIENTS)
        if self._merger is not None:
            updates = self._merger.change(updates)
        return updates.get(_UP, Update())


class Member(ABC):
    """An access server in a domain."""

    def __init__(self, name: str, domain: Domain) -> None:
        """Nothing said yet."""
        self.name = name
        self.domain = domain
        self.clock = 0
        self.arrived: list[tuple[Mark, Forward]] = []
        """events in their order, to be taken away by whoever has the clients"""
        self.past: list[tuple[str, Past]] = []
        """the same, of old events for one session"""
        self.updates = 0
        """how often channels were told of a change of what is wanted or promised"""
        self.proxies: dict[str, IndexedTable[str]] = {}
        """what other access servers want, of what is promised here, by channel"""
        self.news: list[tuple[str, Proxy]] = []
        """changes of proxies, to be taken away; those with a number are to be confirmed"""
        self._interests: dict[tuple[About, str], Interest] = {}
        self._where: dict[str, str] = {}
        self._said: dict[str, int] = {}
        self._replies: dict[str, int] = {}
        self._early: dict[str, dict[int, Reply]] = {}
        self._promised: set[str] = set()
        """the channels to which all was promised"""
        self._promises: dict[str, int] = {}
        """the number of the last promise to each"""
        self._open: dict[Ticket, set[str] | None] = {}
        """who has not confirmed yet; None: not even the channel"""
        self._confirmed: dict[Ticket, set[str]] = {}
        """by those whose confirmation came before the channel's own"""

    # What channels are told

    def tell(self, tell: FilterUpdate) -> list[Send]:
        """Clients, together, want or promise something else."""
        added, removed = by_channel(self.domain, tell.added), by_channel(self.domain, tell.removed)
        sends = []
        for channel in dict.fromkeys((*added, *removed)):
            interest = self._interests.setdefault((tell.about, channel), Interest(self.domain.merging))
            update = interest.change(added.get(channel, ()), removed.get(channel, ()))
            if update != Update():
                kind = Want if tell.about == "subscriptions" else Promise
                self.updates += 1
                sends += self.say(channel, kind(update.added, update.removed))
        return sends

    def recall(self, session: str, filter: Filter, last: int) -> tuple[list[Send], set[Ticket]]:
        """Ask for old events for a session; gives also the numbers of the questions."""
        channels = self.domain.channels_of(filter)
        sends = [send for channel in channels for send in self.say(channel, Remember(session, filter, last))]
        return sends, {(channel, self._said[channel]) for channel in channels}

    def say(self, channel: str, content: Message) -> list[Send]:
        """Say something to a channel."""
        number = self._said[channel] = self._said.get(channel, 0) + 1
        self._open[channel, number] = None
        if isinstance(content, Promise):
            self._promises[channel] = number
        to = self._where.get(channel) or self.domain.home(channel)
        return [Send(to, Say(channel, self.name, number, self.clock, content))]

    def tickets(self, filters: Iterable[Filter]) -> frozenset[Ticket]:
        """All that the channels of some filters were told, and that is not in force yet."""
        channels = {channel for filter in filters for channel in self.domain.channels_of(filter)}
        return frozenset(ticket for ticket in self._open if ticket[0] in channels)

    def in_force(self, tickets: Iterable[Ticket]) -> bool:
        """Is it now?"""
        return not any(ticket in self._open for ticket in tickets)

    def promise_all(self, channel: str) -> list[Send]:
        """Promise whatever there may be, once."""
        if channel in self._promised:
            return []
        self._promised.add(channel)
        self.updates += 1
        return self.say(channel, Promise((parse("TRUE"),)))

    def is_promising(self, channel: str) -> bool:
        """Is there a promise that the channel has not answered yet with all that others want of it?"""
        return (channel, self._promises.get(channel, 0)) in self._open

    # What channels say

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Take a message of a server of the domain."""
        match message:
            case Redirect(channel=channel, server=server):
                self._where[channel] = server
            case Reply(channel=channel):
                return self._take(message)
            case Heard(channel=channel, number=number):
                self._confirm((channel, number), sender)
        return []

    def _take(self, reply: Reply) -> list[Send]:
        early = self._early.setdefault(reply.channel, {})
        early[reply.number] = reply
        sends: list[Send] = []
        while (following := early.pop(self._replies.get(reply.channel, 0) + 1, None)) is not None:
            self._replies[reply.channel] = following.number
            sends += self._heed(reply.channel, following.content)
        return sends

    def _heed(self, channel: str, content: Message) -> list[Send]:
        match content:
            case Done(number=number, audience=audience):
                self._open[channel, number] = set(audience) - self._confirmed.pop((channel, number), set())
                self._close((channel, number))
                return self._done(channel, content)
            case Proxy(server=server, added=added, removed=removed):
                table = self.proxies.setdefault(channel, IndexedTable(redundant=True))
                for filter in removed:
                    table.remove(filter, server)
                table.add_many((filter, server) for filter in added)
                self.news.append((channel, content))
            case Past():
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
    def _done(self, channel: str, done: Done) -> list[Send]:
        """A channel has taken something."""

    @abstractmethod
    def publish(self, publisher: str, event: Forward) -> list[Send]:
        """Let an event go its way, behind those that the publisher published before."""

    @abstractmethod
    def idle(self, publisher: str) -> bool:
        """Is nothing of a publisher waiting here, or on a way that others might overtake?"""

    @abstractmethod
    def confirm(self, server: str, heard: Heard) -> list[Send]:
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
