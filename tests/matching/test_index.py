"""The engine: everything the suite asks, with compiled kernels and with NumPy, in the delta and in segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.matching.suite import MatcherSuite

from fieldfare.filters.constraint import Mode
from fieldfare.matching import Matcher
from fieldfare.matching.index import Index


class Settled(Index[Any]):
    """Puts everything into a segment before it looks."""

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Any]:
        self.compact()
        return super().match(event, mode)


class TestCompiledDelta(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Index(kernels="numba")


class TestCompiledSegment(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Settled(kernels="numba")


class TestNumPyDelta(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Index(kernels="numpy")


class TestNumPySegment(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Settled(kernels="numpy")
