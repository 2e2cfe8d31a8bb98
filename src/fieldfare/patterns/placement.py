"""Placement: which detectors a pattern gets in a network, on which nodes, and which are there already.

A policy belongs to a subscription, and decides on three questions apart from each other: whether a pattern is cut into
parts (`decomposition`), whether detectors are used again (`reuse`), and where a new detector stands (`locality`). Five
policies have names. Detectors are known by the canonical text of the detected part, so a common part of two
patterns has a single detector, no matter which pattern came first.

`place` is a pure function of the pattern, the present detectors and the counts of nodes. Cuts are exact, see
`decomposition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.patterns import tree as t
from fieldfare.patterns.canonical import canonical
from fieldfare.patterns.composite import composite_type
from fieldfare.patterns.decomposition import Cut, Recipe, cuts, split
from fieldfare.patterns.definition import Pattern

NEAR: Final = 1.0
"""distance up to which a detector is near a subscriber"""
HYSTERESIS: Final = 0.2
"""share of the cost that a move must save, so that detectors do not wander to and fro"""


class PlacementPolicy(NamedTuple):
    """The wishes of a subscriber for the detectors of a pattern."""

    name: str
    decomposition: Literal["none", "reuse", "max"]
    """Never; for parts that are detected already; or wherever a pattern can be cut."""
    reuse: Literal["near", "two", "max"]
    """Only a detector near the subscriber; only where there are two; or any."""
    locality: Literal["subscribers", "publishers", "load"]
    copies: int = 1


POLICIES: Final = {
    one.name: one
    for one in (
        PlacementPolicy("latency", "none", "near", "subscribers"),
        PlacementPolicy("bandwidth", "reuse", "max", "publishers"),
        PlacementPolicy("impact", "reuse", "max", "load"),
        PlacementPolicy("load", "max", "max", "load"),
        PlacementPolicy("reliability", "reuse", "two", "publishers", copies=2),
    )
}
"""By name: minimum latency, bandwidth, impact and load, and maximum reliability."""


class Hosted(NamedTuple):
    """A detector at a node, by the type of composite events."""

    type: str
    node: str


@dataclass(frozen=True)
class Registry:
    """The detectors of a network, with the users of each: subscribers and other detectors."""

    users: Mapping[Hosted, frozenset[str | Hosted]] = field(default_factory=dict)

    def nodes(self, type: str) -> list[str]:
        """Return the nodes with detectors, in order."""
        return sorted(one.node for one in self.users if one.type == type)

    def used(self, hosted: Hosted, user: str | Hosted) -> Registry:
        """Return a registry in which a detector, perhaps a new one, has another user."""
        return Registry({**self.users, hosted: self.users.get(hosted, frozenset()) | {user}})

    def left(self, user: str | Hosted) -> tuple[Registry, list[Hosted]]:
        """Return a registry without a user, and the detectors without users.

        >>> first, second = Hosted("ce:1", "oslo"), Hosted("ce:2", "rome")
        >>> registry = Registry().used(first, "ana").used(second, first)
        >>> registry.used(second, "bob").left("ana")[1], registry.left("ana")[1] == [first, second]
        ([Hosted(type='ce:1', node='oslo')], True)
        """
        users = {hosted: some - {user} for hosted, some in self.users.items()}
        ended = [hosted for hosted, some in users.items() if not some and user in self.users[hosted]]
        registry, all_ended = Registry({one: some for one, some in users.items() if one not in ended}), list(ended)
        for hosted in ended:
            registry, more = registry.left(hosted)
            all_ended += more
        return registry, all_ended

    def with_stand(self, stand: Stand, user: str | Hosted) -> Registry:
        """Return a registry with a detector of a plan, and all detectors of the parts."""
        if stand.hosted in self.users:
            return self.used(stand.hosted, user)
        registry = self.used(stand.hosted, user)
        for part in stand.inputs.values():
            registry = registry.with_stand(part, stand.hosted)
        return registry


class Statistics(NamedTuple):
    """The counts of nodes, as far as policies need counts."""

    distance: Mapping[str, Mapping[str, float]]
    """Links, or seconds, between any two nodes."""
    rates: Mapping[Filter, Mapping[str, float]] = {}
    """Events a second, by filter and node where they are published."""
    detections: Mapping[str, float] = {}
    """Composite events a second, by type; estimated from the rates otherwise."""
    load: Mapping[str, float] = {}
    """Events a second that the detectors of a node look at."""

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes with known distances, sorted."""
        return sorted(self.distance)


