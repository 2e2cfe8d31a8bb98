"""What every routing table must do. A test class inherits `TableSuite` and says how to `make` one.

First examples, among them the vectors of the specification; then a long random churn of boxes; then hypothesis, which does
anything that may happen to a table, and after each step compares all its answers with those of `NaiveTable`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few

from fieldfare.events import Event
from fieldfare.filters import EVERYTHING, NOTHING, Filter, parse
from fieldfare.tables.base import Table, Tests, Towards
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.structures.naive import NaiveTable

NEIGHBOURS = ("I1", "I2", "I3")
CLIENTS = ("ana", "bob")
INTERFACES = (*NEIGHBOURS, *CLIENTS)

Pairs = set[tuple[Filter, str]]


def between(name: str, low: float, high: float) -> str:
    return f"{name} BETWEEN {low} AND {high}"


def box(x: tuple[float, float], y: tuple[float, float]) -> Filter:
    return parse(f"{between('x', *x)} AND {between('y', *y)}")


RANGES = [EVERYTHING, *(parse(between("x", low, high)) for low in range(4) for high in range(low, 4))]
BOXES = [
    *(parse(between("y", *ends)) for ends in ((0, 3), (0, 2), (1, 1))),
    *(
        box(x, y)
        for x, y in (
            ((0, 3), (0, 3)), ((0, 2), (0, 3)), ((0, 3), (0, 2)), ((0, 2), (0, 2)), ((1, 3), (1, 3)),
            ((1, 2), (0, 3)), ((1, 2), (1, 2)), ((1, 1), (0, 2)), ((1, 1), (1, 1)), ((2, 3), (2, 3)), ((2, 2), (1, 2)),
        )
    ),
]  # fmt: skip
TEXTS = [
    parse(text)
    for text in (
        "x >= 1",
        "x < 1 OR x > 2",
        "s LIKE 'a%'",
        "s LIKE 'ab%'",
        "s = 'abc'",
        "s LIKE '%c'",
        "s LIKE 'a%' AND x BETWEEN 0 AND 2",
        "s = 'abc' AND x BETWEEN 1 AND 2",
        "x BETWEEN 0 AND 1 OR s LIKE 'a%'",
        "x = 1 OR s = 'abc'",
        "(x = 1 AND y = 1) OR s = 'abc'",
    )
]
SAME = [  # some mean the same and are not equal
    parse(text)
    for text in (
        "CIDR(ip, '10.0.0.0/8')",
        "CIDR(ip, '10.1.0.0/8')",
        "CIDR(ip, '10.2.0.0/8')",
        "CIDR(ip, '10.1.0.0/16')",
        "CIDR(ip, '10.0.0.0/8') AND CIDR(ip, '10.1.0.0/16')",
        "CIDR(ip, '10.0.0.0/8') AND x = 1",
        "CIDR(ip, '10.1.0.0/8') AND x = 1",
        "CIDR(ip, '10.1.0.0/16') AND x = 1",
        "CIDR(ip, '10.0.0.0/8') AND CIDR(ip, '10.1.0.0/16') AND x = 1",
        "x BETWEEN 0 AND 1",
        "x BETWEEN 1 AND 2",
        "x BETWEEN 1 AND 3",
    )
]
POOL = [*RANGES, *BOXES, *TEXTS, *SAME]
POOLS = {"ranges": RANGES, "boxes": BOXES, "texts": TEXTS, "same": SAME, "all": POOL}
EVENTS: list[dict[str, object]] = [{"x": x, "y": y} for x in range(4) for y in (0, 1, 2.5)]
EVENTS += [
    {},
    {"s": "a"},
    {"s": "bc"},
    {"x": 1, "s": "abc", "ip": "10.1.2.3"},
    {"x": 3, "s": "abd"},
    {"ip": "10.1.2.3"},
    {"ip": "10.3.2.1", "x": 2, "y": 2},
    {"ip": "10.1.2.3", "x": 2, "l": [1, {"x": 1}]},
]


@cache
def covers(larger: Filter, smaller: Filter) -> bool:
    """The same as the filter says, remembered: the filters of the tests are few."""
    return larger.covers(smaller)


@cache
def overlaps(one: Filter, other: Filter) -> bool:
    return one.overlaps(other)


class Remembered(Tests):
    """Comparisons for an oracle that makes them all again at each step."""

    def covers(self, a: Filter, b: Filter) -> bool:
        self.cover += 1
        return covers(a, b)


class EliminatesLate(NaiveTable[str]):
    """What an interface has that is covered stays until the larger filter goes, and goes with it."""

    def add(self, filter: Filter, interface: str) -> bool:
        if any(interface in self.interfaces(other) for other in self.covering(filter)):
            return False
        self._interfaces.setdefault(filter, set()).add(interface)
        return True

    def remove(self, filter: Filter, interface: str) -> bool:
        if interface not in self.interfaces(filter):
            return False
        for other in self.covered(filter):
            super().remove(other, interface)
        return True


def pairs(table: Table[str]) -> Pairs:
    return {(filter, interface) for filter in table.filters() for interface in table.interfaces(filter)}


def told(table: NaiveTable[str]) -> dict[Filter, set[str]]:
    """For all stored filters the neighbours that must know them."""
    result: dict[Filter, set[str]] = {filter: set() for filter in table.filters()}
    for neighbour in table.neighbours:
        for filter in table.exported(neighbour):
            result[filter].add(neighbour)
    return result


def check_poset(edges: Iterable[tuple[Filter, Filter]], roots: Collection[Filter], filters: Collection[Filter]) -> None:
    """The edges are the immediate covers, and the roots have none. `filters` are in order of arrival."""
    order = list(filters)
    place = {filter: number for number, filter in enumerate(order)}
    above = {
        one: {
            other
            for other in order
            if other != one and covers(other, one) and (place[other] < place[one] or not covers(one, other))
        }
        for one in order
    }
    expected = {
        (larger, one)
        for one in order
        for larger in above[one]
        if not any(larger in above[between] for between in above[one])
    }
    assert set(edges) == expected
    assert set(roots) == {one for one in order if not above[one]}


class TableSuite(ABC):
    """The tests. Each begins with an empty table."""

    exact = True
    """does `forwards` name nobody who need not know?"""
    trusted = False
    """does the table rely on nobody adding what it has covered already?"""
    churn = 150
    """how many random changes to make"""
    clients = 5

    @abstractmethod
    def make(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> Table[str]:
        """An empty table."""

    def oracle(self, neighbours: Iterable[str] = (), towards: Towards[str] | None = None) -> NaiveTable[str]:
        """The table to agree with."""
        return NaiveTable(neighbours, towards=towards, redundant=self.make().redundant)

    def check_structure(self, table: Table[str]) -> None:
        """Look inside, after a change."""
        assert len(table) == len(list(table.filters()))

    def edges(self, table: Table[str]) -> Hashable:
        """All that is inside, to be compared."""
        return ()

    def filled(self, wanted: Iterable[tuple[str, str]], neighbours: Iterable[str] = NEIGHBOURS) -> Table[str]:
        table = self.make(neighbours)
        for text, interface in wanted:
            assert table.add(parse(text), interface)
        self.check_structure(table)
        return table

    # What it holds

    def test_empty(self) -> None:
        table = self.make(NEIGHBOURS)
        some = parse("x = 1")
        assert (len(table), some in table, "x" in table) == (0, False, False)
        assert list(table.filters()) == table.roots() == table.covering(some) == table.covered(some) == []
        assert table.overlapping(some) == table.beneath(some) == table.drop("I1") == []
        assert not table.interfaces(some)
        assert not table.forwards(some)
        assert table.match({"x": 1}) == set()

    def test_add_and_remove(self) -> None:
        table = self.make(NEIGHBOURS)
        small, large = parse("x = 1"), parse("x > 0")
        assert table.add(small, "ana")
        assert not table.add(small, "ana")
        assert table.add(small, "bob")
        assert table.add(large, "I1")
        assert (len(table), small in table, large in table) == (2, True, True)
        assert (table.interfaces(small), table.interfaces(large)) == ({"ana", "bob"}, {"I1"})
        assert (table.roots(), table.match({"x": 1}), table.match({"x": 2})) == ([large], {"ana", "bob", "I1"}, {"I1"})
        assert table.remove(large, "I1")
        assert table.roots() == [small]
        assert table.remove(small, "ana")
        assert (len(table), table.match({"x": 1})) == (1, {"bob"})
        assert table.remove(small, "bob")
        assert (len(table), table.roots(), table.match({"x": 1})) == (0, [], set())

    def test_add_many(self) -> None:
        table = self.make()
        some = parse("x > 0")
        assert table.add_many([(some, "ana"), (some, "bob"), (some, "ana"), (parse("s = 'a'"), "ana")]) == 3
        assert table.interfaces(some) == {"ana", "bob"}

    def test_only_what_is_there_can_go(self) -> None:
        table = self.filled([("x > 0", "ana")])
        for filter, interface in ((parse("x > 0"), "bob"), (parse("x > 1"), "ana"), (EVERYTHING, "ana")):
            assert not table.remove(filter, interface)
        assert (table.roots(), table.drop("bob")) == ([parse("x > 0")], [])

    def test_what_nothing_matches_is_refused(self) -> None:
        table = self.make()
        for filter in (NOTHING, parse("x > 1") & parse("x < 1")):
            with pytest.raises(ValueError, match="no event can match"):
                table.add(filter, "ana")
            assert not table.remove(filter, "ana")
        assert len(table) == 0

    def test_what_is_covered(self) -> None:
        small, large = parse("x = 1"), parse("x > 0")
        for first, second in ((small, large), (large, small)):
            table, oracle = self.make(), self.oracle()
            assert table.add(first, "ana") == oracle.add(first, "ana")
            if oracle.add(second, "ana") or not self.trusted:
                table.add(second, "ana")
            assert table.add(small, "bob") == oracle.add(small, "bob")
            assert pairs(table) == pairs(oracle)
            self.check_structure(table)

    def test_drop_and_replace(self) -> None:
        table = self.filled([("x > 0", "ana"), ("y > 0", "bob"), ("x > 5", "bob"), ("s = 'a'", "ana")])
        table.add(parse("y > 0"), "ana")
        assert table.drop("ana") == [parse("x > 0"), parse("y > 0"), parse("s = 'a'")]
        assert pairs(table) == {(parse("y > 0"), "bob"), (parse("x > 5"), "bob")}
        assert table.roots() == [parse("y > 0"), parse("x > 5")]
        table.replace("bob", [parse("x > 5"), parse("z > 0")])
        assert pairs(table) == {(parse("x > 5"), "bob"), (parse("z > 0"), "bob")}
        table.replace("bob", [])
        assert len(table) == 0

    def test_in_order_of_arrival(self) -> None:
        texts = ("x > 3", "x > 2", "y > 2", "x > 1", "y > 3", "x > 0", "x > 0 OR y > 0", "z > 0")
        numbered = [(text, f"client {number}") for number, text in enumerate(texts)]
        table = self.filled(numbered)
        filters = [parse(text) for text in texts]
        assert list(table.filters()) == filters
        assert table.roots() == filters[6:]
        table.remove(filters[6], "client 6")
        assert table.roots() == [filters[2], filters[5], filters[7]]
        assert table.covering(filters[0]) == [filters[0], filters[1], filters[3], filters[5]]
        assert table.covered(filters[5]) == [filters[0], filters[1], filters[3], filters[5]]
        assert table.overlapping(filters[4]) == [*filters[:6], filters[7]]
        table.add(filters[0], "ana")  # it has come before
        table.remove(filters[1], "client 1")
        table.add(filters[1], "client 1")
        assert table.covering(filters[0]) == [filters[0], filters[3], filters[5], filters[1]]

    def test_same_meaning(self) -> None:
        """Of filters that cover each other, the oldest is the root, and the next one is told to where that came from."""
        one, two, three = (parse(f"CIDR(ip, '10.{n}.0.0/8')") for n in range(3))
        table = self.make(NEIGHBOURS)
        for number, filter in enumerate((one, two, three)):
            assert table.add(filter, NEIGHBOURS[number])
            self.check_structure(table)
        assert (table.roots(), len(table)) == ([one], 3)
        assert table.covering(two) == table.covered(two) == table.overlapping(two) == [one, two, three]
        outsider = parse("CIDR(ip, '10.9.0.0/8')")
        assert table.covering(outsider) == table.covered(outsider) == [one, two, three]
        assert [table.forwards(filter) for filter in (one, two, three)] == [{"I2", "I3"}, {"I1"}, set()]
        assert set(table.beneath(one)) >= {two}
        assert table.remove(one, "I1")
        self.check_structure(table)
        assert [table.forwards(filter) for filter in (two, three)] == [{"I1", "I3"}, {"I2"}]
        if not self.trusted:
            assert table.add(two, "I3") == table.redundant  # it has the third, which says the same

    def test_the_oldest_of_the_same_meaning_stays_on_top(self) -> None:
        """Even where the two come from different trees: a forest keeps the old one below the third or the fourth."""
        old, new = parse("CIDR(ip, '10.0.0.0/8') AND x = 1"), parse("CIDR(ip, '10.1.0.0/8') AND x = 1")
        third, fourth, other = parse("x BETWEEN 1 AND 2"), parse("x BETWEEN 1 AND 3"), parse("CIDR(ip, '10.0.0.0/8')")
        table = self.make()
        for filter in (old, third, other, fourth, new):
            table.add(filter, f"client {filter}")
        for filter in (fourth, third, other):
            table.remove(filter, f"client {filter}")
            self.check_structure(table)
        assert table.roots() == [old]

    # The vectors of the specification, §20

    def test_vector_2_depth(self) -> None:
        table = self.filled([("x > 0", "i1"), ("x > 5", "i2"), ("x > 10", "i3"), ("x > 12", "i4")])
        assert table.roots() == [parse("x > 0")]
        assert table.covering(parse("x > 12")) == list(table.filters())
        assert table.match({"x": 11}) == {"i1", "i2", "i3"}

    def test_vector_3_figure(self) -> None:
        texts = [
            *(f"type = 'A' AND {between('x', *ends)}" for ends in ((0, 100), (0, 40), (20, 90), (30, 35), (35, 38))),
            "type = 'A' AND x = 35 AND name = 'B'",
        ]
        for order in (texts, texts[::-1], texts[1::2] + texts[::2]):
            table = self.filled((text, f"client {text}") for text in order)
            assert table.roots() == [parse(texts[0])]
            assert set(table.covering(parse(texts[-1]))) == {parse(text) for text in texts}
            assert len(table.match({"type": "A", "x": 35})) == 5

    def test_vector_4_forwards(self) -> None:
        a, b, c, d, e = filters = [
            parse(text) for text in ("x > 0", "y > 0", "x > 1 AND z > 0", "y > 1", "x > 2 AND z > 1")
        ]
        table = self.make(NEIGHBOURS)
        for filter, interface in zip(filters, ("I1", "I1", "I2", "I3", "I3"), strict=True):
            table.add(filter, interface)
        assert [table.forwards(filter) for filter in filters] == [{"I2", "I3"}, {"I2", "I3"}, {"I1"}, {"I1"}, set()]
        assert set(table.beneath(a)) >= {c, e}
        assert table.beneath(e) == []
        table.remove(a, "I1")
        assert [table.forwards(filter) for filter in (b, c, d, e)] == [{"I2", "I3"}, {"I1", "I3"}, {"I1"}, {"I2"}]
        assert table.forwards(a) == set()

    def test_vector_5_two_subscribers(self) -> None:
        table = self.filled([("x > 0", "I1"), ("x > 0", "I2")])
        some = parse("x > 0")
        assert table.forwards(some) == {"I1", "I2", "I3"}
        table.remove(some, "I1")
        assert table.forwards(some) == {"I1", "I3"}
        table.add(some, "ana")
        assert table.forwards(some) == {"I1", "I2", "I3"}

    def test_vector_6_cover_in_another_tree(self) -> None:
        for order in ("abcd", "bacd", "dcba", "cbda"):
            table = self.vector_6(order)
            assert table.forwards(parse("x > 1 AND z > 0")) == {"I1"}
            last = table.forwards(parse("x > 2 AND y > 1 AND z > 0"))
            assert last == set() if self.exact else last <= {"I1"}

    def vector_6(self, order: str) -> Table[str]:
        wanted = {
            "a": ("x > 0", "I1"),
            "b": ("y > 0", "I1"),
            "c": ("x > 1 AND z > 0", "I2"),
            "d": ("x > 2 AND y > 1 AND z > 0", "I3"),
        }
        return self.filled(wanted[letter] for letter in order)

    def test_vector_7_uncovered_across_trees(self) -> None:
        wanted = [("x > 0", "c"), ("y > 0", "c"), ("x > 1 AND y > 1", "a"), ("x > 2 AND y > 2", "b")]
        f1, f2, f3, f4 = (parse(text) for text, _ in wanted)
        for order in ((0, 1, 2, 3), (1, 0, 2, 3), (1, 3, 0, 2), (0, 3, 1, 2), (3, 2, 1, 0)):
            table = self.filled((wanted[number] for number in order), neighbours="abc")
            assert [table.forwards(filter) for filter in (f1, f2)] == [{"a", "b"}] * 2
            assert table.forwards(f3) == {"c"}
            assert f4 in table.beneath(f3)
            table.remove(f3, "a")
            assert table.forwards(f4) == {"c"}
        table = self.filled([wanted[2], wanted[0], wanted[1], ("x > -1", "ana")], neighbours="abc")
        table.remove(parse("x > -1"), "ana")  # in a forest F1 is now after F2: F3 is below F1, and F4 comes below F2
        table.add(f4, "b")
        assert f4 in table.beneath(f3)
        table.remove(f3, "a")
        assert table.forwards(f4) == {"c"}

    def test_what_a_dropped_interface_uncovers(self) -> None:
        for owner, neighbours in (("ana", NEIGHBOURS), ("I1", NEIGHBOURS), ("ana", ())):
            table, oracle = self.make(neighbours), self.oracle(neighbours)
            for text, interface in (("x > 2", "bob"), ("x > 1", owner), ("x > 0", owner), ("x > 0.5", "I2")):
                assert table.add(parse(text), interface) == oracle.add(parse(text), interface)
            drop_both(table, oracle, owner)
            agree(self, table, oracle)

    # Constrained neighbours

    def test_only_neighbours_that_advertise_are_told(self) -> None:
        offers = {"I1": parse("x < 5"), "I2": parse("x > 5"), "I3": parse("x > 8")}

        def towards(filter: Filter) -> set[str]:
            return {neighbour for neighbour, offer in offers.items() if offer.overlaps(filter)}

        table = self.make(NEIGHBOURS, towards)
        large, middle, small = parse("x BETWEEN 0 AND 9"), parse("x BETWEEN 6 AND 9"), parse("x = 9")
        assert table.add(large, "I2")
        assert table.add(middle, "I3")
        assert table.add(small, "ana")
        assert [table.forwards(filter) for filter in (large, middle, small)] == [{"I1", "I3"}, {"I2"}, set()]
        offers["I2"] = parse("x > 9")
        assert [table.forwards(filter) for filter in (large, middle, small)] == [{"I1", "I3"}, set(), set()]
        table.remove(large, "I2")
        assert [table.forwards(filter) for filter in (middle, small)] == [set(), {"I3"}]

    # Whom an event concerns

    def test_events_of_any_shape(self) -> None:
        table = self.filled([("u.id = 7", "ana"), ("ANY l = 2", "bob")])
        tree: dict[str, object] = {"u": {"id": 7}, "l": [1, [2]]}
        for event in (tree, Event(tree), Event(tree, type="t")):
            assert table.match(event) == {"ana", "bob"}
        assert table.match({"u.id": 7}) == {"ana"}

    def test_the_result_is_the_callers(self) -> None:
        table = self.filled([("x > 0", "ana"), ("x > 1", "bob")])
        table.match({"x": 1}).clear()
        table.roots().clear()
        table.covered(EVERYTHING).clear()
        assert (table.match({"x": 1}), len(table.roots()), len(table)) == ({"ana"}, 1, 2)

    # Many

    def random_box(self, chance: random.Random) -> Filter:
        x, y = (tuple(sorted(chance.choices(range(13), k=2))) for _ in "xy")
        return box((x[0], x[1]), (y[0], y[1]))

    def test_churn(self) -> None:
        chance = random.Random(11)
        table, oracle = self.make(NEIGHBOURS), self.oracle(NEIGHBOURS)
        oracle.tests = Remembered()
        clients = [*INTERFACES, *(f"client {number}" for number in range(self.clients))]
        for step in range(self.churn):
            filter, interface = self.random_box(chance), chance.choice(clients)
            if chance.random() < 0.35 and len(oracle):
                filter, interface = chance.choice(sorted(pairs(oracle), key=str))
                with uncovering(table, oracle, [filter]):
                    assert table.remove(filter, interface) == oracle.remove(filter, interface)
            elif not self.trusted or not any(interface in oracle.interfaces(o) for o in oracle.covering(filter)):
                assert table.add(filter, interface) == oracle.add(filter, interface)
            if step % 20 == 0:
                agree(self, table, oracle)
                for x in range(13):
                    event = {"x": x, "y": chance.randrange(13)}
                    assert table.match(event) == oracle.match(event)
        for client in clients:
            drop_both(table, oracle, client)
            self.check_structure(table)
        assert len(table) == 0

    def test_structure_of_a_large_table(self) -> None:
        chance, table = random.Random(13), self.make()
        held: list[tuple[Filter, str]] = []
        for step in range(4 * self.churn):
            if held and chance.random() < 0.4:
                table.remove(*held.pop(chance.randrange(len(held))))
            else:
                held.append((self.random_box(chance), f"client {step}"))
                table.add(*held[-1])
            if step % 25 == 0:
                self.check_structure(table)

    def test_the_same_steps_give_the_same_table(self) -> None:
        def built() -> Table[str]:
            chance, table = random.Random(3), self.make(NEIGHBOURS)
            for _ in range(120):
                table.add(self.random_box(chance), chance.choice(INTERFACES))
                if chance.random() < 0.3:
                    filter = chance.choice(list(table.filters()))
                    table.remove(filter, min(table.interfaces(filter)))
            return table

        one, two = built(), built()
        assert (list(one.filters()), one.roots()) == (list(two.filters()), two.roots())
        assert self.edges(one) == self.edges(two)
        assert one.tests == two.tests

    def test_agrees_through_any_history(self) -> None:
        def begin() -> History:
            return History(self)

        run_state_machine_as_test(begin, settings=settings(few(15), stateful_step_count=15))  # type: ignore[arg-type]  # a factory will do


@contextmanager
def uncovering(table: Table[str], oracle: NaiveTable[str], filters: Collection[Filter]) -> Iterator[None]:
    """Check that all that some filters hide from neighbours, and from the roots, is beneath them."""
    beneath = {below for filter in filters for below in table.beneath(filter)}
    before, roots = told(oracle), oracle.roots()
    yield
    assert {filter for filter, them in told(oracle).items() if them - before[filter]} <= beneath.union(filters)
    assert set(oracle.roots()) <= beneath.union(filters, roots)


def drop_both(table: Table[str], oracle: NaiveTable[str], interface: str) -> None:
    filters = [filter for filter in oracle.filters() if interface in oracle.interfaces(filter)]
    with uncovering(table, oracle, filters):
        assert table.drop(interface) == oracle.drop(interface) == filters


def agree(suite: TableSuite, table: Table[str], oracle: NaiveTable[str]) -> None:
    """Compare all that can be asked without an argument."""
    filters = list(oracle.filters())
    assert list(table.filters()) == filters
    assert len(table) == len(filters)
    assert pairs(table) == pairs(oracle)
    assert table.roots() == oracle.roots()
    for filter, neighbours in told(oracle).items():
        said = table.forwards(filter)
        assert said == neighbours if suite.exact else said >= neighbours, filter
    suite.check_structure(table)


class History(RuleBasedStateMachine):
    """Anything that may happen to a table, beside an oracle to which the same happens."""

    numbers = st.integers(0, 59)
    """of filters in a pool that is small, so that they meet often"""
    interfaces = st.sampled_from(INTERFACES)
    several = st.lists(st.tuples(numbers, interfaces), min_size=1, max_size=8)

    def __init__(self, suite: TableSuite) -> None:
        super().__init__()
        self.offers: dict[str, Filter] = dict.fromkeys(NEIGHBOURS, EVERYTHING)
        self.suite = suite
        self.table = suite.make(NEIGHBOURS, self.towards)
        self.oracle = suite.oracle(NEIGHBOURS, self.towards)
        self.oracle.tests = Remembered()
        self.pool: list[Filter] = []

    def towards(self, filter: Filter) -> set[str]:
        return {neighbour for neighbour, offer in self.offers.items() if overlaps(offer, filter)}

    def filter(self, number: int) -> Filter:
        return self.pool[number % len(self.pool)]

    @initialize(pool=st.sampled_from(sorted(POOLS)), wanted=several)
    def begin(self, pool: str, wanted: list[tuple[int, str]]) -> None:
        self.pool = POOLS[pool]
        self.add(wanted)

    @rule(wanted=several)
    def add(self, wanted: list[tuple[int, str]]) -> None:
        for number, interface in wanted:
            filter = self.filter(number)
            if not self.suite.trusted or self.is_news(filter, interface):
                assert self.table.add(filter, interface) == self.oracle.add(filter, interface)

    def is_news(self, filter: Filter, interface: str) -> bool:
        return not any(interface in self.oracle.interfaces(other) for other in self.oracle.covering(filter))

    @rule(number=numbers)
    def remove(self, number: int) -> None:
        stored = [(f, interface) for f in self.oracle.filters() for interface in sorted(self.oracle.interfaces(f))]
        if stored:
            filter, interface = stored[number % len(stored)]
            with uncovering(self.table, self.oracle, [filter]):
                self.remove_pair(filter, interface)

    @rule(number=numbers, interface=interfaces)
    def remove_any(self, number: int, interface: str) -> None:
        self.remove_pair(self.filter(number), interface)

    def remove_pair(self, filter: Filter, interface: str) -> None:
        assert self.table.remove(filter, interface) == self.oracle.remove(filter, interface)

    @rule(interface=interfaces)
    def drop(self, interface: str) -> None:
        drop_both(self.table, self.oracle, interface)

    @rule(interface=interfaces, numbers=st.lists(numbers, max_size=4))
    def replace(self, interface: str, numbers: list[int]) -> None:
        wanted = [self.filter(number) for number in numbers]
        if self.suite.trusted:
            wanted = minimal_cover(wanted)
        self.table.replace(interface, wanted)
        self.oracle.replace(interface, wanted)

    @rule(neighbour=st.sampled_from(NEIGHBOURS), number=numbers)
    def advertise(self, neighbour: str, number: int) -> None:
        self.offers[neighbour] = self.filter(number)

    @rule(event=st.sampled_from(EVENTS))
    def match(self, event: dict[str, object]) -> None:
        assert self.table.match(event) == self.oracle.match(event)

    @rule(number=numbers)
    def ask(self, number: int) -> None:
        filter = self.filter(number)
        assert self.table.covering(filter) == self.oracle.covering(filter)
        assert self.table.covered(filter) == self.oracle.covered(filter)
        assert self.table.overlapping(filter) == self.oracle.overlapping(filter)

    @invariant()
    def agrees(self) -> None:
        agree(self.suite, self.table, self.oracle)
