from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation import specification
from tests.simulation.specification import numbered
from tools.simulation.flooding import Flooding
from tools.simulation.runs import random_run

from fieldfare.events import Event
from fieldfare.filters import parse
from fieldfare.simulation import checker
from fieldfare.simulation.checker import active_filters
from fieldfare.simulation.network import Network
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.topologies import line
from fieldfare.simulation.trace import (
    Delivered,
    Published,
    Quiet,
    Record,
    Restarted,
    Subscribed,
    Unsubscribed,
    Up,
)

seeds = st.integers(0, 10_000)


def mutated(trace: list[Record], dice: Random) -> list[Record]:
    """A trace with some records gone, said again, moved or given to another client."""
    trace = list(trace)
    for _ in range(dice.randint(0, 4)):
        interesting = [n for n, r in enumerate(trace) if not isinstance(r, Published)]
        place = dice.choice(interesting)
        record = trace[place]
        match dice.randrange(4):
            case 0:
                del trace[place]
            case 1:
                trace.insert(dice.randint(0, len(trace)), record)
            case 2:
                del trace[place]
                trace.insert(dice.randint(0, len(trace)), record)
            case 3 if isinstance(record, Delivered):
                trace[place] = record._replace(client=f"c{dice.randrange(5)}")
    return numbered(trace)


@given(seeds, st.booleans())
def test_the_checker_and_its_slow_twin_agree(seed: int, advertisements: bool) -> None:
    trace = mutated(random_run(seed, events=6).trace, Random(seed))
    found = checker.safety(trace, advertisements=advertisements)
    assert {violation.order for violation in found} == specification.safety(trace, advertisements)
    late = checker.liveness(trace, advertisements=advertisements)
    expected = {(order, f"to {y}: {n} is missing") for order, y, n in specification.liveness(trace, advertisements)}
    assert {(violation.order, violation.problem.split(", due")[0]) for violation in late} == expected
    here = checker.local_liveness(trace, advertisements=advertisements)
    expected_here = specification.local_liveness(trace, advertisements)
    assert {(violation.order, violation.problem[3:5]) for violation in here} == expected_here
    assert {violation.order for violation in checker.attribution(trace)} == specification.attribution(trace)
    assert {violation.order for violation in checker.fifo(trace)} == specification.fifo(trace)
    assert {violation.order for violation in checker.causal(trace)} == specification.causal(trace)
    assert bool(checker.total(trace)) == specification.total(trace)


def settled_run(size: int = 3) -> list[Record]:
    """Clients `c0`, `c1`, ... on a line ask for all and publish ten events in turn; all get all, in the same order."""
    network = Network(Flooding, line(size))
    for number in range(size):
        network.attach(f"c{number}", f"b{number}")
        network.subscribe(f"c{number}", "all", "a >= 0")
        network.subscribe(f"c{number}", "none", "a < 0")
    network.drain()
    for number in range(10):
        network.publish(f"c{number % size}", {"a": number})
        network.drain()
    return network.trace


GOOD = settled_run()
DELIVERIES = [place for place, record in enumerate(GOOD) if isinstance(record, Delivered)]


def rules(trace: list[Record]) -> set[str]:
    trace = numbered(trace)
    return {violation.rule for violation in [*checker.check(trace), *checker.total(trace)]}


def test_a_good_trace_is_good() -> None:
    assert rules(GOOD) == set()
    assert len(DELIVERIES) == 30


@pytest.mark.parametrize("place", DELIVERIES)
def test_each_delivery_that_goes_missing_is_missed(place: int) -> None:
    found = rules(GOOD[:place] + GOOD[place + 1 :])
    record = GOOD[place]
    assert isinstance(record, Delivered)
    local = record.client == record.publisher
    assert found == ({"liveness", "local liveness"} if local else {"liveness"})


@pytest.mark.parametrize("place", DELIVERIES)
def test_each_delivery_that_comes_twice_is_noticed(place: int) -> None:
    assert "safety" in rules([*GOOD[:place], GOOD[place], *GOOD[place:]])
    assert "safety" in rules([*GOOD, GOOD[place]])


@pytest.mark.parametrize("place", DELIVERIES)
def test_each_delivery_before_its_publication_is_noticed(place: int) -> None:
    assert "safety" in rules([GOOD[place], *GOOD[:place], *GOOD[place + 1 :]])


@pytest.mark.parametrize("place", DELIVERIES)
def test_a_delivery_that_is_not_right_is_noticed(place: int) -> None:
    record = GOOD[place]
    assert isinstance(record, Delivered)
    for wrong, rule in (
        (record._replace(event=Event({"a": 99})), "safety"),
        (record._replace(sequence=99), "safety"),
        (record._replace(publisher="nobody"), "safety"),
        (record._replace(client="nobody"), "safety"),
        (record._replace(subscriptions=("none",)), "attribution"),
        (record._replace(subscriptions=("all", "none")), "attribution"),
        (record._replace(subscriptions=()), "attribution"),
    ):
        assert rule in rules([*GOOD[:place], wrong, *GOOD[place + 1 :]])