class Stand(NamedTuple):
    """A detector of a plan: the recipe, the node, and the detectors of the parts."""

    recipe: Recipe
    node: str
    new: bool
    inputs: Mapping[str, Stand] = {}
    """By name in the pattern that the detector runs."""

    @property
    def hosted(self) -> Hosted:
        """The detector as registries know it."""
        return Hosted(self.recipe.type, self.node)

    def all(self) -> Iterator[Stand]:
        """Yield the detector and the detectors of all parts."""
        yield self
        for part in self.inputs.values():
            yield from part.all()


def place(
    pattern: Pattern, consumer: str, policy: PlacementPolicy, registry: Registry, statistics: Statistics
) -> tuple[Stand, ...]:
    """Return the detectors for a subscriber at a node: as many as the policy wants copies, or a single detector."""
    plan = _Plan(policy, registry, statistics)
    whole = canonical(pattern)
    there = plan.reusable(whole, consumer)
    stands = [Stand(Recipe(whole, whole, {}), node, False) for node in there]
    if len(stands) < policy.copies:
        stands = plan.new(whole, consumer, policy.copies)
    return tuple(stands)


def better_node(stand: Stand, consumer: str, policy: PlacementPolicy, statistics: Statistics) -> str | None:
    """Return a node where a detector would cost clearly less, or None; the detector may migrate there."""
    flows = _Flows(_sources(stand.recipe, stand.inputs, statistics), _output(stand.recipe, statistics))
    own = sum(rate for flow in flows.into for rate in flow.values())
    load = {**statistics.load, stand.node: max(0.0, statistics.load.get(stand.node, 0.0) - own)}
    costs = {node: _cost(node, consumer, flows, policy, statistics._replace(load=load)) for node in statistics.nodes}
    best = min(statistics.nodes, key=lambda node: (costs[node], node))
    return best if costs[best][0] < (1 - HYSTERESIS) * costs[stand.node][0] else None


class _Flows(NamedTuple):
    """The traffic of a detector: where each input comes from, with a rate, and the rate of detections."""

    into: list[Mapping[str, float]]
    output: float


class _Plan:
    """The choice of nodes for a pattern, and the load added by the choices so far."""

    def __init__(self, policy: PlacementPolicy, registry: Registry, statistics: Statistics) -> None:
        self._policy, self._registry = policy, registry
        self._statistics = statistics._replace(load=dict(statistics.load))

    def reusable(self, pattern: Pattern, consumer: str) -> list[str]:
        """Return the nodes with detectors to use again, the nearest first; none if there are not enough."""
        away = self._statistics.distance[consumer]
        near = NEAR if self._policy.reuse == "near" else float("inf")
        nodes = [node for node in self._registry.nodes(composite_type(pattern.text)) if away[node] <= near]
        found = sorted(nodes, key=lambda node: (away[node], node))[: self._policy.copies]
        return found if len(found) == self._policy.copies else []

    def new(self, pattern: Pattern, consumer: str, copies: int) -> list[Stand]:
        """Return new detectors at different nodes, with the detectors of the parts."""
        chosen = self._chosen(pattern, consumer)
        stands: list[Stand] = []
        for copy in range(copies):
            parts = [self._part(cut, consumer, copy) for cut in chosen]
            nodes = {part.recipe.type: part.node for part in parts}
            recipe = split(pattern, chosen, nodes)
            inputs = dict(zip(recipe.parts, parts, strict=True))
            sources = _sources(recipe, inputs, self._statistics)
            node = self._node(recipe, sources, consumer, [one.node for one in stands], copies)
            self._add_load(node, sources)
            stands.append(Stand(recipe, node, True, inputs))
        return stands

    def _chosen(self, pattern: Pattern, consumer: str) -> list[Cut]:
        """Return the parts with a separate detector, new or present."""
        chosen: list[Cut] = []
        if self._policy.decomposition == "none":
            return chosen
        for cut in cuts(pattern):
            wanted = self._policy.decomposition == "max" or self.reusable(cut.pattern, consumer)
            if wanted and not any(cut.overlaps(one) for one in chosen):
                chosen.append(cut)
        return chosen

    def _part(self, cut: Cut, consumer: str, copy: int) -> Stand:
        there = self.reusable(cut.pattern, consumer)
        if there:
            return Stand(Recipe(cut.pattern, cut.pattern, {}), there[copy], False)
        return self.new(cut.pattern, consumer, 1)[0]

    def _node(
        self, recipe: Recipe, sources: list[Mapping[str, float]], consumer: str, taken: list[str], copies: int
    ) -> str:
        """Return the cheapest node; for a copy, a node apart from the other copies in failures."""
        known, flows = self._statistics, _Flows(sources, _output(recipe, self._statistics))

        def cost(node: str) -> tuple[tuple[float, ...], str]:
            return _cost(node, consumer, flows, self._policy, known), node

        if copies == 1:
            return min(known.nodes, key=cost)
        pairs = [pair for pair in combinations(known.nodes, 2) if apart(*pair, consumer, known.distance)]
        together = {(one, other): cost(one)[0][0] + cost(other)[0][0] for one, other in pairs}
        if not taken:
            best = min(together, key=lambda pair: (together[pair], pair), default=None)
            return min(known.nodes) if best is None else min(best, key=cost)
        free = [node for node in known.nodes if node not in taken]
        alone = [node for node in free if all(apart(one, node, consumer, known.distance) for one in taken)]
        return min(alone or free or taken, key=cost)

    def _add_load(self, node: str, sources: list[Mapping[str, float]]) -> None:
        added = sum(rate for flow in sources for rate in flow.values())
        load = dict(self._statistics.load)
        load[node] = load.get(node, 0.0) + added
        self._statistics = self._statistics._replace(load=load)


