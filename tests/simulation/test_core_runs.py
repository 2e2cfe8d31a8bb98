"""Random runs of durable nodes in all circumstances, and proof that the checker would find faults of a core."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.simulation.hints import seeds
from tools.simulation.cores import block, failure, main, tell

from fieldfare.core.core import Core
from fieldfare.core.state import Publication, RequestRefused
from fieldfare.core.step import Step
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.actions.act import Act
from fieldfare.simulation.actions.clients import BreakLine, Detach, Move, Publish, Subscribe
from fieldfare.simulation.actions.clocks import Jump
from fieldfare.simulation.actions.disks import FlipBit, FullDisk
from fieldfare.simulation.actions.links import BreakLink, Cut, Heal
from fieldfare.simulation.actions.members import MoveTogether, SubscribeShared
from fieldfare.simulation.actions.nodes import Kill, Lose, Maintain, Settle
from fieldfare.simulation.actions.parameters import State, SubscribeDynamic
from fieldfare.simulation.core_host import CoreHost
from fieldfare.simulation.core_runs import run
from fieldfare.simulation.disk import Disk, Stage
from fieldfare.simulation.plans import Plan, draw, read, text
from fieldfare.simulation.plans import Step as At
from fieldfare.simulation.trace import Delivered, Subscribed

SEEDS = 4
"""runs of each strategy, in each circumstance"""
ENOUGH = 1000
"""runs after which a fault of a core is found"""


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_lost_or_repeated(strategy: str, replicas: int) -> None:
    for seed in range(SEEDS):
        plan = draw(seed, (strategy,))._replace(replicas=replicas, hierarchical=False, forgetful=seed % 2 > replicas)
        plan = plan._replace(synced=plan.synced or replicas > 0)
        assert failure(plan) == ""


def test_a_hierarchy_loses_nothing() -> None:
    for seed in range(SEEDS):
        assert failure(draw(seed, ("covering", "merging", "simple"))._replace(hierarchical=True, replicas=0)) == ""


@pytest.mark.long
def test_long_runs_lose_nothing() -> None:
    assert block(0, 5000).bad == []


def test_the_same_plan_gives_the_same_run() -> None:
    plan = draw(7)
    assert run(plan).trace == run(plan).trace
    assert read(repr(plan)) == plan
    assert read(text(plan)) == plan


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    """The order of sets of strings differs from process to process, and no run may depend on it."""
    code = (
        "import hashlib; from fieldfare.simulation.core_runs import run; from fieldfare.simulation.plans import draw;"
        "print(hashlib.sha256(repr([run(draw(seed)).trace for seed in range(6)]).encode()).hexdigest())"
    )
    mine = hashlib.sha256(repr([run(draw(seed)).trace for seed in range(6)]).encode()).hexdigest()
    other = str(int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")) + 1)
    environment = {**os.environ, "PYTHONHASHSEED": other}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip() == mine


def test_the_command_counts_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "5", "--seed", "3"]) == 0
    assert "5 runs (" in capsys.readouterr().out


# Faults that the checker must find


def without(kind: str) -> type[Core]:
    """Make a core that forgets to write the rows of a kind."""

    class Forgetful(Core):
        def drain(self) -> Step:
            step = super().drain()
            return step._replace(rows=[row for row in step.rows if row.kind != kind or row.value is None])

    return Forgetful


class ShortLog(Core):
    """A core that needs less of the log than it says."""

    def low_water(self) -> int:
        return min(super().low_water() + 1, self.position + 1)


class Uncounted(Core):
    """A core that forgets the numbers of publishers."""

    def publish(self, publications: Sequence[Publication], now: float) -> list[int | RequestRefused]:
        for one in publications:
            if one.session in self.sessions:
                self.sessions[one.session].sequence = 0
        return super().publish(publications, now)


class Amnesiac(Core):
    """A core that forgets after a restart which events of a neighbour are in the log already."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for link in self.links.values():
            link.already = {}


def found(make_core: Callable[..., Core], first: int, having: type[Act] = Act) -> str:
    """Return the first problem that random runs find in a core, among the plans that have a kind of action."""
    drawn = map(draw, seeds(first, range(ENOUGH)))
    plans = (plan for plan in drawn if any(isinstance(step.act, having) for step in plan.steps))
    return next((problem for plan in plans if (problem := failure(plan, make_core))), "")


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("outbox", 35),
        ("session", 0),
        ("neighbour", 0),
        ("told", 2),
        ("subscriptions", 2),
        ("arrival", 2),
        ("departure", 73),
        ("kept", 28),
        ("dynamic", 77),
        ("parameters", 86),
    ],
)
def test_a_core_that_forgets_rows_is_found(kind: str, first: int) -> None:
    assert found(without(kind), first)


