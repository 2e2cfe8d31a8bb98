"""The measurement of several ways on the same rules and events, in rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import msgspec

from fieldfare_lab.pipeline.clock import Spent, best
from fieldfare_lab.sigma.ways import OURS, WAYS, Corpus


class Measured(msgspec.Struct, frozen=True):
    """The cost of a way to match all events once."""

    way: str
    rules: int
    events: int
    matches: int
    cpu: float
    """CPU seconds of the best round"""
    wall: float
    correct: bool
    """whether the matches are those of the other ways of Fieldfare, in every round"""


def measure(corpus: Corpus, names: Sequence[str], rounds: int, step: Callable[[str], None]) -> list[Measured]:
    """Match in each way, in rounds; `step` is called once for each start and each round of a way."""
    spent: dict[str, list[Spent]] = {name: [] for name in names}
    matches: dict[str, set[int]] = {name: set() for name in names}
    with contextlib.ExitStack() as stack:
        running = {}
        for name in names:
            step(f"{name}: starting")
            running[name] = stack.enter_context(WAYS[name](corpus))
        for number in range(rounds):
            for name, once in running.items():
                step(f"{name}: round {number + 1} of {rounds}")
                count, cost = once()
                spent[name].append(cost)
                matches[name].add(count)
    right = {count for name in names if name in OURS for count in matches[name]}
    return [
        Measured(
            name,
            len(corpus.rules),
            len(corpus.events),
            max(matches[name]),
            round(best(spent[name]).cpu, 3),
            round(best(spent[name]).wall, 3),
            name not in OURS or len(right) == 1,
        )
        for name in names
    ]
