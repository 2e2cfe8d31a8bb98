"""Results of the benchmark as tables for people and as JSON for programs."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fieldfare_lab.bench.costs import Cost
from fieldfare_lab.bench.measurement import Row


def report(rows: Sequence[Row], costs: Sequence[Cost], baseline: str) -> Group:
    """Return all tables: a table for each workload and number of filters, and the table of costs."""
    groups = groupby(rows, key=lambda row: (row.workload, row.filters))
    tables = [table(list(group), baseline) for _, group in groups]
    return Group(*tables, *([cost_table(costs)] if costs else []))


def table(rows: Sequence[Row], baseline: str) -> Table:
    """Make the table of a workload with a number of filters; the last column is the time in multiples of `baseline`."""
    made = Table(title=f"{rows[0].workload}, {rows[0].filters:,} filters", title_justify="left")
    made.add_column("contender")
    for heading in ("events/s", "µs/event", "matches/event", f"× {baseline}"):
        made.add_column(heading, justify="right")
    made.add_column("notes")
    rates = {row.contender: row.rate for row in rows}
    most = max((row.events for row in rows), default=0)
    for row in rows:
        made.add_row(row.contender, *_figures(row, rates.get(baseline)), _notes(row, most))
    return made


def _figures(row: Row, base: float | None) -> list[str]:
    if row.rate is None:
        return ["-"] * 4
    per_event = (row.matches or 0) / max(1, row.events)
    times = f"{base / row.rate:,.{1 if base / row.rate < 100 else 0}f}" if base else "-"
    return [f"{row.rate:,.0f}", f"{1e6 / row.rate:,.2f}", f"{per_event:,.2f}", times]


def _notes(row: Row, most: int) -> Text:
    if row.status != "ok":
        said = row.status if not row.reason else f"{row.status}: {row.reason}"
        return Text(said, style="bold red" if row.status == "WRONG" else "dim")
    return Text(f"{row.events:,} events" if row.events < most else "", style="dim")


def cost_table(costs: Iterable[Cost]) -> Table:
    """Make the table of the costs besides matching; an unknown cost is a dash, with the reason in the notes."""
    made = Table(title="Costs", title_justify="left")
    for heading in ("cost", "figure", "unit", "notes"):
        made.add_column(heading, justify="right" if heading == "figure" else "left")
    for cost in costs:
        figure = "-" if cost.value is None else f"{cost.value:,.{1 if cost.value < 1000 else 0}f}"
        made.add_row(cost.name, figure, cost.unit, Text(cost.note, style="dim"))
    return made


def as_json(rows: Iterable[Row], costs: Iterable[Cost]) -> bytes:
    """Return all measured figures as JSON, with the versions and the machine."""
    found: dict[str, Any] = {
        "fieldfare": version("fieldfare"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": [{**asdict(row), "events_per_second": row.rate} for row in rows],
        "costs": [asdict(cost) for cost in costs],
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2)
