from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few
from tests.tables import networks
from tests.tables.mergeable import check_mergers, incomparable, joint, pool, remembered
from tests.tables.merging.test_per_interface import FEW, MergingNetwork, play
from tests.tables.networks import KINDS, Make, Tape, oracle, random_tree, received, tapes

from fieldfare.filters import Filter, parse
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging import per_neighbour
from fieldfare.tables.merging.per_interface import MergingTable
from fieldfare.tables.merging.per_neighbour import NeighbourMerger, OutgoingMerger
from fieldfare.tables.merging.rules import PERFECT, Merging
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import TableUpdate, TableUpdates, apply


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def between(low: float, high: float, also: str = "") -> Filter:
    return parse(f"x BETWEEN {low} AND {high}{also}")


def sub(*filters: Filter) -> TableUpdate:
    return TableUpdate(added=filters)


A, B, C, D = (between(2 * n, 2 * n + 2) for n in range(4))
AB, ABC = between(0, 4), between(0, 6)


class Broker(networks.Broker):
    """A table whose exports are merged. A client's subscriptions are interfaces of their own."""

    def __init__(self, neighbours: Any, merger: OutgoingMerger[Any] | None = None, make: Make = NaiveTable) -> None:
        self.subscriptions = make(neighbours)
        self.merger = merger or NeighbourMerger(neighbours)

    def receive(self, message: TableUpdate, neighbour: Hashable) -> TableUpdates[Any]:
        return self.merger.change(apply(self.subscriptions, message, neighbour))

    def subscribe(self, client: Hashable, filter: Filter) -> TableUpdates[Any]:
        return self.receive(sub(filter), (client, filter))

    def unsubscribe(self, client: Hashable, filter: Filter) -> TableUpdates[Any]:
        return self.receive(TableUpdate((), (filter,)), (client, filter))

    def match(self, event: Mapping[str, object]) -> set[Any]:
        return {one[0] if isinstance(one, tuple) else one for one in self.subscriptions.match(event)}

    def exported(self, neighbour: Hashable) -> set[Filter]:
        return self.merger.exported(neighbour)

    def held(self, neighbour: Hashable) -> list[Filter]:
        return [f for f in self.subscriptions.filters() if neighbour in self.subscriptions.interfaces(f)]


# Examples


def test_each_neighbour_is_told_what_others_want() -> None:
    broker = Broker("abc")
    assert broker.receive(sub(A), "a") == {"b": sub(A), "c": sub(A)}
    assert broker.receive(sub(B), "b") == {"a": sub(B), "c": TableUpdate((AB,), (A,))}
    assert broker.receive(sub(C), "client") == {
        "a": TableUpdate((between(2, 6),), (B,)),
        "b": TableUpdate((A | C,), (A,)),
        "c": TableUpdate((ABC,), (AB,)),
    }
    assert isinstance(broker.merger, NeighbourMerger)
    assert broker.merger.mergers("c")[0].components == (A, B, C)
    assert broker.receive(TableUpdate((), (B,)), "b") == {
        "a": TableUpdate((C,), (between(2, 6),)),
        "c": TableUpdate((A | C,), (ABC,)),
    }
    broker.receive(TableUpdate((), (A,)), "a")
    broker.receive(TableUpdate((), (C,)), "client")
    assert (broker.merger.forwards(), broker.merger.mergers("c"), broker.exported("c")) == ({}, [], set())


def test_what_a_neighbour_forgets_or_ignores() -> None:
    """Updates as `apply` sends them: what a larger filter replaces is not taken back, and too much does no harm."""
    merger: NeighbourMerger[str] = NeighbourMerger("ab")
    merger.change({"a": sub(A, C), "b": sub(A)})
    assert merger.change({"a": sub(between(0, 3))}) == {"a": TableUpdate((between(0, 3) | C,), (A | C,))}
    assert merger.change({"a": sub(A), "b": sub(A)}) == merger.change({}) == {}
    assert merger.forwards() == {A: {"b"}, C: {"a"}, between(0, 3): {"a"}}
    assert merger.change({"a": TableUpdate((A,), (between(0, 3),))}) == {
        "a": TableUpdate((C | A,), (between(0, 3) | C,))
    }
    assert merger.change({"a": TableUpdate((), (D,))}) == {}


def test_order_of_neighbours() -> None:
    names = [f"B{n}" for n in range(9)]
    assert [*Broker(names).receive(sub(A), "client")] == names


