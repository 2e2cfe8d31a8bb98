"""L2: filters that depend on a place, in durable nodes: messages and misses, by the steps that nodes ask ahead."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.routing.places import Places
from fieldfare.routing.strategies import COVERING
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.filling import Dynamic
from fieldfare.simulation.links import Wire
from fieldfare.simulation.trace import Delivered
from fieldfare.tables.network_index import NetworkIndex
from fieldfare_lab.mobility.locations import torus
from fieldfare_lab.results import Claim, Result, Settings, curves_of
from fieldfare_lab.routing.runs import tree

_SIDE: Final = 10
_LATENCY: Final = 0.05
"""seconds a hop: the way between two leaves and back, 12 hops, is shorter than a residence"""
_RESIDENCE: Final = 1.0
_RATE: Final = 20.0
"""events a second, of all publishers together"""
_BEGIN: Final = 10.0
_MARGIN: Final = 0.02
"""seconds around a move in which an event may belong to either place: the way between client and node takes as long"""
_AHEAD: Final = (0, 1, 2, 3, 4)


class Walk(NamedTuple):
    """A walk, with the events of all places at all nodes."""

    places: list[str]
    """one place for each residence"""
    events: list[tuple[float, int, str]]
    """time, node and place"""


class Run(NamedTuple):
    """The figures of a walk."""

    updates: int
    """messages between nodes about filters, after the first subscription"""
    events: int
    """events on links"""
    due: int
    """events that happen to reach the client's node while the client is at their place, if they are forwarded"""
    arrived: int
    """events of them that reach the client"""
    unasked: int
    """events of another place than that of the client, far from any move"""


def ahead(settings: Settings) -> Result:
    """L2: the more places nodes ask for ahead, the fewer messages of moves, and the more events in vain."""
    rows: list[dict[str, Any]] = []
    moves = settings.size(100)
    for seed in range(settings.seed, settings.seed + settings.replications):
        play = walk(seed, moves)
        for steps in _AHEAD:
            one = run(play, steps)
            figures = {
                "filter updates a move": one.updates / moves, "events on links a move": one.events / moves,
                "share of due events that arrive": one.arrived / max(1, one.due),
            }  # fmt: skip
            rows += [{"steps": steps, "figure": name, "value": value} for name, value in figures.items()]
            rows.append({"steps": steps, "figure": "unasked", "value": float(one.unasked)})
    found = curves_of(rows, title="by the steps ahead", x="steps", line="figure", value="value")
    lines = {name: [value or 0.0 for value in values] for name, values in found.lines.items()}
    updates, shares = lines["filter updates a move"], lines["share of due events that arrive"]
    events, unasked = lines["events on links a move"], lines.pop("unasked")
    shown = found._replace(lines={name: tuple(values) for name, values in lines.items()})
    listed = [", ".join(f"{value:.1f}" for value in some) for some in (updates, events)]
    return Result(
        "L2", "Places in running nodes",
        f"15 durable nodes in a binary tree, the client at a leaf; {_SIDE}×{_SIDE} places on a torus, a random step "
        f"every {_RESIDENCE:g} s, {moves} moves; {_RATE:.0f} events/s from all nodes, of all places; {_LATENCY} s a "
        "hop",
        (shown,),
        (
            Claim(
                "with one step ahead or more, no due event is missed", all(share == 1 for share in shares[1:]),
                ", ".join(f"{share:.1%}" for share in shares),
            ),
            Claim("a node that asks for the present place only misses some", shares[0] < 1, f"{shares[0]:.1%}"),
            Claim(
                "each step ahead, from the second on, saves messages", all(b < a for a, b in pairwise(updates[1:])),
                listed[0],
            ),
            Claim("and costs events in vain", all(b > a for a, b in pairwise(events)), listed[1]),
            Claim("no client gets the events of another place", not any(unasked), f"{sum(unasked):.0f} events"),
        ),
        "One step ahead alone saves nothing: the anchor is the place of the client then. The steps ahead are the same "
        "for all nodes, near and far, since filters travel as ordinary filter updates.",
    )  # fmt: skip


def walk(seed: int, moves: int) -> Walk:
    """Draw a random walk and random events."""
    dice, graph = Random(f"{seed} ahead"), torus(_SIDE)
    places = list(accumulate(range(moves), lambda place, _: dice.choice(list(graph[place])), initial="0,0"))
    end = _BEGIN + _RESIDENCE * (moves + 1)
    times = accumulate((dice.expovariate(_RATE) for _ in range(round(_RATE * (end - _BEGIN)))), initial=_BEGIN)
    nodes, known = len(tree(3).brokers), list(graph)
    return Walk(places, [(time, dice.randrange(nodes), dice.choice(known)) for time in times])


def run(play: Walk, steps: int) -> Run:
    """Walk through a network of nodes that ask some steps ahead."""
    topology = tree(3)
    options = Options(COVERING, shared=NetworkIndex(), places=Places(torus(_SIDE), ahead=steps))
    network = CoreNetwork(topology, options, wire=Wire(_LATENCY), detailed=True)
    home = topology.brokers[-1]
    client = network.add_client("client", home)
    publishers = [network.add_client(f"at {node}", node) for node in topology.brokers]
    network.settle()
    client.state({"myloc": play.places[0]})
    client.change(Dynamic("here", "place IN myloc"))
    network.clock.run(_BEGIN - 1)
    before = _updates(network)
    moves = [_BEGIN + number * _RESIDENCE for number in range(len(play.places))]
    for time, place in zip(moves[1:], play.places[1:], strict=True):
        network.at(time, client.state, {"myloc": place})
    for time, node, place in play.events:
        network.at(time, publishers[node].publish, [Event({"place": place})])
    network.clock.run(moves[-1] + 2 * _RESIDENCE)
    got = {(record.publisher, record.sequence): record for record in network.trace if isinstance(record, Delivered)}
    hops = _distances(topology.neighbours(), home)
    counts = [0] * len(publishers)
    due = arrived = unasked = 0
    for time, node, place in play.events:
        counts[node] += 1
        reached = time + hops[topology.brokers[node]] * _LATENCY
        now = bisect_right(moves, reached) - 1
        if min(abs(reached - moves[now]), abs(reached - moves[now] - _RESIDENCE)) < _MARGIN or reached >= moves[-1]:
            continue
        delivered = (publishers[node].name, counts[node]) in got
        due += place == play.places[now]
        arrived += delivered and place == play.places[now]
        unasked += delivered and place != play.places[now]
    sent = sum(traffic.events for traffic in network.traffic.values())
    return Run(_updates(network) - before, sent, due, arrived, unasked)


def _updates(network: CoreNetwork) -> int:
    return sum(traffic.admin for traffic in network.traffic.values())


def _distances(neighbours: Any, home: str) -> dict[str, int]:
    far, queue = {home: 0}, [home]
    for node in queue:
        for other in neighbours[node]:
            if other not in far:
                far[other] = far[node] + 1
                queue.append(other)
    return far


EXPERIMENTS: dict[str, Callable[[Settings], Result]] = {"L2": ahead}
