"""The engine: everything the suite asks, with compiled kernels and with NumPy, in the delta and in segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.matching.suite import MatcherSuite

from fieldfare.events.event import Event
from fieldfare.filters.constraint import Mode
from fieldfare.matching import Matcher, backend
from fieldfare.matching.index import Index
from fieldfare.matching.store.store import FEW


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


class TestFew(MatcherSuite):
    """A lazy index checks few filters one by one; the suite has examples with more, which go to the kernels."""

    def make(self) -> Matcher[Any]:
        return Index(kernels="lazy")


def test_a_lazy_index_loads_no_kernels_for_few_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIELDFARE_KERNELS", raising=False)
    asked: list[str] = []
    monkeypatch.setattr(backend, "choose", lambda wanted="auto": asked.append(wanted))
    index = Index[int](kernels="lazy")
    for number in range(FEW - 1):
        index.add(number, f"x = {number}")
    index.remove(0)
    index.add(0, "x = 0")
    index.update(1, "x = 0")  # for a moment both filters are there
    assert index.match({"x": 0}) == [0, 1]
    index.add(FEW - 1, "x = -1")
    assert not asked
    index.add(FEW, "x = 0")
    assert asked == ["lazy"]
    assert sorted(index.match({"x": 0})) == [0, 1, FEW]
    assert [sorted(found) for found in index.match_many([Event({"x": 2}), Event({"x": 0})])] == [[2], [0, 1, FEW]]
