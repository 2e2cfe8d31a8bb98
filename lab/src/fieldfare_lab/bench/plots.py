"""Drawings of the results: events a second, and the growth of time with the number of filters."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fieldfare_lab.bench.measurement import Row


def plot(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draw an SVG for each workload: events a second, and time for an event in multiples of the time at few filters."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plt: Any = importlib.import_module("matplotlib.pyplot")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for workload, lines in curves(rows).items():
        figure, (speed, growth) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
        for number, (contender, points) in enumerate(lines.items()):
            sizes, rates = zip(*points, strict=True)
            style = {"marker": "os^v"[number // 10 % 4], "color": f"C{number % 10}"}
            speed.loglog(sizes, rates, label=contender, **style)
            growth.loglog(sizes, [rates[0] / rate for rate in rates], **style)
        every = sorted({size for points in lines.values() for size, _ in points})
        growth.loglog(every, [size / every[0] for size in every], "k--", label="as the filters")
        speed.set(title=f"{workload}: events per second of CPU time", xlabel="filters", ylabel="events/s")
        growth.set(title="time per event, times that of the fewest filters", xlabel="filters")
        growth.legend()
        figure.legend(*speed.get_legend_handles_labels(), loc="outside right center")
        files.append(folder / f"{workload.replace(':', '-').replace(',', '-')}.svg")
        figure.savefig(files[-1])
        plt.close(figure)
    return files


def curves(rows: Sequence[Row]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Return the points (filters, events a second) of each workload and contender; wrong answers are left out."""
    made: dict[str, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(rows, key=lambda row: row.filters):
        if row.rate is not None and row.status == "ok":
            made[row.workload][row.contender].append((row.filters, row.rate))
    return made
