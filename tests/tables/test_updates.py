from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few
from tests.tables.networks import (
    FILTERS,
    KINDS,
    REDUNDANT,
    Make,
    Network,
    Plain,
    Pool,
    Tape,
    filters,
    lengths,
    pools,
    random_tree,
    received,
    remembered,
    some_numbers,
    tapes,
)

from fieldfare.filters import NOTHING, Filter, parse
from fieldfare.tables.base import Table
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import TableUpdate, _remove, apply, exported, replacement

ALL = {**KINDS, **REDUNDANT}


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def between(low: int, high: int) -> Filter:
    return parse(f"x BETWEEN {low} AND {high}")


def sub(*filters: Filter) -> TableUpdate:
    return TableUpdate(added=filters)


def unsub(filter: Filter, *uncovered: Filter) -> TableUpdate:
    return TableUpdate(uncovered, (filter,))


@pytest.fixture(params=ALL)
def make(request: pytest.FixtureRequest) -> Make:
    return ALL[request.param]


# Vectors of the thesis


def test_subscribe_and_unsubscribe(make: Make) -> None:
    table = make({"I1", "I2", "I3"})
    a, b, c, d, e = between(0, 10), between(20, 30), between(1, 9), between(21, 29), between(2, 8)
    assert apply(table, sub(a), "I1") == {"I2": sub(a), "I3": sub(a)}
    assert apply(table, sub(b), "I1") == {"I2": sub(b), "I3": sub(b)}
    assert apply(table, sub(c), "I2") == {"I1": sub(c)}
    assert apply(table, sub(d), "I3") == {"I1": sub(d)}
    assert apply(table, sub(e), "I3") == {}
    assert apply(table, unsub(a), "I1") == {"I2": unsub(a, e), "I3": unsub(a, c)}


def test_two_subscribers(make: Make) -> None:
    table, f = make({"I1", "I2", "I3"}), between(0, 1)
    assert apply(table, sub(f), "I1") == {"I2": sub(f), "I3": sub(f)}
    assert apply(table, sub(f), "I2") == {"I1": sub(f)}
    assert table.forwards(f) == {"I1", "I2", "I3"}
    assert apply(table, unsub(f), "I1") == {"I2": unsub(f)}
    assert table.forwards(f) == {"I1", "I3"}


@pytest.mark.parametrize("name", ALL)
def test_a_cover_in_another_tree(name: str) -> None:
    table = ALL[name]({"I1", "I2", "I3"})
    b, a = between(5, 20), between(0, 15)  # b first: d is placed under it
    c, d = between(4, 14), between(6, 13)
    apply(table, sub(b), "I1")
    apply(table, sub(a), "I1")
    assert apply(table, sub(c), "I2") == {"I1": sub(c)}
    told = apply(table, sub(d), "I3")
    assert told == {} or (name == "nrf approximative" and told == {"I1": sub(d)})
    assert apply(table, unsub(c), "I2") == {"I1": unsub(c, d)}


def test_uncovered_across_trees(make: Make) -> None:
    table = make({"a", "b", "c"})
    f2, f1, f3, f4 = between(5, 20), between(0, 15), between(5, 15), between(6, 14)
    apply(table, sub(f2), "c")
    apply(table, sub(f1), "c")
    apply(table, sub(f4), "b")  # before f3: stays under f2
    assert apply(table, sub(f3), "a") == {"c": sub(f3)}
    assert apply(table, unsub(f3), "a") == {"c": unsub(f3, f4)}


# Vectors of the book: a broker with the neighbours B2 and B3, and S, a neighbour or a client

F, G = between(0, 10), between(2, 8)


def test_a_client_subscribes_what_is_covered(make: Make) -> None:
    table = make({"B2", "B3"})
    apply(table, sub(F), "B3")
    assert apply(table, sub(G), "S") == {"B3": sub(G)}
    assert {*table.filters()} == {F, G}


@pytest.mark.parametrize("name", KINDS)
def test_a_neighbour_replaces_what_is_covered(name: str) -> None:
    table = KINDS[name]({"B2", "B3", "S"})
    apply(table, sub(G), "S")
    assert apply(table, sub(F), "S") == {"B2": sub(F), "B3": sub(F)}
    assert apply(table, unsub(F), "S") == {"B2": unsub(F), "B3": unsub(F)}
    assert len(table) == 0


def test_a_neighbour_unsubscribes(make: Make) -> None:
    table = make({"B2", "B3", "S"})
    apply(table, sub(F), "S")
    assert apply(table, unsub(F), "S") == {"B2": unsub(F), "B3": unsub(F)}
    assert len(table) == 0


