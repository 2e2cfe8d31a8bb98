"""Predictors: guesses of a client's next broker from its last and present broker, for brokers that prepare a visit.

Brokers have cells, and a client goes from a cell to an adjacent cell. A predictor is an immutable value: learning
returns another predictor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeAlias

Cells: TypeAlias = Mapping[str, Sequence[str]]
"""the adjacent brokers of each broker"""


class Predictor(Protocol):
    """A way to guess the next broker."""

    def predict(self, previous: str, here: str) -> str:
        """Return the next broker of a client that came here from the previous broker, which may be empty for unknown.

        An empty result means that no guess is worth making.
        """


def street(brokers: Sequence[str]) -> Cells:
    """Return the cells of brokers along a street, each beside the next.

    >>> street(["a", "b", "c"])["b"]
    ['a', 'c']
    """
    beside: dict[str, list[str]] = {broker: [] for broker in brokers}
    for one, other in pairwise(brokers):
        beside[one].append(other)
        beside[other].append(one)
    return beside


@dataclass(frozen=True, slots=True)
class LastDirection:
    """Straight on, if there is just a single other way; at the end of the street, back.

    >>> LastDirection(street(["a", "b", "c"])).predict("a", "b")
    'c'
    """

    cells: Cells

    def predict(self, previous: str, here: str) -> str:
        """Return the only way on, or an empty name."""
        beside = self.cells.get(here, ())
        onward = [other for other in beside if other != previous] or list(beside)
        return onward[0] if len(onward) == 1 else ""


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A predictor that never guesses: no broker prepares for a client."""

    def predict(self, previous: str, here: str) -> str:
        """Return an empty name: there is no guess."""
        return ""


@dataclass(frozen=True, slots=True)
class Markov:
    """The most frequent next broker on the same way; if unknown, from the same broker; else the guess of a fallback.

    >>> Markov().learn([["a", "b", "c"], ["a", "b", "d"], ["x", "b", "d"]]).predict("a", "b")
    'c'
    """

    counts: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    """next brokers by previous and present broker; an empty previous broker stands for any"""
    fallback: Predictor = field(default_factory=Nowhere)

    def learn(self, journeys: Iterable[Sequence[str]]) -> Markov:
        """Return the predictor with the counts of further journeys; each is the sequence of a client's brokers."""
        counts = {state: Counter(known) for state, known in self.counts.items()}
        for journey in journeys:
            for place, (here, after) in enumerate(pairwise(journey)):
                for before in {journey[place - 1] if place else "", ""}:
                    counts.setdefault((before, here), Counter())[after] += 1
        return Markov(counts, self.fallback)

    def predict(self, previous: str, here: str) -> str:
        """Return the most frequent next broker; of equals the first by name, so that all brokers guess the same."""
        for state in ((previous, here), ("", here)):
            known = self.counts.get(state)
            if known:
                return min(known, key=lambda broker: (-known[broker], broker))
        return self.fallback.predict(previous, here)
