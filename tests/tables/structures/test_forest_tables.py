from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from tests.tables.suite import NEIGHBOURS, EliminatesLate, TableSuite, between, covers, pairs

from fieldfare.filters import Filter, parse
from fieldfare.tables.base import Table, Towards
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.structures.forest import Forest, ForestNode
from fieldfare.tables.structures.forest_tables import BalancedForest, NonRedundantForest, PosetForest
from fieldfare.tables.structures.interface_forest import InterfaceForest
from fieldfare.tables.structures.naive import NaiveTable


def check_forest(forest: Forest) -> None:
    """Trees of all nodes, parents above children, and siblings that do not cover each other."""
    reached = [node for node in forest.top.below() if node is not forest.top]
    assert len(reached) == len(forest)
    assert all(forest.nodes[node.filter] is node for node in reached)
    for node in (forest.top, *reached):
        siblings = list(node.children.values())
        assert all(child.parent is node and node.children[child.filter] is child for child in siblings)
        if not forest.lazy or node is forest.top:
            assert not any(covers(a.filter, b.filter) for a in siblings for b in siblings if a is not b)
    for node in reached:
        for above in node.ancestors():
            if above is not forest.top:
                assert covers(above.filter, node.filter)
                assert above.number < node.number or not covers(node.filter, above.filter)
    numbers = [node.number for node in forest.nodes.values()]
    assert numbers == sorted(set(numbers))
    assert set(forest.roots()) == set(minimal_cover(forest.nodes))


def check_index(forest: InterfaceForest[str]) -> None:
    """The index of each node counts what is below it."""
    expected = {
        node: Counter(
            interface for below in node.below() if below is not node for interface in forest.interfaces[below.filter]
        )
        for node in forest.top.below()
    }
    assert forest.below == {node: counts for node, counts in expected.items() if counts}


class TestPosetForest(TableSuite):
    of: type[PosetForest[Any]] = PosetForest
    options: Mapping[str, Any] = MappingProxyType({})

    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> PosetForest[str]:
        return self.of(neighbours, towards=towards, **self.options)

    def check_structure(self, table: Table[str]) -> None:
        assert isinstance(table, PosetForest)
        check_forest(table.forest)
        if isinstance(table.forest, InterfaceForest):
            check_index(table.forest)
        stored = pairs(table)
        assert set(table.forest.nodes) == set(table._interfaces) == {filter for filter, _ in stored}
        assert table._pairs == Counter(interface for _, interface in stored)

    def edges(self, table: Table[str]) -> Hashable:
        assert isinstance(table, PosetForest)
        return tuple(links(table.forest))


class TestLazyPosetForest(TestPosetForest):
    options = MappingProxyType({"lazy": True})


class TestBalancedForest(TestPosetForest):
    of = BalancedForest


class TestLazyBalancedForest(TestPosetForest):
    of = BalancedForest
    options = MappingProxyType({"lazy": True})


class TestNonRedundantForest(TestPosetForest):
    of = NonRedundantForest

    def check_structure(self, table: Table[str]) -> None:
        super().check_structure(table)
        for filter, interface in pairs(table):
            assert not any(
                covers(filter, other) for other, same in pairs(table) if same == interface and other != filter
            )


class TestLazyNonRedundantForest(TestNonRedundantForest):
    options = MappingProxyType({"lazy": True})


class TestTrustingForest(TestNonRedundantForest):
    options = MappingProxyType({"trusted": True})
    trusted = True


class TestApproximativeForest(TestNonRedundantForest):
    options = MappingProxyType({"exact": False})
    exact = False


