"""A simulated network of 27 brokers that forwards by tags, and counts false positives.

Nine brokers form a tree; each of the nine has a neighbour with a subscriber and a neighbour with a publisher. A broker
of a subscriber passes no events on, so an event there without a matching subscription is a *false positive*.

All brokers keep the same tree and find the same places of filters. To have 27 brokers in a process, the brokers share a
tree and compute every place once (`Shared`), as simulated tables share a `NetworkIndex`. Sharing changes nothing as
long as no update of the tree is under way together with an event; operations are far apart and links are fast.
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
from fieldfare.tables.network_index import NetworkIndex
from fieldfare_lab.prefix.workload import Distribution, Mix, Workload

CLIENTS: Final = 9
"""number of publishers, and of subscribers"""
EVERY: Final = 3.0
"""seconds between two operations of a client"""
NEVER: Final = 1e9
"""seconds; so long that there is no time bound"""
_FLIGHT: Final = 0.01
"""seconds; longest way of an event"""
_BEGIN: Final = 100.0
"""seconds after which an optimizer is elected and known to all brokers"""


def topology() -> Topology:
    """Return the tree of 27 brokers: `c0` to `c8`, with `s0` to `s8` and `p0` to `p8` at the leaves."""
    core = [(f"c{(number - 1) // 2}", f"c{number}") for number in range(1, CLIENTS)]
    return from_edges(core + [(f"c{number}", f"{kind}{number}") for kind in "sp" for number in range(CLIENTS)])


class Course(NamedTuple):
    """The parameters of a run."""

    distribution: Distribution
    prefix: PrefixOptions
    mix: Mix
    seed: int
    events: int
    """number of events, and of operations of subscribers"""
    sampled: int = 1
    """every n-th event is sent; events change no state, so that the others would only take time"""
    keep: int | None = None
    """number of subscriptions from which every other operation removes the oldest; None: subscriptions only grow"""
    depths: tuple[int | None, ...] = (None,)
    """depths of tags; an event is sent with a tag of each depth"""


class Window(NamedTuple):
    """The counts of a part of a run, for tags of a depth."""

    depth: int | None
    events: int
    """number of events from the beginning of the run to the end of the window"""
    sent: int
    """number of sent events in the window"""
    arrived: int
    """arrivals of events at brokers of subscribers"""
    unwanted: int
    """arrivals without a matching subscription"""
    crossed: int
    """links that events crossed"""
    needless: int
    """crossed links without a matching subscription behind the link"""
    tag: int
    """bytes of all tags"""
    updates: int
    """number of updates of the tree from the beginning of the run to the end of the window"""
    nodes: int
    """nodes of the tree at the end of the window"""
    loose: int
    """largest number of filters that wait for nodes at a broker"""

    @property
    def false(self) -> float:
        """Return the percentage of arrivals without a matching subscription."""
        return 100 * self.unwanted / max(1, self.arrived)

    @property
    def needless_share(self) -> float:
        """Return the percentage of needlessly crossed links."""
        return 100 * self.needless / max(1, self.crossed)


class Bed:
    """The network with its clients, and an oracle that knows all subscriptions."""

    def __init__(self, course: Course, *, shared: bool = True) -> None:
        """Start the network; the optimizer is `c0`, with rare beats, because no broker fails."""
        self.course = course
        strategy = replace(PREFIX, prefix=replace(course.prefix, optimizers=("c0",), beat=20.0, patience=60.0))
        index = NetworkIndex()
        self.network = Network(
            lambda name: Broker(name, strategy, remember=5.0, index=index),
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
        self._subscribed: Index[int] = Index()
        self._oldest: deque[int] = deque()
        self._path = cache(_paths(topology()))
        self.network.run(_BEGIN)

    def _routes(self, broker: str) -> PrefixRoutes:
        routes = self.network.brokers[broker].routes
        assert isinstance(routes, PrefixRoutes)
        return routes

    @property
    def updates(self) -> int:
        """Return the number of published updates of the tree."""
        return self._routes("c0").followers[0].placements.tree.version.number

    def run(self, windows: int) -> Iterator[Window]:
        """Carry out the course; yield a `Window` for each depth at the end of each of so many windows."""
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
            self._subscribed.remove(gone)
            return
        filter = Filter([self._workload.box()])
        self.network.subscribe(f"subscriber {number % CLIENTS}", str(number), filter)
        self._subscribed.add(number, filter)
        self._oldest.append(number)

    def _publish(self, entry: str, event: Event, found: Window) -> Window:
        before = {link: traffic.events for link, traffic in self.network.traffic.items()}
        routes = self._routes(entry)
        routes.options = replace(routes.options, depth=found.depth)
        tag = len(routes.tag(Forward(event, "", 0)).tag)
        self.network.publish(f"publisher {entry[1:]}", event)
        self.network.run(self.network.now + _FLIGHT)
        crossed = {link for link, traffic in self.network.traffic.items() if traffic.events > before.get(link, 0)}
        homes = {f"s{number % CLIENTS}" for number in self._subscribed.match(event)}
        needed = {link for home in homes for link in self._path(entry, home)}
        if not needed <= crossed:
            raise RuntimeError(f"an event was lost on its way from {entry} to {homes}")
        arrived = sum(there[0] == "s" for _, there in crossed)
        return found._replace(
            sent=found.sent + 1,
            arrived=found.arrived + arrived,
            unwanted=found.unwanted + arrived - len(homes),
            crossed=found.crossed + len(crossed),
            needless=found.needless + len(crossed - needed),
            tag=found.tag + tag,
        )


def _paths(net: Topology) -> Callable[[str, str], frozenset[tuple[str, str]]]:
    neighbours = net.neighbours()

    def path(start: str, end: str) -> frozenset[tuple[str, str]]:
        """Return the links of the tree on the way from `start` to `end`."""
        work = [(start, "", frozenset[tuple[str, str]]())]
        while work:
            here, before, links = work.pop()
            if here == end:
                return links
            work += [(there, here, links | {(here, there)}) for there in neighbours[here] if there != before]
        raise ValueError(f"there is no way from {start} to {end}")

    return path


# State that all brokers of the process share


class Commons:
    """The shared tree of all brokers, with a cache of the places of boxes."""

    def __init__(self) -> None:
        """Start with a tree that has only a root."""
        self.tree = Tree()
        self.entry = Tagger()
        self._plans: dict[Branch, Plan] = {}

    def advance(self, update: TreeUpdate) -> Tree:
        """Apply an update, unless another broker has applied it, and return the tree."""
        if update.version > self.tree.version:
            if update.base is None:
                self.entry = Tagger()
            self.tree = updates.apply(self.tree, update)
            self._plans.clear()
        return self.tree

    def plan(self, box: Branch, splits: int) -> Plan:
        """Return the place of a box in the tree, from the cache if possible."""
        found = self._plans.get(box)
        if found is None:
            found = self._plans[box] = plan(self.tree, self.tree.order.path(box), splits)
        return found


class Shared(Placements):
    """The placements of a broker, over the tree of the `Commons`."""

    def __init__(self, commons: Commons) -> None:
        """Start without any placed box."""
        super().__init__(commons.tree)
        self._commons = commons
        self._entry = commons.entry
        self._version = commons.tree.version
        """version of the last update that the broker received"""

    def _place(self, box: Branch) -> None:
        found = self._commons.plan(box, self._splits)
        if found.grafts:
            self._loose.add(box)
        self._nodes[box] = found.nodes
        for id in found.nodes:
            self._boxes.setdefault(id, set()).add(box)
        self._stale(found.nodes)

    def apply(self, update: TreeUpdate) -> bool:
        """Advance to an update, which another broker may have applied to the shared tree before."""
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