def apart(one: str, other: str, consumer: str, distance: Mapping[str, Mapping[str, float]]) -> bool:
    """Tell whether the ways of two nodes to a consumer have no node in common but the consumer's."""
    if one == other:
        return False
    ways = [
        {node for node in distance if abs(distance[start][node] + distance[node][consumer] - straight) < 1e-9}
        for start in (one, other)
        for straight in (distance[start][consumer],)
    ]
    return ways[0] & ways[1] <= {consumer}


def _cost(
    node: str, consumer: str, flows: _Flows, policy: PlacementPolicy, statistics: Statistics
) -> tuple[float, ...]:
    """Return the cost of a detector at a node by the measure of the policy; traffic decides between equals."""
    away = statistics.distance[node]
    into = sum(rate * away[source] for flow in flows.into for source, rate in flow.items())
    traffic = into + flows.output * away[consumer]
    match policy.locality:
        case "subscribers":
            return away[consumer], traffic
        case "load":
            return statistics.load.get(node, 0.0), traffic
    return traffic, away[consumer]


def _sources(recipe: Recipe, inputs: Mapping[str, Stand], statistics: Statistics) -> list[Mapping[str, float]]:
    """Return where the inputs of a detector come from, each with a rate."""
    found: list[Mapping[str, float]] = []
    for name in recipe.runs.names:
        if name in inputs:
            found.append({inputs[name].node: _output(inputs[name].recipe, statistics)})
        else:
            found.append(statistics.rates.get(recipe.runs.filters[name], {}))
    return found


def _output(recipe: Recipe, statistics: Statistics) -> float:
    known = statistics.detections.get(recipe.type)
    return _estimate(recipe.whole.tree, recipe.whole, statistics) if known is None else known


def _estimate(tree: t.Tree, pattern: Pattern, statistics: Statistics) -> float:
    """Return an upper bound of detections a second: no event is in two detections."""

    def rate(one: t.Tree) -> float:
        return _estimate(one, pattern, statistics)

    match tree:
        case t.Atom():
            known = (statistics.rates.get(pattern.filters[name], {}) for name in tree.names if name in pattern.filters)
            return sum(sum(flow.values()) for flow in known)
        case t.Alternation():
            return rate(tree.left) + rate(tree.right)
        case t.Repetition():
            return rate(tree.body) / max(1, tree.low)
        case t.Within():
            return rate(tree.body)
        case _:
            solid = [one for one in t.children(tree) if not t.may_be_empty(one) and t.names(one)]
            return min(map(rate, solid), default=0.0)


def with_load(statistics: Statistics, stands: Iterable[Stand]) -> Statistics:
    """Return statistics with the load of new detectors."""
    load = dict(statistics.load)
    for stand in stands:
        for one in stand.all():
            if one.new:
                added = sum(rate for flow in _sources(one.recipe, one.inputs, statistics) for rate in flow.values())
                load[one.node] = load.get(one.node, 0.0) + added
    return statistics._replace(load=load)
