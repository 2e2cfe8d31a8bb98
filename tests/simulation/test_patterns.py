"""Patterns that clients of simulated nodes subscribe to: detections follow their sessions, and detectors stay."""

from __future__ import annotations

import pytest
from tools.simulation.cores import failure

from fieldfare.core.core import Core
from fieldfare.core.pattern_users import PatternUsers
from fieldfare.simulation.actions.clients import Move, Publish, Unsubscribe
from fieldfare.simulation.actions.members import SubscribeShared
from fieldfare.simulation.actions.nodes import Kill, Settle
from fieldfare.simulation.actions.parameters import SubscribeDynamic
from fieldfare.simulation.actions.patterns import SubscribePattern
from fieldfare.simulation.core_runs import run
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.plans import Plan
from fieldfare.simulation.plans import Step as At
from fieldfare.simulation.trace import Delivered

ONE, TWO = 4, 8
"""events with x = 1 and x = 2: the first pattern wants one after the other"""


def detections(plan: Plan) -> list[tuple[str, str, int]]:
    """Run a plan without a violation; return node, client and number of each delivered detection."""
    found = run(plan)
    assert found.violations == []
    deliveries = [one for one in found.trace if isinstance(one, Delivered) and one.publisher.startswith("~pattern:")]
    return [(one.broker, one.client, one.sequence) for one in deliveries]


JOURNEY = (
    At(0.0, SubscribePattern(0, "pattern", 0)),
    At(0.0, Settle()),
    At(0.0, Publish(2, (ONE, TWO))),
    At(0.0, Settle()),
    At(0.0, Publish(2, (ONE,))),
    At(0.0, Move(0, 1)),
    At(0.1, SubscribePattern(0, "pattern", 0)),  # as the client does after each connection
    At(0.0, Publish(2, (TWO,))),
    At(0.0, Settle()),
    At(0.0, Move(0, 2)),
    At(0.0, Publish(1, (ONE, TWO))),
)


@pytest.mark.parametrize("strategy", ["flooding", "simple", "covering+ads", "merging", "prefix"])
@pytest.mark.parametrize("hierarchical", [False, True])
def test_detections_follow_a_session_from_node_to_node(strategy: str, hierarchical: bool) -> None:
    """The open instance of the pattern goes on: its first event came before the move, and its second after."""
    plan = Plan(1, strategy, (0, 1), JOURNEY, hierarchical=hierarchical)
    found = detections(plan)
    assert {client for _, client, _ in found} == {"b0.0"}
    assert [number for _, _, number in found] == [1, 2, 3]
    assert found[0][0] == "b0"
    assert found[-1][0] == "b2"


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("steps", [1, 4, 9])
def test_a_detector_killed_during_the_handover_of_its_session_misses_nothing(stage: Stage, steps: int) -> None:
    kills = At(0.0, Kill(0, steps, stage, 1, 0.05))
    plan = Plan(1, "covering", (0, 1), (*JOURNEY[:5], kills, *JOURNEY[5:]))
    assert [number for _, _, number in detections(plan)] == [1, 2, 3]


def test_a_pattern_ends_with_its_subscription_at_another_node() -> None:
    steps = (*JOURNEY, At(0.0, Settle()), At(0.0, Unsubscribe(0, "pattern")))
    last: list[Core] = []

    def made(*arguments: object, **options: object) -> Core:
        last.append(Core(*arguments, **options))  # type: ignore[arg-type]
        return last[-1]

    assert run(Plan(1, "covering", (0, 1), steps), make_core=made).violations == []
    assert [core.patterns.known for core in last] == [{}, {}, {}]


def test_a_pattern_whose_session_has_moved_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a node looks at its own sessions alone."""
    monkeypatch.setattr(PatternUsers, "_is_wanted", lambda self, one: False)
    assert "no such pattern stands" in failure(Plan(1, "covering", (0, 1), JOURNEY))


def test_a_parent_gets_detections_unasked() -> None:
    """Found by seed 7000091: the node below the session ended the pattern, since its parent had not asked."""
    steps = (At(0.0, SubscribePattern(26, "pattern", 11)), At(0.0, Move(26, 32, keep=True)))
    assert failure(Plan(7000091, "simple", (0,), steps, hierarchical=True, clients=2)) == ""


def test_a_pattern_takes_the_place_of_a_filter_that_matches_nothing() -> None:
    """Found by seed 7000079: a dynamic filter without values counted as a subscription to the same pattern."""
    steps = (
        At(0.0, SubscribeDynamic(0, "one", 0)),
        At(0.0, Settle()),
        At(0.0, SubscribePattern(0, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Publish(1, (ONE, TWO))),
    )
    assert len(detections(Plan(1, "simple", (0,), steps))) == 1


def test_the_last_subscriber_here_leaves_a_pattern_to_a_session_that_has_moved() -> None:
    """Found by seed 1500008072: two sessions had shared the detector."""
    steps = (
        At(0.0, SubscribePattern(56, "pattern", 32)),
        At(0.0, SubscribePattern(25, "two", 14)),
        At(0.0, Move(56, 15)),
        At(0.1, SubscribePattern(25, "two", 24)),
    )
    assert failure(Plan(1500008072, "simple", (1,), steps, clients=2)) == ""


def test_the_detection_of_a_pattern_that_was_not_written_goes_to_nobody() -> None:
    """Found by seed 1500004470: the node was killed between the log and the rows, and told a neighbour."""
    steps = (
        At(0.0, SubscribeShared("one", 0)),
        At(0.0, Kill(20, stage=Stage.ENTRIES, kept=3, seconds=3.0)),
        At(0.0, Move(46, 29, keep=True)),
        At(0.1, Publish(37, (4, 8, 1))),
        At(0.0, SubscribePattern(46, "one", 16)),
        At(0.1, Publish(37, (13,))),
    )
    assert failure(Plan(1500004470, "imperfect+ads", (2, 3), steps, members=1, copies=True)) == ""