def test_many_are_found_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [
        parse(f"x BETWEEN {n * 7 % 40} AND {n * 7 % 40 + n % 9} AND y BETWEEN {n % 13} AND {n % 13 + n % 5}")
        for n in range(120)
    ]
    results = []
    for limit in (10, 1000):
        monkeypatch.setattr(per_neighbour, "_FEW", limit)
        merger: NeighbourMerger[str] = NeighbourMerger("ab")
        for n, box in enumerate(boxes):
            merger.change({"ab"[n % 2]: sub(box), "a": sub(boxes[n // 2])})
        before = merger.forwards()
        for box in boxes[::3]:
            merger.change({name: TableUpdate((), (box,)) for name in "ab"})
        results.append((before, merger.forwards(), merger.exported("a"), merger.exported("b")))
        known = [box for n, box in enumerate(boxes) if n % 2]
        assert {f for f, told in before.items() if "b" in told} == set(minimal_cover(known))
    assert results[0] == results[1]


# Any history

ways = [
    (PERFECT, False),
    (PERFECT, True),
    (Merging(choice="best", cascade=False), False),
    (Merging(imperfect=True, lazy=True, budget=0.5), False),
]


class History(RuleBasedStateMachine):
    """Interfaces change their minds; what neighbours are told means the same."""

    names: Sequence[int]

    def make(self, merging: Merging, weak: bool) -> OutgoingMerger[int]:
        return NeighbourMerger(self.names, merging)

    @initialize(neighbours=st.integers(1, 4), way=st.sampled_from(ways))
    def start(self, neighbours: int, way: tuple[Merging, bool]) -> None:
        self.names = range(neighbours)
        self.merging = way[0]
        self.broker = Broker(self.names, self.make(*way))
        self.twin = self.make(*way)
        self.mirrors: dict[Any, list[Filter]] = {name: [] for name in self.names}

    @rule(
        added=st.lists(pool, max_size=3),
        numbers=st.lists(st.integers(0, 1000), max_size=2),
        sender=st.integers(0, 5),
    )
    def change(self, added: list[Filter], numbers: list[int], sender: int) -> None:
        mine = self.broker.held(sender)
        removed = {mine[number % len(mine)]: None for number in numbers if mine}
        updates = self.broker.receive(TableUpdate(tuple(dict.fromkeys(added)), tuple(removed)), sender)
        for neighbour, update in updates.items():
            assert update != TableUpdate()
            assert not set(update.added) & set(self.mirrors[neighbour])
            assert set(update.removed) <= set(self.mirrors[neighbour])
            self.mirrors[neighbour] = received(self.mirrors[neighbour], update)
        naive = oracle(self.broker.subscriptions)
        self.twin.follow({f: told for f in naive.filters() if (told := naive.forwards(f))})
        if isinstance(self.twin, NeighbourMerger):
            assert sender not in updates

    @invariant()
    def right(self) -> None:
        if not hasattr(self, "broker"):
            return
        naive = oracle(self.broker.subscriptions)
        assert self.broker.merger.forwards() == self.twin.forwards()
        for merger in (self.broker.merger, self.twin):
            for name in self.names:
                exported, unmerged = merger.exported(name), naive.exported(name)
                assert incomparable([*exported])
                assert all(any(e.covers(f) for e in exported) for f in unmerged)
                assert len(exported) <= len(unmerged)
                if not self.merging.imperfect:
                    assert joint(exported) == joint(unmerged)
                if isinstance(merger, NeighbourMerger):
                    check_mergers(merger.mergers(name), unmerged, [*exported], self.merging)
        for name, known in self.mirrors.items():
            assert set(known) == self.broker.exported(name)


def test_any_history() -> None:
    run_state_machine_as_test(History, settings=settings(few(30), stateful_step_count=15))


# Networks


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=FEW)
@given(tape=tapes)
def test_networks_deliver_exactly(name: str, tape: Tape) -> None:
    network = MergingNetwork(random_tree(tape), lambda _, neighbours: Broker(neighbours, make=KINDS[name]))
    play(network, tape)
    for broker in network.brokers.values():
        assert (broker.merger.forwards(), len(broker.subscriptions)) == ({}, 0)


class Both(Broker):
    """Merging on the way in and on the way out."""

    def __init__(self, neighbours: Any, merging: Merging) -> None:
        super().__init__(neighbours, NeighbourMerger(neighbours, merging))
        self.inside: MergingTable[Any] = MergingTable(NaiveTable(neighbours), merging)
        self.subscriptions = self.inside.inner

    def receive(self, message: TableUpdate, neighbour: Hashable) -> TableUpdates[Any]:
        return self.merger.change(self.inside.apply(message, neighbour))

    def held(self, neighbour: Hashable) -> list[Filter]:
        return self.inside.wanted(neighbour)


@settings(max_examples=FEW)
@given(tape=tapes, merging=st.sampled_from([PERFECT, Merging(choice="best", cascade=False)]))
def test_networks_that_merge_in_and_out(tape: Tape, merging: Merging) -> None:
    network = MergingNetwork(random_tree(tape), lambda _, neighbours: Both(neighbours, merging))
    play(network, tape)
    for broker in network.brokers.values():
        assert (broker.merger.forwards(), len(broker.subscriptions), broker.inside.interfaces()) == ({}, 0, [])
