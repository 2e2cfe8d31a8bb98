"""Where will a client go next? Guesses from where it comes and where it is, for brokers that prepare for it.

Brokers have cells, and a client goes from one cell to the next. A predictor is a value: what it learns gives another
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeAlias

Cells: TypeAlias = Mapping[str, Sequence[str]]
"""the brokers that a client can come to from each"""


class Predictor(Protocol):
    """A way to guess."""

    def predict(self, previous: str, here: str) -> str:
        """The broker that a client goes to next, if it came here from that one (or nobody knows where from: empty).

        Empty, if there is no guess worth making.
        """


def street(brokers: Sequence[str]) -> Cells:
    """Brokers along a street, each beside the next.

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
    """Straight on: not back, if there is just one other way. Where the street ends, back.

    >>> LastDirection(street(["a", "b", "c"])).predict("a", "b")
    'c'
    """

    cells: Cells

    def predict(self, previous: str, here: str) -> str:
        """The only way on."""
        beside = self.cells.get(here, ())
        onward = [other for other in beside if other != previous] or list(beside)
        return onward[0] if len(onward) == 1 else ""


@dataclass(frozen=True, slots=True)
class Nowhere:
    """No guess at all."""

    def predict(self, previous: str, here: str) -> str:
        """Empty, always."""
        return ""


@dataclass(frozen=True, slots=True)
class Markov:
    """As most did who came the same way; if none did, as most did who were here; else as another predictor says.

    >>> Markov().learn([["a", "b", "c"], ["a", "b", "d"], ["x", "b", "d"]]).predict("a", "b")
    'c'
    """

    counts: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    """from where, by the broker before and this one; the broker before is empty for any"""
    fallback: Predictor = field(default_factory=Nowhere)

    def learn(self, journeys: Iterable[Sequence[str]]) -> Markov:
        """What is known after such journeys too; each is the brokers that a client was at, one after the other."""
        counts = {state: Counter(known) for state, known in self.counts.items()}
        for journey in journeys:
            for place, (here, after) in enumerate(pairwise(journey)):
                for before in {journey[place - 1] if place else "", ""}:
                    counts.setdefault((before, here), Counter())[after] += 1
        return Markov(counts, self.fallback)

    def predict(self, previous: str, here: str) -> str:
        """The most frequent; of several the first by name, so that all guess the same."""
        for state in ((previous, here), ("", here)):
            known = self.counts.get(state)
            if known:
                return min(known, key=lambda broker: (-known[broker], broker))
        return self.fallback.predict(previous, here)