class TestLateForest(TestPosetForest):
    """Elimination when filters are removed."""

    of = NonRedundantForest
    options = MappingProxyType({"eliminate": "remove"})

    def oracle(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> NaiveTable[str]:
        return EliminatesLate(neighbours, towards=towards)


class TestTrustingApproximativeLazyForest(TestNonRedundantForest):
    options = MappingProxyType({"trusted": True, "exact": False, "lazy": True})
    trusted = True
    exact = False


def links(forest: Forest) -> Iterator[tuple[Filter, Filter]]:
    for node in forest.top.below():
        yield from ((node.filter, child) for child in node.children)


def depth(node: ForestNode) -> int:
    return sum(1 for _ in node.ancestors())


def filled(table: PosetForest[str], *texts: str) -> PosetForest[str]:
    table.add_many((parse(text), text) for text in texts)
    return table


def test_depth() -> None:
    table = filled(PosetForest(), "x > 12", "x > 0", "x > 5", "x > 10")
    assert [depth(table.forest.nodes[parse(f"x > {number}")]) for number in (0, 5, 10, 12)] == [1, 2, 3, 4]


def test_one_parent_each() -> None:
    """Vector 3: what a poset keeps below two filters is here below one of them."""
    top, left, right, low, high = (between("x", *ends) for ends in ((0, 100), (0, 40), (20, 90), (30, 35), (35, 38)))
    table = filled(PosetForest(), left, right, low, high, "x = 35 AND name = 'B'", top)
    parents = {filter: node.parent.filter for filter, node in table.forest.nodes.items() if node.parent is not None}
    assert parents[parse(low)] in {parse(left), parse(right)}
    assert parents[parse(high)] in {parse(left), parse(right)}
    assert parents[parse("x = 35 AND name = 'B'")] in {parse(low), parse(high)}
    assert table.roots() == [parse(top)]


def test_approximately_told() -> None:
    """Vector 6: d lies below b, and only another tree tells that c covers it."""
    for exact, expected in ((True, set()), (False, {"I1"})):
        table: NonRedundantForest[str] = NonRedundantForest(NEIGHBOURS, exact=exact)
        d = parse("x > 2 AND y > 1 AND z > 0")
        table.add_many([(parse("y > 0"), "I1"), (parse("x > 0"), "I1"), (parse("x > 1 AND z > 0"), "I2"), (d, "I3")])
        assert table.forest.nodes[d].parent is table.forest.nodes[parse("y > 0")]
        assert table.forwards(d) == expected


def test_filters_of_one_interface_keep_together() -> None:
    for of, shared in ((PosetForest, False), (BalancedForest, True)):
        table: PosetForest[str] = of()
        table.add_many([(parse("x > 0"), "ana"), (parse("y > 0"), "bob"), (parse("x > 1 AND y > 1"), "bob")])
        below = table.forest.nodes[parse("y > 0")].children
        assert (parse("x > 1 AND y > 1") in below) == shared


@pytest.mark.parametrize("of", [PosetForest, BalancedForest, NonRedundantForest])
def test_a_budget_of_tests(of: type[PosetForest[str]]) -> None:
    table = filled(of(), "x > 0", "x > 1", "x > 2", "y > 0", "y > 1")
    event = {"x": 2, "y": 0}
    for budget in range(7):
        table.tests.match = 0
        assert table.match_within(event, budget) >= {"x > 0", "x > 1"}
        assert table.tests.match == min(budget, 4)
    assert table.match_within(event, 0) == {"x > 0", "x > 1", "x > 2", "y > 0", "y > 1"}
    assert table.match_within(event, 2) == {"x > 0", "x > 1", "x > 2"}
    assert table.match_within(event, 4) == table.match(event) == {"x > 0", "x > 1"}


def test_who_is_found_is_not_asked_again() -> None:
    for of in (PosetForest, BalancedForest):
        table: PosetForest[str] = of()
        table.add_many([(parse("x > 0"), "ana"), (parse("x > 1"), "bob"), (parse("x > 2"), "ana")])
        table.add_many([(parse("y > 0"), "ana"), (parse("y > 1"), "ana"), (parse("z > 0"), "eve")])
        assert table.match({"x": 1, "y": 2, "z": 0}) == {"ana"}
        assert table.tests.match == 3
        table.tests.match = 0
        assert table.match({"x": 2, "z": 1}) == {"ana", "bob", "eve"}
        assert table.tests.match == 3


def test_an_interface_is_found_by_the_index() -> None:
    table: NonRedundantForest[str] = NonRedundantForest()
    table.add_many((parse(f"x > {number} AND y < {number}"), f"client {number}") for number in range(20))
    table.tests.cover = 0
    assert table.drop("client 7") == [parse("x > 7 AND y < 7")]
    assert not table._has(parse("x > 9 AND y < 4"), "client 7")
    assert table.tests.cover == 0


def test_late_elimination_gives_the_same_answers() -> None:
    early: NonRedundantForest[str] = NonRedundantForest(NEIGHBOURS)
    late: NonRedundantForest[str] = NonRedundantForest(NEIGHBOURS, eliminate="remove")
    steps = [("x > 2", "I1"), ("x > 3", "I2"), ("x > 1", "I1"), ("x > 0", "I1"), ("x > 2", "I3"), ("x > 4", "I2")]
    for text, interface in steps:
        early.add(parse(text), interface)
        late.add(parse(text), interface)
    assert (len(early), len(late)) == (3, 4)

    def same() -> None:
        assert early.roots() == late.roots()
        assert all(early.forwards(filter) == late.forwards(filter) for filter in early.filters())
        assert all(early.match({"x": x}) == late.match({"x": x}) for x in range(6))

    same()
    for table in (early, late):
        assert table.remove(parse("x > 0"), "I1")
    same()
    assert pairs(early) == pairs(late) == {(parse("x > 2"), "I3"), (parse("x > 3"), "I2")}


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="'add' or 'remove'"):
        NonRedundantForest(eliminate="never")  # type: ignore[arg-type]


