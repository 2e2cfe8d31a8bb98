from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.tables.suite import Remembered, TableSuite

from fieldfare.filters import parse
from fieldfare.tables.base import Table, Towards
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.structures.naive import NaiveTable


class TestNaive(TableSuite):
    churn = 60
    redundant = False

    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> Table[str]:
        table = NaiveTable(neighbours, towards=towards, redundant=self.redundant)
        table.tests = Remembered()
        return table


class TestNaiveRedundant(TestNaive):
    redundant = True


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([], []),
        (["x > 0"], [0]),
        (["x > 1", "x > 0", "y > 0"], [1, 2]),
        (["x > 0", "x > 0"], [0]),
        (["CIDR(ip, '10.0.0.0/8')", "CIDR(ip, '10.1.0.0/8')"], [0]),
        (["x = 1", "y = 1", "z = 1", "x = 1 OR y = 1"], [2, 3]),
    ],
)
def test_minimal_cover(texts: list[str], kept: list[int]) -> None:
    filters = [parse(text) for text in texts]
    assert minimal_cover(filters) == [filters[number] for number in kept]


def test_comparisons_are_counted() -> None:
    table: NaiveTable[str] = NaiveTable()
    table.add_many((parse(f"x > {number}"), f"client {number}") for number in range(10))
    assert table.tests.cover == 0
    table.covering(parse("x > 5"))
    assert (table.tests.cover, table.tests.overlap, table.tests.match) == (10, 0, 0)
    table.overlapping(parse("x > 5"))
    table.match({"x": 3})
    assert (table.tests.cover, table.tests.overlap, table.tests.match) == (10, 10, 10)
