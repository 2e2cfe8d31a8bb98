"""`CausalMember`: events go straight to the access servers with matching filters, in causal order.

A channel keeps the *proxies* of its members up to date: tables of the other servers' filters, as far as they overlap
the advertisements here. Each message carries the number of messages from every server to every other, as far as its
sender knows. The receiver holds a message until all messages sent to the receiver before have arrived (Raynal, Schiper
and Toueg). No message waits for a message to another receiver, and no message is sent for the sake of order alone.
Events published here wait likewise before local clients get them: a client that has just arrived may have caused an
event by an event that others here have yet to get.
"""

from __future__ import annotations

from collections import deque

from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import ChannelMember
from fieldfare.mobility.channels.messages import (
    CausalMessage,
    InterestConfirmation,
    Matrix,
    Position,
    RequestDone,
    copied,
    join,
)
from fieldfare.protocol.messages import Forward, Message, Send


class CausalMember(ChannelMember):
    """An access server of a causal domain."""

    def __init__(self, name: str, domain: Domain) -> None:
        super().__init__(name, domain)
        self._sent: Matrix = {}
        """numbers of messages by sender and receiver, as far as known here"""
        self._got: dict[str, int] = {}
        """numbers of messages received, by sender"""
        self._seen: Position = {}
        """numbers of events published by others, as of their last message"""
        self._number = 0
        self._held: list[tuple[str, CausalMessage]] = []
        self._waiting: dict[str, deque[Forward]] = {}

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Process a message of a server of the domain, in causal order."""
        if isinstance(message, CausalMessage):
            self._held.append((sender, message))
            return self._give()
        return super().receive(message, sender)

    def _give(self) -> list[Send]:
        """Process held messages without missing predecessors."""
        sends: list[Send] = []
        while (ready := next((i for i, held in enumerate(self._held) if self._is_due(*held)), None)) is not None:
            sender, carried = self._held.pop(ready)
            self._got[sender] = self._got.get(sender, 0) + 1
            self._seen[sender] = max(self._seen.get(sender, 0), carried.number)
            join(self._sent, carried.sent)
            if isinstance(carried.content, Forward):
                self.arrived.append(((sender, carried.number), carried.content))
            else:
                sends += super().receive(carried.content, sender)
        return sends

    def _is_due(self, sender: str, carried: CausalMessage) -> bool:
        got = self._got
        return all(got.get(other, 0) >= to.get(self.name, 0) - (other == sender) for other, to in carried.sent.items())

    def _carry(self, content: Message, to: set[str]) -> list[Send]:
        mine = self._sent.setdefault(self.name, {})
        for server in to:
            mine[server] = mine.get(server, 0) + 1
        carried = CausalMessage(self.domain.name, content, self._number, copied(self._sent))
        if self.name in to:
            self._held.append((self.name, carried))
        return [Send(server, carried) for server in sorted(to - {self.name})] + self._give()

    # Publishing

    def publish(self, publisher: str, event: Forward) -> list[Send]:
        """Send an event to all servers with matching filters, as soon as they are known."""
        self._waiting.setdefault(publisher, deque()).append(event)
        channel = self.domain.channel_of(event.event)
        sends = [] if self.domain.advertisements else self.advertise_all(channel)
        return sends + self._publish(publisher)

    def _publish(self, publisher: str) -> list[Send]:
        waiting, sends = self._waiting[publisher], list[Send]()
        while waiting and not self.awaits_interest(channel := self.domain.channel_of(waiting[0].event)):
            event = waiting.popleft()
            self._number += 1
            wanting = self.proxies[channel].match(event.event) if channel in self.proxies else set()
            sends += self._carry(event, wanting | {self.name})
        if not waiting:
            del self._waiting[publisher]
        return sends

    def _done(self, channel: str, done: RequestDone) -> list[Send]:
        return [send for publisher in list(self._waiting) for send in self._publish(publisher)]

    def idle(self, publisher: str) -> bool:
        """Tell whether all events of a publisher have been sent."""
        return publisher not in self._waiting

    def confirm(self, server: str, heard: InterestConfirmation) -> list[Send]:
        """Send a confirmation in causal order: it arrives after all earlier messages to the same server."""
        return self._carry(heard, {server})

    # Handover

    def position(self) -> Position:
        """Return the number of events of each server that have been processed."""
        return {**self._seen, self.name: self._seen.get(self.name, 0)}

    def cut(self, source: str) -> Position:
        """Return the number of messages sent to the source by each server, as far as known here."""
        return {server: to[source] for server, to in self._sent.items() if source in to}

    def reach(self, cut: Position) -> tuple[bool, list[Send]]:
        """Tell whether all messages of the cut have arrived; they come without a request."""
        return all(self._got.get(server, 0) >= count for server, count in cut.items()), []

    def context(self) -> Matrix:
        """Return the numbers of all messages known to be sent."""
        return copied(self._sent)

    def learn(self, context: Matrix) -> list[Send]:
        """Add the messages of a context to those that later messages must follow."""
        join(self._sent, context)
        return []
