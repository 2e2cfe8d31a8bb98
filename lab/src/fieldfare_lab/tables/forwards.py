"""E6, E7: the filters that a broker sends to each neighbour, without local clients and with local clients."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from fieldfare.tables.base import Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.structures.forest_tables import NonRedundantForest
from fieldfare.tables.structures.poset import Poset
from fieldfare.tables.updates import TableUpdate, apply
from fieldfare_lab.results import Claim, Result, Settings, last
from fieldfare_lab.tables.contenders import (
    SCHEMAS,
    Make,
    drawn,
    history,
    share,
    times,
)
from fieldfare_lab.tables.workload import Workload


def without_clients(settings: Settings) -> Result:
    """E6: tables that also compute the filter updates for each of 3 to 15 neighbours."""
    rows = _forwarding(settings, [(count, 0) for count in (3, 9, 15)], settings.size(1000))
    adds, told = drawn(rows, "neighbours", "add"), drawn(rows, "neighbours", "told")
    churns = drawn(rows, "neighbours", "churn")
    extra = [(a or 0) / (e or 1) - 1 for a, e in zip(told.lines["NRF approx."], told.lines["NRF exact"], strict=True)]
    return Result(
        "E6", "Forwards sets, no local clients", f"{settings.size(1000)} generated 2D filters, 3–15 neighbours",
        (adds, churns, told, drawn(rows, "neighbours", "told again"), *times(rows, "neighbours")),
        (
            Claim(
                "FP, exact NRF and IndexedTable send the same filters",
                told.lines["FP"] == told.lines["NRF exact"] == told.lines["Indexed"],
                ", ".join(f"{value:.0f}" for value in told.lines["FP"] if value is not None),
            ),
            Claim(
                "approximate NRF sends up to 15 % more filters, never fewer",
                all(0 <= e <= 0.15 for e in extra),
                ", ".join(f"+{e:.1%}" for e in extra),
            ),
            Claim(
                "in add the exact forest overtakes FP as neighbours grow",
                share(adds, "NRF exact", -1) < share(adds, "NRF exact", 0) and share(adds, "NRF exact", -1) < 1,
                f"NRF / FP {share(adds, 'NRF exact', 0):.2f} with 3, {share(adds, 'NRF exact', -1):.2f} with 15",
            ),
            Claim(
                "in add/remove FP stays ahead of the exact forest",
                share(churns, "NRF exact", -1) > 1,
                f"NRF / FP {share(churns, 'NRF exact', -1):.2f} with 15",
            ),
        ),
    )  # fmt: skip


def with_clients(settings: Settings) -> Result:
    """E7: filter updates for four neighbours, with 10 to 200 local clients."""
    rows = _forwarding(settings, [(4, count) for count in (10, 50, 200)], settings.size(1000))
    adds, churns = drawn(rows, "clients", "add"), drawn(rows, "clients", "churn")
    told = drawn(rows, "clients", "told")
    extra = (told.lines["NRF approx."][-1] or 0) / (told.lines["NRF exact"][-1] or 1) - 1
    return Result(
        "E7", "Forwards sets with local clients", f"{settings.size(1000)} generated 2D filters, 4 neighbours",
        (adds, churns, told, drawn(rows, "clients", "told again"), *times(rows, "clients")),
        (
            *(
                Claim(
                    f"with 200 clients the forest needs at most a quarter of FP's tests in {what}",
                    share(curves, "NRF exact", -1) <= 0.25,
                    f"{last(curves, 'FP'):,.0f} / {last(curves, 'NRF exact'):,.0f}",
                )
                for what, curves in (("add", adds), ("add/remove", churns))
            ),
            Claim(
                "approximate NRF sends at most 3 % more filters with 200 clients", 0 <= extra <= 0.03, f"+{extra:.1%}"
            ),
        ),
    )  # fmt: skip


def _forwarding(settings: Settings, counts: Sequence[tuple[int, int]], size: int) -> list[dict[str, Any]]:
    """Measure the filters sent to neighbours, for each pair of numbers of neighbours and of clients."""
    makes: dict[str, Make] = {
        "FP": Poset,
        "NRF exact": NonRedundantForest,
        "NRF approx.": lambda neighbours: NonRedundantForest(neighbours, exact=False),
        "Indexed": IndexedTable,
    }
    rows = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        for there, clients in counts:
            adds, changes = history(
                Workload(seed, SCHEMAS["2D"]), random.Random(seed), size, there + clients, honest=True
            )
            for name, make in makes.items():
                table = make(range(there))
                start = settings.clock()
                told = sum(_sent(table, TableUpdate(added=(f,)), i) for f, i in adds)
                built, add = settings.clock(), table.tests.cover
                table.tests.cover = 0
                again = 0
                for (old, interface), (new, _) in changes:
                    again += _sent(table, TableUpdate(removed=(old,)), interface)
                    again += _sent(table, TableUpdate(added=(new,)), interface)
                rows.append({
                    "structure": name, "neighbours": there, "clients": clients, "told": told, "told again": again,
                    "add": add,
                    "churn": table.tests.cover, "add ms": 1e3 * (built - start),
                    "churn ms": 1e3 * (settings.clock() - built),
                })  # fmt: skip
    return rows


def _sent(table: Table[int], update: TableUpdate, sender: int) -> int:
    """The number of filters that go to neighbours after an update of the table."""
    return sum(len(sent.added) for sent in apply(table, update, sender).values())
