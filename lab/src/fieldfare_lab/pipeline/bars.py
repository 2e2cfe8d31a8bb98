"""The bars of the pipeline: goal, measured value and verdict, as lines of a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table

from fieldfare_lab.pipeline.clock import Spent


class Line(msgspec.Struct, frozen=True):
    """A measurement, compared with a bar or listed beside a bar."""

    bar: str
    measured: str
    """description of the measurement and of the reference"""
    value: float | None = None
    """a ratio, or a number of seconds"""
    wanted: str = ""
    """the goal; empty for a measurement beside a bar"""
    met: bool | None = None
    figures: dict[str, float] = {}
    """the figures behind the value"""


def at_most(bar: str, measured: str, value: float, most: float, **figures: float) -> Line:
    """Return the line of a bar whose value must not be above `most`."""
    return Line(bar, measured, round(value, 3), f"≤ {most:g}", value <= most, figures)


def at_least(bar: str, measured: str, value: float, least: float, **figures: float) -> Line:
    """Return the line of a bar whose value must not be below `least`."""
    return Line(bar, measured, round(value, 3), f"≥ {least:g}", value >= least, figures)


def figures(**named: Spent) -> dict[str, float]:
    """Flatten named costs into figures for a `Line`.

    >>> figures(bare=Spent(1.0, 2.0))
    {'bare_wall': 1.0, 'bare_cpu': 2.0}
    """
    return {
        f"{name}_{kind}": round(value, 3) for name, spent in named.items() for kind, value in spent._asdict().items()
    }


def table(lines: Sequence[Line]) -> Table:
    """Make the table of all lines; an unmet bar is marked NO."""
    made = Table("bar", "measured", "value", "wanted", "met")
    for line in lines:
        value = "" if line.value is None else f"{line.value:,.2f}"
        made.add_row(line.bar, line.measured, value, line.wanted, {True: "yes", False: "NO", None: ""}[line.met])
    return made