def test_a_client_unsubscribes_what_is_covered(make: Make) -> None:
    table = make({"B2", "B3"})
    apply(table, sub(F), "B3")
    apply(table, sub(G), "S")
    assert apply(table, unsub(G), "S") == {"B3": unsub(G)}


def test_a_client_unsubscribes_what_covers(make: Make) -> None:
    table = make({"B2", "B3"})
    apply(table, sub(G), "B2")
    apply(table, sub(F), "S")
    assert apply(table, unsub(F), "S") == {"B2": unsub(F), "B3": unsub(F, G)}


def test_a_neighbour_uncovers_what_another_has_too(make: Make) -> None:
    table = make({"B2", "B3", "S"})
    apply(table, sub(G), "B2")
    apply(table, sub(F), "S")
    assert apply(table, unsub(F, G), "S") == {"B2": unsub(F, G), "B3": unsub(F, G)}


# What else there is to say


def test_what_cancels_out_is_not_said(make: Make) -> None:
    table = make({"B2", "B3", "S"})
    apply(table, sub(F), "S")
    assert apply(table, TableUpdate((F,), (F,)), "S") == {}
    assert apply(table, sub(F), "S") == apply(table, unsub(G), "S") == apply(table, unsub(F), "B2") == {}
    assert apply(table, unsub(F, G, between(20, 30)), "S") == {
        name: unsub(F, G, between(20, 30)) for name in ("B2", "B3")
    }


def test_all_of_an_update_or_nothing(make: Make) -> None:
    table = make({"B2"})
    apply(table, sub(F), "S")
    with pytest.raises(ValueError, match="no event can match"):
        apply(table, TableUpdate((G, NOTHING), (F,)), "S")
    assert {*table.filters()} == {F}


# Several removals at once. What lies beneath both, `inside`, is hidden from B by `other`, which A alone has.

LEFT, RIGHT, OTHER, INSIDE = between(0, 20), between(10, 30), between(5, 35), between(12, 18)


def two_at_once(table: Table[Any]) -> Table[Any]:
    for filter, interface in ((OTHER, "A"), (LEFT, "S"), (RIGHT, "S"), (INSIDE, "c")):
        apply(table, sub(filter), interface)
    return table


