"""Entries of `benchmarks/history/`: what a run measured, and how two runs compare."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

LIMIT: Final = 1.2
"""a ratio of more than so many times the earlier ratio is an alert"""


class Figure(msgspec.Struct, frozen=True):
    """The cost of one bar."""

    cost: float
    """microseconds of CPU for one unit of work, in the best round"""
    yardstick: float
    """microseconds of CPU for one unit of the yardstick, in its best round beside this bar"""
    costs: list[float] = []
    """the cost in each round, for a look at how quiet the machine was"""

    @property
    def ratio(self) -> float:
        """The cost in units of the yardstick: the figure that is compared."""
        return self.cost / self.yardstick

    @property
    def rate(self) -> float:
        """Units of work in a second of CPU."""
        return 1e6 / self.cost


class Entry(msgspec.Struct, frozen=True):
    """All bars of one run, with the circumstances."""

    time: str
    """in UTC, as RFC 3339, so that entries sort by this text"""
    commit: str
    dirty: bool
    """whether files differed from the commit"""
    python: str
    machine: str
    cores: int
    load: float
    """processes that wanted a core in the minute before"""
    figures: dict[str, Figure]

    @property
    def was_busy(self) -> bool:
        """Whether other work kept more than half of the cores, which makes the bar of the node dearer."""
        return self.load > self.cores / 2

    @property
    def name(self) -> str:
        """The name of its file: date and commit, and `dirty` if the commit is not all."""
        return f"{self.time[:10]}-{self.commit}{'-dirty' if self.dirty else ''}.json"


class Line(msgspec.Struct, frozen=True):
    """One bar now and before."""

    bar: str
    now: Figure
    before: Figure | None

    @property
    def change(self) -> float | None:
        """The ratio now for each 1 before; None for a bar without a past."""
        return None if self.before is None else self.now.ratio / self.before.ratio

    @property
    def is_slower(self) -> bool:
        """Whether the change is an alert."""
        return self.change is not None and self.change > LIMIT


def compare(now: Entry, earlier: Iterable[Entry]) -> list[Line]:
    """Each bar of a run against the last earlier run that measured the bar.

    A run with `--only` measures some bars; the other bars are then compared with an older entry.
    """
    past = sorted(earlier, key=lambda entry: entry.time)
    return [
        Line(bar, figure, next((one.figures[bar] for one in reversed(past) if bar in one.figures), None))
        for bar, figure in now.figures.items()
    ]


def table(lines: Iterable[Line]) -> str:
    """The comparison as text, and a line in capitals for each bar that is slower."""
    rows = [f"{'bar':14} {'µs CPU':>9} {'a CPU second':>14} {'yardsticks':>11} {'before':>11} {'change':>8}"]
    alerts = []
    for line in lines:
        before = "" if line.before is None else f"{line.before.ratio:,.2f}"
        change = "new" if line.change is None else f"{line.change:.0%}"
        now = line.now
        rows.append(f"{line.bar:14} {now.cost:9,.2f} {now.rate:14,.0f} {now.ratio:11,.2f} {before:>11} {change:>8}")
        if line.is_slower:
            alerts.append(
                f"SLOWER: {line.bar.upper()} COSTS {change} OF THE EARLIER ENTRY, AND {LIMIT:.0%} IS THE LIMIT"
            )
    return "\n".join(rows + alerts)


def load(folder: Path) -> list[Entry]:
    """All entries of a folder, the oldest first."""
    entries = [msgspec.json.decode(path.read_bytes(), type=Entry) for path in folder.glob("*.json")]
    return sorted(entries, key=lambda entry: entry.time)


def save(entry: Entry, folder: Path) -> Path:
    """Write an entry; a second run of the same commit and day replaces the first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / entry.name
    path.write_bytes(msgspec.json.format(msgspec.json.encode(entry), indent=2) + b"\n")
    return path
