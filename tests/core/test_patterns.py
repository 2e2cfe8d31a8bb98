"""Patterns in a core: detections under kills at any moment, over patterns, through handovers, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.core.core import Core
from fieldfare.core.inputs import ChangeFilters, Leave, Maintain, Tick
from fieldfare.core.pattern_inputs import SettlePatterns, SubscribePattern
from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.core.state import Publication
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.patterns import stamps
from fieldfare.patterns.bounds import Bounds, Unbounded
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import JournalEntry
from fieldfare.routing.broker import Broker
from fieldfare.simulation.checker.pattern_checks import Standing, check_patterns
from fieldfare.simulation.disk import Disk, Stage

START = 1_800_000_000.0
PAIR = "a: [x = 1] b: [x = 2] (a followed by b) within 10 seconds for each card"
SILENCE = "a: [x = 1] b: [x = 2] a followed by not b within 3 seconds limit 5"
OWN_TIME = "a: [x = 1] b: [x = 2] (a followed by b) within 10 seconds allow 2 seconds of disorder"
OVER = "p: [pattern = 'pair'] c: [x = 3] (p followed by c) within 30 seconds"
SLIDING = "a: [x >= 1] (a{3} within 4 seconds) after match past last event"
TEXTS = {"pair": PAIR, "silence": SILENCE, "own": OWN_TIME, "over": OVER, "sliding": SLIDING}


@dataclass
class Machine:
    """A node without anything around its core: the disk survives kills."""

    texts: dict[str, str] = field(default_factory=lambda: dict(TEXTS))
    options: dict[str, Any] = field(default_factory=dict)
    disk: Disk = field(default_factory=Disk)
    now: float = START
    lives: int = 0

    def __post_init__(self) -> None:
        self.start()
        self.do(lambda core, now: core.presence.attach("ana", "ana@1", now))
        self.do(lambda core, now: core.presence.attach("bob", "bob@1", now))
        self.do(SettlePatterns(self.texts))

    def start(self) -> None:
        self.lives += 1
        stored, entries = self.disk.load()
        self.core = Core(
            Broker("b", life=self.lives, separate_names=True),
            stored,
            entries,
            life=f"life{self.lives}",
            now=self.now,
            **self.options,
        )
        self.core.resume()
        self.do()

    def do(self, *inputs: Any, stage: Stage = Stage.ALL, kept: int = 0) -> Sequence[Any]:
        step = self.core.step(inputs, self.now)
        self.disk.write(step, stage, kept)
        if stage is Stage.ALL:
            self.core.release(step)
        for answer in step.answers:
            if isinstance(answer, Exception):
                raise answer
        return step.answers

    def publish(self, *events: dict[str, Any], **how: Any) -> None:
        self.do(Publication("bob", 0, [Event(one) for one in events]), **how)

    def subscribe(self, text: str, id: str = "s", session: str = "ana", **how: Any) -> str:
        (key,) = self.do(SubscribePattern(session, id, text, **how))
        return str(key)

    def entries(self) -> list[JournalEntry]:
        return [self.disk.log[position] for position in sorted(self.disk.log)]

    def detections(self) -> list[Event]:
        return [msgpack.decode(one.event) for one in self.entries() if one.publisher.startswith(PUBLISHER)]

    def delivered(self, session: str = "ana") -> list[Event]:
        found = self.core.deliveries.next(session, 1000, self.now)
        return [msgpack.decode(self.disk.log[one.position].event) for _, one in found]

    def check(self) -> None:
        known = self.core.patterns.known.values()
        standing = [Standing(one.key, one.text, one.born) for one in known]
        assert check_patterns("b", self.entries(), standing, self.now) == []


def xs(*values: int) -> list[dict[str, Any]]:
    return [{"x": value, "card": 1} for value in values]


actions = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.4, 1.0, 3.0, 11.0]),
        st.lists(
            st.fixed_dictionaries(
                {"x": st.integers(1, 4), "card": st.integers(1, 2), "ago": st.sampled_from([None, 0, 1, 5])}
            ),
            max_size=4,
        ),
        st.sampled_from([Stage.ALL] * 5 + [Stage.NOTHING, Stage.TORN, Stage.ENTRIES]),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=14,
)


@few(40)
@given(actions)
@example([(0.0, [{"x": 1, "card": 1, "ago": None}], Stage.ALL, 0, False), (3.0, [], Stage.ENTRIES, 0, False)])
@example(
    [
        (0.4, [{"x": 1, "card": 1, "ago": 1}], Stage.ALL, 0, False),
        (0.4, [{"x": 2, "card": 1, "ago": 0}], Stage.ALL, 0, False),
        (0.4, [], Stage.TORN, 7, True),
    ]
)
@example(
    [
        (0.0, [{"x": 1, "card": 1, "ago": None}], Stage.ENTRIES, 4, False),
        (3.0, [], Stage.ALL, 8, False),
        (3.0, [{"x": 2, "card": 1, "ago": 5}], Stage.ALL, 3, True),
    ]
)
def test_whatever_is_killed_when_the_log_has_what_the_oracle_detects(plan: list[Any]) -> None:
    machine = Machine()
    for pause, events, stage, kept, maintain in plan:
        machine.now += pause
        inputs: list[Any] = []
        for one in events:
            now = Event({"t": None}) if one["ago"] is None else None
            given = {"x": one["x"], "card": one["card"]}
            if now is None:
                given["time"] = moment(machine.now - one["ago"])
            inputs.append(Publication("bob", 0, [Event(given)]))
        inputs += [Maintain(1e9)] if maintain else [Tick()]
        machine.do(*inputs, stage=stage, kept=kept)
        if stage is not Stage.ALL:
            machine.start()
    machine.now += 60.0
    machine.do(Tick())
    machine.check()


def moment(seconds: float) -> Any:
    return stamps.moment(stamps.microseconds(seconds))


def test_a_detection_is_delivered_with_its_constituents() -> None:
    machine = Machine({})
    key = machine.subscribe(PAIR)
    machine.publish(*xs(1, 3))
    machine.publish(*xs(2))
    (event,) = machine.delivered()
    assert event["type"] == event["pattern"] == key
    assert event["detector"] == "b"
    assert event["constituents.event.x"] == (1, 2)
    assert not machine.delivered("bob")


def test_events_of_one_step_are_in_order() -> None:
    machine = Machine({"pair": PAIR})
    machine.publish(*xs(1, 2, 2, 1, 2))
    assert len(machine.detections()) == 2


def test_a_killed_step_is_neither_missed_nor_repeated() -> None:
    for stage, kept in [(Stage.NOTHING, 0), *((Stage.TORN, kept) for kept in range(4)), (Stage.ENTRIES, 0)]:
        machine = Machine({})
        machine.subscribe(PAIR)
        machine.publish(*xs(1))
        machine.publish(*xs(2), stage=stage, kept=kept)
        machine.start()
        if not [one for one in machine.entries() if msgpack.decode(one.event).get("x") == 2]:
            machine.publish(*xs(2))
        assert len(machine.detections()) == 1, (stage, kept)
        assert len(machine.delivered()) == 1, (stage, kept)


def test_a_timer_strikes_by_a_tick_at_the_wanted_time() -> None:
    machine = Machine({"silence": SILENCE})
    machine.publish(*xs(1))
    wakes = machine.core.wakes
    assert wakes is not None
    assert 3.0 <= wakes - START < 3.1
    machine.now = wakes
    machine.do(Tick())
    assert len(machine.detections()) == 1
    assert machine.core.wakes is None


def test_a_clock_set_back_takes_no_detection_back() -> None:
    machine = Machine({"silence": SILENCE})
    machine.publish(*xs(1))
    machine.now += 4
    machine.do(Tick(), stage=Stage.ENTRIES)
    machine.now -= 3
    machine.start()
    machine.publish(*xs(2))
    machine.publish(*xs(1))
    machine.now += 10
    machine.do(Tick())
    assert len(machine.detections()) == 2


def test_the_last_subscriber_takes_the_pattern_along() -> None:
    machine = Machine({})
    machine.subscribe(PAIR)
    machine.subscribe(PAIR, session="bob")
    assert len(machine.core.patterns.known) == 1
    machine.do(ChangeFilters("ana", m.Unsubscribe("s")))
    assert len(machine.core.patterns.known) == 1
    machine.do(Leave("bob"))
    assert not machine.core.patterns.known
    assert not machine.core.interest()
    kinds = ("pattern", "pattern-count", "pattern-state", "pattern-instance")
    assert not any(machine.disk.rows.get(kind) for kind in kinds)


def test_the_same_subscription_again_keeps_the_state() -> None:
    machine = Machine({})
    machine.subscribe(PAIR)
    machine.publish(*xs(1))
    machine.start()
    machine.subscribe(PAIR)
    machine.publish(*xs(2))
    assert len(machine.delivered()) == 1


def test_a_pattern_begins_in_the_past() -> None:
    machine = Machine({})
    machine.publish(*xs(1, 1))
    machine.now += 4
    machine.publish(*xs(2))
    machine.subscribe(PAIR, history=machine.entries())
    machine.publish(*xs(2))
    assert [one["constituents.event.x"] for one in machine.delivered()] == [(1, 2), (1, 2)]


def test_patterns_stand_over_patterns_and_none_feeds_on_itself() -> None:
    machine = Machine({"pair": PAIR, "over": OVER, "all": "e: [EXISTS pattern] e once", "any": "e: [TRUE] e limit 1"})
    machine.publish(*xs(1, 2, 3))
    found = [one["pattern"] for one in machine.detections()]
    assert found.count("over") == 1
    assert found.count("any") == 3
    assert len(found) < 20


def test_other_subscriptions_filter_on_detections() -> None:
    machine = Machine({"pair": PAIR + " select b.amount as amount"})
    machine.do(ChangeFilters("ana", m.Subscribe("big", parse("pattern = 'pair' AND amount > 100"))))
    for amount in (50, 500):
        machine.publish({"x": 1, "card": 1}, {"x": 2, "card": 1, "amount": amount})
    assert [one["amount"] for one in machine.delivered()] == [500]


def test_a_pattern_without_bounds_is_refused() -> None:
    machine = Machine({}, {"bounds": Bounds(states=50, seconds=3600.0)})
    for text, why in (
        ("a: [x = 1] b: [x = 2] a followed by b for each card", "wait for b for ever"),
        ("a: [x = 1] a{60} within 1 hour", "60 states"),
        ("a: [x = 1] b: [x = 2] (a followed by b) within 2 hours", "longer than the limit of 1h"),
        ("a: [x = 1] a for each card once", "limit 1"),
    ):
        with pytest.raises(Unbounded, match=why):
            machine.subscribe(text)
    assert not machine.core.patterns.known
    machine.subscribe("a: [x = 1] b: [x = 2] a followed by b for each card limit 3")


def test_the_oldest_keys_are_dropped_beyond_the_bound() -> None:
    machine = Machine({"pair": PAIR}, {"bounds": Bounds(instances=10)})
    machine.publish(*({"x": 1, "card": card} for card in range(30)))
    assert machine.core.patterns.shared.open == 10
    assert machine.core.patterns.shared.dropped == 20
    machine.publish({"x": 2, "card": 0}, {"x": 2, "card": 29})
    assert len(machine.detections()) == 1


def test_a_changed_setting_begins_a_pattern_anew() -> None:
    machine = Machine({"pair": PAIR})
    machine.publish(*xs(1))
    machine.do(SettlePatterns({"pair": PAIR}))
    machine.publish(*xs(2))
    assert len(machine.detections()) == 1
    machine.publish(*xs(1))
    machine.do(SettlePatterns({"pair": PAIR.replace("10", "20")}))
    machine.publish(*xs(2))
    assert len(machine.detections()) == 1
