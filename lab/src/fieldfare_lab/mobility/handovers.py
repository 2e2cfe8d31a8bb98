"""Handovers of subscribers in a simulated network of routers, one after the other, with the cost of each handover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import MobileEnvelope
from fieldfare.mobility.path_update import CoveredUpdate, PathUpdate
from fieldfare.mobility.ping_pong import PING, PONG, PingPong
from fieldfare.mobility.rendezvous_handover import RendezvousUpdate
from fieldfare.mobility.subscriber_messages import MoveUpdate, SubscriberTransfer, UpwardUpdate
from fieldfare.mobility.subscribers import Subscribers
from fieldfare.protocol.messages import FilterUpdate, Forward, Message, Send
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, Strategy, with_advertisements
from fieldfare.simulation.areas import Routers, routers
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, spanning_tree
from fieldfare.tables.network_index import NetworkIndex

PROCESSING: Final = 0.002
"""seconds of work for a message; the simulation adds them to the link's time, so that no queues form"""
RESEND: Final = 0.1
TYPE: Final = "type = 't'"
"""the advertisement of all publishers"""


class Protocol(NamedTuple):
    """A handover protocol for subscribers, with or without a rendezvous point."""

    make: Callable[[], Subscribers]
    rendezvous: bool = False


PROTOCOLS: Final = {
    "ping/pong": Protocol(lambda: PingPong(every=RESEND)),
    "ping/pong, RP": Protocol(lambda: PingPong(every=RESEND), rendezvous=True),
    "incomplete": Protocol(lambda: PathUpdate(addressed=False)),
    "incomplete, RP": Protocol(RendezvousUpdate, rendezvous=True),
    "complete": Protocol(lambda: CoveredUpdate(addressed=False)),
    "complete, RP": Protocol(lambda: RendezvousUpdate(complete=True), rendezvous=True),
}


class Script(NamedTuple):
    """Subscriptions, publishers and moves of a run: the same for all protocols."""

    routers: Routers
    tree: Topology
    point: str
    """the rendezvous point"""
    subscriptions: dict[str, tuple[str, str]]
    """first broker and filter of each client"""
    publishers: tuple[str, ...]
    """brokers of the publishers"""
    moves: tuple[tuple[str, str], ...]
    """client and target of each move"""

    @property
    def depth(self) -> int:
        """Return the number of links on the longest path to the rendezvous point."""
        way = ways(self.tree)
        return max(_between(way, broker, self.point) + 1 for broker in self.tree.brokers if broker != self.point)


class Handover(NamedTuple):
    """The cost of a handover."""

    updated: int
    """updated brokers without the old and the new broker; a broker counts for each kind of update"""
    messages: int
    """all messages between brokers, also those that withdraw filters"""
    latency: float
    """seconds until the session has arrived"""
    path: int
    """number of brokers between the old and the new broker"""


class Counted:
    """A broker that logs the messages it receives."""

    def __init__(self, broker: MobileBroker, log: list[tuple[float, str, Message]]) -> None:
        """Wrap a broker; entries of the log are time, name of the broker, message."""
        self._broker = broker
        self._log = log

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Log a message and pass the message to the broker."""
        self._log.append((now, self._broker.name, message))
        return self._broker.receive(message, sender, now)

    def tick(self, now: float) -> list[Send]:
        """Pass the tick to the broker."""
        return self._broker.tick(now)

    @property
    def wakes(self) -> float | None:
        """Return the time of the broker's next tick."""
        return self._broker.wakes

    def snapshot(self) -> bytes:
        """Return the broker's snapshot, unchanged."""
        return self._broker.snapshot()


