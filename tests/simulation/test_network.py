from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tools.simulation.flooding import Flooding
from tools.simulation.runs import random_run

from fieldfare.events import Event
from fieldfare.filters import parse
from fieldfare.protocol.messages import Deliver, FilterUpdate, Forward, Message, Publish, Send, Subscribe
from fieldfare.protocol.wire import encode
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker import check, liveness, safety
from fieldfare.simulation.host import Skew
from fieldfare.simulation.links import Wire, exponential, uniform
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import from_edges, line, random_tree, star


def network(size: int = 3, **options: Any) -> Network[Flooding]:
    """A line of brokers, with client `c0` at `b0` and so on."""
    made = Network(Flooding, line(size), **options)
    for number in range(size):
        made.attach(f"c{number}", f"b{number}")
    return made


def of_kind(made: Network[Any], kind: type[Any]) -> list[Any]:
    return [record for record in made.trace if isinstance(record, kind)]


def deliveries(made: Network[Any]) -> list[tuple[float, str, int]]:
    return [(record.time, record.client, record.sequence) for record in of_kind(made, records.Delivered)]


def test_an_event_takes_the_latency_of_each_link() -> None:
    made = network(3, links=Wire(0.5))
    for client in ("c0", "c1", "c2"):
        made.subscribe(client, "all", "TRUE")
    made.at(10, made.publish, "c0", {"a": 1})
    made.drain()
    assert deliveries(made) == [(10, "c0", 1), (10.5, "c1", 1), (11, "c2", 1)]
    assert check(made.trace) == []
    assert made.total_traffic().events == 2
    assert made.traffic["b0", "b1"].events == 1
    assert made.total_work().delivered == 3


def test_links_may_differ() -> None:
    made = network(3, links=lambda a, b: Wire(1.0 if "b2" in (a, b) else 0.25))
    made.subscribe("c2", "all", "TRUE")
    made.publish("c0", {"a": 1})
    made.drain()
    assert deliveries(made) == [(1.25, "c2", 1)]


def test_a_broker_serves_one_message_after_another() -> None:
    made = network(2, links=Wire(0.0), processing={Publish: 1.0, Forward: 2.0})
    made.subscribe("c1", "all", "TRUE")
    made.drain()
    for _ in range(3):
        made.publish("c0", {"a": 1})
    assert not made.quiet
    made.drain()
    assert [record.time for record in of_kind(made, records.Published)] == [1, 2, 3]
    assert [time for time, _, _ in deliveries(made)] == [3, 5, 7]
    assert check(made.trace) == []


def test_processing_by_a_function_or_always_the_same() -> None:
    for processing in (0.5, lambda message: 0.5):
        made = network(1, processing=processing)
        made.subscribe("c0", "all", "TRUE")
        made.publish("c0", {"a": 1})
        made.drain()
        assert deliveries(made) == [(1.0, "c0", 1)]


def test_bytes_and_filters_are_counted() -> None:
    made = network(2, count_bytes=True)
    made.subscribe("c0", "all", "a < 5")
    made.drain()
    first = made.traffic["b0", "b1"]
    assert (first.admin, first.added, first.removed, first.events) == (1, 1, 0, 0)
    before = first.bytes
    made.publish("c0", {"a": 1})
    made.drain()
    assert first.bytes - before == len(encode(Forward(Event({"a": 1}), "c0", 1)))
    assert [record[2:] for record in of_kind(made, records.Told)] == [("b0", "b1", "subscriptions", 1, 0)]


def test_bandwidth_holds_messages_back() -> None:
    made = network(2, links=Wire(0.0, bandwidth=len(encode(Forward(Event({"a": 1}), "c0", 1)))))
    made.subscribe("c1", "all", "TRUE")
    made.drain()
    start = made.now
    for _ in range(3):
        made.publish("c0", {"a": 1})
    made.drain()
    assert [time - start for time, _, _ in deliveries(made)] == pytest.approx([1, 2, 3])


