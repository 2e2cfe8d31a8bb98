from __future__ import annotations

from collections.abc import Hashable, Iterable

from tests.tables.suite import TableSuite, between, check_poset, pairs

from fieldfare.filters import Filter, parse
from fieldfare.tables.base import Table, Towards
from fieldfare.tables.structures.poset import Poset


def links(table: Poset[str]) -> list[tuple[Filter, Filter]]:
    return [(larger, smaller) for larger, vertex in table.vertices.items() for smaller in vertex.children]


class TestPoset(TableSuite):
    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> Poset[str]:
        return Poset(neighbours, towards=towards)

    def check_structure(self, table: Table[str]) -> None:
        assert isinstance(table, Poset)
        check_poset(links(table), table.roots(), table.vertices)
        for filter, vertex in table.vertices.items():
            assert vertex.filter == filter
            assert vertex.interfaces
            assert all(parent.children[filter] is vertex for parent in vertex.parents.values())
            assert all(child.parents[filter] is vertex for child in vertex.children.values())
            for below in vertex.below().values():
                assert not vertex.interfaces & below.interfaces
        numbers = [vertex.number for vertex in table.vertices.values()]
        assert numbers == sorted(set(numbers))
        stored = pairs(table)
        assert sum(table._pairs.values()) == len(stored)
        assert set(table._pairs) == {interface for _, interface in stored}

    def edges(self, table: Table[str]) -> Hashable:
        assert isinstance(table, Poset)
        return tuple(links(table))


def filled(*texts: str) -> Poset[str]:
    table: Poset[str] = Poset()
    table.add_many((parse(text), text) for text in texts)
    return table


def test_depth() -> None:
    table = filled("x > 12", "x > 0", "x > 5", "x > 10")
    assert set(links(table)) == {
        (parse("x > 0"), parse("x > 5")),
        (parse("x > 5"), parse("x > 10")),
        (parse("x > 10"), parse("x > 12")),
    }


def test_all_immediate_covers() -> None:
    top, left, right, low, high = (between("x", *ends) for ends in ((0, 100), (0, 40), (20, 90), (30, 35), (35, 38)))
    least = "x = 35 AND name = 'B'"
    table = filled(least, low, right, top, high, left)
    parents = {str(filter): set(vertex.parents) for filter, vertex in table.vertices.items()}
    assert parents == {
        str(parse(small)): {parse(large) for large in above}
        for small, above in {
            top: [],
            left: [top],
            right: [top],
            low: [left, right],
            high: [left, right],
            least: [low, high],
        }.items()
    }


def test_what_is_stored_needs_no_comparison() -> None:
    table = filled(*(f"x > {number}" for number in range(9)), "y > 0")
    table.tests.cover = 0
    middle = parse("x > 4")
    assert table.add(middle, "ana")
    assert table.remove(middle, "ana")
    assert table.remove(middle, "x > 4")
    assert not table.add(parse("x > 5"), "x > 5")
    table.forwards(parse("x > 5"))
    table.beneath(parse("x > 5"))
    assert table.tests.cover == 0


def test_a_budget_of_tests() -> None:
    table = filled("x > 0", "x > 1", "x > 2", "y > 0", "y > 1")
    event = {"x": 2, "y": 0}
    for budget in range(7):
        table.tests.match = 0
        found = table.match_within(event, budget)
        assert found >= {"x > 0", "x > 1"}
        assert table.tests.match == min(budget, 4)
    assert table.match_within(event, 0) == {"x > 0", "x > 1", "x > 2", "y > 0", "y > 1"}
    assert table.match_within(event, 2) == {"x > 0", "x > 1", "x > 2"}
    assert table.match_within(event, 4) == table.match(event) == {"x > 0", "x > 1"}
