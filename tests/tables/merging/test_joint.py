from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from tests.examples import few
from tests.tables.mergeable import remembered
from tests.tables.merging.test_per_interface import MergingNetwork
from tests.tables.merging.test_per_neighbour import AB, A, B, Broker, C, D, History, between, sub

from fieldfare.filters import parse
from fieldfare.tables.merging.joint import JointEntry, JointMerger, merged_exports
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.merging.rules import APART, PERFECT, Merging
from fieldfare.tables.updates import TableUpdate


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


# Examples


def test_filters_from_one_neighbour_merge_for_the_others() -> None:
    merger: JointMerger[str] = JointMerger("abc")
    broker = Broker("abc", merger)
    assert broker.receive(sub(A), "a") == {"b": sub(A), "c": sub(A)}
    assert broker.receive(sub(B), "a") == {name: TableUpdate((AB,), (A,)) for name in "bc"}
    assert merger.mergers() == [JointEntry(AB, frozenset("bc"))]
    assert broker.receive(sub(C), "b") == {"a": sub(C), "c": sub(C)}  # another group
    assert broker.receive(TableUpdate((), (B,)), "a") == {name: TableUpdate((A,), (AB,)) for name in "bc"}
    assert broker.receive(TableUpdate((), (A,)), "a") == {name: TableUpdate((), (A,)) for name in "bc"}
    assert broker.receive(TableUpdate((), (C,)), "b") == {name: TableUpdate((), (C,)) for name in "ac"}
    assert (merger.forwards(), merger.mergers()) == ({}, [])


def test_the_sender_may_hear_of_it() -> None:
    broker = Broker("abc", JointMerger("abc"))
    broker.receive(sub(A, B), "a")
    broker.receive(sub(C), "client")
    assert broker.receive(sub(B), "b") == {  # b now goes to all, as C does
        "a": TableUpdate((between(2, 6),), (C,)),
        "b": TableUpdate((A, between(2, 6)), (AB, C)),
        "c": TableUpdate((A, between(2, 6)), (AB, C)),
    }


def test_a_merger_hides_what_another_group_has() -> None:
    broker = Broker("abc", JointMerger("abc"))
    inside = between(1, 3)
    broker.receive(sub(inside), "b")
    assert broker.receive(sub(A), "a") == {"b": sub(A), "c": sub(A)}
    assert broker.receive(sub(B), "a") == {"b": TableUpdate((AB,), (A,)), "c": TableUpdate((AB,), (A, inside))}
    assert broker.exported("a") == {inside}
    assert broker.receive(TableUpdate((), (A,)), "a") == {
        "b": TableUpdate((B,), (AB,)),
        "c": TableUpdate((inside, B), (AB,)),
    }


def test_the_same_filter_from_two_groups() -> None:
    broker = Broker("abc", JointMerger("abc"))
    broker.receive(sub(AB), "b")  # to a and c
    assert broker.receive(sub(A, B), "a") == {"b": sub(AB)}  # c knows it already
    assert broker.merger.forwards() == {AB: {"a", "c"}, A: {"b"}, B: {"b"}}
    direct: JointMerger[str] = JointMerger("abc")
    direct.follow({A: {"b", "c"}, B: {"b", "c"}, AB: {"a"}})
    assert {name: direct.exported(name) for name in "abc"} == {name: {AB} for name in "abc"}
    assert direct.follow({A: {"b", "c"}, B: {"b", "c"}, AB: {"a", "b"}}) == {}
    assert direct.follow({AB: {"a", "b"}}) == {"c": TableUpdate((), (AB,))}


def test_mergers_that_mean_the_same_do_not_hide_each_other() -> None:
    ip = [[f"CIDR(ip, '10.{n}.0.0/8') AND x {op} 1" for op in ("<", ">=")] for n in range(2)]
    (a, b), (c, d) = ([parse(text) for text in texts] for texts in ip)
    merger: JointMerger[str] = JointMerger("abc")
    merger.follow({a: {"a", "b"}, b: {"a", "b"}, c: {"b", "c"}, d: {"b", "c"}})
    first, second = merger.mergers()
    assert first.filter != second.filter
    assert first.filter.covers(second.filter)
    assert second.filter.covers(first.filter)
    assert [merger.exported(name) for name in "abc"] == [{first.filter}, {first.filter}, {second.filter}]
    merger.follow({c: {"b", "c"}, d: {"b", "c"}})
    assert [merger.exported(name) for name in "abc"] == [set(), {second.filter}, {second.filter}]


def test_weak_merging_leaves_alone_what_goes_to_few() -> None:
    for weak in (False, True):
        merger: JointMerger[str] = JointMerger("abc", weak=weak)
        merger.follow({A: {"a"}, B: {"a"}, C: {"a", "b"}, D: {"a", "b"}})
        assert merger.exported("a") == ({A, B} if weak else {AB}) | {between(4, 8)}
    apart: JointMerger[str] = JointMerger("abc", APART)
    apart.follow({A: {"a", "b"}, B: {"a", "b"}})
    assert apart.exported("a") == {A, B}


# Any history


class AggregateHistory(History):
    """What neighbours are told is what the definition says."""

    def make(self, merging: Merging, weak: bool) -> JointMerger[int]:
        return JointMerger(self.names, merging, weak=weak)

    @invariant()
    def by_definition(self) -> None:
        if not hasattr(self, "broker"):
            return
        for merger in (self.broker.merger, self.twin):
            assert isinstance(merger, JointMerger)
            expected = merged_exports(merger.forwards(), merger.mergers(), self.names)
            assert {name: merger.exported(name) for name in self.names} == {n: set(e) for n, e in expected.items()}


def test_any_history() -> None:
    run_state_machine_as_test(AggregateHistory, settings=settings(few(30), stateful_step_count=15))


# Networks


@pytest.mark.parametrize("merging", [PERFECT, Merging(choice="best", cascade=False)])
def test_brokers_that_all_do_this_may_not_come_to_rest(merging: Merging) -> None:
    """Why `NeighbourMerger` is to be preferred. The filters of clients at the brokers 1 and 2 of the row 0, 1, 2, 3:"""
    wishes = [(2, between(1, 3)), (2, parse("x = 4")), (1, parse("x = 2")), (1, parse("x = 4"))]
    for make, rests in ((JointMerger, False), (NeighbourMerger, True)):
        tree = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2]}
        network = MergingNetwork(tree, lambda _, names, make=make: Broker(names, make(names, merging)))  # type: ignore[misc]
        ends = []
        for number, (broker, filter) in enumerate(wishes):
            network.toggle(f"client {number}", broker, filter)
            ends.append(arrives_all(network))
        assert ends == [True, True, True, rests]
        network.check_links()  # nothing is lost, though


def arrives_all(network: MergingNetwork) -> bool:
    """Let messages arrive, one of each link in its turn, for a while; is there an end of it?"""
    for _ in range(100):
        waiting = [link for link, messages in network.links.items() if messages]
        for sender, broker in waiting:
            network.handle(network.links[sender, broker].popleft(), broker, sender)
        if not waiting:
            return True
    return False
