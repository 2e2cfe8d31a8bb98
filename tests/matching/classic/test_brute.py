from __future__ import annotations

from typing import Any

from tests.matching.suite import MatcherSuite

from fieldfare.matching import BruteForce, Matcher


class TestBruteForce(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return BruteForce()