def script(
    seed: int,
    *,
    subscribers: int = 50,
    publishers: int = 1,
    handovers: int = 100,
    border: bool = True,
    size: int = 25,
    wants: Callable[[Random], str] = lambda _: TYPE,
) -> Script:
    """Make a script: four areas of `size` routers as a tree, with clients; if `border`, only at leaves of the tree.

    More subscribers or handovers leave earlier ones unchanged. Subscribers subscribe to everything that publishers
    advertise, unless `wants` draws other filters.
    """
    net = routers(size=size, seed=seed)
    tree = spanning_tree(net.topology, min(net.delays, key=lambda broker: max(net.delays[broker].values())))
    degrees = {broker: len(others) for broker, others in tree.neighbours().items()}
    leaves = [broker for broker in tree.brokers if degrees[broker] == 1]
    inner = [broker for broker in tree.brokers if degrees[broker] > 1]
    places = leaves if border else list(tree.brokers)
    who, what, where, promise = (Random(f"{seed} {border} {about}") for about in ("clients", "filters", "moves", "p"))
    clients = {f"s{number}": (who.choice(places), wants(what)) for number in range(subscribers)}
    speakers = tuple(promise.choice(tree.brokers) for _ in range(publishers))
    point = Random(f"{seed} point").choice(inner)
    return Script(net, tree, point, clients, speakers, tuple(_moves(clients, places, handovers, where)))


def _moves(
    clients: dict[str, tuple[str, str]], places: Sequence[str], handovers: int, dice: Random
) -> Iterator[tuple[str, str]]:
    at = {client: broker for client, (broker, _) in clients.items()}
    for _ in range(handovers):
        client = dice.choice(list(at))
        at[client] = dice.choice([place for place in places if place != at[client]])
        yield client, at[client]


def run(protocol: Protocol, script: Script) -> list[Handover]:
    """Run a script with a protocol; each move begins after the network has become quiet."""
    strategy: Strategy = COVERING if protocol.rendezvous else with_advertisements(COVERING)
    topology = script.tree.hierarchical(script.point) if protocol.rendezvous else script.tree
    links, delays, way, index = script.routers.links, script.routers.delays, ways(script.tree), NetworkIndex()
    adjacent = {frozenset(edge[:2]) for edge in topology.edges}
    log: list[tuple[float, str, Message]] = []

    def wire(a: str, b: str) -> Wire:
        return Wire((links[a, b] if frozenset((a, b)) in adjacent else delays[a][b]) + PROCESSING)

    network: Network[Any] = Network(
        lambda name: Counted(
            MobileBroker(Broker(name, strategy, index=index), protocol.make(), next_hop=way(name)), log
        ),
        topology, mesh=True, lazy=True, record=False, links=wire,
    )  # fmt: skip
    for number, broker in enumerate(script.publishers):
        network.attach(f"p{number}", broker)
        network.advertise(f"p{number}", "all", TYPE)
    network.drain()
    roamers = {client: Roamer(network, client) for client in script.subscriptions}
    for client, (broker, filter) in script.subscriptions.items():
        roamers[client].arrive(broker)
        roamers[client].subscribe("x", filter)
        network.drain()
    found = []
    for client, target in script.moves:
        log.clear()
        start, source = network.now, roamers[client].here
        assert source is not None
        roamers[client].arrive(target)
        network.drain()
        found.append(_judged(log, start, source, target, _between(way, source, target)))
    return found


def _between(way: Callable[[str], Callable[[str], str]], a: str, b: str) -> int:
    found = 0
    while (a := way(a)(b)) != b:
        found += 1
    return found


def _judged(log: Sequence[tuple[float, str, Message]], start: float, source: str, target: str, path: int) -> Handover:
    told = {(broker, what) for _, broker, message in log if broker not in (source, target) for what in _news(message)}
    arrived = next(time for time, _, message in log if isinstance(message, SubscriberTransfer))
    messages = len(log) - 1  # without the client's own message
    return Handover(len(told), messages, arrived - start + PROCESSING, path)


def _news(message: Message) -> Iterator[str]:
    """The kinds of updates in a message; a subscription and its later update are the same kind."""
    match message:
        case FilterUpdate(removed=(), added=added):  # an update with removals withdraws filters
            for filter in added:
                kind = next((kind for kind in (PING, PONG) if kind in str(filter)), "filters")
                yield f"{message.about} {kind}"
        case MoveUpdate() | UpwardUpdate():
            yield "subscriptions filters"
        case MobileEnvelope(content=MoveUpdate(target=target), origin=origin) if (
            origin == target
        ):  # not the answer of an RP
            yield "subscriptions filters"
        case Forward(event=event) if PING in event or PONG in event:
            yield f"{event} {message.sequence}"
