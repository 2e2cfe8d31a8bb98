"""`Channel`: the rendezvous of publishers and subscribers of a type of events.

A channel knows the subscriptions and advertisements of the clients of each access server, together. Events through the
channel get a stamp; and servers with advertisements learn the overlapping filters of other servers.
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
"""returns the next time"""


class Channel:
    """A channel, with an index of its subscriptions."""

    def __init__(self, name: str, log: int, state: ChannelState | None = None) -> None:
        """Make a new channel, or go on with the state of a channel from another server."""
        self.name = name
        self.state = state or ChannelState()
        self._log = log
        self._table: IndexedTable[str] = IndexedTable()
        self._table.add_many((filter, server) for server, mine in self.state.subscriptions.items() for filter in mine)

    def wanted(self) -> list[Filter]:
        """Return the minimal cover of all subscriptions."""
        return self._table.roots()

    def cool(self, now: float, half: float) -> float:
        """Return the load by now, which halves every `half` seconds."""
        state = self.state
        state.load *= 0.5 ** (max(0.0, now - state.since) / half)
        state.since = max(now, state.since)
        return state.load

    def accept(self, request: ChannelRequest, clock: int, stamp: Stamp) -> list[Send]:
        """Process the requests of an access server in order; a request that came early waits."""
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
                for other in self.state.ever_advertised:
                    if other != server:
                        news = self._proxy(other, server, request.number)
                        if news is not None or _overlap(added, self.state.ever_advertised[other]):
                            audience.append(other)
                            sends.append(self._reply(other, news or ServerInterest(server, request.number), clock))
            case ChannelAdvertise(added=added, removed=removed):
                change(self.state.advertisements.setdefault(server, {}), added, removed)
                change(self.state.ever_advertised.setdefault(server, {}), added, ())
                changes = (self._proxy(server, other, 0) for other in self.state.subscriptions if other != server)
                sends = [self._reply(server, change, clock) for change in changes if change is not None]
        return [*sends, self._reply(server, RequestDone(request.number, clock, tuple(audience)), clock)]

    def _want(self, server: str, added: Iterable[Filter], removed: Iterable[Filter]) -> None:
        change(self.state.subscriptions.setdefault(server, {}), added, removed)
        for filter in removed:
            self._table.remove(filter, server)
        self._table.add_many((filter, server) for filter in added)
        if not self.state.subscriptions[server]:
            del self.state.subscriptions[server]

    def _proxy(self, to: str, server: str, number: int) -> ServerInterest | None:
        """Return the change of a server's filters which another server must learn; None without a change."""
        advertisements = self.state.advertisements.get(to, {})
        wanted = self.state.subscriptions.get(server, {})
        relevant = {filter: None for filter in wanted if _overlap([filter], advertisements)}
        informed = self.state.known.setdefault(to, {})
        known = informed.pop(server, {})
        if relevant:
            informed[server] = relevant
        added = tuple(filter for filter in relevant if filter not in known)
        removed = tuple(filter for filter in known if filter not in relevant)
        return ServerInterest(server, number, added, removed) if added or removed else None

    def _reply(self, server: str, content: Message, clock: int) -> Send:
        number = self.state.replies[server] = self.state.replies.get(server, 0) + 1
        return Send(server, ChannelReply(self.name, number, clock, content))


def _overlap(filters: Iterable[Filter], others: Iterable[Filter]) -> bool:
    return any(filter.overlaps(other) for filter in filters for other in others)


def change(kept: dict[Filter, None], added: Iterable[Filter], removed: Iterable[Filter]) -> None:
    """Remove filters, then add filters; covered filters are forgotten, as their sender expects (`tables.updates`)."""
    for filter in removed:
        kept.pop(filter, None)
    for filter in added:
        for other in [other for other in kept if filter.covers(other)]:
            del kept[other]
        if not any(other.covers(filter) for other in kept):
            kept[filter] = None
