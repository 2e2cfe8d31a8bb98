from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.protocol.messages import Role
from fieldfare.simulation import topologies as t


def reachable(topology: t.Topology) -> int:
    neighbours, seen, rest = topology.neighbours(), {topology.brokers[0]}, [topology.brokers[0]]
    while rest:
        new = set(neighbours[rest.pop()]) - seen
        seen |= new
        rest += new
    return len(seen)


@given(st.integers(1, 40), st.integers(0, 99))
def test_trees_are_trees(size: int, seed: int) -> None:
    for topology in (t.line(size), t.star(size), t.random_tree(size, seed), t.spanning_tree(t.complete(size))):
        assert len(topology.brokers) == size
        assert len(topology.edges) == size - 1
        assert reachable(topology) == size


@pytest.mark.parametrize(("degree", "height"), [(1, 4), (2, 0), (2, 3), (5, 2)])
def test_balanced_trees(degree: int, height: int) -> None:
    tree = t.balanced_tree(degree, height)
    assert reachable(tree) == len(tree.brokers) == sum(degree**level for level in range(height + 1))
    assert {len(n) for n in tree.neighbours().values()} <= {1, degree, degree + 1, 0}


def test_other_graphs() -> None:
    assert len(t.ring(5).edges) == 5
    assert {len(n) for n in t.ring(5).neighbours().values()} == {2}
    assert len(t.complete(5).edges) == 10
    graph = t.barabasi_albert(50, 2, seed=3)
    assert reachable(graph) == 50
    assert len(graph.edges) == 2 * 48
    assert graph == t.barabasi_albert(50, 2, seed=3) != t.barabasi_albert(50, 2, seed=4)
    assert len(t.barabasi_albert(50, 1).edges) == 49


def test_transit_stub() -> None:
    graph = t.transit_stub(domains=3, transits=4, stubs=2, size=5, seed=1)
    assert reachable(graph) == len(graph.brokers) == 3 * 4 * (1 + 2 * 5)
    assert graph == t.transit_stub(domains=3, transits=4, stubs=2, size=5, seed=1)
    tree = t.spanning_tree(graph)
    assert reachable(tree) == len(tree.edges) + 1 == len(graph.brokers)


@given(st.integers(2, 30), st.integers(0, 99), st.data())
def test_hierarchies_have_one_root(size: int, seed: int, data: st.DataObject) -> None:
    tree = t.random_tree(size, seed)
    root = data.draw(st.sampled_from(tree.brokers))
    parents: dict[str, list[str]] = {broker: [] for broker in tree.brokers}
    for a, b, role in tree.hierarchical(root).edges:
        child, parent = (a, b) if role is Role.PARENT else (b, a)
        parents[child].append(parent)
    assert parents.pop(root) == []
    assert all(len(above) == 1 for above in parents.values())


def test_what_is_no_topology() -> None:
    with pytest.raises(ValueError, match="only a tree"):
        t.ring(4).hierarchical()
    with pytest.raises(ValueError, match="only a tree"):
        t.from_edges([("a", "b"), ("b", "c"), ("c", "a")], ["d"]).hierarchical()
    for edges in ([("a", "a")], [("a", "b"), ("b", "a")]):
        with pytest.raises(ValueError, match="only once"):
            t.from_edges(edges)
    with pytest.raises(ValueError, match="same name"):
        t.Topology(("a", "a"))


def test_from_edges_keeps_roles_and_loners() -> None:
    topology = t.from_edges([("a", "b", Role.PARENT), ("b", "c")], ["lonely"])
    assert topology.brokers == ("lonely", "a", "b", "c")
    assert [edge.role for edge in topology.edges] == [Role.PARENT, Role.PEER]


def test_without_networkx_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"fieldfare\[lab\]"):
        t.random_tree(5)
    t.line(5)
