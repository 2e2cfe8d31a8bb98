"""Many random runs of nodes in memory whose clients move while everything is killed; every third run has replicas.

The runs are longer than those of `test_handover` and `test_replicas`, and have all strategies: about two minutes.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.node.test_handover import Roaming, run
from tests.node.test_replicas import Copied
from tests.routing.runs import Step

RUNS = 200
"""runs of each strategy"""
STRATEGIES = (
    "covering",
    "merging",
    "identity",
    "imperfect",
    "simple",
    "flooding",
    "covering+ads",
    "merging+ads",
    "prefix",
)


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_moving_clients_get_every_event_once_in_order(strategy: str) -> None:
    moves = 0
    for number in range(RUNS):
        dice = Random(f"{strategy} {number}")
        steps = [
            Step(dice.randrange(18), dice.randrange(64), dice.randrange(64)) for _ in range(dice.randrange(20, 120))
        ]
        wanted = [(dice.randrange(64), dice.randrange(64)) for _ in range(dice.randrange(1, 9))]
        parents = [dice.randrange(6) for _ in range(dice.randrange(1, 5))]
        make = Copied if number % 3 == 2 else Roaming
        try:
            moves += run(strategy, parents, wanted, steps, forgetful=dice.random() < 0.5, make=make).moves
        except BaseException as error:
            error.add_note(f"run {number} of {strategy}")
            raise
    assert moves > 0
