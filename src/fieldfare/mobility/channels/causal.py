"""`CausalMember`: events go straight to the access servers that want them, in causal order.

A channel keeps its members' *proxies* in step: tables of what the other servers want, of what is promised here. Each
message tells how many messages every server has sent to every other, as far as its sender knew. Its receiver holds
it back until it has got all that were sent to it before that (Raynal, Schiper and Toueg). No message waits for one
that is not for its receiver, and nobody is sent anything for the sake of order. What is published here waits likewise
before it is given to clients here: one who has just come may have caused it by what others here have yet to get.
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
        """Nothing sent yet."""
        super().__init__(name, domain)
        self._sent: Matrix = {}
        """how many messages were sent from where to where, as far as known here"""
        self._got: dict[str, int] = {}
        """how many came from where"""
        self._seen: Position = {}
        """how many events others had published, when they sent the last one that came"""
        self._number = 0
        self._held: list[tuple[str, CausalMessage]] = []
        self._waiting: dict[str, deque[Forward]] = {}

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Take a message of a server of the domain."""
        if isinstance(message, CausalMessage):
            self._held.append((sender, message))
            return self._give()
        return super().receive(message, sender)

    def _give(self) -> list[Send]:
        """Take what nothing is missing before."""
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
        """To all who want it, as soon as they are known."""
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
        """Has all been sent?"""
        return publisher not in self._waiting

    def confirm(self, server: str, heard: InterestConfirmation) -> list[Send]:
        """In order: when it comes, all that was sent to that server before has come."""
        return self._carry(heard, {server})

    # Handover

    def position(self) -> Position:
        """How many events of each server are behind us."""
        return {**self._seen, self.name: self._seen.get(self.name, 0)}

    def cut(self, source: str) -> Position:
        """All that was sent there by anybody, as far as known here."""
        return {server: to[source] for server, to in self._sent.items() if source in to}

    def reach(self, cut: Position) -> tuple[bool, list[Send]]:
        """Has it all come? It is on its way."""
        return all(self._got.get(server, 0) >= count for server, count in cut.items()), []

    def context(self) -> Matrix:
        """All that is known to have been sent."""
        return copied(self._sent)

    def learn(self, context: Matrix) -> list[Send]:
        """What goes out from now on tells of it, too."""
        join(self._sent, context)
        return []
