"""The filters and events of the paper, and a query log like the paper's.

A filter has 2 to 8 constraints and an event 2 to 12 attributes, the number drawn from a normal distribution; values are
whole numbers from -50 to 50. Names and values have the same distribution: *uniform*, *gaussian* (around the middle) or
*pareto* (the first are by far the most frequent). The paper leaves the number of names and the shares of operators
open; `Mix` sets both. The frequency of a name does not depend on its place in the alphabet.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from fieldfare.filters import valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.patterns import MANY, pattern
from fieldfare.filters.valueset import ValueSet

Distribution: TypeAlias = Literal["uniform", "gaussian", "pareto"]
DISTRIBUTIONS: Final[tuple[Distribution, ...]] = get_args(Distribution)

CONSTRAINTS: Final = (2, 8)
ATTRIBUTES: Final = (2, 12)
LOWEST, HIGHEST = -50, 50


class Mix(NamedTuple):
    """The parameters that the paper leaves open."""

    names: int = 20
    equal: float = 0.4
    """share of constraints with =; all others are <, ≤, > and ≥, with the same probability"""


class Workload:
    """Random filters (as boxes) and events; the same seed gives the same sequence."""

    def __init__(self, seed: int, distribution: Distribution, mix: Mix = Mix()) -> None:  # noqa: B008 - immutable
        """Prepare separate random generators for boxes and for events: more boxes do not change the events."""
        self._distribution: Distribution = distribution
        self._mix = mix
        self._boxes, self._events = random.Random(seed), random.Random(-seed)
        self._names = [f"a{number:04}" for number in range(mix.names)]
        random.Random(f"{seed} names").shuffle(self._names)

    def box(self) -> Branch:
        """Draw a filter in normal form; a constraint that makes the filter unsatisfiable is drawn again."""
        rng = self._boxes
        count, sides = _count(rng, CONSTRAINTS), dict[Dimension, Constraint]()
        while count:
            name, drawn = self._name(rng), Constraint(self._values(rng))
            both = sides[name] & drawn if name in sides else drawn
            if not both.is_empty:
                sides[name] = both
                count -= 1
        return Branch(sides)

    def boxes(self, count: int) -> list[Branch]:
        """Draw `count` filters; some may be equal."""
        return [self.box() for _ in range(count)]

    def event(self) -> dict[str, object]:
        """Draw an event; an attribute that is drawn twice has the later value."""
        rng = self._events
        return {self._name(rng): self._value(rng) for _ in range(_count(rng, ATTRIBUTES))}

    def events(self, count: int) -> list[dict[str, object]]:
        """Draw `count` events in a row."""
        return [self.event() for _ in range(count)]

    def _name(self, rng: random.Random) -> str:
        return self._names[int(_unit(rng, self._distribution) * len(self._names))]

    def _value(self, rng: random.Random) -> int:
        return LOWEST + int(_unit(rng, self._distribution) * (HIGHEST - LOWEST + 1))

    def _values(self, rng: random.Random) -> ValueSet:
        value = self._value(rng)
        if rng.random() < self._mix.equal:
            return valueset.one_of([value])
        closed = rng.choice(("()", "[]"))
        low, high = (None, value) if rng.random() < 0.5 else (value, None)
        return valueset.between(low, high, closed)


def _unit(rng: random.Random, distribution: Distribution) -> float:
    """Draw a number from 0 to 1, 1 excluded."""
    value = -1.0
    while not 0 <= value < 1:
        match distribution:
            case "uniform":
                value = rng.random()
            case "gaussian":
                value = rng.gauss(0.5, 0.15)
            case "pareto":
                value = (rng.paretovariate(1.16) - 1) / 20
    return value


def _count(rng: random.Random, limits: tuple[int, int]) -> int:
    """Draw a normally distributed number between limits, which lie four deviations apart."""
    low, high = limits
    while not low <= (count := round(rng.gauss((low + high) / 2, (high - low) / 4))) <= high:
        pass
    return count


class Log(NamedTuple):
    """A query log, with the words of its language and their frequencies."""

    queries: tuple[str, ...]
    words: tuple[str, ...]
    weights: tuple[float, ...]
    """cumulative weights of the words"""

    def text(self, rng: random.Random, length: int) -> str:
        """Draw a text of so many words, with the frequencies of the queries."""
        return " ".join(rng.choices(self.words, cum_weights=self.weights, k=length))


REPEATED: Final = 1 / 3
"""share of queries that the same user has asked before, in logs of search engines"""
WORDS: Final = 50_000
_LENGTHS: Final = (1, 1, 2, 2, 2, 3, 3, 4, 5)
_LETTERS: Final = "etaoinshrdlucmfwygpbvkxqjz"


def query_log(seed: int, queries: int, users: int, words: int = WORDS) -> Log:
    """Generate a log: queries of 1 to 5 words by Zipf's law, a third of them repeated by the same user."""
    rng = random.Random(seed)
    language = _language(rng, words)
    log = Log((), language, tuple(accumulate(1 / rank for rank in range(1, words + 1))))
    asked: list[list[str]] = [[] for _ in range(users)]
    found = []
    for _ in range(queries):
        before = rng.choice(asked)
        again = before and rng.random() < REPEATED
        query = rng.choice(before) if again else log.text(rng, rng.choice(_LENGTHS))
        before.append(query)
        found.append(query)
    return log._replace(queries=tuple(found))


def _language(rng: random.Random, count: int) -> tuple[str, ...]:
    """Make different words; short words are more frequent."""
    found: dict[str, None] = {}
    while len(found) < count:
        length = min(12, max(2, round(rng.gauss(3 + 6 * len(found) / count, 1.5))))
        found["".join(rng.choices(_LETTERS, cum_weights=_FREQUENT, k=length))] = None
    return tuple(found)


_FREQUENT: Final = tuple(accumulate(1 / (3 + place) for place in range(len(_LETTERS))))


def substring(text: str) -> Branch:
    """Return the filter for texts that contain a query."""
    return Branch({"text": Constraint(valueset.like(pattern(MANY, *text, MANY)))})
