"""Results for people: tables in a terminal, a page in Markdown, drawings as SVG."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.box import HEAVY_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fieldfare_lab.results import Curves, Result


def shown(result: Result, *, framed: bool = True) -> Group:
    """Return a result as Rich tables for a terminal; `framed=False` leaves out the frames, for output into a file."""
    heading = Text(f"\n{result.name}  {result.title}", style="bold")
    tables = [_table(curves, framed=framed) for curves in result.curves]
    parts: list[Any] = [heading, Text(result.setup, style="dim"), *tables, _claims(result)]
    return Group(*parts, *([Text(result.notes)] if result.notes else []))


def _table(curves: Curves, *, framed: bool) -> Table:
    made = Table(
        curves.x, *(_number(at) for at in curves.at), title=curves.title, title_justify="left",
        box=HEAVY_HEAD if framed else None, min_width=len(curves.title),
    )  # fmt: skip
    for name, line in curves.lines.items():
        made.add_row(name, *map(_number, line))
    for column in made.columns[1:]:
        column.justify = "right"
    return made


def _claims(result: Result) -> Table:
    made = Table("", "claim", "measured", box=None, show_header=False)
    for claim in result.claims:
        mark = Text("holds", style="green") if claim.holds else Text("DOES NOT HOLD", style="bold red")
        made.add_row(mark, claim.text, Text(claim.measured, style="dim"))
    return made


def _number(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def markdown(results: Iterable[Result], command: str) -> str:
    """Return all results as a page in Markdown; the first line names the command that made the page."""
    page = [f"Made by `{command}` on Python {platform.python_version()}, {platform.machine()}.\n"]
    for result in results:
        page += [f"## {result.name}: {result.title}\n", f"{result.setup}.\n"]
        page += ["| | claim | measured |\n|---|---|---|"]
        page += [f"| {'holds' if c.holds else '**does not hold**'} | {c.text} | {c.measured} |" for c in result.claims]
        page.append("")
        if result.notes:
            page.append(result.notes + "\n")
        for curves in result.curves:
            page.append(f"| {curves.title}; {curves.x}: | " + " | ".join(map(_number, curves.at)) + " |")
            page.append("|---|" + "---:|" * len(curves.at))
            page += [f"| {name} | " + " | ".join(map(_number, line)) + " |" for name, line in curves.lines.items()]
            page.append("")
    return "\n".join(page)


def as_json(results: Sequence[Result]) -> bytes:
    """Return all figures and claims as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode([result._asdict() for result in results]))


def plot(results: Iterable[Result], folder: Path) -> list[Path]:
    """Draw an SVG for each experiment, with all curves side by side; needs matplotlib. Return the files."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text, not as outlines: a fifth of the size
    plt: Any = importlib.import_module("matplotlib.pyplot")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for result in results:
        wide = min(3, len(result.curves))
        high = -(-len(result.curves) // wide)
        figure, axes = plt.subplots(high, wide, figsize=(5 * wide, 3.6 * high), squeeze=False, layout="constrained")
        for axis, curves in zip(axes.flat, result.curves, strict=False):
            for name, line in curves.lines.items():
                points = [(at, value) for at, value in zip(curves.at, line, strict=True) if value is not None]
                if points:
                    axis.plot(*zip(*points, strict=True), marker="o", label=name)
            if result.name == "scaling":
                axis.set(xscale="log", yscale="log")
            axis.set(title=curves.title, xlabel=curves.x)
        axes.flat[0].legend()
        for axis in list(axes.flat)[len(result.curves) :]:
            axis.set_axis_off()
        figure.suptitle(f"{result.name}: {result.title}")
        files.append(folder / f"{result.name.replace('/', '-')}.svg")
        figure.savefig(files[-1])
        plt.close(figure)
    return files
