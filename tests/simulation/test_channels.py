"""Channels in random runs, and proof that the checker finds a broken order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.hints import seeds
from tests.simulation.specification import numbered
from tools.simulation.cores import failure

from fieldfare.core import channel_moves
from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.channel_moves import ChannelMoves
from fieldfare.core.channels import Channels
from fieldfare.core.core import Core
from fieldfare.core.state import Origin
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.actions.clients import Publish, Subscribe
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.actions.links import Cut
from fieldfare.simulation.actions.nodes import Lose
from fieldfare.simulation.checker import channel_order
from fieldfare.simulation.checker.channel_checks import gaps, numbers
from fieldfare.simulation.plans import Plan, draw, with_moves
from fieldfare.simulation.plans import Step as At
from fieldfare.simulation.trace import Delivered, Published, Quiet, Record, Subscribed

RED = Event({"type": "red", "x": 1})
ENOUGH = 300
"""runs after which a fault of a core is found"""


def with_channels(seed: int, *strategies: str) -> Plan:
    plan = draw(seed, strategies or tuple(STRATEGIES))
    return plan._replace(homes=plan.homes or (seed % 4, seed // 4 % 4)) if plan.synced else plan


def with_moving_channels(seed: int, *strategies: str) -> Plan:
    """Return a plan with moves of channels; nodes of the version before have no channels."""
    plan = with_channels(seed, *strategies)
    return with_moves(plan, Dice(seed)) if plan.homes and "Upgrade" not in str(plan.steps) else plan


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_receivers_see_one_order(strategy: str) -> None:
    for seed in range(3):
        assert failure(with_channels(seed, strategy)) == ""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_receivers_see_one_order_while_channels_move(strategy: str) -> None:
    for seed in range(3, 7):
        assert failure(with_moving_channels(seed, strategy)) == ""


def test_a_replica_holder_that_keeps_events_of_an_earlier_filter_does_not_break_the_order() -> None:
    """The node had left out an event that the new filter does not want; the holder heard of the new filter later."""
    steps = (
        At(0.0, Subscribe(12, "one", 0)),
        At(0.4, Cut(30)),
        At(0.0, Publish(12, (12, 14, 7))),
        At(0.0, Subscribe(12, "one", 6)),
        At(0.0, Publish(20, (6, 0))),
        At(0.0, Lose(27, 27)),
    )
    assert failure(Plan(1000352, "simple", (0, 1), steps, replicas=1, members=2, homes=(1,))) == ""


@pytest.mark.long
def test_long_runs_keep_the_order() -> None:
    assert [failure(with_channels(seed)) for seed in range(5000)] == [""] * 5000
    assert [failure(with_moving_channels(seed)) for seed in range(5000)] == [""] * 5000


# Faults that the checker must find


def found(make_core: Callable[..., Core], first: int, plan: Callable[..., Plan] = with_channels) -> str:
    """Return the first problem that random runs find in a core."""
    problems = (failure(plan(seed, "covering"), make_core) for seed in seeds(first, range(ENOUGH)))
    return next((problem for problem in problems if problem), "")


def every_node_a_home(*arguments: Any, channels: ChannelMap, **options: Any) -> Core:
    broker = arguments[0]
    return Core(*arguments, channels=ChannelMap(dict.fromkeys(channels.homes, broker.name)), **options)


class Overtaken(Core):
    """A core that sends the events of a channel in another order than the numbers say."""

    def _route(self, accepted: Sequence[tuple[m.Forward, Origin]], via: str, now: float, sender: str) -> None:
        super()._route(accepted, via, now, sender)
        for link in self.links.values():
            last = [number for number, what in link.outbox.items() if isinstance(what, int)][-2:]
            if len(last) == 2 and last[0] > link.released:
                link.outbox[last[0]], link.outbox[last[1]] = link.outbox[last[1]], link.outbox[last[0]]


class Recounting(Core):
    """A core that forgets the numbers of channels with a restart."""

    def resume(self) -> None:
        self.channels.numbers.counts.clear()
        super().resume()


class Forgetful(Core):
    """A core that does not write up to which position events are on their way to homes."""

    def drain(self) -> Step:
        step = super().drain()
        return step._replace(rows=[row for row in step.rows if row.kind != "sent_home"])


@pytest.mark.parametrize(
    ("make_core", "first"), [(every_node_a_home, 0), (Overtaken, 0), (Recounting, 2), (Forgetful, 38)]
)
def test_a_core_with_a_fault_is_found(make_core: Callable[..., Core], first: int) -> None:
    assert found(make_core, first)


def test_an_event_that_was_logged_and_not_sent_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Channels, "finish_restore", lambda _, doubtful: None)
    assert found(Core, 12)


class WithoutHomes(Core):
    """A core that does not write the homes of channels that have moved."""

    def drain(self) -> Step:
        step = super().drain()
        return step._replace(rows=[row for row in step.rows if row.kind != "home"])


class WithoutHeld(Core):
    """A core that does not write the events that wait for the end of a move."""

    def drain(self) -> Step:
        step = super().drain()
        return step._replace(rows=[row for row in step.rows if row.kind != "held"])


@pytest.mark.parametrize("make_core", [WithoutHomes, WithoutHeld])
def test_a_core_with_a_fault_in_moves_is_found(make_core: Callable[..., Core]) -> None:
    assert found(make_core, 1, with_moving_channels)


def without_count(moves: ChannelMoves, message: c.ChannelHandover, source: str, now: float) -> None:
    """Take a channel, and begin with the number 1."""
    _take(moves, msgspec.structs.replace(message, last=0), source, now)


def without_wait(moves: ChannelMoves, message: c.ChannelHandover, source: str, now: float) -> None:
    """Take a channel, and number events before those that the former home sends back."""
    _take(moves, message, source, now)
    moves._number_held(message.type, now)


_take: Final = ChannelMoves._take
PLANTED: Final = {
    "without_count": (ChannelMoves, "_take", without_count, 0),
    "without_wait": (ChannelMoves, "_take", without_wait, 11),
    "unheard": (ChannelMoves, "_learn", lambda *_: None, 0),
    "numbered_again": (ChannelMoves, "restore_entry", lambda *_: None, 49),
    "dropped": (Channels, "pass_on", lambda channels, letter, *_: channels._event_in(letter) is not None, 0),
    "in_order_of_arrival": (channel_moves, "sorted", lambda held, key: held, 0),
}
"""by name: the place, the faulty function, and the first seed that finds the fault"""


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_in_moves_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, function, first = PLANTED[name]
    monkeypatch.setattr(place, attribute, function, raising=False)
    assert found(Core, first, with_moving_channels)


def heard(client: str, sequence: int, number: int) -> Record:
    return Delivered(0.0, 0, "b0", client, "bob", sequence, RED, ("s",), number)


def published(count: int) -> list[Record]:
    return [Published(0.0, 0, "b0", "bob", sequence, RED) for sequence in range(1, count + 1)]


def channel(event: Event) -> str:
    return str(event["type"])


def test_a_good_trace_has_no_problem() -> None:
    trace = [*published(3), heard("ana", 1, 1), heard("eve", 1, 1), heard("ana", 3, 2), heard("eve", 3, 2)]
    assert channel_order(numbered(trace), channel) == []


@pytest.mark.parametrize(
    ("deliveries", "problem"),
    [
        ([heard("ana", 1, 0)], "has no number"),
        ([heard("ana", 1, 1), heard("eve", 1, 2)], "has the numbers 1 and 2"),
        ([heard("ana", 1, 1), heard("eve", 2, 1)], "has the number 1 of ('bob', 1)"),
        ([heard("ana", 1, 2), heard("ana", 2, 1)], "has the number 1, and comes after 2"),
    ],
)
def test_a_wrong_number_is_found(deliveries: list[Record], problem: str) -> None:
    assert any(problem in one.problem for one in channel_order(numbered([*published(2), *deliveries]), channel))


def test_two_receivers_with_different_orders_are_found() -> None:
    trace = numbered([*published(2), *(heard(*one, 1) for one in (("ana", 1), ("ana", 2), ("eve", 2), ("eve", 1)))])
    assert "total" in {one.rule for one in channel_order(trace, channel)}


def test_a_gap_is_found_unless_the_subscription_was_on_its_way_or_ends() -> None:
    subscribe = Subscribed(0.0, 0, "b0", "ana", "s", parse("x = 1"))
    rest = Quiet(0.0, 0)
    before = [subscribe, rest, *published(3), heard("eve", 1, 1), heard("eve", 2, 2)]
    assert [one.problem for one in gaps(numbered([*before, heard("ana", 3, 3), rest]))] == [
        "to ana: 1 is left out, due for s, before 3",
        "to ana: 2 is left out, due for s, before 3",
    ]
    assert gaps(numbered([rest, *before[2:], subscribe, heard("ana", 3, 3), rest])) == []
    assert gaps(numbered([*before, heard("ana", 3, 3), subscribe, rest])) == []


@settings(max_examples=50)
@given(st.integers(0, 10_000))
def test_the_numbers_agree_with_a_slow_twin(seed: int) -> None:
    """The twin compares all pairs of deliveries."""
    dice = Random(seed)
    trace = numbered([heard(dice.choice("ae"), dice.randint(1, 4), dice.randint(0, 4)) for _ in range(5)])
    deliveries = [one for one in trace if isinstance(one, Delivered)]
    bad = [one for one in deliveries if not one.channel_number]
    pairs = list(combinations(deliveries, 2))
    bad += [a for a, b in pairs if (a.sequence == b.sequence) != (a.channel_number == b.channel_number)]
    bad += [a for a, b in pairs if a.client == b.client and a.channel_number >= b.channel_number]
    assert bool(numbers(trace)) == bool(bad)
