from __future__ import annotations

from typing import Any

from tests.matching.suite import BOOK, FILTERS, MatcherSuite

from fieldfare.matching import DecisionTree, Matcher


class TestDecisionTree(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return DecisionTree()


class TestOrderedTree(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return DecisionTree(order=["s", "f.x", "d", "b", "nobody"])


def test_paths_that_begin_alike_share_their_nodes() -> None:
    tree = DecisionTree[str](order=["Stock"])
    tree.add_many(BOOK.items())
    assert set(tree._root.tests) == {"Stock", "Volume"}
    assert len(tree._root.tests["Stock"].entries) == 2


def test_removal_prunes() -> None:
    tree = DecisionTree[str]()
    tree.add_many(FILTERS.items())
    for text in FILTERS:
        tree.remove(text)
    assert (tree._root.ids, tree._root.tests) == (set(), {})


def test_removal_leaves_what_others_need() -> None:
    tree = DecisionTree[str]()
    tree.add_many([("short", "a = 1"), ("long", "a = 1 AND b = 1")])
    tree.remove("long")
    assert tree.match({"a": 1, "b": 1}) == ["short"]
    tree.add("long", "a = 1 AND b = 1")
    tree.remove("short")
    assert tree.match({"a": 1, "b": 1}) == ["long"]
