"""What an experiment gives: curves to draw, claims to judge, and words for what is different here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Curves(NamedTuple):
    """Lines over a common axis: figures that depend on no machine, or CPU time, which does."""

    title: str
    x: str
    """what the axis counts"""
    at: tuple[float, ...]
    lines: dict[str, tuple[float | None, ...]]
    """a value for each place on the axis; None where it was not measured"""


class Claim(NamedTuple):
    """A sentence of the literature, or of our plan, and whether it holds here."""

    text: str
    holds: bool
    measured: str
    """the figures that decide it"""


class Result(NamedTuple):
    """One experiment, run."""

    name: str
    title: str
    setup: str
    curves: tuple[Curves, ...]
    claims: tuple[Claim, ...]
    notes: str = ""
    """where our result differs from theirs: why"""


class Settings(NamedTuple):
    """How thorough an experiment is."""

    replications: int = 3
    seed: int = 1
    scale: float = 1.0
    """of the numbers of filters; below 1 for a first impression, whose claims may fail"""
    clock: Callable[[], float] = lambda: 0.0
    """CPU seconds; given, so that tests need none"""

    def size(self, filters: int) -> int:
        """A number of filters at this scale."""
        return max(10, round(filters * self.scale))


def curves_of(rows: Sequence[dict[str, Any]], *, title: str, x: str, line: str, value: str) -> Curves:
    """Curves from measured rows: the mean of a value for every line and place."""
    at = tuple(dict.fromkeys(row[x] for row in rows))
    lines: dict[str, tuple[float | None, ...]] = {}
    for name in dict.fromkeys(row[line] for row in rows):
        means: list[float | None] = []
        for place in at:
            found = [row[value] for row in rows if row[line] == name and row[x] == place and row[value] is not None]
            means.append(sum(found) / len(found) if found else None)
        lines[name] = tuple(means)
    return Curves(title, x, at, lines)


def last(curves: Curves, line: str) -> float:
    """The value of a line at the end of the axis."""
    value = curves.lines[line][-1]
    assert value is not None
    return value
