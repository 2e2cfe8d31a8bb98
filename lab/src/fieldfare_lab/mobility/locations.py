"""L1: filters that depend on a place, compared with flooding and with subscribing anew at each move."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.location import Location
from fieldfare.mobility.location_messages import Locate
from fieldfare.mobility.places import Reach, World, nothing_ahead, reach
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.places import Graph, ploc
from fieldfare.routing.strategies import FLOODING, SIMPLE
from fieldfare.simulation.links import Wire
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, line
from fieldfare_lab.results import Claim, Result, Settings, curves_of
from fieldfare_lab.routing.runs import tree

_LATENCY: Final = 0.21
"""seconds a hop; no multiple of the latency is a multiple of a residence, so that events and moves never coincide"""
_RATE: Final = 20.0
"""events a second, of all publishers together"""
_SIDE: Final = 10
_HOPS: Final = 8
_RING: Final = 8
"""number of places; the client is back at a place later than news of the place"""
_BEGIN: Final = 10.0
"""seconds after which all brokers know the first subscription"""


def locations(settings: Settings) -> Result:
    """L1: messages over time, for a client that moves slowly or fast."""
    seconds = settings.size(100)
    rows: list[dict[str, Any]] = []
    missed = 0
    for seed in range(settings.seed, settings.seed + settings.replications):
        for name, residence in (("Δ = 1 s", 1.0), ("Δ = 10 s", 10.0)):
            play = _play(residence, seconds, seed)
            runs = {"flooding": play.flooded(), name: play.roaming(_steps(residence))}
            for scheme, run in runs.items():
                counted = zip(_times(seconds), run.counts(_times(seconds)), strict=True)
                rows += [{"scheme": scheme, "seconds": at, "messages": count} for at, count in counted]
            missed += len(set(runs["flooding"].got) ^ set(runs[name].got))
    for name, stays in _MODELS.items():
        rows += [{"scheme": name, "seconds": at, "messages": model(tree(4), stays) * at} for at in _times(seconds)]
    messages = curves_of(rows, title="messages, of events and of moves", x="seconds", line="scheme", value="messages")
    shares = curves_of(_shares(settings), title="share of due events that arrive", x="Δ", line="scheme", value="share")
    lines = {name: [value or 0.0 for value in values] for name, values in messages.lines.items()}
    flooding, fast, slow = lines["flooding"], lines["Δ = 1 s"], lines["Δ = 10 s"]
    off = {name: lines[name][-1] / lines[f"{name}, model"][-1] - 1 for name in ("flooding", "Δ = 1 s", "Δ = 10 s")}
    ratios = [[a / b for a, b in zip(flooding, other, strict=True)] for other in (fast, slow)]
    wrapper, expected = shares.lines["subscribe anew"], shares.lines["1 − 2·t_d / Δ"]
    return Result(
        "L1", "Filters that depend on a place",
        f"31 brokers in a binary tree, the client at a leaf; {_SIDE}×{_SIDE} places on a torus; {_RATE:.0f} events/s "
        f"from all brokers, of all places; {_LATENCY} s a hop. Second table: {_HOPS} hops, round trip {_ROUND:.2f} s",
        (messages, shares),
        (
            Claim(
                "slow < fast < flooding, at any time",
                all(a < b < c for a, b, c in zip(slow, fast, flooding, strict=True)),
                f"{slow[-1]:,.0f}, {fast[-1]:,.0f}, {flooding[-1]:,.0f} messages after {seconds} s",
            ),
            Claim(
                "by a constant factor: lines are parallel on a log axis (within a quarter)",
                all(max(ratio) / min(ratio) < 1.25 for ratio in ratios),
                "; ".join(f"flooding is {min(ratio):.1f} to {max(ratio):.1f} times as much" for ratio in ratios),
            ),
            Claim(
                "savings are considerable (half at least), although each move sends a message over every link",
                2 * fast[-1] < flooding[-1], f"{1 - fast[-1] / flooding[-1]:.0%} and {1 - slow[-1] / flooding[-1]:.0%}",
            ),
            Claim(
                "the derived model holds (within a tenth)", all(abs(one) < 0.1 for one in off.values()),
                ", ".join(f"{name}: {one:+.1%}" for name, one in off.items()),
            ),
            Claim("no event that flooding would have delivered is missed", missed == 0, f"{missed} events"),
            Claim(
                "a client that subscribes anew at each move misses events for about 2·t_d, and all events if its stays "
                "are shorter",
                all(a is not None and b is not None and abs(a - b) < 0.05
                    for a, b in zip(wrapper, expected, strict=True)),
                ", ".join(f"Δ {at:g}: {a:.0%}" for at, a in zip(shares.at, wrapper, strict=True) if a is not None),
            ),
            Claim(
                "a client with ploc misses no event", all(value == 1.0 for value in shares.lines["ploc"]),
                ", ".join(f"{value:.0%}" for value in shares.lines["ploc"] if value is not None),
            ),
        ),
        "The book prints neither its network nor its values. A broker must look ahead by the time of a round trip, not "
        "only by the time that a message takes.",
    )  # fmt: skip


_MODELS: Final = {"flooding, model": None, "Δ = 1 s, model": 1.0, "Δ = 10 s, model": 10.0}
_ROUND: Final = 2 * _HOPS * _LATENCY


def torus(side: int) -> Graph:
    """Return places in rows and columns, each with four neighbours; the borders are joined."""
    return {
        f"{x},{y}": [f"{(x + dx) % side},{(y + dy) % side}" for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        for x in range(side)
        for y in range(side)
    }


def model(topology: Topology, residence: float | None) -> float:
    """Return the messages a second that the derived model predicts; residence None: flooding."""
    neighbours, client = topology.neighbours(), topology.brokers[-1]
    links = len(topology.edges)
    if residence is None:
        return _RATE * links
    graph, steps = torus(_SIDE), _steps(residence)
    first = next(iter(graph))

    def below(broker: str, above: str, hop: int) -> tuple[int, float]:
        """Return the number of brokers in a subtree, and the messages a second towards the client."""
        brokers, sent = 1, 0.0
        for other in neighbours[broker]:
            if other != above:
                more, theirs = below(other, broker, hop + 1)
                share = len(ploc(graph, first, steps(hop + 1))) / len(graph)
                brokers, sent = brokers + more, sent + theirs + _RATE * more / len(neighbours) * share
        return brokers, sent

    return below(client, "", 0)[1] + links / residence


def _steps(residence: float) -> Reach:
    return reach([_LATENCY], [_LATENCY], residence)


def _times(seconds: float) -> list[float]:
    return [seconds * part / 5 for part in range(1, 6)]


class Play(NamedTuple):
    """The walk of a client and the events of publishers, the same for all ways of routing."""

    topology: Topology
    graph: Graph
    walk: list[tuple[float, str]]
    events: list[tuple[float, str, str]]
    """time, broker and place of each event"""

    def flooded(self) -> Run:
        """Run with flooding: every event reaches the client, which keeps the events of its present place."""
        moves = iter([*self.walk, (math.inf, "")])
        (_, place), (until, following) = next(moves), next(moves)

        def wanted(time: float, event: Mapping[str, object]) -> bool:
            nonlocal place, until, following
            while time >= until:
                place = following
                until, following = next(moves)
            return event["place"] == place

        run = Run(self, lambda name: Broker(name, FLOODING), wanted)
        run.network.subscribe("client", "all", "TRUE")
        return run

    def roaming(self, steps: Reach) -> Run:
        """Run with filters that depend on the place of the client."""
        world = World(self.graph, steps)

        def make(name: str) -> MobileBroker:
            return MobileBroker(Broker(name, SIMPLE), Location(world, stop=False), next_hop=lambda to: to)

        run = Run(self, make)
        for time, place in self.walk:
            run.network.at(time, run.network.send, "client", Locate("here", "place IN myloc", place))
        return run


class Run:
    """A play, carried out in a simulated network."""

    def __init__(
        self, play: Play, make: Callable[[str], Any], wanted: Callable[[float, Event], bool] = lambda _t, _e: True
    ) -> None:
        """Schedule the play; the client is at the last broker and keeps the events that `wanted` accepts."""
        self.got: list[float] = []
        """arrival times of the kept events"""
        self._wanted = wanted
        self.network: Network[Any] = Network(
            make, play.topology, links=Wire(_LATENCY), record=False, on_message=self._receive
        )
        self.network.attach("client", play.topology.brokers[-1])
        for broker in play.topology.brokers:
            self.network.attach(f"at {broker}", broker)
        for time, broker, place in play.events:
            self.network.at(time, self.network.publish, f"at {broker}", {"place": place})

    def _receive(self, client: str, message: Message) -> None:
        if isinstance(message, Deliver) and self._wanted(self.network.now, message.event):
            self.got.append(self.network.now)

    def counts(self, times: Iterable[float]) -> list[int]:
        """Run the network, and return the number of messages over links at each time since the walk began."""
        sent = []
        for time in (0.0, *times):
            self.network.run(_BEGIN + time)
            traffic = self.network.total_traffic()
            sent.append(traffic.events + traffic.admin + traffic.other)
        self.network.drain()
        return [count - sent[0] for count in sent[1:]]


def _play(residence: float, seconds: float, seed: int) -> Play:
    """A play on the torus: a random walk, and events of random places at random brokers."""
    dice, topology, graph = Random(f"{seed} events"), tree(4), torus(_SIDE)
    times = accumulate((dice.expovariate(_RATE) for _ in range(round(_RATE * seconds))), initial=_BEGIN)
    events = [(time, dice.choice(topology.brokers), dice.choice(list(graph))) for time in times]
    walk = Random(f"{seed} walk")
    places = accumulate(
        range(math.floor(seconds / residence)), lambda place, _: walk.choice(list(graph[place])), initial="0,0"
    )
    return Play(topology, graph, _since(places, residence), events)


def _since(places: Iterable[str], residence: float) -> list[tuple[float, str]]:
    """The walk through places with the arrival times, for a client that stays `residence` seconds at each place."""
    return [(_BEGIN + i * residence if i else 0.0, place) for i, place in enumerate(places)]


def _shares(settings: Settings) -> list[dict[str, Any]]:
    """The share of due events that a client receives on a ring of places, by the length of its stays."""
    rows: list[dict[str, Any]] = []
    graph: Graph = {f"{i}": [f"{(i + 1) % _RING}"] for i in range(_RING)}
    for residence in (1.0, 3.0, 4.0, 6.0, 10.0):
        moves = max(4, round(20 * settings.scale))
        end = _BEGIN + moves * residence
        events = [(_BEGIN + (i + 0.5) / 8, "b0", place) for i in range(round(8 * moves * residence)) for place in graph]
        walk = _since((f"{i % _RING}" for i in range(moves)), residence)
        play = Play(line(_HOPS + 1), graph, walk, events)
        counts = []
        for run in (play.flooded(), play.roaming(nothing_ahead), play.roaming(_steps(residence))):
            run.network.drain()
            counts.append(sum(_BEGIN + residence <= time < end for time in run.got))
        shares = {
            "subscribe anew": counts[1] / counts[0], "1 − 2·t_d / Δ": max(0.0, 1 - _ROUND / residence),
            "ploc": counts[2] / counts[0],
        }  # fmt: skip
        rows += [{"scheme": name, "Δ": residence, "share": share} for name, share in shares.items()]
    return rows


EXPERIMENTS: dict[str, Callable[[Settings], Result]] = {"L1": locations}
