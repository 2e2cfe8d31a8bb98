"""Brokers with copies of a tree, an optimizer and its standby, and everything between them late.

After every step, every tag that was made anywhere at any time must let every broker find all interfaces that want the
event. False positives are counted: they are the price of being late, and must be gone when everything has arrived.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.protocol import wire
from fieldfare.routing.prefix import tag as tags
from fieldfare.routing.prefix.invariants import check
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.tagger import LARGE
from fieldfare.routing.prefix.tree import Term, Tree
from fieldfare.routing.prefix.updates import TreeUpdate, UpdateGap, apply, whole
from tools.prefix.samples import drop, want

INTERFACES = tuple(f"i{number}" for number in range(30))
"""many, so that one wish does not hide that another is lost"""


class Broker:
    """Its places, the obvious twin of them, and what is on the way to it."""

    def __init__(self, large: int) -> None:
        self.places = Placements(Tree(), large=large)
        self.wants: Counter[tuple[Filter, str]] = Counter()
        self.inbox: deque[bytes] = deque()

    def exact(self, event: Event) -> set[str]:
        return {interface for filter, interface in self.wants if filter.matches(event)}


class World:
    """Some brokers."""

    def __init__(self, brokers: int, in_flight: int = 12) -> None:
        self.brokers = [Broker(number % 2 * LARGE) for number in range(brokers)]
        self.leaders = [Optimizer()]
        """the last is the one; the others are thought dead, and may not be"""
        self.replica = Tree()
        self.news: deque[bytes] = deque()
        self.heard: Counter[Branch] = Counter()
        self.said: list[deque[tuple[Branch, bool]]] = [deque(), deque()]
        """boxes in and out, on their way to the optimizer and to its standby"""
        self.flying: deque[tuple[Event, bytes]] = deque(maxlen=in_flight)
        self.deliveries = self.extra = 0

    # What clients do

    def subscribe(self, broker: int, interface: str, filter: Filter) -> None:
        one = self.brokers[broker]
        one.wants[filter, interface] += 1
        want(one.places, filter, interface)
        self._tell(filter, True)

    def unsubscribe(self, broker: int, number: int) -> None:
        one = self.brokers[broker]
        if one.wants:
            filter, interface = list(one.wants)[number % len(one.wants)]
            one.wants[filter, interface] -= 1
            one.wants += Counter()
            drop(one.places, filter, interface)
            self._tell(filter, False)

    def _tell(self, filter: Filter, wanted: bool) -> None:
        for way in self.said:
            way.extend((box, wanted) for box in filter.boxes)

    def publish(self, broker: int, event: Event, limit: int | None) -> None:
        places = self.brokers[broker].places
        tag = places.write(event, limit)
        assert tag == tags.encode(places.enter(event, limit))
        self.flying.append((event, tag))

    # What optimizers do

    def hear(self, who: int) -> None:
        if self.said[who]:
            box, wanted = self.said[who].popleft()
            if who == 1:
                self.heard[box] += 1 if wanted else -1
            elif wanted:
                self.leaders[-1].add(box)
            else:
                self.leaders[-1].remove(box)

    def update(self, who: int = -1) -> None:
        """The optimizer publishes, or one that was thought dead."""
        if -len(self.leaders) <= who:
            leader = self.leaders[who]
            update = leader.publish(0.0)
            check(leader.tree)
            if update is not None:
                self._announce(_written(update))

    def _announce(self, data: bytes) -> None:
        for inbox in (*(broker.inbox for broker in self.brokers), self.news):
            inbox.append(data)

    def fail(self) -> None:
        """The standby takes over, with what it has heard so far."""
        term = Term(self.leaders[-1].term.round + 1)
        self.leaders.append(Optimizer(self.replica, (+self.heard).elements(), term=term))
        check(self.leaders[-1].tree)
        # The boxes that it has not heard of come later; its own standby begins where it stands.
        self.said[0] = deque(self.said[1])
        self.replica = apply(Tree(), self.ask())
        self.news.clear()

    # What arrives

    def arrive(self, broker: int) -> None:
        one = self.brokers[broker]
        if one.inbox:
            try:
                one.places.apply(_read(one.inbox.popleft()))
            except UpdateGap:
                ahead = max((other.places.tree for other in self.brokers), key=lambda tree: tree.version)
                one.inbox.appendleft(_written(whole(ahead) if ahead.version > one.places.tree.version else self.ask()))
            check(one.places.tree)

    def ask(self) -> TreeUpdate:
        """The whole tree, from the optimizer."""
        update, tree = self.leaders[-1].whole(0.0)
        if update is not None:
            self._announce(_written(update))
        return tree

    def arrive_at_standby(self) -> None:
        if self.news:
            try:
                self.replica = apply(self.replica, _read(self.news.popleft()))
            except UpdateGap:
                self.replica = apply(Tree(), self.ask())

    def forget(self, broker: int, number: int) -> None:
        tree = self.brokers[broker].places.tree
        tree.forget(tree.known[number % len(tree.known)])

    # What must be true

    def look(self) -> None:
        for event, data in self.flying:
            for broker in self.brokers:
                self._look(broker, event, data)

    def _look(self, broker: Broker, event: Event, data: bytes) -> None:
        assert broker.places.read_bytes(data) == broker.places.read(tags.decode(data))
        found, exact = broker.places.forward(tags.decode(data), event), broker.exact(event)
        assert found >= exact, (event, exact - found)
        assert broker.places.anew(event) >= exact
        self.deliveries += len(found)
        self.extra += len(found - exact)

    def calm(self) -> None:
        """Let everything arrive."""
        for who in (0, 1):
            while self.said[who]:
                self.hear(who)
        self.update()
        while self.news:
            self.arrive_at_standby()
        for number, broker in enumerate(self.brokers):
            while broker.inbox:
                self.arrive(number)

    def drain(self) -> None:
        """The same; then all brokers must have the tree of the optimizer in charge."""
        self.calm()
        for broker in self.brokers:
            assert broker.places.tree.version == self.leaders[-1].version
            assert broker.places.loose == 0


def _written(update: TreeUpdate) -> bytes:
    return msgspec.msgpack.encode(update, enc_hook=wire.to_wire)


def _read(data: bytes) -> TreeUpdate:
    update: Any = msgspec.msgpack.decode(data, type=TreeUpdate, dec_hook=wire.from_wire)
    assert isinstance(update, TreeUpdate)
    return update
