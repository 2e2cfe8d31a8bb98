"""E1–E5, E8: the cost of posets, forests and Fieldfare's `IndexedTable` in comparisons of filters.

The cost of a structure is the number of cover tests, the same on every machine. `IndexedTable` uses the engine, whose
work is no cover test: compare `IndexedTable` with the others by CPU time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from fieldfare.tables.base import Table
from fieldfare.tables.structures.forest_tables import NonRedundantForest
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last
from fieldfare_lab.tables.contenders import (
    FORESTS,
    SCHEMAS,
    STRUCTURES,
    Make,
    Pair,
    drawn,
    history,
    times,
)
from fieldfare_lab.tables.workload import Workload


def local_clients(settings: Settings) -> Result:
    """E1: every filter from another client, so that each filter has its own interface."""
    sizes = [settings.size(n) for n in (100, 250, 500)]
    rows = [
        {"filters": n, "same": (row["seed"], n), **row}
        for n in sizes
        for row in _replicated(settings, "2D", n, interfaces=n, names=STRUCTURES)
    ]
    adds, churns = drawn(rows, "filters", "add"), drawn(rows, "filters", "churn")
    return Result(
        "E1", "Local clients, 2D filters", "each filter its own interface; ranges in [0, 100]",
        (adds, churns, *times(rows, "filters")),
        (
            *_cheaper(adds, churns),
            _alike(adds, "BF and NRF cost no more than PF (within 10 %)"),
            _alike(churns, "… nor in add/remove (within 10 %)"),
            Claim(
                "the gap to FP grows with the filters",
                _ratio(adds, 0) < _ratio(adds, -1),
                f"FP / PF {_ratio(adds, 0):.1f} at {sizes[0]}, {_ratio(adds, -1):.1f} at {sizes[-1]}",
            ),
            Claim(
                "all structures have the same roots",
                len({row["roots_set"] for row in rows if row["same"] == (settings.seed, sizes[-1])}) == 1,
                f"{last(drawn(rows, 'filters', 'roots'), 'PF'):.0f} roots",
            ),
        ),
        "Our poset makes fewer tests than the calibration's (123,000 and 71,700 at 500), above all in removals: "
        "the graph shows without tests whether a cover remains, because every cover is a path.",
    )  # fmt: skip


def dimensions(settings: Settings) -> Result:
    """E2: the same as E1, with three attributes and with one to three attributes."""
    size = settings.size(500)
    rows = [
        {"schema": schema, **row}
        for schema in SCHEMAS
        for row in _replicated(settings, schema, size, interfaces=size, names=STRUCTURES)
    ]
    adds, churns = drawn(rows, "schema", "add"), drawn(rows, "schema", "churn")
    two, three, mixed = ({name: line[i] or 0 for name, line in adds.lines.items()} for i in range(3))
    return Result(
        "E2", "Local clients, 3D filters and 1–3 attributes", f"{size} filters, each its own interface",
        (adds, churns, *times(rows, "schema")),
        (
            Claim(
                "forests cost less than FP in every schema",
                all(cost[name] < cost["FP"] for cost in (two, three, mixed) for name in FORESTS),
                ", ".join(
                    f"{schema}: FP {cost['FP']:,.0f}, PF {cost['PF']:,.0f}"
                    for schema, cost in zip(SCHEMAS, (two, three, mixed), strict=True)
                ),
            ),
            Claim(
                "for forests 1–3 attributes cost least and 3D most",
                all(mixed[name] < two[name] < three[name] for name in FORESTS),
                f"PF {mixed['PF']:,.0f} < {two['PF']:,.0f} < {three['PF']:,.0f}",
            ),
        ),
    )  # fmt: skip


def interfaces(settings: Settings) -> Result:
    """E3: the same filters from more and more interfaces."""
    size = settings.size(500)
    counts = [max(1, size * share // 500) for share in (1, 10, 50, 100, 250, 500)]
    rows = [
        {"interfaces": count, **row}
        for count in dict.fromkeys(counts)
        for row in _replicated(settings, "2D", size, interfaces=count, names=STRUCTURES)
    ]
    adds = drawn(rows, "interfaces", "add")
    fp = [value or 0 for value in adds.lines["FP"]]
    flat = {name: _spread(adds.lines[name]) for name in ("PF", "BF")}
    return Result(
        "E3", f"{size} filters, more and more interfaces", "2D; round-robin",
        (adds, *times(rows, "interfaces")),
        (
            Claim(
                "forests cost the same for any number of interfaces (± 15 %)",
                all(spread <= 0.15 for spread in flat.values()),
                ", ".join(f"{name} ± {spread:.0%}" for name, spread in flat.items()),
            ),
            Claim(
                "FP costs more with every interface",
                all(a < b for a, b in itertools.pairwise(fp)),
                " < ".join(f"{value:,.0f}" for value in fp),
            ),
        ),
        "The flat curves are those of the redundant forests. NRF also looks for filters that other filters of the same "
        "interface cover, which takes most tests where an interface has many filters.",
    )  # fmt: skip


def neighbours(settings: Settings) -> Result:
    """E4 and E5: filters of neighbours; a neighbour sends no filter that its earlier filters cover."""
    size = settings.size(1000)
    counts = (3, 9, 15)
    curves: list[Curves] = []
    claims: list[Claim] = []
    names = {"FP": STRUCTURES["FP"], "NRF": _trusting, "Indexed": STRUCTURES["Indexed"]}
    for schema in ("2D", "3D"):
        rows = [
            {"neighbours": count, **row}
            for count in counts
            for row in _replicated(settings, schema, size, interfaces=count, names=names, honest=True)
        ]
        adds, entries = drawn(rows, "neighbours", "add", schema), drawn(rows, "neighbours", "entries", schema)
        curves += [adds, drawn(rows, "neighbours", "churn", schema), entries, *times(rows, "neighbours", schema)]
        rising, flat = _growth(adds.lines["FP"]), _growth(adds.lines["NRF"])
        claims += [
            Claim(
                f"{schema}: FP, NRF and IndexedTable keep the same entries",
                len(set(entries.lines.values())) == 1,
                ", ".join(f"{value:.0f}" for value in entries.lines["FP"] if value is not None),
            ),
            Claim(
                f"{schema}: NRF is nearly flat in the number of neighbours, FP rises",
                flat < rising and flat < 1.6,
                f"from 3 to 15: NRF × {flat:.2f}, FP × {rising:.2f}",
            ),
        ]
        if schema == "2D":
            claims.append(
                Claim(
                    "2D: NRF needs at most half of FP's tests in add with 15 neighbours",
                    last(adds, "NRF") * 2 <= last(adds, "FP"),
                    f"{last(adds, 'FP'):,.0f} / {last(adds, 'NRF'):,.0f}",
                )
            )
    return Result(
        "E4/E5", "Neighbours, 2D and 3D filters",
        f"{size} generated filters, without those that earlier filters of the neighbour cover; NRF trusts neighbours",
        tuple(curves), tuple(claims),
    )  # fmt: skip


def matching(settings: Settings) -> Result:
    """E8: the number of filters that an event is compared with."""
    size = settings.size(500)
    rows: list[dict[str, Any]] = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        workload = Workload(seed, SCHEMAS["2D"])
        filters, events = workload.filters(size), workload.events(200)
        for count in dict.fromkeys(max(1, size * share // 500) for share in (5, 50, 500)):
            for name in ("FP", "PF", "BF", "NRF"):
                table = STRUCTURES[name](())
                table.add_many((filter, i % count) for i, filter in enumerate(filters))
                table.tests.match = 0
                for event in events:
                    table.match(event)
                rows.append({"interfaces": count, "structure": name, "tests": table.tests.match / len(events)})
    curves = curves_of(rows, title="match tests per event", x="interfaces", line="structure", value="tests")
    bf = [value or 0 for value in curves.lines["BF"]]
    return Result(
        "E8", "Matching on the table", f"{size} 2D filters, 200 events; naive: {size} tests",
        (curves,),
        (
            Claim("tests grow with the interfaces", bf == sorted(bf), ", ".join(f"{value:.0f}" for value in bf)),
            Claim(
                "always fewer than naive",
                all((value or 0) < size for line in curves.lines.values() for value in line),
                f"at most {max((value or 0) for line in curves.lines.values() for value in line):.0f} of {size}",
            ),
            Claim("at most 10 % of naive with the fewest interfaces (BF)", bf[0] <= 0.1 * size, f"{bf[0] / size:.1%}"),
        ),
    )  # fmt: skip


# A single run


def _trusting(neighbours: Sequence[int]) -> Table[int]:
    return NonRedundantForest(neighbours, trusted=True)


def _replicated(
    settings: Settings, schema: str, size: int, *, interfaces: int, names: dict[str, Make], honest: bool = False
) -> list[dict[str, Any]]:
    """Measure each structure with each seed: build the structure, then replace filters one by one."""
    rows = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        steps = history(Workload(seed, SCHEMAS[schema]), random.Random(seed), size, interfaces, honest=honest)
        for name, make in names.items():
            rows.append({"structure": name, "seed": seed, **_run(make(()), *steps, settings.clock)})
    return rows


def _run(
    table: Table[int], adds: list[Pair], changes: list[tuple[Pair, Pair]], clock: Callable[[], float]
) -> dict[str, Any]:
    start = clock()
    for filter, interface in adds:
        table.add(filter, interface)
    built, add = clock(), table.tests.cover
    entries, roots = len(table), frozenset(table.roots())
    table.tests.cover = 0
    middle = clock()
    for old, new in changes:
        table.remove(*old)
        table.add(*new)
    return {
        "add": add, "churn": table.tests.cover, "entries": entries, "roots": len(roots), "roots_set": roots,
        "add ms": 1e3 * (built - start), "churn ms": 1e3 * (clock() - middle),
    }  # fmt: skip


def _cheaper(adds: Curves, churns: Curves) -> list[Claim]:
    return [
        Claim(
            f"forests need at most {words} of FP's tests in {what}",
            all(last(curves, name) * part <= last(curves, "FP") for name in FORESTS),
            f"FP {last(curves, 'FP'):,.0f}, " + ", ".join(f"{name} {last(curves, name):,.0f}" for name in FORESTS),
        )
        for what, curves, part, words in (("add", adds, 3, "a third"), ("add/remove", churns, 4, "a quarter"))
    ]


def _alike(curves: Curves, text: str) -> Claim:
    pf = last(curves, "PF")
    return Claim(
        text,
        all(last(curves, name) <= 1.1 * pf for name in ("BF", "NRF")),
        ", ".join(f"{name} × {last(curves, name) / pf:.2f}" for name in ("BF", "NRF")),
    )


def _ratio(curves: Curves, place: int) -> float:
    return (curves.lines["FP"][place] or 0) / (curves.lines["PF"][place] or 1)


def _spread(line: Sequence[float | None]) -> float:
    values = [value for value in line if value is not None]
    middle = sum(values) / len(values)
    return max(abs(value / middle - 1) for value in values)


def _growth(line: Sequence[float | None]) -> float:
    return (line[-1] or 0) / (line[0] or 1)