def test_what_is_on_a_link_that_goes_down_is_lost() -> None:
    made = network(2, links=Wire(1.0))
    made.subscribe("c1", "all", "TRUE")
    made.drain()
    made.publish("c0", {"a": 1})
    made.clock.advance(0.5)
    made.disconnect("b0", "b1")
    made.connect("b0", "b1")
    made.publish("c0", {"a": 2})
    made.drain()
    assert [sequence for _, _, sequence in deliveries(made)] == [2]
    assert made.total_traffic().lost == 1
    assert check(made.trace) == []


def test_a_broker_sends_nothing_on_a_link_it_has_not_heard_of() -> None:
    """It works off an event from before the break only after the link is up again: that is too late for the new link."""
    made = network(2, processing=1.0)
    made.drain()
    made.publish("c0", {"a": 1})
    made.disconnect("b0", "b1")
    made.connect("b0", "b1")
    made.drain()
    assert made.traffic["b0", "b1"].events == 1
    assert made.traffic["b0", "b1"].lost == 1
    assert made.brokers["b1"].neighbours == ["b0"]


def test_clients_of_a_crashed_broker_are_cut_off() -> None:
    made = network(3)
    made.subscribe("c1", "all", "TRUE")
    made.subscribe("c2", "all", "TRUE")
    made.drain()
    made.crash("b1")
    assert not made.is_up("b1")
    assert not made.is_up("b0", "b1")
    assert not made.publish("c1", {"a": 1})
    assert made.publish("c0", {"a": 1})
    made.drain()
    assert deliveries(made) == []
    made.restart("b1")
    made.drain()
    assert made.brokers["b0"].neighbours == ["b1"]
    made.publish("c0", {"a": 2})
    made.drain()
    assert [(client, sequence) for _, client, sequence in deliveries(made)] == [
        ("c2", 2)
    ]  # c1's broker has forgotten it
    assert check(made.trace) == []


def test_a_broker_comes_back_with_its_snapshot() -> None:
    def restored(name: str, snapshot: bytes) -> Broker:
        broker = Broker(name)
        broker.restore(snapshot)
        return broker

    made = Network(Broker, line(3), restore=restored)
    for number in range(3):
        made.attach(f"c{number}", f"b{number}")
        made.subscribe(f"c{number}", "some", "a > 0")
    made.drain()
    made.crash("b1")
    made.restart("b1", made.brokers["b1"].snapshot())
    made.drain()
    made.publish("c0", {"a": 1})
    made.drain()
    assert {client for _, client, _ in deliveries(made)} == {"c0", "c1", "c2"}
    assert check(made.trace) == []
    assert made.table_sizes()["b1"] > 0


def test_partitions_heal() -> None:
    made = network(4)
    for client in ("c0", "c1", "c2", "c3"):
        made.subscribe(client, "all", "TRUE")
    made.drain()
    made.partition({"b0", "b1"}, {"b2"})
    made.drain()
    made.publish("c0", {"a": 1})
    made.drain()
    assert {client for _, client, _ in deliveries(made)} == {"c0", "c1"}
    assert check(made.trace) == []
    made.heal()
    made.publish("c0", {"a": 2})
    made.drain()
    assert {client for _, client, sequence in deliveries(made) if sequence == 2} == {"c0", "c1", "c2", "c3"}


def test_brokers_come_and_links_are_as_told() -> None:
    made = network(2)
    made.add_broker("new")
    made.connect("b1", "new")
    made.crash("new")
    made.disconnect("b1", "new")
    made.restart("new")
    assert made.brokers["new"].neighbours == []
    wrongs: list[Callable[[], object]] = [
        lambda: made.connect("b0", "b1"),
        lambda: made.connect("b0", "b0"),
        lambda: made.disconnect("b0", "new"),
        lambda: made.restart("b0"),
        lambda: made.attach("b0", "b1"),
        lambda: made.attach("c", "nowhere"),
        lambda: made.add_broker("c0"),
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"link|down|name|no broker"):
            wrong()
    made.crash("b0")
    with pytest.raises(ValueError, match="down already"):
        made.crash("b0")
    with pytest.raises(ValueError, match="how to restore"):
        made.restart("b0", b"")


