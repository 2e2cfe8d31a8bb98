"""Brokers under observation: seconds of work by a cost model, and the move that caused each message."""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import MobileBroker, NextHop
from fieldfare.mobility.messages import MobileEnvelope, MoveIn, MoveOut
from fieldfare.mobility.publisher_messages import PreparePublisher, PublisherRelease
from fieldfare.mobility.publishers import Publishers
from fieldfare.protocol.messages import FilterUpdate, Forward, Message, Publish, Send
from fieldfare.routing.broker import Broker
from fieldfare.tables.network_index import NetworkIndex
from fieldfare.tables.shared_index import Entries, Entry


class Model(NamedTuple):
    """The seconds of work of a broker: an event is matched, a subscription is matched and inserted."""

    name: str
    event: float = 0.0
    subscription: float = 0.0
    advertisement: float = 0.0

    def cost(self, message: Message) -> float:
        """Return the seconds of work for a message; forwarding an addressed message costs nothing."""
        match message:
            case FilterUpdate():
                each = self.subscription if message.about == "subscriptions" else self.advertisement
                return each * (len(message.added) + len(message.removed))
            case Forward() | Publish():
                return self.event
            case MoveIn():
                return self.advertisement * len(message.advertisements)
        return 0.0


NONE: Final = Model("none")
FAST: Final = Model("fast", 0.002, 0.004, 0.002)
COMPLEX: Final = Model("complex", 0.140, 0.280, 0.140)


class Remembering(NetworkIndex):
    """A network index that caches overlaps, because the same few filters come and go all the time."""

    def __init__(self) -> None:
        super().__init__()
        self._overlapping: dict[Filter, Entries] = {}

    def _add(self, fresh: dict[Filter, Entry]) -> None:
        self._overlapping.clear()
        super()._add(fresh)

    def overlapping(self, filter: Filter) -> Entries:
        """Return all filters that overlap a filter, from the cache if possible; forgotten filters are in no part."""
        if filter not in self._overlapping:
            self._overlapping[filter] = super().overlapping(filter)
        return self._overlapping[filter]


class Watch:
    """The log of causes: a message that a broker sends because of another message has the same cause, a move."""

    def __init__(self) -> None:
        self.caused: dict[tuple[str, str, int], tuple[str, int]] = {}
        self.last: dict[tuple[str, int], float] = {}
        """time of the last subscription update that a move caused"""
        self.released: dict[tuple[str, int], float] = {}
        self.moves: dict[str, int] = {}
        self.work: dict[str, float] = {}


class Watched(MobileBroker):
    """A mobile broker that writes work and causes into a `Watch`."""

    def __init__(self, broker: Broker, part: Publishers, next_hop: NextHop, watch: Watch, model: Model) -> None:
        super().__init__(broker, part, next_hop=next_hop)
        self._watch = watch
        self._cost = model.cost

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message, and pass its cause on to the messages that result."""
        sends, watch = super().receive(message, sender, now), self._watch
        watch.work[self.name] = watch.work.get(self.name, 0.0) + self._cost(message)
        if isinstance(message, Forward | Publish):
            return sends
        if isinstance(message, PublisherRelease):
            watch.released[message.client, message.moves] = now
        cause = watch.caused.pop((sender, self.name, id(message)), None)
        if isinstance(message, MoveIn):
            cause = sender, message.moves
        if (
            cause is not None
            and isinstance(message, FilterUpdate)
            and message.about == "subscriptions"
            and message.added
        ):
            watch.last[cause] = now
        for send in sends:
            of = cause
            if isinstance(message, MoveOut):  # an ending visit has no cause; a preparation belongs to the next move
                content = send.message.content if isinstance(send.message, MobileEnvelope) else None
                of = (sender, watch.moves[sender] + 1) if isinstance(content, PreparePublisher) else None
            if of is not None:
                watch.caused[self.name, send.to, id(send.message)] = of
        return sends
