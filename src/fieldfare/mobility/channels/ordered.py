"""`OrderedMember`.

Every event passes through its channel, and all access servers of a domain deliver in the same order.

Resolution servers stamp events by Lamport clocks: a stamp exceeds all stamps which its sender had heard of. A member
delivers events in the order of their stamps, each as soon as every resolution server has sent a later time, and asks
the servers that have not. So the order is the same everywhere, for all channels together, and respects causes; and a
channel that moves takes its time along.

A publisher's next event goes to another channel only when the stamps of its earlier events are known.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import ChannelMember, Ticket
from fieldfare.mobility.channels.messages import (
    ChannelEvent,
    ChannelReply,
    ClockReply,
    ClockRequest,
    InterestConfirmation,
    Matrix,
    Position,
    RequestDone,
    StampedEvent,
)
from fieldfare.protocol.messages import Forward, Message, Send


class OrderedMember(ChannelMember):
    """An access server of an ordered domain."""

    def __init__(self, name: str, domain: Domain) -> None:
        super().__init__(name, domain)
        self._heard = dict.fromkeys(domain.servers, 0)
        """the latest time of each resolution server"""
        self._probed = dict.fromkeys(domain.servers, 0)
        self._held: list[tuple[int, Forward]] = []
        self._given = 0
        """stamp of the last delivered event"""
        self._taken = 0
        """the latest stamp at which a channel has processed a request"""
        self._waiting: dict[str, deque[Forward]] = {}
        self._under_way: dict[str, set[Ticket]] = {}
        """open events of each publisher, all to the same channel"""
        self._publishers: dict[Ticket, str] = {}

    def receive(self, message: Message, sender: str) -> list[Send]:
        """Process a message of a server of the domain, and note its time."""
        match message:
            case StampedEvent(stamp=stamp, event=event):
                heappush(self._held, (stamp, event))
                self._hear(stamp, sender)
            case ClockReply(clock=clock):
                self._hear(clock, sender)
            case ChannelReply(clock=clock):
                self._hear(clock, sender)
        return super().receive(message, sender) + self._give()

    def _hear(self, clock: int, server: str) -> None:
        self._heard[server] = max(self._heard[server], clock)
        self.clock = max(self.clock, clock)

    def _give(self) -> list[Send]:
        """Deliver events that no other event can precede any more."""
        quiet = min(self._heard.values())
        while self._held and self._held[0][0] <= quiet:
            self._given, event = heappop(self._held)
            self.arrived.append((("", self._given), event))
        return self._probe(self._held[0][0]) if self._held else []

    def _probe(self, clock: int) -> list[Send]:
        behind = [server for server, heard in self._heard.items() if heard < clock and self._probed[server] < clock]
        self._probed.update(dict.fromkeys(behind, clock))
        return [Send(server, ClockRequest(clock)) for server in behind]

    def _done(self, channel: str, done: RequestDone) -> list[Send]:
        self._taken = max(self._taken, done.stamp)
        ticket = channel, done.number
        publisher = self._publishers.pop(ticket, None)
        if publisher is None:
            return []
        self._under_way[publisher].discard(ticket)
        return self._post(publisher)

    def publish(self, publisher: str, event: Forward) -> list[Send]:
        """Send an event to its channel, in the order of its publisher."""
        self._waiting.setdefault(publisher, deque()).append(event)
        return self._post(publisher)

    def _post(self, publisher: str) -> list[Send]:
        waiting, under_way = self._waiting[publisher], self._under_way.setdefault(publisher, set())
        sends = []
        while waiting:
            channel = self.domain.channel_of(waiting[0].event)
            if any(other != channel for other, _ in under_way):
                break
            sends += self.request(channel, ChannelEvent(waiting.popleft()))
            ticket = channel, self._requests[channel]
            under_way.add(ticket)
            self._publishers[ticket] = publisher
        if not waiting and not under_way:
            del self._waiting[publisher], self._under_way[publisher]
        return sends

    def idle(self, publisher: str) -> bool:
        """Tell whether the stamps of all events of a publisher are known."""
        return publisher not in self._waiting

    def confirm(self, server: str, heard: InterestConfirmation) -> list[Send]:
        """Send a confirmation directly, because stamps keep the order."""
        return [Send(server, heard)]

    def position(self) -> Position:
        """Return the stamp of the last event."""
        return {"": self._given}

    def cut(self, source: str) -> Position:
        """Return the later of the last event here and the time at which channels knew the filters."""
        return {"": max(self._given, self._taken)}

    def reach(self, cut: Position) -> tuple[bool, list[Send]]:
        """Tell whether all events up to a stamp are delivered; if not, ask the clocks."""
        if min(self._heard.values()) >= cut[""]:
            self._given = max(self._given, cut[""])
            return True, []
        return False, self._probe(cut[""])

    def context(self) -> Matrix:
        """Return the clock, as a matrix."""
        return {"": {"": self.clock}}

    def learn(self, context: Matrix) -> list[Send]:
        """Advance the clock to that of a context."""
        self.clock = max(self.clock, context.get("", {}).get("", 0))
        return []