def test_ticks_come_when_wanted_and_are_not_waited_for() -> None:
    made = Network(lambda name: Flooding(name, every=1.0), line(2))
    made.drain()
    assert made.now < 1
    made.run(3.5)
    assert made.brokers["b0"].ticks == [1, 2, 3]
    made.crash("b0")
    made.run(5.5)
    assert made.brokers["b0"].ticks == [1, 2, 3]
    assert made.work["b1"].ticks == 5


@given(st.floats(-100, 100), st.floats(-0.5, 0.5))
def test_a_clock_that_is_wrong_still_goes_forward_and_ticks_in_time(offset: float, drift: float) -> None:
    made = Network(lambda name: Flooding(name, every=1.0), line(2), skews={"b0": Skew(offset, drift)})
    made.attach("c", "b0")
    for time in range(1, 30):
        made.at(time / 3, made.publish, "c", {"a": 1})
    made.run(10)
    broker = made.brokers["b0"]
    assert all(a <= b for a, b in pairwise(broker.times))
    assert broker.times[-1] == pytest.approx(Skew(offset, drift).local(29 / 3))
    assert len(broker.ticks) == pytest.approx(max(0, int(Skew(offset, drift).local(10))), abs=1)


class Late(Broker):
    """A broker whose filter updates leave at its next tick, five seconds later."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._late: list[Send] = []
        self._due: float | None = None

    @property
    def wakes(self) -> float | None:
        return self._due

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        sends = super().receive(message, sender, now)
        late = [send for send in sends if isinstance(send.message, FilterUpdate)]
        self._late += late
        if late and self._due is None:
            self._due = now + 5.0
        return [send for send in sends if send not in late]

    def tick(self, now: float) -> list[Send]:
        if self._due is None or now < self._due:
            return []
        sends, self._late, self._due = self._late, [], None
        return sends


def test_lazy_brokers_are_waited_for() -> None:
    made = Network(Late, line(3), lazy=True)
    made.attach("c0", "b0")
    made.attach("c2", "b2")
    made.subscribe("c0", "some", "a > 0")
    made.publish("c2", {"a": 1})
    made.drain()
    assert made.now >= 10
    made.publish("c2", {"a": 2})
    made.drain()
    assert [sequence for _, _, sequence in deliveries(made)] == [2]
    assert check(made.trace) == []


def test_clients_may_answer_what_they_hear() -> None:
    def answer(client: str, message: Message) -> None:
        if isinstance(message, Deliver) and client == "c2":
            made.publish("c2", {"answer": message.sequence})

    made = network(3, on_message=answer)
    made.subscribe("c2", "questions", "question > 0")
    made.subscribe("c0", "all", "TRUE")
    made.drain()
    made.publish("c0", {"question": 7})
    made.drain()
    assert [(client, sequence) for _, client, sequence in deliveries(made)] == [("c0", 1), ("c2", 1), ("c0", 1)]
    assert check(made.trace) == []


def test_what_is_refused_has_not_happened() -> None:
    made = network(1)
    made.subscribe("c0", "none", parse("a < 1").intersect(parse("a > 2")))
    assert of_kind(made, records.Subscribed) == []
    assert [record.about for record in of_kind(made, records.Refused)] == ["none"]
    assert made.total_work().refused == 1


def test_a_client_that_has_gone_elsewhere_gets_nothing_at_its_old_place() -> None:
    made = network(2)
    made.subscribe("c0", "all", "TRUE")
    made.drain()
    made.attach("c0", "b1")
    made.publish("c1", {"a": 1})
    made.drain()
    assert deliveries(made) == []


def test_without_a_trace_there_are_the_same_counts() -> None:
    counts = []
    for record in (True, False):
        made = random_run(3, record=record)
        counts.append((made.total_traffic(), made.total_work(), made.now))
        assert bool(made.trace) == record
    assert counts[0] == counts[1]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert random_run(5).trace == random_run(5).trace != random_run(6).trace


def test_quiet_is_marked_whenever_nothing_is_under_way() -> None:
    made = network(2, links=Wire(1.0))
    made.subscribe("c0", "all", "TRUE")
    made.at(50, made.subscribe, "c1", "all", "TRUE")
    made.drain()
    assert [record.time for record in of_kind(made, records.Quiet)] == [0, 1, 51]


@given(st.integers(0, 10_000))
def test_flooding_does_what_the_specification_asks(seed: int) -> None:
    assert check(random_run(seed).trace) == []


@few(50)
@given(st.integers(0, 10_000), st.sampled_from(sorted(STRATEGIES)))
def test_brokers_do_what_the_specification_asks(seed: int, name: str) -> None:
    strategy = STRATEGIES[name]
    made = random_run(seed, lambda broker: Broker(broker, strategy), events=12)
    assert check(made.trace, advertisements=strategy.advertisements is not None) == []


def test_links_that_lose_or_repeat_are_found_out() -> None:
    """Brokers rely on links; without, they cannot keep to the specification, and the checker sees it."""
    lossy = random_run(1, links=Wire(loss=0.3, reliable=False))
    assert liveness(lossy.trace)
    repeating = random_run(1, links=Wire(duplication=0.3, reliable=False))
    assert safety(repeating.trace)
    for wire in (Wire(loss=0.3), Wire(duplication=0.3), Wire(exponential(1.0)), Wire(uniform(0, 5), loss=0.5)):
        assert check(random_run(1, links=wire).trace) == []


def test_a_larger_network() -> None:
    made = Network(Flooding, random_tree(200, 1), record=False)
    for number in range(20):
        made.attach(f"c{number}", f"b{number}")
        made.subscribe(f"c{number}", "all", parse("a >= 0"))
        made.publish(f"c{number}", {"a": number})
    made.drain()
    assert made.total_traffic().events == 20 * 199
    assert made.total_work().delivered == 20 * 20


def test_stars_and_names() -> None:
    made = Network(Flooding, star(3))
    assert sorted(made.brokers["b0"].neighbours) == ["b1", "b2"]
    assert Network(Flooding, from_edges([("x", "y")])).is_up("y", "x")
    made.attach("c", "b0")
    assert made.send("c", Subscribe("x", parse("TRUE")))


def test_it_is_quiet_when_the_last_client_has_heard() -> None:
    made = network(2, on_message=lambda _client, _message: None)
    made.subscribe("c1", "all", "TRUE")
    made.drain()
    made.publish("c0", {"a": 1})
    made.drain()
    assert isinstance(made.trace[-2], records.Delivered)
    assert isinstance(made.trace[-1], records.Quiet)


class Forgetful(Broker):
    """A broker that does not pass on every third thing it is told."""

    heard = 0

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        if isinstance(message, FilterUpdate):
            self.heard += 1
            if self.heard % 3 == 0:
                return []
        return super().receive(message, sender, now)


def test_a_broker_that_forgets_is_found_out() -> None:
    rules = {violation.rule for seed in range(20) for violation in check(random_run(seed, Forgetful).trace)}
    assert rules == {"liveness"}


class Greedy(Flooding):
    """A broker that gives its clients everything."""

    def spread(self, forward: Forward, sender: str) -> list[Send]:
        sends = [send for send in super().spread(forward, sender) if not isinstance(send.message, Deliver)]
        deliver = Deliver(forward.event, forward.publisher, forward.sequence, ("x",))
        return sends + [Send(client, deliver) for client in self.wanted]


def test_a_broker_that_tells_everybody_is_found_out() -> None:
    rules = {violation.rule for seed in range(20) for violation in check(random_run(seed, Greedy).trace)}
    assert rules == {"safety", "attribution"}
