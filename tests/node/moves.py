"""Many random runs of nodes in memory whose clients move while everything is killed: `python -m tests.node.moves 2000`.

Longer than those of the test, and with all strategies; in every third each session has a keeper.
"""

from __future__ import annotations

import sys
from random import Random

from rich.console import Console
from rich.progress import track
from tests.node.test_handover import Roaming, run
from tests.node.test_replicas import Copied
from tests.routing.runs import Step

say = Console().print
STRATEGIES = [
    "covering",
    "merging",
    "identity",
    "imperfect",
    "simple",
    "flooding",
    "covering+ads",
    "merging+ads",
    "prefix",
]


def many(runs: int, seed: int) -> None:
    """So many runs; the first that goes wrong ends it."""
    moves = events = 0
    for number in track(range(runs)):
        dice = Random(f"{seed} {number}")
        name = dice.choice(STRATEGIES)
        length = dice.randrange(20, 120)
        steps = [Step(dice.randrange(18), dice.randrange(64), dice.randrange(64)) for _ in range(length)]
        wanted = [(dice.randrange(64), dice.randrange(64)) for _ in range(dice.randrange(1, 9))]
        parents = [dice.randrange(6) for _ in range(dice.randrange(1, 5))]
        try:
            make = Copied if number % 3 == 2 else Roaming
            world = run(name, parents, wanted, steps, forgetful=dice.random() < 0.5, make=make)
        except BaseException:
            say(f"run {number} of seed {seed}")
            raise
        moves += world.moves
        events += sum(client.count for client in world.clients.values())
    say(f"{runs} runs, {moves} moves, {events} events: none lost, none twice, all in order")


if __name__ == "__main__":
    many(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
