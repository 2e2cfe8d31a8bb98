"""Handovers of subscribers in a simulated network of routers, one after the other, and what each of them cost."""

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
from fieldfare.tables.shared_index import SharedIndex

PROCESSING: Final = 0.002
"""seconds that a broker takes for a message; part of the link's time here, so that nobody queues"""
RESEND: Final = 0.1
TYPE: Final = "type = 't'"
"""what all publishers promise"""


class Protocol(NamedTuple):
    """How subscribers move."""

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
    """Who wants what, who promises what, and who goes where: the same for all protocols."""

    routers: Routers
    tree: Topology
    point: str
    """the rendezvous point"""
    subscriptions: dict[str, tuple[str, str]]
    """of each client: where it is first, and its filter"""
    publishers: tuple[str, ...]
    """where they are"""
    moves: tuple[tuple[str, str], ...]
    """clients and where they go"""

    @property
    def depth(self) -> int:
        """Links on the longest path to the rendezvous point."""
        way = ways(self.tree)
        return max(_between(way, broker, self.point) + 1 for broker in self.tree.brokers if broker != self.point)


class Handover(NamedTuple):
    """What one cost."""

    updated: int
    """brokers, but for the old and the new one, each for everything that it is told"""
    messages: int
    """all between brokers, with those that take things back"""
    latency: float
    """seconds until the session is there"""
    path: int
    """brokers between the old and the new one"""


class Counted:
    """A broker whose messages are noted."""

    def __init__(self, broker: MobileBroker, log: list[tuple[float, str, Message]]) -> None:
        """Note them in a log."""
        self._broker = broker
        self._log = log

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message."""
        self._log.append((now, self._broker.name, message))
        return self._broker.receive(message, sender, now)

    def tick(self, now: float) -> list[Send]:
        """Let time pass."""
        return self._broker.tick(now)

    @property
    def wakes(self) -> float | None:
        """When it wants a tick."""
        return self._broker.wakes

    def snapshot(self) -> bytes:
        """All that it must not lose."""
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
    """A topology of four areas of so many routers, as a tree, and clients on it; if `border`, at its leaves only.

    More subscribers or handovers change nothing for those before. Subscribers want all that publishers promise, unless
    they are told otherwise.
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
    """Let everybody move as the script says, each when the network is quiet."""
    strategy: Strategy = COVERING if protocol.rendezvous else with_advertisements(COVERING)
    topology = script.tree.hierarchical(script.point) if protocol.rendezvous else script.tree
    links, delays, way, part = script.routers.links, script.routers.delays, ways(script.tree), SharedIndex().part
    adjacent = {frozenset(edge[:2]) for edge in topology.edges}
    log: list[tuple[float, str, Message]] = []

    def wire(a: str, b: str) -> Wire:
        return Wire((links[a, b] if frozenset((a, b)) in adjacent else delays[a][b]) + PROCESSING)

    network: Network[Any] = Network(
        lambda name: Counted(
            MobileBroker(Broker(name, strategy, index=part), protocol.make(), next_hop=way(name)), log
        ),
        topology, mesh=True, lazy=True, record=False, links=wire,
    )  # fmt: skip
    for number, broker in enumerate(script.publishers):
        network.attach(f"p{number}", broker)
        network.advertise(f"p{number}", "all", TYPE)
    network.settle()
    roamers = {client: Roamer(network, client) for client in script.subscriptions}
    for client, (broker, filter) in script.subscriptions.items():
        roamers[client].arrive(broker)
        roamers[client].subscribe("x", filter)
        network.settle()
    found = []
    for client, target in script.moves:
        log.clear()
        start, source = network.now, roamers[client].here
        assert source is not None
        roamers[client].arrive(target)
        network.settle()
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
    messages = len(log) - 1  # what the client says is none
    return Handover(len(told), messages, arrived - start + PROCESSING, path)


def _news(message: Message) -> Iterator[str]:
    """What a message is about, if a broker is updated by it; a subscription and its update are one thing."""
    match message:
        case FilterUpdate(removed=(), added=added):  # else it is part of what is taken back
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
