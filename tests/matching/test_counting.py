from __future__ import annotations

from typing import Any

from tests.matching.suite import MatcherSuite

from fieldfare.matching import Counting, Matcher


class TestCounting(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Counting()
