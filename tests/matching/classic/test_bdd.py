from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest
from tests.matching.suite import FILTERS, MatcherSuite

from fieldfare.filters import FilterTooComplex
from fieldfare.matching import DecisionDiagram, Matcher
from fieldfare.matching.classic.bdd import FALSE, TRUE, Diagram

LARGE = " OR ".join(f"(a{i} = 1 AND b{i} = 1)" for i in range(12))


class TestDecisionDiagram(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return DecisionDiagram()


def test_operations_by_their_truth_tables() -> None:
    diagram = Diagram(limit=1000)
    made: dict[tuple[bool, ...], int] = {}
    inputs = list(itertools.product((False, True), repeat=3))

    def table(node: int) -> tuple[bool, ...]:
        return tuple(diagram.values(given)[node] for given in inputs)

    nodes = [FALSE, TRUE, *(diagram.all_of([predicate]) for predicate in range(3))]
    for _ in range(2):
        for a, b in itertools.product(nodes[:12], repeat=2):
            for operation, meaning in ((diagram.both, operator.and_), (diagram.either, operator.or_)):
                node = operation(a, b)
                assert table(node) == tuple(map(meaning, table(a), table(b)))
                nodes.append(node)
            node = diagram.negated(a)
            assert table(node) == tuple(not value for value in table(a))
            assert diagram.negated(node) == a
            nodes.append(node)
        nodes = list(dict.fromkeys(nodes))
    for node in nodes:  # canonical: equal functions are equal nodes
        assert made.setdefault(table(node), node) == node


def test_predicates_are_asked_in_one_order() -> None:
    diagram = Diagram(limit=10)
    assert diagram.all_of([2, 0, 1]) == diagram.all_of([0, 1, 2])
    assert len(diagram) == 3


def test_negation_swaps_the_terminals() -> None:
    diagram = Diagram(limit=10)
    node = diagram.all_of([0, 1])
    size = len(diagram)
    negated = diagram.negated(node)
    assert (size, len(diagram)) == (2, 4)
    assert [diagram.values(given)[negated] for given in ([0, 0], [0, 1], [1, 0], [1, 1])] == [True, True, True, False]


def test_nodes_are_shared() -> None:
    matcher = DecisionDiagram[int]()
    for id in range(50):
        matcher.add(id, "a = 1 AND b = 1 AND c = 1")
    assert len(matcher._diagram) == 3


def test_a_filter_beyond_the_limit_is_refused_and_changes_nothing() -> None:
    matcher = DecisionDiagram[str](limit=20)
    matcher.add("x", "a0 = 1")
    for change in (matcher.add, matcher.update):
        with pytest.raises(FilterTooComplex, match="20"):
            change("large", LARGE)
    with pytest.raises(FilterTooComplex):
        matcher.update("x", LARGE)
    assert (len(matcher), "large" in matcher, matcher.match({"a0": 1, "b0": 1})) == (1, False, ["x"])
    assert (len(matcher._diagram), len(matcher._predicates)) == (1, 1)


def test_removed_filters_make_room() -> None:
    matcher = DecisionDiagram[int](limit=20)
    for id in range(200):
        matcher.add(id, f"a = {id} AND b = {id}")
        if id >= 5:
            matcher.remove(id - 5)
        assert matcher.match({"a": id, "b": id}) == [id]
    assert len(matcher._predicates) <= 20


def test_nothing_is_left_behind() -> None:
    matcher = DecisionDiagram[str]()
    matcher.add_many(FILTERS.items())
    for text in FILTERS:
        matcher.remove(text)
    assert (len(matcher._diagram), matcher._predicates, matcher._numbers._indexes) == (0, [], {})


def test_more_predicates_than_python_has_frames() -> None:
    diagram = Diagram(limit=100_000)
    chain = diagram.all_of(range(0, 5000, 2))
    either = diagram.either(chain, diagram.all_of(range(1, 5000, 2)))
    assert diagram.values([1, 0] * 2500)[either]
    assert not diagram.values([1, 0, 0, 1] * 1250)[either]
