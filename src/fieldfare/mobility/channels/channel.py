"""`Channel`: the rendezvous of publishers and subscribers of one type of events.

It knows what the clients of each access server, together, want and promise. If events pass through it, it gives each
a stamp and sends it on; and it tells servers that promise something who else wants such events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels.messages import (
    ChannelAdvertise,
    ChannelEvent,
    ChannelReply,
    ChannelRequest,
    ChannelState,
    ChannelSubscribe,
    PastEvents,
    PastRequest,
    RequestDone,
    ServerInterest,
    StampedEvent,
)
from fieldfare.protocol.messages import Message, Send
from fieldfare.tables.indexed import IndexedTable

Stamp = Callable[[], int]
"""gives the next time"""


class Channel:
    """A channel, and an index of what its state says."""

    def __init__(self, name: str, log: int, state: ChannelState | None = None) -> None:
        """A new channel, or one that was hosted elsewhere."""
        self.name = name
        self.state = state or ChannelState()
        self._log = log
        self._table: IndexedTable[str] = IndexedTable()
        self._table.add_many((filter, server) for server, mine in self.state.wants.items() for filter in mine)

    def wanted(self) -> list[Filter]:
        """What anybody wants: the fewest filters that request so."""
        return self._table.roots()

    def cool(self, now: float, half: float) -> float:
        """The load by now, if it halves in so many seconds."""
        state = self.state
        state.load *= 0.5 ** (max(0.0, now - state.since) / half)
        state.since = max(now, state.since)
        return state.load

    def accept(self, request: ChannelRequest, clock: int, stamp: Stamp) -> list[Send]:
        """Take what an access server says, in its order, and with it what has waited for it."""
        state = self.state
        early = state.early.setdefault(request.server, {})
        early[request.number] = request
        sends: list[Send] = []
        while (following := early.pop(state.next.get(request.server, 1), None)) is not None:
            state.next[request.server] = following.number + 1
            sends += self._handle(following, clock, stamp)
        if not early:
            del state.early[request.server]
        return sends

    def _handle(self, request: ChannelRequest, clock: int, stamp: Stamp) -> list[Send]:
        server, sends, audience = request.server, list[Send](), list[str]()
        match request.content:
            case ChannelEvent(event=event):
                self.state.events += 1
                self.state.load += 1
                clock = stamp()
                self.state.log.append((clock, event))
                del self.state.log[: max(0, len(self.state.log) - self._log)]
                sends = [Send(other, StampedEvent(clock, event)) for other in sorted(self._table.match(event.event))]
            case PastRequest(session=session, filter=filter, last=last):
                past = [one for one in self.state.log if filter.matches(one[1].event)][-last:]
                sends.append(self._reply(server, PastEvents(session, request.number, tuple(past)), clock))
            case ChannelSubscribe(added=added, removed=removed):
                clock = stamp()
                self._want(server, added, removed)
                for other in self.state.promised:
                    if other != server:
                        news = self._proxy(other, server, request.number)
                        if news is not None or _overlap(added, self.state.promised[other]):
                            audience.append(other)
                            sends.append(self._reply(other, news or ServerInterest(server, request.number), clock))
            case ChannelAdvertise(added=added, removed=removed):
                change(self.state.promises.setdefault(server, {}), added, removed)
                change(self.state.promised.setdefault(server, {}), added, ())
                changes = (self._proxy(server, other, 0) for other in self.state.wants if other != server)
                sends = [self._reply(server, change, clock) for change in changes if change is not None]
        return [*sends, self._reply(server, RequestDone(request.number, clock, tuple(audience)), clock)]

    def _want(self, server: str, added: Iterable[Filter], removed: Iterable[Filter]) -> None:
        change(self.state.wants.setdefault(server, {}), added, removed)
        for filter in removed:
            self._table.remove(filter, server)
        self._table.add_many((filter, server) for filter in added)
        if not self.state.wants[server]:
            del self.state.wants[server]

    def _proxy(self, to: str, server: str, number: int) -> ServerInterest | None:
        """What one server must be told of another's wishes, given what it knows of them."""
        promises = self.state.promises.get(to, {})
        wanted = self.state.wants.get(server, {})
        right = {filter: None for filter in wanted if _overlap([filter], promises)}
        told = self.state.told.setdefault(to, {})
        known = told.pop(server, {})
        if right:
            told[server] = right
        added = tuple(filter for filter in right if filter not in known)
        removed = tuple(filter for filter in known if filter not in right)
        return ServerInterest(server, number, added, removed) if added or removed else None

    def _reply(self, server: str, content: Message, clock: int) -> Send:
        number = self.state.replies[server] = self.state.replies.get(server, 0) + 1
        return Send(server, ChannelReply(self.name, number, clock, content))


def _overlap(filters: Iterable[Filter], others: Iterable[Filter]) -> bool:
    return any(filter.overlaps(other) for filter in filters for other in others)


def change(kept: dict[Filter, None], added: Iterable[Filter], removed: Iterable[Filter]) -> None:
    """First forget, then note; what a new filter covers is forgotten, as its sender expects (`tables.updates`)."""
    for filter in removed:
        kept.pop(filter, None)
    for filter in added:
        for other in [other for other in kept if filter.covers(other)]:
            del kept[other]
        if not any(other.covers(filter) for other in kept):
            kept[filter] = None
