"""A simulated network of 27 brokers that forwards by tags, and what it did that nobody wanted.

Nine brokers are a tree, and each of them has one more broker with a subscriber and one with a publisher. So an event
that comes to the broker of a subscriber who does not want it came for nothing else: a *false positive*.

All brokers keep the same tree and find the same places in it. To have 27 of them in one process they share one tree and
work out every place once (`Shared`), as simulated tables share a `SharedIndex`. That is the same as long as nothing is
said of trees while an event is under way, which is so here: operations are far apart, and links are fast.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.protocol.messages import Forward
from fieldfare.routing.broker import Broker
from fieldfare.routing.prefix import updates
from fieldfare.routing.prefix.insertion import Plan, plan
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.routes import PrefixRoutes
from fieldfare.routing.prefix.tagger import Tagger
from fieldfare.routing.prefix.tree import Tree
from fieldfare.routing.prefix.updates import RemoveNode, TreeUpdate, UpdateGap
from fieldfare.routing.strategies import PREFIX
from fieldfare.simulation.links import Wire
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, from_edges
from fieldfare.tables.shared_index import SharedIndex
from fieldfare_lab.prefix.workload import Distribution, Mix, Workload

CLIENTS: Final = 9
"""publishers, and as many subscribers"""
EVERY: Final = 3.0
"""seconds between two operations of a client"""
NEVER: Final = 1e9
"""seconds: a time bound that is none"""
_FLIGHT: Final = 0.01
"""seconds: no event is longer under way"""
_BEGIN: Final = 100.0
"""when somebody is in charge, and all know"""


def topology() -> Topology:
    """27 brokers."""
    core = [(f"c{(number - 1) // 2}", f"c{number}") for number in range(1, CLIENTS)]
    return from_edges(core + [(f"c{number}", f"{kind}{number}") for kind in "sp" for number in range(CLIENTS)])


class Course(NamedTuple):
    """What happens in a run."""

    distribution: Distribution
    prefix: PrefixOptions
    mix: Mix
    seed: int
    events: int
    """that are published; there are as many operations of subscribers"""
    sampled: int = 1
    """every so manieth event is sent: none of them changes anything, so the others would only take time"""
    keep: int | None = None
    """with so many subscriptions, every other operation takes the oldest back; None: there are ever more"""
    depths: tuple[int | None, ...] = (None,)
    """an event is sent with a tag of each of these depths"""


class Window(NamedTuple):
    """What happened between two moments to tags of a depth."""

    depth: int | None
    events: int
    """published up to the end"""
    sent: int
    """in between, of these"""
    arrived: int
    """events at brokers of subscribers"""
    unwanted: int
    """those of them that no client there wanted"""
    crossed: int
    """links that events crossed"""
    needless: int
    """those of them behind which nobody wanted the event"""
    tag: int
    """bytes of all tags"""
    updates: int
    """of the tree, up to the end"""
    nodes: int
    """of the tree at the end"""
    loose: int
    """filters that wait for nodes, at the broker that has most of them"""

    @property
    def false(self) -> float:
        """The percentage of arrivals that nobody wanted."""
        return 100 * self.unwanted / max(1, self.arrived)

    @property
    def needless_share(self) -> float:
        """The percentage of links crossed for nothing."""
        return 100 * self.needless / max(1, self.crossed)


class Bed:
    """The network, its clients, and the oracle that knows who wants what."""

    def __init__(self, course: Course, *, shared: bool = True) -> None:
        """The first broker is in charge of the tree; the beats of an optimizer that nothing happens to are rare."""
        self.course = course
        strategy = replace(PREFIX, prefix=replace(course.prefix, optimizers=("c0",), beat=20.0, patience=60.0))
        part = SharedIndex().part
        self.network = Network(
            lambda name: Broker(name, strategy, remember=5.0, index=part),
            topology(),
            links=Wire(_FLIGHT / 20),
            record=False,
        )
        if shared:
            commons = Commons()
            for broker in self.network.brokers:
                (self._routes(broker).followers[0]).placements = Shared(commons)
        for number in range(CLIENTS):
            self.network.attach(f"publisher {number}", f"p{number}")
            self.network.attach(f"subscriber {number}", f"s{number}")
        self._workload = Workload(course.seed, course.distribution, course.mix)
        self._wanted: Index[int] = Index()
        self._oldest: deque[int] = deque()
        self._path = cache(_paths(topology()))
        self.network.run(_BEGIN)

    def _routes(self, broker: str) -> PrefixRoutes:
        routes = self.network.brokers[broker].routes
        assert isinstance(routes, PrefixRoutes)
        return routes

    @property
    def updates(self) -> int:
        """How many of the tree were published."""
        return self._routes("c0").followers[0].placements.tree.version.number

    def run(self, windows: int) -> Iterator[Window]:
        """Let everything happen, and say what did: in each window one after the other for all depths."""
        course, size = self.course, max(1, self.course.events // windows)
        found = self._nothing()
        for number in range(course.events):
            now = _BEGIN + number * EVERY / CLIENTS
            self.network.run(now)
            self._subscribe(number)
            self.network.run(now + EVERY / CLIENTS / 2)
            if number % course.sampled == 0:
                event = Event(self._workload.event())
                found = [self._publish(f"p{number % CLIENTS}", event, before) for before in found]
            if (number + 1) % size == 0:
                status = [self._routes(broker).status[0] for broker in self.network.brokers]
                loose, nodes = max(one.loose for one in status), status[0].nodes
                for one in found:
                    yield one._replace(events=number + 1, updates=self.updates, nodes=nodes, loose=loose)
                found = self._nothing()

    def _nothing(self) -> list[Window]:
        return [Window(depth, *[0] * (len(Window._fields) - 1)) for depth in self.course.depths]

    def _subscribe(self, number: int) -> None:
        if self.course.keep is not None and len(self._oldest) > self.course.keep:
            gone = self._oldest.popleft()
            self.network.unsubscribe(f"subscriber {gone % CLIENTS}", str(gone))
            self._wanted.remove(gone)
            return
        filter = Filter([self._workload.box()])
        self.network.subscribe(f"subscriber {number % CLIENTS}", str(number), filter)
        self._wanted.add(number, filter)
        self._oldest.append(number)

    def _publish(self, entry: str, event: Event, found: Window) -> Window:
        before = {link: traffic.events for link, traffic in self.network.traffic.items()}
        routes = self._routes(entry)
        routes.options = replace(routes.options, depth=found.depth)
        tag = len(routes.tag(Forward(event, "", 0)).tag)
        self.network.publish(f"publisher {entry[1:]}", event)
        self.network.run(self.network.now + _FLIGHT)
        crossed = {link for link, traffic in self.network.traffic.items() if traffic.events > before.get(link, 0)}
        wanting = {f"s{number % CLIENTS}" for number in self._wanted.match(event)}
        needed = {link for home in wanting for link in self._path(entry, home)}
        if not needed <= crossed:
            raise RuntimeError(f"an event was lost on its way from {entry} to {wanting}")
        arrived = sum(there[0] == "s" for _, there in crossed)
        return found._replace(
            sent=found.sent + 1,
            arrived=found.arrived + arrived,
            unwanted=found.unwanted + arrived - len(wanting),
            crossed=found.crossed + len(crossed),
            needless=found.needless + len(crossed - needed),
            tag=found.tag + tag,
        )


def _paths(net: Topology) -> Callable[[str, str], frozenset[tuple[str, str]]]:
    neighbours = net.neighbours()

    def path(start: str, end: str) -> frozenset[tuple[str, str]]:
        """The links of a tree from one broker to another."""
        work = [(start, "", frozenset[tuple[str, str]]())]
        while work:
            here, before, links = work.pop()
            if here == end:
                return links
            work += [(there, here, links | {(here, there)}) for there in neighbours[here] if there != before]
        raise ValueError(f"there is no way from {start} to {end}")

    return path


# What brokers in one process have in common


class Commons:
    """One tree, and what was found in it."""

    def __init__(self) -> None:
        """The root."""
        self.tree = Tree()
        self.entry = Tagger()
        self._plans: dict[Branch, Plan] = {}

    def advance(self, update: TreeUpdate) -> Tree:
        """The first broker that hears of an update makes it for all."""
        if update.version > self.tree.version:
            if update.base is None:
                self.entry = Tagger()
            self.tree = updates.apply(self.tree, update)
            self._plans.clear()
        return self.tree

    def plan(self, box: Branch, splits: int) -> Plan:
        """Where a box belongs."""
        found = self._plans.get(box)
        if found is None:
            found = self._plans[box] = plan(self.tree, self.tree.order.path(box), splits)
        return found


class Shared(Placements):
    """The places of one of the brokers."""

    def __init__(self, commons: Commons) -> None:
        """Nobody wants anything yet."""
        super().__init__(commons.tree)
        self._commons = commons
        self._entry = commons.entry
        self._version = commons.tree.version
        """up to which this broker has heard of updates"""

    def _place(self, box: Branch) -> None:
        found = self._commons.plan(box, self._splits)
        if found.grafts:
            self._loose.add(box)
        self._nodes[box] = found.nodes
        for id in found.nodes:
            self._boxes.setdefault(id, set()).add(box)
        self._stale(found.nodes)

    def apply(self, update: TreeUpdate) -> bool:
        """Take an update, which another broker may have made."""
        if update.version <= self._version:
            return False
        if update.base is not None and update.base != self._version:
            raise UpdateGap(f"the update to {update.version} follows {update.base}, not {self._version}")
        gone = [operation.id for operation in update.operations if isinstance(operation, RemoveNode)]
        moved = {box for id in gone for box in self._boxes.get(id, ())} | self._loose
        self.tree, self._entry = self._commons.advance(update), self._commons.entry
        self._version = update.version
        self._move(self._wants if update.base is None else moved)
        return True
