"""The growth of structures: the cost of a change, and of computing the roots, from a thousand filters to a million.

Every filter has its own interface, so that all structures keep the same entries. A structure that cannot be filled
within the budget is left out at larger sizes; posets and forests are expected to drop out. Filling stops as soon as the
structure would be late even at its present speed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Table
from fieldfare_lab.bench.workloads import generate
from fieldfare_lab.results import Claim, Curves, Result, Settings
from fieldfare_lab.tables.contenders import STRUCTURES
from fieldfare_lab.tables.workload import Workload

SIZES = (1_000, 10_000, 100_000)
PROBES = 50
"""changes measured at each size"""


class Cost(NamedTuple):
    """CPU microseconds of a structure's operations, as the mean of the probes."""

    load: float
    """for each filter while filling the structure"""
    add: float
    remove: float
    worst: float
    """the slowest of the probes"""
    roots: float
    """computing all roots, in milliseconds"""
    root_count: int


def ranges(count: int) -> list[Filter]:
    """Generate 2D ranges as in the experiments, but over a domain of a million values."""
    return Workload(1, (2, 2), highest=1_000_000).filters(count)


def stocks(count: int) -> list[Filter]:
    """Generate different filters of the workload `stock`, which form many small trees."""
    return list(dict.fromkeys(generate("stock", count + count // 10 + 200, 1).parsed))[:count]


WORKLOADS: dict[str, Callable[[int], list[Filter]]] = {"2D ranges": ranges, "stock": stocks}


def scaling(
    settings: Settings,
    sizes: tuple[int, ...] = SIZES,
    budget: float = 60.0,
    step: Callable[[str], None] = lambda _: None,
) -> Result:
    """Measure each workload, structure and size; a structure drops out when its budget of CPU seconds is used up."""
    curves: list[Curves] = []
    claims: list[Claim] = []
    for workload, make_filters in WORKLOADS.items():
        given = make_filters(max(sizes) + PROBES)
        costs: dict[str, list[Cost | None]] = {name: [] for name in STRUCTURES}
        for size in sizes:
            roots: set[int] = set()
            for name, make in STRUCTURES.items():
                step(f"{workload}, {size:,} filters: {name}")
                stopped = bool(costs[name]) and costs[name][-1] is None
                cost = None if stopped else measure(make(()), given[:size], given[-PROBES:], budget, settings.clock)
                costs[name].append(cost)
                if cost is not None:
                    roots.add(cost.root_count)
            claims.append(
                Claim(
                    f"{workload}, {size:,} filters: all finished structures have the same roots",
                    len(roots) == 1,
                    str(roots),
                )
            )
        curves += [
            Curves(
                f"{workload}: {title}",
                "filters",
                sizes,
                {name: tuple(None if cost is None else cost[i] for cost in line) for name, line in costs.items()},
            )
            for i, title in ((0, "CPU µs a filter, filling"), (1, "CPU µs, add"), (2, "CPU µs, remove"),
                             (3, "CPU µs, slowest of the changes"), (4, "CPU ms, all roots"), (5, "roots"))
        ]  # fmt: skip
        changes = [cost.add + cost.remove for cost in costs["Indexed"] if cost is not None]
        claims.append(
            Claim(
                f"{workload}: IndexedTable finishes everywhere, and a change grows a tenth as fast as the filters",
                len(changes) == len(sizes) and changes[-1] / changes[0] < sizes[-1] / sizes[0] / 10,
                "add + remove: " + ", ".join(f"{cost:,.0f} µs" for cost in changes),
            )
        )
    return Result(
        "scaling", "Growth of the structures", f"each filter its own interface; {budget:.0f} CPU s to fill a structure",
        tuple(curves), tuple(claims),
    )  # fmt: skip


def measure(
    table: Table[int], filters: list[Filter], fresh: list[Filter], budget: float, clock: Callable[[], float]
) -> Cost | None:
    """Return the costs of a table with some filters; None if the table cannot be filled within the budget."""
    start = clock()
    part = max(1000, len(filters) // 20)
    for first in range(0, len(filters), part):
        table.add_many((filter, first + i) for i, filter in enumerate(filters[first : first + part]))
        if (clock() - start) / min(first + part, len(filters)) * len(filters) > budget:
            return None
    load = (clock() - start) / len(filters)
    adds, removes = [], []
    for i, new in enumerate(fresh):
        old = (i * 7919) % len(filters)
        before = clock()
        table.remove(filters[old], old)
        between = clock()
        table.add(new, len(filters) + i)
        adds.append(clock() - between)
        removes.append(between - before)
    before = clock()
    roots = table.roots()
    asked = clock() - before
    return Cost(
        1e6 * load, 1e6 * statistics.fmean(adds), 1e6 * statistics.fmean(removes), 1e6 * max(adds + removes),
        1e3 * asked, len(roots),
    )  # fmt: skip
