"""The bars: what was wanted, what was measured, whether it is met; as a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table

from fieldfare_lab.pipeline.clock import Spent


class Line(msgspec.Struct, frozen=True):
    """One measurement."""

    bar: str
    measured: str
    """in words, with what it was measured against"""
    value: float | None = None
    """a ratio, or a number of seconds"""
    wanted: str = ""
    """empty: it is stated beside a bar"""
    met: bool | None = None
    figures: dict[str, float] = {}
    """what the value was made of"""


def at_most(bar: str, measured: str, value: float, most: float, **figures: float) -> Line:
    """A bar that must not be passed."""
    return Line(bar, measured, round(value, 3), f"≤ {most:g}", value <= most, figures)


def at_least(bar: str, measured: str, value: float, least: float, **figures: float) -> Line:
    """A bar that must be reached."""
    return Line(bar, measured, round(value, 3), f"≥ {least:g}", value >= least, figures)


def figures(**named: Spent) -> dict[str, float]:
    """Costs, named and by kind.

    >>> figures(bare=Spent(1.0, 2.0))
    {'bare_wall': 1.0, 'bare_cpu': 2.0}
    """
    return {
        f"{name}_{kind}": round(value, 3) for name, spent in named.items() for kind, value in spent._asdict().items()
    }


def table(lines: Sequence[Line]) -> Table:
    """All measurements."""
    made = Table("bar", "measured", "value", "wanted", "met")
    for line in lines:
        value = "" if line.value is None else f"{line.value:,.2f}"
        made.add_row(line.bar, line.measured, value, line.wanted, {True: "yes", False: "NO", None: ""}[line.met])
    return made
