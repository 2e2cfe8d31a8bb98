from __future__ import annotations

from typing import Any

from tests.matching.suite import MatcherSuite

from fieldfare.matching import DecisionTree, Matcher


class TestDecisionTree(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return DecisionTree()
