from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few
from tests.tables import networks
from tests.tables.mergeable import EVENTS, check_mergers, incomparable, joint, pool, remembered
from tests.tables.networks import FILTERS, KINDS, REDUNDANT, Make, Tape, oracle, random_tree, received, tapes

from fieldfare.filters import NOTHING, Filter, parse
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging.per_interface import MergingTable
from fieldfare.tables.merging.rules import PERFECT, Merging
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import TableUpdate

ALL = {**KINDS, **REDUNDANT}
FEW = max(10, settings().max_examples // 10)
"""examples for what is tried with every kind of table"""
NEIGHBOURS = ("I1", "I2")
CLIENTS = ("ana", "bob")


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def between(low: float, high: float, also: str = "") -> Filter:
    return parse(f"x BETWEEN {low} AND {high}{also}")


def stored(table: MergingTable[Any], interface: Hashable) -> list[Filter]:
    return [f for f in table.inner.filters() if interface in table.inner.interfaces(f)]


@pytest.fixture(params=ALL)
def table(request: pytest.FixtureRequest) -> MergingTable[str]:
    return MergingTable(ALL[request.param](NEIGHBOURS))


# The rules of the specification, §13.5

A, B, C = between(0, 2), between(2, 4), between(4, 6)


def test_rule_1_a_filter_covers_a_filter(table: MergingTable[str]) -> None:
    table.add(A, "ana")
    assert table.add(between(0, 3), "ana")
    assert stored(table, "ana") == [between(0, 3)]
    assert table.remove(between(0, 3), "ana")
    assert stored(table, "ana") == [A]  # a client's filters count again


def test_rule_2_a_filter_covers_a_merger(table: MergingTable[str]) -> None:
    for interface in ("ana", "I1"):
        table.add(A, interface)
        table.add(B, interface)
        assert table.add(between(0, 9), interface)
        assert (stored(table, interface), table.mergers(interface)) == ([between(0, 9)], [])
        assert table.remove(between(0, 9), interface)
    kept = [between(0, 4)]
    assert (stored(table, "ana"), stored(table, "I1")) == (kept, kept if table.inner.redundant else [])


def test_rule_3_a_merger_covers_a_filter(table: MergingTable[str]) -> None:
    table.add(A, "ana")
    table.add(B, "ana")
    assert table.add(between(1, 3), "ana")
    assert stored(table, "ana") == [between(0, 4)]
    assert table.mergers("ana")[0].covered == (between(1, 3),)
    assert table.remove(between(1, 3), "ana")
    assert table.mergers("ana")[0].covered == ()


def test_rule_4_a_merger_covers_a_merger(table: MergingTable[str]) -> None:
    small = [between(1, 1.5, " AND y = 1"), between(2, 3, " AND y = 1"), between(1.2, 3, " AND y = 1")]
    for filter in (small[0], small[2], A, B):
        table.add(filter, "ana")
    assert stored(table, "ana") == [between(0, 4)]
    (merger,) = table.mergers("ana")
    assert set(merger.components) == {A, B}
    table.remove(A, "ana")
    assert set(stored(table, "ana")) == {B, between(1, 3, " AND y = 1")}


def test_rule_5_a_component_goes(table: MergingTable[str]) -> None:
    for filter in (A, B, C):
        table.add(filter, "ana")
    assert stored(table, "ana") == [between(0, 6)]
    table.remove(B, "ana")
    assert stored(table, "ana") == [between(0, 2) | between(4, 6)]
    table.remove(C, "ana")
    assert (stored(table, "ana"), table.mergers("ana")) == ([A], [])


def test_rule_6_a_merger_goes_with_all_it_stands_for(table: MergingTable[str]) -> None:
    for filter in (A, B, between(1, 3)):
        table.add(filter, "I1")
    table.add(parse("x >= 0"), "I1")
    assert (stored(table, "I1"), table.mergers("I1")) == ([parse("x >= 0")], [])
    assert table.drop("I1")[-1] == parse("x >= 0")
    assert len(table.inner) == 0


# The errata of the book


def test_erratum_14_a_client_keeps_what_is_covered(table: MergingTable[str]) -> None:
    for filter in (A, B, between(1, 2)):
        table.add(filter, "ana")
    table.remove(A, "ana")
    assert table.match({"x": 1}) == {"ana"}
    assert table.match({"x": 0.5}) == set()


def test_erratum_15_what_is_uncovered_joins_a_merger_that_survives(table: MergingTable[str]) -> None:
    outside = between(1, 3, " AND y = 1")
    table.add(A, "I1")
    table.add(B, "I1")
    table.add(parse("y = 1"), "I1")
    table.apply(TableUpdate((outside,), (parse("y = 1"),)), "I1")
    assert outside in table.wanted("I1")
    table.apply(TableUpdate(removed=(A,)), "I1")
    assert table.match({"x": 1, "y": 1}) == {"I1"}
    assert table.match({"x": 1, "y": 2}) == set()


# Others


def test_interfaces_do_not_mix(table: MergingTable[str]) -> None:
    table.add(A, "ana")
    table.add(B, "bob")
    assert set(table.inner.filters()) == {A, B}
    table.add(B, "ana")
    assert table.inner.interfaces(between(0, 4)) == {"ana"}
    assert table.inner.interfaces(B) == {"bob"}
    assert (table.match({"x": 1}), table.match({"x": 3}), table.interfaces()) == (
        {"ana"},
        {"ana", "bob"},
        ["ana", "bob"],
    )


def test_a_merger_may_be_what_another_wants(table: MergingTable[str]) -> None:
    table.add(between(0, 4), "bob")
    table.add(A, "ana")
    table.add(B, "ana")
    assert table.inner.interfaces(between(0, 4)) == {"ana", "bob"}
    table.remove(A, "ana")
    assert table.inner.interfaces(between(0, 4)) == {"bob"}
    table.add(A, "ana")
    table.add(between(0, 4), "ana")
    table.remove(A, "ana")
    assert stored(table, "ana") == [between(0, 4)]


def test_answers(table: MergingTable[str]) -> None:
    assert table.add(A, "ana")
    assert not table.add(A, "ana")
    assert not table.remove(B, "ana")
    assert not table.remove(A, "bob")
    assert (table.drop("bob"), table.wanted("bob"), table.mergers("bob")) == ([], [], [])
    with pytest.raises(ValueError, match="no event can match"):
        table.apply(TableUpdate((B, NOTHING), (A,)), "ana")
    with pytest.raises(ValueError, match="no event can match"):
        table.add(NOTHING, "bob")
    assert (table.wanted("ana"), table.interfaces()) == ([A], ["ana"])
    table.replace("ana", [B, C])
    assert (table.wanted("ana"), stored(table, "ana")) == ([B, C], [between(2, 6)])
    table.replace("ana", [])
    assert (table.interfaces(), len(table.inner)) == ([], 0)


def test_a_neighbour_forgets(table: MergingTable[str]) -> None:
    keeps = table.inner.redundant
    table.add(between(0, 9), "I1")
    assert table.add(A, "I1") == keeps
    assert table.wanted("I1") == ([between(0, 9), A] if keeps else [between(0, 9)])
    choosy = MergingTable(NaiveTable(NEIGHBOURS), keeps=lambda interface: interface == "I1")
    for interface in ("I1", "ana"):
        choosy.add(between(0, 9), interface)
        assert choosy.add(A, interface) == (interface == "I1")


def test_imperfect_only_for_neighbours() -> None:
    table: MergingTable[str] = MergingTable(NaiveTable(NEIGHBOURS), Merging(imperfect=True, lazy=True, budget=1.0))
    corners = [between(0, 1, " AND y = 1"), between(2, 3, " AND y = 2")]
    for interface in ("I1", "ana"):
        for filter in corners:
            table.add(filter, interface)
    assert stored(table, "I1") == [parse("(x BETWEEN 0 AND 1 OR x BETWEEN 2 AND 3) AND y IN (1, 2)")]
    assert stored(table, "ana") == corners


class History(RuleBasedStateMachine):
    """Interfaces want filters and want them no more; the table within must mean the same."""

    make: Make
    merging: Merging

    @initialize()
    def start(self) -> None:
        self.table: MergingTable[str] = MergingTable(self.make(NEIGHBOURS), self.merging)
        keep_all = self.table.inner.redundant
        self.wishes: dict[str, NaiveTable[int]] = {
            name: NaiveTable(redundant=keep_all or name in CLIENTS) for name in (*NEIGHBOURS, *CLIENTS)
        }

    @rule(filter=pool, interface=st.sampled_from((*NEIGHBOURS, *CLIENTS)))
    def add(self, filter: Filter, interface: str) -> None:
        assert self.table.add(filter, interface) == self.wishes[interface].add(filter, 0)

    @rule(number=st.integers(0, 1000), interface=st.sampled_from((*NEIGHBOURS, *CLIENTS)))
    def remove(self, number: int, interface: str) -> None:
        wanted = list(self.wishes[interface].filters())
        if wanted:
            filter = wanted[number % len(wanted)]
            assert self.table.remove(filter, interface)
            assert self.wishes[interface].remove(filter, 0)

    @rule(
        added=st.lists(pool, max_size=4),
        numbers=st.lists(st.integers(0, 1000), max_size=3),
        interface=st.sampled_from((*NEIGHBOURS, *CLIENTS)),
    )
    def apply(self, added: list[Filter], numbers: list[int], interface: str) -> None:
        wanted = list(self.wishes[interface].filters())
        removed = {wanted[number % len(wanted)]: None for number in numbers if wanted}
        self.table.apply(TableUpdate(tuple(added), tuple(removed)), interface)
        for filter in removed:
            self.wishes[interface].remove(filter, 0)
        self.wishes[interface].add_many((filter, 0) for filter in added)

    @rule(some=st.lists(pool, max_size=4), interface=st.sampled_from((*NEIGHBOURS, *CLIENTS)))
    def replace(self, some: list[Filter], interface: str) -> None:
        """Where covered filters are forgotten, it matters in which order they come."""
        self.table.replace(interface, some)
        for filter in [f for f in self.wishes[interface].filters() if f not in some]:
            self.wishes[interface].remove(filter, 0)
        self.wishes[interface].add_many((filter, 0) for filter in some)

    @invariant()
    def means_the_same(self) -> None:
        if not hasattr(self, "table"):
            return
        for interface, wishes in self.wishes.items():
            wanted = set(wishes.filters())
            assert set(self.table.wanted(interface)) == wanted
            kept = stored(self.table, interface)
            assert incomparable(kept)
            how = self.merging if interface in NEIGHBOURS else PERFECT
            check_mergers(self.table.mergers(interface), wishes.roots(), kept, how)
            if not self.merging.imperfect:
                assert joint(kept) == joint(wanted)

    @invariant()
    def reaches_the_same(self) -> None:
        if hasattr(self, "table") and not self.merging.imperfect:
            for event in EVENTS[::11]:
                assert self.table.match(event) == {name for name, wishes in self.wishes.items() if wishes.match(event)}

    def teardown(self) -> None:
        if hasattr(self, "table"):
            for interface in self.wishes:
                assert set(self.table.drop(interface)) == set(self.wishes[interface].filters())
            assert len(self.table.inner) == len(self.table.interfaces()) == 0


@pytest.mark.parametrize("name", ALL)
def test_any_history(name: str) -> None:
    machine = type("History", (History,), {"make": staticmethod(ALL[name]), "merging": PERFECT})
    run_state_machine_as_test(machine, settings=settings(few(10), stateful_step_count=15))


@pytest.mark.parametrize("merging", [Merging(choice="best", cascade=False), Merging(imperfect=True, budget=0.7)])
def test_any_history_merged_otherwise(merging: Merging) -> None:
    machine = type("History", (History,), {"make": NaiveTable, "merging": merging})
    run_state_machine_as_test(machine, settings=settings(few(20), stateful_step_count=20))


# Networks


class MergingBroker(networks.Broker):
    """A broker that merges what its neighbours and clients want."""

    def __init__(self, table: MergingTable[Any]) -> None:
        self.table = table
        self.subscriptions = table.inner

    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, TableUpdate]:
        return self.table.apply(TableUpdate(added=(filter,)), client)

    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, TableUpdate]:
        return self.table.apply(TableUpdate(removed=(filter,)), client)

    def receive(self, message: TableUpdate, neighbour: int) -> Mapping[Any, TableUpdate]:
        return self.table.apply(message, neighbour)

    def match(self, event: Mapping[str, object]) -> set[Any]:
        return self.table.match(event)

    def exported(self, neighbour: int) -> set[Filter]:
        return set(oracle(self.table.inner).exported(neighbour))

    def held(self, neighbour: int) -> list[Filter]:
        return self.table.wanted(neighbour)


class MergingNetwork(networks.Network[Any]):
    """Brokers whose tables do not hold what they were told."""

    def check_links(self) -> None:
        for (i, j), messages in self.links.items():
            known = minimal_cover(self.brokers[j].held(i))
            for message in messages:
                if isinstance(message, TableUpdate):
                    known = received(known, message)
            assert set(known) == self.brokers[i].exported(j), (i, j)


def play(network: MergingNetwork, tape: Tape, steps: int = 20) -> None:
    """Clients subscribe and unsubscribe, events are published, messages arrive in any order."""
    for _ in range(steps):
        what = tape.below(10)
        if what < 4:
            network.toggle(tape.of("ab"), tape.below(len(network.tree)), tape.of(FILTERS))
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
    for client, broker, filter in sorted(network.wanted, key=str):
        network.toggle(client, broker, filter)
    network.drain(tape)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=FEW)
@given(tape=tapes)
def test_networks_deliver_exactly(name: str, tape: Tape) -> None:
    network = MergingNetwork(
        random_tree(tape), lambda _, neighbours: MergingBroker(MergingTable(KINDS[name](neighbours)))
    )
    play(network, tape)
    for broker in network.brokers.values():
        assert len(broker.table.inner) == len(broker.table.interfaces()) == 0
