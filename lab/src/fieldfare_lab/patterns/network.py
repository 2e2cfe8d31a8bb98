"""A network of durable nodes for patterns: publishers on one side of a link, subscribers on the other.

    b0 (a, b) --.                    .-- b4
                 b2 --------------- b3 -- b5
    b1 (c, d) --'    thin link       '-- b6

Publishers of a and b are at b0, of c and d at b1; subscribers at b4 to b6. Detectors may stand at any node. Nodes run
the core of real nodes, and composite events are ordinary events: the experiments count the events on links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.core.pattern_inputs import HostPattern, RemovePattern
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.patterns import Pattern, parse_pattern
from fieldfare.patterns.placement import PlacementPolicy, Registry, Stand, Statistics, place, with_load
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import COVERING
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.links import Wire
from fieldfare.simulation.topologies import Edge, Topology
from fieldfare.simulation.trace import Delivered
from fieldfare.tables.network_index import NetworkIndex

EDGES: Final = (("b0", "b2"), ("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b3", "b5"), ("b3", "b6"))
THIN: Final = ("b2", "b3")
NODES: Final = ("b0", "b1", "b2", "b3", "b4", "b5", "b6")
SUBSCRIBERS: Final = ("b4", "b5", "b6")
HOMES: Final = {"a": "b0", "b": "b0", "c": "b1", "d": "b1"}
"""node of the publisher of each name"""
LATENCY: Final = 0.01
"""seconds a link"""
CARDS: Final = 10
"""values of the key: the larger, the rarer are composite events"""


class Wish(NamedTuple):
    """A pattern with its subscriber."""

    pattern: Pattern
    node: str


class Figures(NamedTuple):
    """The outcome of a run."""

    links: float
    """events on all links"""
    thin: float
    """events on the thin link"""
    loads: dict[str, int]
    """by node: events that detectors there looked at"""
    into: dict[str, int]
    """by node: events that came over links"""
    delays: tuple[float, ...]
    """by delivery: seconds from the publication of the last constituent"""
    found: tuple[tuple[Any, ...], ...]
    """by delivery: the subscriber and the constituents"""


def wish(node: str, *steps: str) -> Wish:
    """Return a pattern of steps, one after the other for each card, for a subscriber at a node.

    >>> wish("b4", "a", "c").pattern.names
    ['a', 'c']
    """
    filters = " ".join(f"{name}: [kind = '{name[0]}'{_level(name)}]" for name in steps)
    text = f"{filters} ({' followed by '.join(steps)}) within 1 hour for each card"
    return Wish(parse_pattern(text), node)


def _level(name: str) -> str:
    """Return a condition for a name with a number: `d3` is a d of level 3."""
    return f" AND level = {name[1:]}" if len(name) > 1 else ""


def story(seed: int, events: int, rate: float = 100.0) -> list[tuple[float, Event]]:
    """Draw events of all kinds at random times, with the time of publication inside."""
    dice, time = Random(f"{seed} patterns"), 10.0
    found = []
    for number in range(events):
        time += dice.expovariate(rate)
        found.append((time, Event({
            "kind": dice.choice("abcd"), "card": dice.randrange(CARDS), "level": dice.randrange(8),
            "at": time, "number": number,
        })))  # fmt: skip
    return found


def statistics(wishes: Iterable[Wish], rate: float) -> Statistics:
    """Return the counts of nodes for the filters of some patterns."""
    rates = {}
    for one in wishes:
        for name in one.pattern.names:
            share = 1 / 4 if len(name) == 1 else 1 / 32
            rates[one.pattern.filters[name]] = {HOMES[name[0]]: rate * share}
    return Statistics({node: _distances(node) for node in NODES}, rates, load=dict.fromkeys(NODES, 0.0))


def _distances(start: str) -> dict[str, float]:
    found, edge = {start: 0.0}, [start]
    while edge:
        near = {b if a == one else a: found[one] + 1 for one in edge for a, b in EDGES if one in (a, b)}
        edge = [node for node in near if node not in found]
        found |= {node: near[node] for node in edge}
    return found


def planned(wishes: Sequence[Wish], policy: PlacementPolicy, known: Statistics) -> list[tuple[Stand, ...]]:
    """Place the detectors of all wishes, one after the other: each finds those of the wishes before."""
    registry, plans = Registry(), []
    for number, one in enumerate(wishes):
        stands = place(one.pattern, one.node, policy, registry, known)
        known = with_load(known, stands)
        for stand in stands:
            registry = registry.with_stand(stand, f"subscriber {number}")
        plans.append(stands)
    return plans


def run(
    wishes: Sequence[Wish], plans: Sequence[Sequence[Stand]], events: Sequence[tuple[float, Event]], *, crash: str = ""
) -> Figures:
    """Let nodes detect patterns by plans; the detectors of a node may end in the middle."""
    edges = tuple(Edge(a, b) for a, b in EDGES)
    network = CoreNetwork(Topology(NODES, edges), Options(COVERING, shared=NetworkIndex()), wire=Wire(LATENCY))
    network.settle()
    for stand in [one for stands in plans for whole in stands for one in whole.all()]:
        if not stand.new or stand.recipe.type in network.hosts[stand.node].core.patterns.known:
            continue
        hosts = {part.recipe.type: part.node for part in stand.all() if part is not stand}
        network.hosts[stand.node].submit(HostPattern(stand.recipe.type, stand.recipe.whole.text, hosts))
        network.settle()
    for number, (one, stands) in enumerate(zip(wishes, plans, strict=True)):
        client = network.add_client(f"subscriber {number}", one.node)
        for stand in stands:
            filter = parse(f"type = '{stand.recipe.type}' AND detector = '{stand.node}'")
            client.change(m.Subscribe(stand.node, filter))
    publishers = {node: network.add_client(f"publisher {node}", node) for node in sorted(set(HOMES.values()))}
    network.settle()
    begun, before = network.clock.now, _traffic(network)
    for place_in_story, (time, event) in enumerate(events):
        network.clock.run(begun + time)
        if crash and place_in_story == len(events) // 2:
            for key in network.hosts[crash].core.patterns.known:
                network.hosts[crash].submit(RemovePattern(key))
        publishers[HOMES[str(event["kind"])]].publish([event])
    network.settle()
    after = _traffic(network)
    return _figures(network, begun, {way: after[way] - before.get(way, 0) for way in after})


def _traffic(network: CoreNetwork) -> dict[tuple[str, str], int]:
    return {way: counts.events for way, counts in network.traffic.items()}


def _figures(network: CoreNetwork, begun: float, events: Mapping[tuple[str, str], int]) -> Figures:
    delays, found = [], dict[tuple[Any, ...], None]()
    for record in network.trace:
        if isinstance(record, Delivered):
            one: tuple[Any, Any] = record.event["constituents.event.at"], record.event["constituents.event.number"]
            times, numbers = (what if isinstance(what, tuple) else (what,) for what in one)
            if (record.client, numbers) not in found:  # a second detector may have been faster
                delays.append(record.time - begun - max(times))
            found[record.client, numbers] = None
    return Figures(
        sum(events.values()),
        sum(count for way, count in events.items() if set(way) == set(THIN)),
        {node: host.core.patterns.parts.fed for node, host in network.hosts.items()},
        {node: sum(count for (_, to), count in events.items() if to == node) for node in NODES},
        tuple(delays),
        tuple(found),
    )