def found_in_patterns(make_core: Callable[..., Core], first: int) -> bool:
    plans = (plan for plan in map(draw, seeds(first, range(ENOUGH))) if plan.patterns)
    return any(failure(plan, make_core) for plan in plans)


@pytest.mark.parametrize(
    ("kind", "first"),
    [("pattern-count", 27), ("pattern-state", 29), ("pattern-instance", 29), ("pattern-position", 27)],
)
def test_a_core_that_forgets_the_state_of_patterns_is_found(kind: str, first: int) -> None:
    assert found_in_patterns(without(kind), first)


def test_a_core_that_says_a_detection_again_is_found() -> None:
    class Repeating(Core):
        def step(self, *arguments: Any) -> Step:
            for one in self.patterns.known.values():
                one.logged = 0
            return super().step(*arguments)

    class Deaf(Core):
        def step(self, *arguments: Any) -> Step:
            self.patterns.position = self.position
            self.patterns._queue.clear()
            return super().step(*arguments)

    assert found_in_patterns(Deaf, 29)
    assert found_in_patterns(Repeating, 44)


def test_a_core_that_forgets_what_came_with_a_session_is_found() -> None:
    """The rows of deliveries that the log of a node does not name: of 1,000 random plans, none needed them."""
    steps = (
        At(0.0, Subscribe(16, "one", 0)),
        At(0.0, Settle()),
        At(0.1, Publish(53, (0,))),
        At(0.0, Move(46, 2)),
        At(0.1, Detach(46)),
        At(0.03, Kill(2, seconds=3.0)),
        At(0.0, Publish(11, (3,))),
        At(0.03, State(11, {"myloc": "a"})),
    )
    plans = [Plan(seed, "simple", (1, 1), steps) for seed in range(20)]
    assert {failure(plan) for plan in plans} == {""}
    assert any("is missing" in failure(plan, without("replayed")) for plan in plans)


@pytest.mark.parametrize(("make_core", "first"), [(ShortLog, 28), (Uncounted, 2)])
def test_a_faulty_core_is_found(make_core: type[Core], first: int) -> None:
    assert found(make_core, first)


def test_a_node_that_answers_before_the_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    written = CoreHost._written

    def step(self: CoreHost) -> None:
        """Answer and send at once, and then be killed before the write."""
        self._planned = False
        if self.up:
            group, self._waiting = self._waiting, []
            now = self.steady()
            made = self.core.step([what for what, _ in group], now, self.network.wall(self.name) - now)
            kill, self.kill_after = self.kill_after, None
            disk, self.disk = self.disk, Disk() if kill is not None else self.disk
            self.disk.last = disk.last
            written(self, made, group)
            self.disk = disk
            if kill is not None:
                kill[-1]()

    monkeypatch.setattr(CoreHost, "_step", step)
    assert found(Core, 0)


def test_a_flipped_bit_that_nobody_checks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Disk.load

    def trusting(self: Disk) -> Any:
        self.log |= {position: entry for position, entry in self.damaged.items() if position in self.log}
        return load(self)

    monkeypatch.setattr(Disk, "load", trusting)
    assert found(Core, 0, FlipBit)


def test_a_failing_run_is_shrunk_and_told() -> None:
    seed = next(seed for seed in seeds(6, range(ENOUGH)) if "delivered before" in failure(draw(seed), Uncounted))
    story = tell(seed, Uncounted)
    plan, _, told = story.partition("\n\n")
    assert len(read(plan).steps) < len(draw(seed).steps)
    assert "publishes its event" in told
    assert "delivered before" in told.splitlines()[-2]


# Mistakes that the durable broker once made