@pytest.mark.parametrize("place", DELIVERIES)
def test_deliveries_of_one_publisher_in_the_wrong_order_are_noticed(place: int) -> None:
    record = GOOD[place]
    assert isinstance(record, Delivered)
    later = [
        n
        for n in DELIVERIES
        if isinstance(other := GOOD[n], Delivered)
        and (other.client, other.publisher) == (record.client, record.publisher)
        and n > place
    ]
    for other_place in later:
        trace = list(GOOD)
        trace[place], trace[other_place] = trace[other_place], trace[place]
        assert {"fifo", "causal", "total"} <= rules(trace)


def test_a_delivery_after_the_subscription_has_ended_is_noticed() -> None:
    last = GOOD[DELIVERIES[-1]]
    assert isinstance(last, Delivered)
    end = Unsubscribed(0.0, 0, last.broker, last.client, "all")
    assert rules([*GOOD[: DELIVERIES[-1]], end, *GOOD[DELIVERIES[-1] :]]) >= {"safety"}


def test_nothing_is_due_for_a_subscription_that_ends_before_quiet() -> None:
    last = GOOD[DELIVERIES[-1]]
    assert isinstance(last, Delivered)
    end = Unsubscribed(0.0, 0, last.broker, last.client, "all")
    assert rules([*GOOD[: DELIVERIES[-1]], end, *GOOD[DELIVERIES[-1] + 1 :]]) == set()


def published(client: str, sequence: int) -> Published:
    return Published(0.0, 0, f"b-{client}", client, sequence, Event({"a": 1}))


def delivered(client: str, publisher: str, sequence: int) -> Delivered:
    return Delivered(0.0, 0, f"b-{client}", client, publisher, sequence, Event({"a": 1}), ("all",))


def test_causes_by_deliveries_and_by_earlier_publications() -> None:
    question, answer = published("ann", 1), published("bob", 1)
    heard = delivered("bob", "ann", 1)
    late = [delivered("eve", "bob", 1), delivered("eve", "ann", 1)]
    assert len(checker.causal(numbered([question, heard, answer, *late]))) == 1
    assert checker.causal(numbered([question, heard, answer, *late[::-1]])) == []
    assert checker.causal(numbered([question, answer, heard, *late])) == []  # not heard before the answer
    more = published("ann", 2)
    # bob never got the first, but the second's publisher knew of it
    via: list[Record] = [question, more, delivered("bob", "ann", 2), answer]
    assert len(checker.causal(numbered([*via, *late]))) == 1


def test_three_may_differ_without_any_two_that_do() -> None:
    says = [published("ann", 1), published("ann", 2), published("ann", 3)]
    gets = [("x", 1), ("x", 2), ("y", 2), ("y", 3), ("z", 3), ("z", 1)]
    trace: list[Record] = [*says, *(delivered(client, "ann", number) for client, number in gets)]
    assert checker.total(numbered(trace)) == []
    assert len(checker.total(numbered([*trace, delivered("y", "ann", 1)]))) == 1


def test_advertisements_that_are_missing() -> None:
    trace = GOOD
    assert {v.rule for v in checker.safety(trace, advertisements=True)} == {"safety"}
    assert len(checker.safety(trace, advertisements=True)) == 30
    assert checker.liveness([r for r in trace if not isinstance(r, Delivered)], advertisements=True) == []


def test_a_broker_that_forgets_owes_nothing() -> None:
    wants = Subscribed(0.0, 0, "b0", "c", "all", parse("a > 0"))
    quiet, say = Quiet(0.0, 0), Published(0.0, 0, "b1", "p", 1, Event({"a": 1}))
    up = Up(0.0, 0, "b0", "b1")
    for kept, due in ((True, 1), (False, 0)):
        back = Restarted(0.0, 0, "b0", kept)
        assert len(checker.liveness(numbered([up, wants, quiet, back, quiet, say, quiet]))) == due
    assert checker.liveness(numbered([wants, quiet, say, quiet])) == []  # no link
    assert checker.liveness(numbered([up, quiet, wants, say, quiet])) == []  # not yet settled
    assert checker.liveness(numbered([up, wants, quiet, say])) == []  # not yet over


def test_many_subscriptions_are_checked_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index and brute force find the same."""
    run = random_run(11, events=40, faults=False).trace
    trace = numbered([record for record in run if not (isinstance(record, Delivered) and record.sequence % 2)])
    slow = checker.check(trace)
    monkeypatch.setattr(active_filters, "_FEW", 0)
    assert sorted(checker.check(trace)) == sorted(slow)
    assert slow


@settings(max_examples=20)
@given(seeds, st.booleans())
def test_what_is_judged_is_what_would_be_missed(seed: int, advertisements: bool) -> None:
    """In a run without violations: take one delivery out of it, and see whether the checker notices."""
    trace = list(random_run(seed, events=3).trace)

    def missed(of: list[Record]) -> int:
        late = checker.liveness(of, advertisements=advertisements)
        return len(late) + len(checker.local_liveness(of, advertisements=advertisements))

    tally = Tally()
    if missed(trace):
        return  # flooding does not ask for advertisements, nor wait for them
    checker.liveness(trace, advertisements=advertisements, tally=tally)
    places = [place for place, record in enumerate(trace) if isinstance(record, Delivered)]
    assert tally.judged == sum(missed(trace[:place] + trace[place + 1 :]) > 0 for place in places)
    assert tally.judged <= tally.due
