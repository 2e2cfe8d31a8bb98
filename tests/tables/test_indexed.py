from __future__ import annotations

import random
from collections.abc import Hashable, Iterable

import pytest
from tests.tables.suite import POOL, TableSuite, pairs

from fieldfare.filters import parse
from fieldfare.tables.base import Table, Towards
from fieldfare.tables.indexed import _FEW, IndexedTable
from fieldfare.tables.shared_index import SharedIndex
from fieldfare.tables.structures.naive import NaiveTable


class TestIndexed(TableSuite):
    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> IndexedTable[str]:
        return IndexedTable(neighbours, towards=towards)

    def check_structure(self, table: Table[str]) -> None:
        assert isinstance(table, IndexedTable)
        check_witnesses(table)

    def edges(self, table: Table[str]) -> Hashable:
        """Which of several witnesses is found is the engine's business; who needs one is not."""
        assert isinstance(table, IndexedTable)
        return tuple((filter, len(entry.witnesses)) for filter, entry in table._entries.items())


class TestRedundantIndexed(TestIndexed):
    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> IndexedTable[str]:
        return IndexedTable(neighbours, towards=towards, redundant=True)


class TestOnUniverse(TestIndexed):
    """All tables of this class share one universe, as those of simulated brokers do."""

    universe = SharedIndex()

    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> IndexedTable[str]:
        return IndexedTable(neighbours, towards=towards, index=self.universe.part)


def check_witnesses(table: IndexedTable[str]) -> None:
    for filter, entry in table._entries.items():
        assert entry.filter == filter
        assert entry.interfaces
        for witness in entry.witnesses:
            assert witness is not entry
            assert witness.filter.covers(filter)
            assert table._entries[witness.filter] is witness
            assert witness.testified[filter] is entry
        only = [table._only(witness) for witness in entry.witnesses]
        assert len(only) < 2 or only[0] != only[1]
        hidden = len(only) == 2 or only == [None]
        assert (filter in table._exposed) is not hidden
        assert (filter in table._roots) == (not entry.witnesses)
        assert all(entry in other.witnesses for other in entry.testified.values())
    assert set(table._own) == {interface for _, interface in pairs(table)}


@pytest.mark.parametrize("redundant", [False, True])
def test_two_witnesses_that_both_come_from_elsewhere_too_become_one(redundant: bool) -> None:
    table = IndexedTable(["I1", "I2", "I3"], redundant=redundant)
    wide, tall, both = parse("x = 1"), parse("y = 1"), parse("x = 1 AND y = 1")
    table.add_many([(wide, "I1"), (tall, "I2"), (both, "I3")])
    assert len(table._entries[both].witnesses) == 2
    table.add_many([(wide, "I2"), (tall, "I1")])
    check_witnesses(table)
    assert len(table._entries[both].witnesses) == 1


@pytest.mark.parametrize("redundant", [False, True])
def test_many_at_once_is_one_by_one(redundant: bool) -> None:
    rng = random.Random(1)
    for _ in range(20):
        given = [(rng.choice(POOL), rng.choice(("I1", "I2", "ana"))) for _ in range(40)]
        at_once, slowly = (IndexedTable(["I1", "I2"], redundant=redundant) for _ in range(2))
        oracle: NaiveTable[str] = NaiveTable(["I1", "I2"], redundant=redundant)
        for start in (0, 15):
            part = given[start : start + 15]
            assert at_once.add_many(part) == sum(slowly.add(*pair) for pair in part) == oracle.add_many(part)
        check_witnesses(at_once)
        assert pairs(at_once) == pairs(slowly) == pairs(oracle)
        assert set(at_once.roots()) == set(oracle.roots())
        assert {f: at_once.forwards(f) for f in at_once.filters()} == {f: oracle.forwards(f) for f in oracle.filters()}


def test_an_interface_with_many_filters() -> None:
    table: IndexedTable[str] = IndexedTable(["I1"])
    for number in range(2 * _FEW):
        assert table.add(parse(f"x = {number}"), "I1")
    assert not table.add(parse("x = 3 AND y = 1"), "I1")
    assert table.add(parse("x = 3 AND y = 1"), "ana")
    assert table.add(parse(f"x BETWEEN 0 AND {_FEW}"), "I1")
    assert len(table) == _FEW + 1
    assert table.drop("I1") == [
        *(parse(f"x = {n}") for n in range(_FEW + 1, 2 * _FEW)),
        parse(f"x BETWEEN 0 AND {_FEW}"),
    ]
    assert table.roots() == [parse("x = 3 AND y = 1")]
