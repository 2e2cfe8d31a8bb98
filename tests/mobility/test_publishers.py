"""Publishers that move, in networks by chance, judged by the checker; and what each policy does, step by step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tools.mobility.publishers import disorder, judged, run, together

from fieldfare.filters import parse
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import MoveIn, MoveOut
from fieldfare.mobility.predictors import LastDirection, street
from fieldfare.mobility.publishers import Publishers
from fieldfare.routing.broker import Broker
from fieldfare.routing.publisher_policies import (
    DELAYED,
    POLICIES,
    PREFETCH_DELAYED,
    PREFETCHING,
    PROXY,
    SAFE,
    STANDARD,
    PublisherPolicy,
)
from fieldfare.routing.strategies import COVERING, with_advertisements
from fieldfare.simulation.mobile_clients import ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import line
from fieldfare.simulation.trace import Delivered, Refused

LENGTH = 5


@few(10)
@given(st.integers(0, 10**9))
def test_safe_loses_nothing_and_keeps_the_order(seed: int) -> None:
    verdict = judged(*run(seed, SAFE))
    assert verdict[:3] == (0, 0, 0)


@few(5)
@given(st.integers(0, 10**9))
def test_who_does_not_know_where_it_comes_from_loses_nothing(seed: int) -> None:
    verdict = judged(*run(seed, SAFE, forgetful=True))
    assert (verdict.safety, verdict.lost) == (0, 0)


@few(10)
@given(st.integers(0, 10**9))
def test_publishers_and_subscribers_move_at_the_same_time(seed: int) -> None:
    verdict = judged(*together(seed))
    assert verdict[:3] == (0, 0, 0)


@pytest.mark.parametrize("policy", [m for m in POLICIES.values() if m is not SAFE], ids=lambda m: m.name)
def test_others_deliver_once_but_lose(policy: PublisherPolicy) -> None:
    total: Counter[str] = Counter()
    for seed in range(6):
        total.update(judged(*run(seed, policy))._asdict())
    assert total["safety"] == 0
    assert total["lost"] > 0, "else these runs would not show that SAFE is better"


class City:
    """Brokers in a line, a subscriber at the last one, and a publisher that begins at the first."""

    def __init__(self, policy: PublisherPolicy, **options: Any) -> None:
        topology = line(LENGTH)
        way = ways(topology)
        strategy = with_advertisements(COVERING)
        self.network: Network[Any] = Network(
            lambda name: MobileBroker(Broker(name, strategy), Publishers(policy, **options), next_hop=way(name)),
            topology,
        )
        self.network.attach("s", f"b{LENGTH - 1}")
        self.network.subscribe("s", "s", "x > 0")
        self.network.attach("p", "b0")
        self.moves = 0
        self.come("b0", source="")
        self.network.drain()

    def come(self, broker: str, source: str | None = None) -> None:
        """The publisher comes to a broker."""
        source = self.network._clients["p"] if source is None else source
        self.network.attach("p", broker)
        self.network.send("p", MoveIn(source, advertisements={"a": parse("x > 0")}, moves=self.moves))
        self.moves += 1

    def go(self, target: str = "") -> None:
        """And goes."""
        self.network.send("p", MoveOut(target))

    def publish(self, count: int = 1) -> None:
        """And publishes."""
        for number in range(count):
            self.network.publish("p", {"x": number + 1})

    @property
    def advertising(self) -> set[str]:
        """The brokers that promise for it."""
        clients = {name: broker.base.broker.clients.all for name, broker in self.network.brokers.items()}
        return {name for name, known in clients.items() if "p" in known and known["p"].advertisements}

    @property
    def got(self) -> list[int]:
        """What the subscriber has got."""
        return [record.sequence for record in self.network.trace if isinstance(record, Delivered)]


def test_standard_ends_and_begins() -> None:
    city = City(STANDARD)
    city.go("b1")
    assert city.advertising == set()
    city.network.drain()
    city.come("b1")
    assert city.advertising == {"b1"}
    city.publish()  # before the subscription has come
    city.network.drain()
    city.publish()
    city.network.drain()
    assert city.got == [2]


@pytest.mark.parametrize("policy", [PREFETCHING, PREFETCH_DELAYED], ids=lambda m: m.name)
@pytest.mark.parametrize("hint", [True, False])
def test_prefetching_begins_ahead(policy: PublisherPolicy, hint: bool) -> None:
    city = City(policy, predictor=LastDirection(street([f"b{n}" for n in range(LENGTH)])))
    city.go("b1" if hint else "")
    city.network.drain()
    assert city.advertising == ({"b1"} if policy is PREFETCHING else {"b0", "b1"})
    city.come("b1")
    city.publish()
    city.network.drain()
    assert city.got == [1]
    city.go()
    city.network.drain()
    assert "b2" in city.advertising, "straight on"


def test_a_wrong_guess_is_forgotten() -> None:
    city = City(PREFETCHING, patience=30.0)
    city.go("b1")
    city.network.drain()
    city.come("b3")
    city.network.run(city.network.now + 29)
    assert city.advertising == {"b1", "b3"}
    city.network.run(city.network.now + 2)
    assert city.advertising == {"b3"}


@pytest.mark.parametrize("policy", [DELAYED, PREFETCH_DELAYED], ids=lambda m: m.name)
def test_delayed_ends_later(policy: PublisherPolicy) -> None:
    city = City(policy)
    city.go("b1")
    city.network.run(city.network.now + 3)
    city.come("b1")
    city.network.run(city.network.now + 6.9)
    assert city.advertising == {"b0", "b1"}
    city.network.run(city.network.now + 0.2)
    assert city.advertising == {"b1"}


def test_who_comes_back_in_time_stays() -> None:
    city = City(DELAYED)
    city.go()
    city.network.run(city.network.now + 3)
    city.come("b0")
    city.network.run(city.network.now + 30)
    assert city.advertising == {"b0"}


def test_proxies_promise_all_the_time() -> None:
    city = City(PROXY, proxies=lambda _: ["b0", "b1"])
    assert city.advertising == {"b0", "b1"}
    for broker, wanted in (("b1", {"b0", "b1"}), ("b3", {"b0", "b1", "b3"}), ("b0", {"b0", "b1"})):
        city.go()
        city.network.drain()
        city.come(broker)
        city.network.drain()
        assert city.advertising == wanted
    city.network.leave("p")
    city.network.drain()
    assert city.advertising == set()


def test_a_hint_is_for_one_client() -> None:
    city = City(STANDARD, hints={"p": DELAYED})
    city.go()
    assert city.advertising == {"b0"}


def test_safe_holds_until_all_hear() -> None:
    city = City(SAFE)
    city.publish()
    city.go()
    city.come("b2")
    city.publish(3)
    assert city.advertising == {"b0", "b2"}
    assert city.network.brokers["b2"].base.parts[0].waiting("p") == 3
    city.network.drain()
    assert city.advertising == {"b2"}
    assert city.got == [1, 2, 3, 4]


def test_safe_needs_no_goodbye_and_bears_haste() -> None:
    city = City(SAFE)
    for broker in ("b2", "b1", "b0", "b4", "b4", "b0", "b3"):
        city.publish()
        city.come(broker)
    city.publish()
    city.network.drain()
    assert city.advertising == {"b3"}
    assert city.got == list(range(1, 9))


def test_safe_has_room_for_so_many() -> None:
    city = City(SAFE, capacity=2)
    city.come("b2")
    city.publish(3)
    city.network.drain()
    city.publish()
    city.network.drain()
    assert city.got == [1, 2, 4]
    assert [record.client for record in city.network.trace if isinstance(record, Refused)] == ["p"]


def test_what_is_not_promised_is_refused_at_once() -> None:
    city = City(SAFE)
    city.come("b2")
    city.network.publish("p", {"y": 1})
    assert any(isinstance(record, Refused) for record in city.network.trace)


def test_what_is_said_while_events_wait_comes_after_them() -> None:
    city = City(SAFE)
    city.come("b2")
    city.publish()
    city.network.unadvertise("p", "a")
    city.network.leave("p")
    city.network.drain()
    assert city.got == [1]
    assert city.advertising == set()


def test_who_leaves_and_comes_back_promises_anew() -> None:
    city = City(SAFE)
    city.come("b2")
    city.publish()
    city.network.leave("p")
    city.come("b2")
    city.publish()
    city.network.drain()
    assert city.got == [1, 2]
    assert city.advertising == {"b2"}


def test_promises_may_change_on_the_way() -> None:
    city = City(SAFE)
    city.network.attach("p", "b2")
    city.network.send("p", MoveIn("b0", advertisements={"b": parse("x > 1")}, moves=1))
    city.network.publish("p", {"x": 1})
    city.network.publish("p", {"x": 2})
    city.network.drain()
    assert city.got == [2]
    assert city.advertising == {"b2"}


def test_safe_does_not_wait_for_ever() -> None:
    city = City(SAFE, patience=20.0)
    city.network.disconnect("b0", "b1")
    city.come("b2")
    city.publish(2)
    city.network.run(city.network.now + 19)
    assert city.got == []
    city.network.run(city.network.now + 2)
    assert city.got == [1, 2]


def test_who_stays_away_is_forgotten() -> None:
    city = City(SAFE._replace(linger=100.0))
    city.go()
    city.network.run(city.network.now + 99)
    assert city.advertising == {"b0"}
    city.network.run(city.network.now + 2)
    assert city.advertising == set()
    city.come("b1")  # b0 knows nothing of it any more, and says so before the subscription of b4 is here
    city.publish()
    city.network.drain()
    assert city.got == [1]


def test_a_broker_alone_has_nobody_to_ask() -> None:
    part = Publishers(SAFE)
    broker = MobileBroker(Broker("b", with_advertisements(COVERING)), part, next_hop=lambda other: other)
    broker.receive(MoveIn(advertisements={"a": parse("x > 0")}), "p", 0.0)
    assert broker.wakes is None


def test_disorder_is_seen() -> None:
    network, _ = run(3, STANDARD)
    assert sum(disorder(run(seed, STANDARD)[0].trace) for seed in range(5)) > 0
    assert disorder([record for record in network.trace if not isinstance(record, Delivered)]) == 0
