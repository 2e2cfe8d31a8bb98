"""Replica holders take over from nodes that are only silent, and come back: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import pytest
from tools.simulation.cores import failure

from fieldfare.simulation.plans import draw, impatient, read

RUNS = 8
STORIES = {
    "a session that was on its way to a killed node began anew": """Plan(2000018076, 'simple', (1, 1), (
        Step(0.0, Move(client=47, node=6)),
        Step(0.0, Kill(node=6, steps=3, stage=Stage.NOTHING, seconds=20.0, power=True)),
        Step(3.0, Move(client=5, node=53)),
    ), replicas=1, impatient=True)""",
    "a client waited for ever for a session that had moved on": """Plan(2000000078, 'simple', (1, 0), (
        Step(0.0, Deafen(client=24)),
        Step(0.0, Lose(leaf=20, refuge=49, unheard=True)),
        Step(0.0, Cut(link=19)),
        Step(0.0, Subscribe(client=9, id='one', filter=35)),
        Step(0.0, Publish(client=9, events=(15, 12, 14))),
        Step(3.0, Kill(node=49, steps=1, stage=Stage.TORN, kept=3, seconds=3.0)),
        Step(0.0, BreakLink(link=15)),
        Step(1.0, Publish(client=46, events=(2,))),
        Step(0.0, Move(client=41, node=28)),
    ), replicas=2, impatient=True)""",
    "an event came once more from the node that came back": """Plan(2000000340, 'simple', (1, 0), (
        Step(0.0, SubscribeDynamic(client=2, id='one', filter=25)),
        Step(0.0, State(client=29, values={'myloc': 'b', 'low': 3})),
        Step(0.0, Settle()),
        Step(0.0, Publish(client=2, events=(2, 6))),
        Step(0.0, Move(client=47, node=43, keep=True)),
        Step(0.0, Cut(link=13)),
        Step(3.0, Kill(node=43, stage=Stage.TORN, kept=3, seconds=3.0, power=True)),
    ), replicas=1, impatient=True)""",
}


@pytest.mark.parametrize("story", STORIES)
def test_a_take_over_from_a_silent_node(story: str) -> None:
    assert failure(read(STORIES[story])) == ""


def test_random_runs_with_impatient_clients() -> None:
    plans = (plan for seed in range(10_000) if (plan := impatient(draw(seed))) is not None)
    for _ in range(RUNS):
        assert failure(next(plans)) == ""
