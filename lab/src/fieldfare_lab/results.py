"""The result of an experiment: curves to draw, claims that hold or fail, notes on differences from the literature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Curves(NamedTuple):
    """Lines over a common axis: counts, the same on every machine, or CPU times, which depend on the machine."""

    title: str
    x: str
    """label of the axis"""
    at: tuple[float, ...]
    lines: dict[str, tuple[float | None, ...]]
    """a value for each place on the axis; None where nothing was measured"""


class Claim(NamedTuple):
    """A sentence of the literature or of Fieldfare's plan, with the verdict of the experiment."""

    text: str
    holds: bool
    measured: str
    """the figures behind the verdict"""


class Result(NamedTuple):
    """The outcome of one run of an experiment, ready for `fieldfare_lab.report`."""

    name: str
    title: str
    setup: str
    curves: tuple[Curves, ...]
    claims: tuple[Claim, ...]
    notes: str = ""
    """reasons for differences from the literature, in Markdown"""


class Settings(NamedTuple):
    """Options that all experiments share: size, repetition, randomness and the clock."""

    replications: int = 3
    seed: int = 1
    scale: float = 1.0
    """factor of the numbers of filters; below 1 for a first impression, whose claims may fail"""
    clock: Callable[[], float] = lambda: 0.0
    """returns CPU seconds; a test passes a constant, so that results are repeatable"""

    def size(self, filters: int) -> int:
        """Scale a number of filters; at least 10 remain."""
        return max(10, round(filters * self.scale))


def curves_of(rows: Sequence[dict[str, Any]], *, title: str, x: str, line: str, value: str) -> Curves:
    """Make curves from measured rows: the mean of `value` over all rows with the same `line` and the same `x`."""
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
    """Return the value of a line at the end of the axis, where differences are largest."""
    value = curves.lines[line][-1]
    assert value is not None
    return value