@pytest.mark.parametrize("removed", [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_what_lies_beneath_two_that_go_is_said_once(make: Make, removed: tuple[Filter, ...]) -> None:
    table = two_at_once(make({"A", "B"}))
    assert table.forwards(LEFT) == {"A", "B"}
    assert table.forwards(RIGHT) == {"A"}
    assert apply(table, TableUpdate(removed=removed), "S") == {"A": TableUpdate((INSIDE,), removed), "B": unsub(LEFT)}


@pytest.mark.parametrize("removed", [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_who_knew_something_larger_is_gathered_from_all_that_go(removed: tuple[Filter, ...]) -> None:
    """A promise of `_remove` only. Neighbours would be told the same if each removal forgot what the last had found:

    who must know `inside` in the end is among those who knew the one that goes, whichever of those above it that is.
    """
    gone, beneath = _remove(two_at_once(NaiveTable({"A", "B"})), removed, "S")
    assert gone == [*removed]
    assert beneath == {INSIDE: frozenset("AB")}


def test_neighbours_come_in_order(make: Make) -> None:
    names = [f"B{i}" for i in range(9)]
    assert [*apply(make(names), sub(F), "S")] == names


# Against the definitions


class Mirrors(RuleBasedStateMachine):
    """Any updates from neighbours and clients; each neighbour's picture must be what the definition exports."""

    make: Make

    @initialize(neighbours=st.integers(1, 4), pool=pools)
    def start(self, neighbours: int, pool: Pool) -> None:
        self.pool = pool
        names = list(range(neighbours))
        self.table = self.make(names)
        self.oracle: NaiveTable[Any] = NaiveTable(names, redundant=self.table.redundant)
        self.mirrors: dict[Any, list[Filter]] = {name: [] for name in names}

    @rule(added=some_numbers, removed=some_numbers, sender=st.integers(0, 5))
    def update(self, added: list[int], removed: list[int], sender: int) -> None:
        self.change(self.pool.update(added, removed), sender)

    def change(self, update: TableUpdate, sender: int) -> None:
        messages = apply(self.table, update, sender)
        for filter in update.removed:
            self.oracle.remove(filter, sender)
        for filter in update.added:
            self.oracle.add(filter, sender)
        assert sender not in messages
        for neighbour, message in messages.items():
            assert message != TableUpdate()
            self.mirrors[neighbour] = received(self.mirrors[neighbour], message)

    @rule(sender=st.integers(0, 5), choice=st.integers(0, 100))
    def unsubscribe(self, sender: int, choice: int) -> None:
        """Something that is there."""
        mine = [f for f in self.oracle.filters() if sender in self.oracle.interfaces(f)]
        if mine:
            self.change(TableUpdate(removed=(mine[choice % len(mine)],)), sender)

    @rule(wanted=some_numbers, sender=st.integers(0, 5))
    def replace(self, wanted: list[int], sender: int) -> None:
        self.change(replacement(self.table, [self.pool[number] for number in wanted], sender), sender)

    @invariant()
    def exports(self) -> None:
        if not hasattr(self, "table"):
            return
        if getattr(self.table, "eliminate", "add") == "add":
            assert {(f, i) for f in self.table.filters() for i in self.table.interfaces(f)} == {
                (f, i) for f in self.oracle.filters() for i in self.oracle.interfaces(f)
            }
        for filter in self.table.filters():
            assert all(filter.covers(other) for other in self.table.beneath(filter))
        for neighbour, known in self.mirrors.items():
            assert set(known) == set(self.oracle.exported(neighbour)), neighbour
            if not isinstance(self.table, NaiveTable):
                assert {*exported(self.table, neighbour)} >= set(known)


@pytest.mark.parametrize("name", ALL)
def test_neighbours_know_what_is_exported(name: str) -> None:
    machine = type("Mirrors", (Mirrors,), {"make": staticmethod(ALL[name])})
    run_state_machine_as_test(machine, settings=settings(few(15), stateful_step_count=20))


@given(pools, st.lists(st.tuples(some_numbers, some_numbers, st.integers(1, 3)), max_size=30))
def test_to_a_master_go_the_roots(pool: Pool, changes: list[tuple[list[int], list[int], int]]) -> None:
    """Neighbours = {master}: the same function is hierarchical routing."""
    for name, make in ALL.items():
        table: Table[Any] = make({"master"})
        known: list[Filter] = []
        for added, removed, slave in changes:
            told = apply(table, pool.update(added, removed), slave)
            known = received(known, told.get("master", TableUpdate()))
            assert set(known) == set(table.roots()) == set(exported(table, "master")), name


@given(st.lists(st.tuples(st.sets(filters, max_size=4), st.integers(1, 3)), max_size=6))
def test_whole_sets_keep_a_redundant_master_clean(changes: list[tuple[set[Filter], int]]) -> None:
    for make in REDUNDANT.values():
        master: Table[Any] = make({"top"})
        known: list[Filter] = []
        last: dict[int, list[Filter]] = {}
        for wishes, slave in changes:
            last[slave] = NaiveTable.roots(_filled(wishes))
            update = replacement(master, last[slave], slave)
            known = received(known, apply(master, update, slave).get("top", TableUpdate()))
            assert {(f, i) for f in master.filters() for i in master.interfaces(f)} == {
                (f, i) for i, roots in last.items() for f in roots
            }
            assert set(known) == set(master.roots())


def _filled(wishes: set[Filter]) -> NaiveTable[int]:
    table: NaiveTable[int] = NaiveTable()
    for filter in sorted(wishes, key=str):
        table.add(filter, 0)
    return table


# Networks


@pytest.mark.parametrize("name", KINDS)
@few(15)
@given(tape=tapes, steps=lengths)
def test_networks_deliver_exactly(name: str, tape: Tape, steps: int) -> None:
    network = Network(random_tree(tape), lambda _, neighbours: Plain(KINDS[name](neighbours)))
    pool = tape.some(FILTERS)
    for _ in range(steps):
        what = tape.below(10)
        if what < 4:
            network.toggle(tape.of("ab"), tape.below(len(network.tree)), tape.of(pool))
        elif what < 5 and network.wanted:
            network.toggle(*tape.of(sorted(network.wanted, key=str)))
        elif what < 9:
            network.step(tape)
        else:
            network.drain(tape)
        network.publish(tape.below(len(network.tree)), {"x": tape.below(5), "y": tape.below(2)})
        network.check_links()
    network.drain(tape)
    network.check_links()
    network.check_deliveries()
    network.check_exact(tape)


def test_a_network_mixes_tables() -> None:
    """Neighbours need not have the same kind of table."""
    names = list(KINDS)
    tree = {0: [1, 2], 1: [0, 3, 4], 2: [0], 3: [1], 4: [1]}
    network = Network(tree, lambda i, neighbours: Plain(KINDS[names[i % len(names)]](neighbours)))
    tape = Tape(7)
    for _ in range(200):
        network.toggle("a", tape.below(5), tape.of(FILTERS))
        network.step(tape)
    network.check_links()
    network.check_exact(tape)
