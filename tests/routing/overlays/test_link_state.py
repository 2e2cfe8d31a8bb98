from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import LinkUpdate
from fieldfare.routing.broker import Broker
from fieldfare.routing.overlays.link_state import LinkState
from fieldfare.routing.overlays.shared_tree import SharedTree
from fieldfare.routing.overlays.source_trees import SourceTrees
from fieldfare.routing.strategies import COVERING, SOURCES, Strategy, cyclic

Edges = Iterable[tuple[int, int]]
edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] != edge[1]), max_size=14)


def known(edges: Edges, at: str = "b0") -> LinkState:
    """All that there is to know, at one broker."""
    state = LinkState(at)
    for i in range(7):
        neighbours = {f"b{other}" for edge in edges if i in edge for other in edge if other != i}
        if f"b{i}" == at:
            state.announce(neighbours)
        else:
            assert state.accept(LinkUpdate(f"b{i}", (0, 1), tuple(sorted(neighbours))))
    return state


def graph(edges: Edges) -> nx.Graph[str]:
    made: nx.Graph[str] = nx.Graph()
    made.add_nodes_from(f"b{i}" for i in range(7))
    made.add_edges_from((f"b{a}", f"b{b}") for a, b in edges)
    return made


@given(edges)
def test_the_tree_spans_and_is_the_same_everywhere(edges: Edges) -> None:
    trees = [known(edges, f"b{i}").tree for i in range(7)]
    assert all(tree == trees[0] for tree in trees)
    tree: nx.Graph[str] = nx.Graph((a, b) for a, theirs in trees[0].items() for b in theirs)
    assert not tree or nx.is_forest(tree)
    assert set(tree.edges) <= {tuple(edge) for a, b in graph(edges).edges for edge in ((a, b), (b, a))}
    for some in nx.connected_components(graph(edges)):
        assert len(some) == 1 or (nx.is_connected(tree.subgraph(some)) and some <= set(tree))


@given(edges, st.integers(0, 6))
def test_the_ways_from_a_source_are_shortest_and_agree(edges: Edges, source: int) -> None:
    """What each broker passes on, put together, reaches every broker over a shortest way, and only once."""
    whole = graph(edges)
    states = {f"b{i}": known(edges, f"b{i}") for i in range(7)}
    for target, length in nx.single_source_shortest_path_length(whole, f"b{source}").items():
        here, steps = f"b{source}", 0
        while here != target:
            here = states[here].hops(f"b{source}")[target]
            steps += 1
            assert steps <= length
        assert steps == length
    entered = [hop for name, state in states.items() for hop in set(state.hops(f"b{source}").values())]
    assert len(entered) == len(set(entered))


def test_a_link_counts_if_both_ends_say_so() -> None:
    state = LinkState("a")
    state.announce(["b"])
    state.accept(LinkUpdate("b", (0, 1), ("a", "c")))
    assert state.links == {"a": ["b"], "b": ["a"]}
    state.accept(LinkUpdate("c", (0, 1), ("b",)))
    assert state.links["c"] == ["b"]
    assert state.unreachable == set()


def test_old_news_is_no_news() -> None:
    state = LinkState("a")
    assert state.accept(LinkUpdate("b", (0, 2), ("a",)))
    assert not state.accept(LinkUpdate("b", (0, 2), ("c",)))
    assert not state.accept(LinkUpdate("b", (0, 1), ("c",)))
    assert state.accept(LinkUpdate("b", (1, 0), ("c",)))
    assert state.announce([], above=(3, 7)).number == (3, 8)


@pytest.mark.parametrize("strategy", [SOURCES, cyclic(COVERING)], ids=lambda strategy: strategy.name)
def test_brokers_that_stay_away_are_forgotten(strategy: Strategy) -> None:
    broker = Broker("a", strategy, remember=10.0)
    routes = broker.routes
    assert isinstance(routes, SharedTree | SourceTrees)
    broker.receive(m.Connect(), "b", 0.0)
    broker.receive(LinkUpdate("b", (0, 1), ("a", "c")), "b", 0.0)
    broker.receive(LinkUpdate("c", (0, 1), ("b",)), "b", 0.0)
    if isinstance(routes, SourceTrees):
        broker.receive(m.InterestUpdate("c", (0, 1), (parse("x = 1"),)), "b", 0.0)
    broker.receive(m.Disconnect(), "b", 1.0)
    assert broker.wakes == 11.0
    broker.tick(11.0)
    assert set(routes.state.known) == {"a", "b", "c"}
    broker.tick(20.0)
    assert set(routes.state.known) == {"a", "b", "c"}
    broker.tick(21.0)
    assert set(routes.state.known) == {"a"}
    assert broker.entries == 0
    broker.receive(m.Connect(), "b", 30.0)  # and here they are again, with the same numbers
    for news in (LinkUpdate("b", (0, 1), ("a", "c")), LinkUpdate("c", (0, 1), ("b",))):
        broker.receive(news, "b", 30.0)
    if isinstance(routes, SourceTrees):
        broker.receive(m.InterestUpdate("c", (0, 1), (parse("x = 1"),), all=True), "b", 30.0)
        assert [send.to for send in broker.receive(m.Publish(Event({"x": 1})), "ana", 31.0)] == ["b"]
    assert routes.state.unreachable == set()