# The forest itself


def test_a_forest_needs_no_interfaces() -> None:
    forest = Forest()
    large, middle, small = (parse(f"x > {number}") for number in range(3))
    assert forest.add(small) is forest.add(small)
    forest.add(large)
    forest.add(middle)
    assert (len(forest), forest.roots()) == (3, [large])
    assert [node.filter for node in forest.nodes[small].ancestors()][:2] == [middle, large]
    forest.remove(middle)
    assert forest.nodes[small].parent is forest.nodes[large]
    forest.remove(large)
    assert forest.roots() == [small]
    with pytest.raises(KeyError):
        forest.remove(large)


def planted(*texts: str, lazy: bool = False) -> Forest:
    forest = Forest(lazy=lazy)
    for text in texts:
        forest.add(parse(text))
    return forest


def test_a_subtree_moves_between_nodes() -> None:
    """What moves may have something below it that covers what it meets on its way."""
    forest = planted("x > 1 AND y > 1", "x > 2 AND y > 2", "x > 0", "y > 0", "x > -1")
    forest.remove(parse("x > -1"))  # now `y > 0` is the first root
    moving, below, met = (forest.add(parse(f"x > {n} AND y > {n}")) for n in (1, 2, 3))
    assert (moving.parent, met.parent) == (forest.nodes[parse("x > 0")], forest.nodes[parse("y > 0")])
    forest.remove(parse("x > 0"))
    assert (moving.parent, below.parent, met.parent) == (forest.nodes[parse("y > 0")], moving, below)
    check_forest(forest)


@pytest.mark.parametrize("small_first", [True, False])
def test_lazy_removal_keeps_the_roots_right(small_first: bool) -> None:
    forest = planted(
        *("x > 0", "x > 1 AND z > 0", "x > 2 AND y > 2 AND z > 2", "x > 1 AND y > 0", "x > 2 AND y > 1"), lazy=True
    )
    small, large = forest.nodes[parse("x > 2 AND y > 2 AND z > 2")], forest.nodes[parse("x > 2 AND y > 1")]
    for text in ("x > 1 AND z > 0", "x > 1 AND y > 0")[:: 1 if small_first else -1]:
        forest.remove(parse(text))
    assert small.parent is large.parent is forest.nodes[parse("x > 0")]
    forest.remove(parse("x > 0"))
    assert (small.parent, forest.roots()) == (large, [large.filter])
    check_forest(forest)


def test_lazy_removal_compares_nothing_below_the_roots() -> None:
    costs = {}
    for lazy in (False, True):
        forest = planted("x > 0", "x > 1", "x > 1 AND y > 0", "y > 0 AND x > 0", lazy=lazy)
        forest.tests.cover = 0
        forest.remove(parse("x > 1"))
        costs[lazy] = forest.tests.cover
        check_forest(forest)
    assert costs[True] == 0 < costs[False]
