"""The compared structures, the filters that come and go in a run, and the curves of the outcome."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.structures.forest_tables import BalancedForest, NonRedundantForest, PosetForest
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.structures.poset import Poset
from fieldfare_lab.results import Curves, curves_of
from fieldfare_lab.tables.workload import Workload

Make = Callable[[Sequence[int]], Table[int]]
FORESTS = ("PF", "BF", "NRF")
STRUCTURES: dict[str, Make] = {
    "FP": Poset,
    "PF": PosetForest,
    "BF": BalancedForest,
    "NRF": NonRedundantForest,
    "Indexed": IndexedTable,
}
CHANGES = 100
"""number of replaced filters in the add/remove scenario"""
SCHEMAS = {"2D": (2, 2), "3D": (3, 3), "1–3": (1, 3)}
"""least and most constraints of a filter"""
Pair = tuple[Filter, int]
"""a filter and its interface"""


def history(
    workload: Workload, rng: random.Random, size: int, interfaces: int, *, honest: bool
) -> tuple[list[Pair], list[tuple[Pair, Pair]]]:
    """Return the pairs to add, and then the replacements: the pair to remove and the pair to add instead.

    An `honest` interface sends no filter that an earlier filter of the same interface covers; neighbours are honest.
    """
    mirror: NaiveTable[int] = NaiveTable(redundant=not honest)
    adds = [
        (filter, i % interfaces)
        for i, filter in enumerate(workload.filters(size))
        if mirror.add(filter, i % interfaces)
    ]
    changes = []
    for _ in range(CHANGES):
        live = [(filter, interface) for filter in mirror.filters() for interface in sorted(mirror.interfaces(filter))]
        old, interface = live[rng.randrange(len(live))]
        mirror.remove(old, interface)
        new = workload.filter()
        while not mirror.add(new, interface):
            new = workload.filter()
        changes.append(((old, interface), (new, interface)))
    return adds, changes


def drawn(rows: Sequence[dict[str, Any]], x: str, value: str, schema: str = "") -> Curves:
    """Draw a value over `x`, a line for each structure."""
    titles = {
        "add": "cover tests, add", "churn": f"cover tests, {CHANGES} × remove and add", "roots": "roots",
        "entries": "entries kept", "told": "filters sent to neighbours, add",
        "told again": f"filters sent to neighbours, {CHANGES} × remove and add", "add ms": "CPU ms, add",
        "churn ms": f"CPU ms, {CHANGES} × remove and add",
    }  # fmt: skip
    title = f"{titles[value]} ({schema})" if schema else titles[value]
    return curves_of(rows, title=title, x=x, line="structure", value=value)


def times(rows: Sequence[dict[str, Any]], x: str, schema: str = "") -> tuple[Curves, Curves]:
    """Draw the CPU time of building a table and of changing a table."""
    return drawn(rows, x, "add ms", schema), drawn(rows, x, "churn ms", schema)


def share(curves: Curves, name: str, place: int) -> float:
    """Return a structure's value as a share of the poset's."""
    return (curves.lines[name][place] or 0) / (curves.lines["FP"][place] or 1)
