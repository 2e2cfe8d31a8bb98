from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable

import pytest
from tests.tables.suite import POOL, TableSuite, pairs

from fieldfare.filters import parse
from fieldfare.tables.base import Table, Towards
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.network_index import NetworkIndex
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


class TestOnASharedIndex(TestIndexed):
    """All tables of this class share one index, as those of a broker do."""

    index = SharedIndex()

    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> IndexedTable[str]:
        return IndexedTable(neighbours, towards=towards, index=self.index)


class TestOnANetworkIndex(TestOnASharedIndex):
    """All tables of this class share one index, as those of simulated brokers do."""

    index = NetworkIndex()


def check_witnesses(table: IndexedTable[str]) -> None:
    for filter, entry in table._entries.items():
        assert entry.filter == filter
        assert entry.interfaces
        for witness in entry.witnesses:
            assert witness is not entry
            assert witness.filter.covers(filter)
            assert table._entries[witness.filter] is witness
            assert entry in (witness.testified or ())
        only = [table._only(witness) for witness in entry.witnesses]
        assert len(only) < 2 or only[0] != only[1]
        hidden = len(only) == 2 or only == [None]
        assert entry.exposed is not hidden
        assert all(entry in other.witnesses for other in entry.testified or ())
    assert table._sizes == Counter(interface for _, interface in pairs(table))
    assert table._sizes.keys() == table._alone.keys()


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
    for number in range(64):
        assert table.add(parse(f"x = {number}"), "I1")
    assert not table.add(parse("x = 3 AND y = 1"), "I1")
    assert table.add(parse("x = 3 AND y = 1"), "ana")
    assert table.add(parse("x BETWEEN 0 AND 32"), "I1")
    assert len(table) == 33
    assert table.drop("I1") == [
        *(parse(f"x = {n}") for n in range(33, 64)),
        parse("x BETWEEN 0 AND 32"),
    ]
    assert table.roots() == [parse("x = 3 AND y = 1")]