def test_an_event_in_the_log_is_remembered_until_it_comes_again() -> None:
    """A node is killed between log and rows, with a filter and an event of its neighbour, who repeats both."""
    steps = (
        At(0.0, Subscribe(0, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Cut(0)),
        At(1.0, Subscribe(1, "one", 3)),
        At(0.0, Publish(1, (0,))),
        At(0.1, Kill(0, 0, Stage.ENTRIES, seconds=0.5)),
        At(0.0, Heal()),
        At(0.9, Maintain(0)),
    )
    plan = Plan(0, "identity", (0,), steps, forgetful=True)
    assert failure(plan) == ""
    assert "delivered before" in failure(plan, Amnesiac)


def test_a_session_that_has_moved_is_taken_over_though_nothing_was_acknowledged() -> None:
    """The replica holder did not know how often the session had moved, and took its own copy for a remainder."""
    steps = (At(0.0, Move(1, 0)), At(0.4, Move(1, 2)), At(0.0, Lose(1, 1)))
    assert failure(Plan(0, "covering", (0, 1), steps, replicas=1)) == ""


def test_a_replica_holder_keeps_a_replica_though_the_session_almost_came() -> None:
    """The described session took the place of the replica there, and the client went back before the rest came."""
    steps = (At(0.0, Move(3, 0)), At(0.1, Move(3, 3)), At(0.0, Lose(3, 2)))
    assert failure(Plan(155, "imperfect+ads", (2, 1, 3), steps, replicas=1)) == ""


def test_a_replica_holder_advertises_what_the_session_does() -> None:
    """Its client published at another node before that node had heard who wants the events."""
    steps = (
        At(0.0, Subscribe(0, "two", 16)),
        At(0.0, Settle()),
        At(0.0, Lose(2, 1)),
        At(0.0, Publish(2, (1,))),
        At(0.0, Move(1, 0)),
    )
    assert failure(Plan(1000532, "identity+ads", (2, 0), steps, replicas=1, apart=True)) == ""


def test_a_repeated_request_for_a_session_has_a_ticket_of_its_own() -> None:
    """A connection cancels the request of the next connection, which asks again; the first answer came for the second."""
    steps = (
        At(0.0, Subscribe(1, "one", 18)),
        At(0.0, Subscribe(0, "one", 0)),
        At(0.0, Kill(1, 0, Stage.TORN, 3, 3.0)),
        At(0.0, Move(0, 1)),
        At(0.4, Publish(0, (11,))),
        At(0.4, Publish(1, (15,))),
        At(0.0, Move(0, 0)),
        At(0.0, Detach(0)),
        At(0.0, Move(0, 0, True)),
        At(0.0, Detach(0)),
    )
    for seed in (12, 396, 450, 489, 503):
        assert failure(Plan(seed, "covering+ads", (0,), steps, replicas=1, apart=True)) == ""


def test_a_replica_holder_hears_of_a_publication_whose_node_was_killed_before_it_could_tell() -> None:
    """The entry was in the log, the report for the holder was not; after a take-over the event counted as new."""
    steps = (
        At(0.0, Subscribe(32, "two", 0)),
        At(0.0, Move(4, 38)),
        At(0.0, Kill(38, 0, Stage.ENTRIES, 1, 0.5)),
        At(0.0, Publish(4, (1,))),
        At(0.4, Kill(38, kept=1, seconds=0.5)),
        At(0.0, Detach(4)),
        At(0.0, Lose(38, 21)),
    )
    assert failure(Plan(1004265, "simple", (2, 0), steps, replicas=1)) == ""


def test_filters_of_one_text_are_told_apart_on_disk() -> None:
    """Simple routing: a client moves, so that a filter comes under a new name before the old name goes."""
    steps = (
        At(0.0, Subscribe(1, "one", 1)),
        At(0.0, Settle()),
        At(0.0, Move(1, 2)),
        At(0.3, Subscribe(0, "one", 1)),
        At(0.0, Settle()),
        At(0.0, Kill(0)),
        At(0.0, Maintain(0)),
        At(0.0, Publish(0, (0,))),
    )
    assert failure(Plan(0, "simple", (0, 1), steps)) == ""


def test_an_event_is_good_for_its_time_to_live_by_the_clocks_of_the_nodes() -> None:
    """An hour on the clock of the node that delivers excuses the loss of a short-lived event, and of no other."""
    steps = (
        At(0.0, Subscribe(1, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Jump(1, 3600.0)),
        At(0.0, Publish(0, (0,), 10.0)),
        At(0.0, Publish(0, (1,), 1e5)),
    )
    plan = Plan(0, "covering", (0,), steps)
    assert failure(plan) == ""
    assert [one.sequence for one in run(plan).trace if isinstance(one, Delivered)] == [2]


def test_an_event_stays_for_the_next_connection_while_a_clock_that_was_set_back_calls_it_good() -> None:
    """The wrong clock passed it over as expired. It is no remainder: without a connection it goes at its end."""
    steps = (
        At(0.0, Subscribe(1, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Jump(1, 3600.0)),
        At(0.0, Publish(0, (0,), 10.0)),
        At(0.4, Jump(1, -3600.0)),
    )
    plan = Plan(0, "covering", (0,), steps)
    assert failure(plan) == ""
    assert not [one for one in run(plan).trace if isinstance(one, Delivered)]
    again = plan._replace(steps=(*steps, At(0.0, BreakLine(1))))
    assert failure(again) == ""
    assert [one.sequence for one in run(again).trace if isinstance(one, Delivered)] == [1]


def test_an_expired_event_of_members_that_moved_is_no_remainder_after_a_clock_was_set_back() -> None:
    steps = (
        At(0.0, SubscribeShared("one", 57)),
        At(0.03, Publish(14, (14,), ttl=0.3)),
        At(0.0, FullDisk(48, 1.0)),
        At(0.0, MoveTogether(35)),
        At(0.4, Detach(48)),
        At(0.4, Publish(24, (2,))),
        At(0.4, Kill(60, 3)),
        At(0.4, Move(58, 35)),
        At(0.0, Jump(35, -3600.0)),
    )
    assert failure(Plan(1002793, "prefix+ads", (0,), steps, clients=2, members=2)) == ""


def test_a_client_repeats_values_and_dynamic_filters_that_a_power_failure_has_taken() -> None:
    """Nothing was delivered yet, so the numbers of deliveries did not show the loss."""
    values = (
        At(0.0, State(6, {"myloc": "c"})),
        At(0.1, Kill(24, seconds=0.5, power=True)),
        At(0.0, Publish(12, (0,))),
        At(0.001, BreakLink(15)),
        At(0.001, SubscribeDynamic(4, "one", 49)),
        At(0.0, Settle()),
        At(0.0, Publish(62, (11,))),
    )
    assert failure(Plan(1003619, "simple", (), values, synced=False)) == ""
    filters = (
        At(0.0, SubscribeDynamic(37, "two", 49)),
        At(0.03, Publish(6, (0,))),
        At(0.0, Kill(28, seconds=0.5, power=True)),
        At(0.0, State(55, {"myloc": "d"})),
        At(0.01, Subscribe(18, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Publish(59, (6, 1, 12))),
    )
    assert failure(Plan(1003589, "simple", (1, 1), filters, synced=False)) == ""


def test_a_pattern_over_a_pattern_finds_the_same_after_a_kill() -> None:
    """Two timers have passed while the node was down: the outer pattern has the first detection before the second."""
    steps = (
        At(0.0, Kill(node=59, steps=1, stage=Stage.ENTRIES, kept=1, seconds=3.0)),
        At(0.0, Publish(44, (10,))),
        At(0.01, Publish(44, (2, 8))),
        At(0.4, Kill(node=59, stage=Stage.TORN, kept=3, seconds=0.5)),
    )
    assert failure(Plan(800004377, "simple", (3, 2), steps, patterns=(20,))) == ""


def test_a_detection_that_the_log_had_before_a_power_failure_is_not_void_after_the_next_kill() -> None:
    steps = (
        At(0.0, Subscribe(client=39, id="two", filter=0)),
        At(0.0, Settle()),
        At(0.0, Publish(client=21, events=(2, 11, 10))),
        At(0.0, Kill(node=31, stage=Stage.ENTRIES, kept=3, power=True)),
        At(0.1, Publish(client=39, events=(11,))),
        At(0.0, Kill(node=31, stage=Stage.NOTHING, kept=2, seconds=3.0)),
        At(0.1, Publish(client=39, events=(3,))),
    )
    assert failure(Plan(900010685, "simple", (3, 2, 0), steps, patterns=(51,))) == ""


def test_a_filter_that_was_replaced_gets_no_later_values() -> None:
    """Found by seed 820003981: the client came back, and stated values before it replaced a dynamic filter."""
    steps = (
        At(0.0, State(0, {"low": 3})),
        At(0.0, SubscribeDynamic(0, "two", 4)),
        At(0.4, Detach(0)),
        At(0.0, Subscribe(0, "two", 3)),
        At(0.0, State(0, {"myloc": "b"})),
        At(0.0, Publish(1, (3, 15, 0))),
    )
    network = Plan(1, "simple", (), steps, clients=2)
    assert failure(network) == ""
    asked = [one.id for one in run(network).trace if isinstance(one, Subscribed)]
    assert asked == ["two", "two"]  # the program waits, and does not state the place before the answer
