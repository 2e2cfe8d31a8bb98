"""Topologies: brokers, links and roles.

Brokers are named `b0`, `b1` and so on. An edge has the role of the second broker for the first. All brokers are peers;
`hierarchical` turns the same graph into parents and children. Graphs are drawn by networkx (extra `lab`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from fieldfare.protocol.messages import Role


class Edge(NamedTuple):
    """A link between two brokers, with the role of the second for the first."""

    a: str
    b: str
    role: Role = Role.PEER
    """what b is to a"""


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers and links, without cycles or with."""

    brokers: tuple[str, ...]
    edges: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        known = set(self.brokers)
        if len(known) < len(self.brokers):
            raise ValueError("two brokers have the same name")
        seen: set[frozenset[str]] = set()
        for a, b, _ in self.edges:
            if a == b or not {a, b} <= known or frozenset((a, b)) in seen:
                raise ValueError(f"{a} – {b}: a link joins two brokers, and only once")
            seen.add(frozenset((a, b)))

    def neighbours(self) -> dict[str, list[str]]:
        """The neighbours of each broker."""
        found: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        for a, b, _ in self.edges:
            found[a].append(b)
            found[b].append(a)
        return found

    @property
    def has_cycle(self) -> bool:
        """Tell whether the graph has a cycle."""
        left = {broker: set(others) for broker, others in self.neighbours().items()}
        leaves = [broker for broker, others in left.items() if len(others) <= 1]
        while leaves:
            leaf = leaves.pop()
            for other in left.pop(leaf, set()):
                left[other].discard(leaf)
                if len(left[other]) == 1:
                    leaves.append(other)
        return any(left.values())

    def hierarchical(self, root: str | None = None) -> Topology:
        """The same tree with parents and children below a root: the first broker, if none is named.

        >>> line(3).hierarchical("b1").edges
        (Edge(a='b0', b='b1', role=<Role.PARENT: 'parent'>), Edge(a='b1', b='b2', role=<Role.CHILD: 'child'>))
        """
        if len(self.edges) != len(self.brokers) - 1:
            raise ValueError("only a tree has parents and children")
        depth = self._depths(self.brokers[0] if root is None else root)
        if len(depth) < len(self.brokers):
            raise ValueError("only a tree has parents and children")
        return Topology(
            self.brokers,
            tuple(Edge(a, b, Role.CHILD if depth[b] > depth[a] else Role.PARENT) for a, b, _ in self.edges),
        )

    def _depths(self, root: str) -> dict[str, int]:
        neighbours, depth, queue = self.neighbours(), {root: 0}, deque([root])
        while queue:
            broker = queue.popleft()
            for other in neighbours[broker]:
                if other not in depth:
                    depth[other] = depth[broker] + 1
                    queue.append(other)
        return depth


def from_edges(edges: Iterable[tuple[str, str] | tuple[str, str, Role]], brokers: Iterable[str] = ()) -> Topology:
    """Make a topology of edges, and of brokers without edges.

    >>> from_edges([("hamburg", "berlin")]).brokers
    ('hamburg', 'berlin')
    """
    all_edges = tuple(Edge(*edge) for edge in edges)
    named = dict.fromkeys([*brokers, *(name for edge in all_edges for name in edge[:2])])
    return Topology(tuple(named), all_edges)


def line(brokers: int) -> Topology:
    """Each linked to the next."""
    return _numbered(brokers, ((i, i + 1) for i in range(brokers - 1)))


def ring(brokers: int) -> Topology:
    """A line with joined ends."""
    if brokers < 3:
        raise ValueError("a ring has three brokers or more")
    return _numbered(brokers, ((i, (i + 1) % brokers) for i in range(brokers)))


def star(brokers: int) -> Topology:
    """All linked to the first."""
    return _numbered(brokers, ((0, i) for i in range(1, brokers)))


def complete(brokers: int) -> Topology:
    """A link between any two brokers."""
    return _numbered(brokers, ((i, j) for i in range(brokers) for j in range(i + 1, brokers)))


def balanced_tree(degree: int, height: int) -> Topology:
    """Each broker has `degree` children, down to the given height; `b0` is the root.

    >>> len(balanced_tree(2, 3).brokers)
    15
    """
    brokers = sum(degree**level for level in range(height + 1))
    return _numbered(brokers, (((i - 1) // degree, i) for i in range(1, brokers)))


def random_tree(brokers: int, seed: int = 0) -> Topology:
    """Any labelled tree, each as likely."""
    if brokers < 2:  # networkx knows no smaller ones
        return _numbered(brokers, ())
    return _from_graph(_networkx().random_labeled_tree(brokers, seed=seed))


def barabasi_albert(brokers: int, links: int = 2, seed: int = 0) -> Topology:
    """Few hubs, many leaves: each new broker chooses neighbours, preferably brokers with many links."""
    return _from_graph(_networkx().barabasi_albert_graph(brokers, links, seed=seed))


def transit_stub(domains: int = 4, transits: int = 4, stubs: int = 3, size: int = 8, seed: int = 0) -> Topology:
    """Like the internet: domains of transit brokers, joined to each other, with stub networks below each broker.

    Every domain is a ring of `transits` brokers (a tree where there are fewer than three), the domains are a random
    tree, and every transit broker has `stubs` random trees of `size` brokers.
    """
    edges: list[tuple[int, int]] = []
    for domain in range(domains):
        first = domain * transits
        edges += [(first + i, first + i + 1) for i in range(transits - 1)]
        if transits > 2:
            edges.append((first, first + transits - 1))
    for a, b, _ in random_tree(domains, seed).edges:
        edges.append((_number(a) * transits, _number(b) * transits))
    total = domains * transits
    for transit in range(domains * transits):
        for stub in range(stubs):
            tree = random_tree(size, seed + transit * stubs + stub + 1)
            edges.append((transit, total))
            edges += [(total + _number(a), total + _number(b)) for a, b, _ in tree.edges]
            total += size
    return _numbered(total, edges)


def spanning_tree(topology: Topology, root: str | None = None) -> Topology:
    """Return a tree of shortest paths from a root, for strategies without support for cycles."""
    start = topology.brokers[0] if root is None else root
    neighbours, seen, queue = topology.neighbours(), {start}, deque([start])
    roles = {(a, b): role for a, b, role in topology.edges} | {(b, a): r.opposite for a, b, r in topology.edges}
    edges: list[Edge] = []
    while queue:
        broker = queue.popleft()
        for other in neighbours[broker]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
                edges.append(Edge(broker, other, roles[broker, other]))
    return Topology(topology.brokers, tuple(edges))


def _number(broker: str) -> int:
    return int(broker[1:])


def _numbered(brokers: int, edges: Iterable[tuple[int, int]]) -> Topology:
    if brokers < 1:
        raise ValueError("a topology has a broker at least")
    return Topology(tuple(f"b{i}" for i in range(brokers)), tuple(Edge(f"b{i}", f"b{j}") for i, j in edges))


def _from_graph(graph: Any) -> Topology:
    return _numbered(len(graph), sorted((min(edge), max(edge)) for edge in graph.edges))


def _networkx() -> Any:
    try:
        return import_module("networkx")
    except ImportError:
        raise ImportError("random topologies need networkx: pip install 'fieldfare[lab]'") from None
