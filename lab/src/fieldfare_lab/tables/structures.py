"""E1–E8: what posets and forests cost, in comparisons of filters; and our `IndexedTable`, which makes few, beside them.

The cost of a structure is the number of cover tests it makes, which depends on no machine. `IndexedTable` asks the
engine instead, whose work is no cover test: to compare it with the others look at CPU time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Table
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.structures.forest_tables import BalancedForest, NonRedundantForest, PosetForest
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.structures.poset import Poset
from fieldfare.tables.updates import TableUpdate, apply
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last
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
"""how often a filter is replaced in the add/remove scenario"""
_SCHEMAS = {"2D": (2, 2), "3D": (3, 3), "1–3": (1, 3)}


def local_clients(settings: Settings) -> Result:
    """E1: every filter from a client of its own."""
    sizes = [settings.size(n) for n in (100, 250, 500)]
    rows = [
        {"filters": n, "same": (row["seed"], n), **row}
        for n in sizes
        for row in _replicated(settings, "2D", n, interfaces=n, names=STRUCTURES)
    ]
    adds, churns = _curves(rows, "filters", "add"), _curves(rows, "filters", "churn")
    return Result(
        "E1", "Local clients, 2D filters", "each filter its own interface; ranges in [0, 100]",
        (adds, churns, *_times(rows, "filters")),
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
                f"{last(_curves(rows, 'filters', 'roots'), 'PF'):.0f} roots",
            ),
        ),
        "Our poset makes fewer tests than the calibration's (123,000 and 71,700 at 500), above all in removing: "
        "whether a cover remains it reads from the graph, where every cover is a path.",
    )  # fmt: skip


def dimensions(settings: Settings) -> Result:
    """E2: the same with three attributes, and with one to three."""
    size = settings.size(500)
    rows = [
        {"schema": schema, **row}
        for schema in _SCHEMAS
        for row in _replicated(settings, schema, size, interfaces=size, names=STRUCTURES)
    ]
    adds, churns = _curves(rows, "schema", "add"), _curves(rows, "schema", "churn")
    two, three, mixed = ({name: line[i] or 0 for name, line in adds.lines.items()} for i in range(3))
    return Result(
        "E2", "Local clients, 3D filters and 1–3 attributes", f"{size} filters, each its own interface",
        (adds, churns, *_times(rows, "schema")),
        (
            Claim(
                "forests cost less than FP in every schema",
                all(cost[name] < cost["FP"] for cost in (two, three, mixed) for name in FORESTS),
                ", ".join(
                    f"{schema}: FP {cost['FP']:,.0f}, PF {cost['PF']:,.0f}"
                    for schema, cost in zip(_SCHEMAS, (two, three, mixed), strict=True)
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
    adds = _curves(rows, "interfaces", "add")
    fp = [value or 0 for value in adds.lines["FP"]]
    flat = {name: _spread(adds.lines[name]) for name in ("PF", "BF")}
    return Result(
        "E3", f"{size} filters, more and more interfaces", "2D; round-robin",
        (adds, *_times(rows, "interfaces")),
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
        "The flat curves are those of the redundant forests. NRF also looks for what an interface has covered itself, "
        "which takes most tests where an interface has many filters.",
    )  # fmt: skip


def neighbours(settings: Settings) -> Result:
    """E4 and E5: what neighbours send, which is never covered by what they sent before."""
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
        adds, entries = _curves(rows, "neighbours", "add", schema), _curves(rows, "neighbours", "entries", schema)
        curves += [adds, _curves(rows, "neighbours", "churn", schema), entries, *_times(rows, "neighbours", schema)]
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
        f"{size} generated, those covered by what the neighbour sent before left out; NRF trusts its neighbours",
        tuple(curves), tuple(claims),
    )  # fmt: skip


def forwards(settings: Settings) -> Result:
    """E6: with what each neighbour must be told."""
    rows = _forwarding(settings, [(count, 0) for count in (3, 9, 15)], settings.size(1000))
    adds, told = _curves(rows, "neighbours", "add"), _curves(rows, "neighbours", "told")
    churns = _curves(rows, "neighbours", "churn")
    extra = [(a or 0) / (e or 1) - 1 for a, e in zip(told.lines["NRF approx."], told.lines["NRF exact"], strict=True)]
    return Result(
        "E6", "Forwards sets, no local clients", f"{settings.size(1000)} generated 2D filters, 3–15 neighbours",
        (adds, churns, told, _curves(rows, "neighbours", "told again"), *_times(rows, "neighbours")),
        (
            Claim(
                "FP, exact NRF and IndexedTable tell the same",
                told.lines["FP"] == told.lines["NRF exact"] == told.lines["Indexed"],
                ", ".join(f"{value:.0f}" for value in told.lines["FP"] if value is not None),
            ),
            Claim(
                "approximative NRF tells up to 15 % more, never less",
                all(0 <= e <= 0.15 for e in extra),
                ", ".join(f"+{e:.1%}" for e in extra),
            ),
            Claim(
                "in add the exact forest overtakes FP as neighbours grow",
                _share(adds, "NRF exact", -1) < _share(adds, "NRF exact", 0) and _share(adds, "NRF exact", -1) < 1,
                f"NRF / FP {_share(adds, 'NRF exact', 0):.2f} with 3, {_share(adds, 'NRF exact', -1):.2f} with 15",
            ),
            Claim(
                "in add/remove FP stays ahead of the exact forest",
                _share(churns, "NRF exact", -1) > 1,
                f"NRF / FP {_share(churns, 'NRF exact', -1):.2f} with 15",
            ),
        ),
    )  # fmt: skip


def forwards_with_clients(settings: Settings) -> Result:
    """E7: four neighbours and more and more local clients."""
    rows = _forwarding(settings, [(4, count) for count in (10, 50, 200)], settings.size(1000))
    adds, churns = _curves(rows, "clients", "add"), _curves(rows, "clients", "churn")
    told = _curves(rows, "clients", "told")
    extra = (told.lines["NRF approx."][-1] or 0) / (told.lines["NRF exact"][-1] or 1) - 1
    return Result(
        "E7", "Forwards sets with local clients", f"{settings.size(1000)} generated 2D filters, 4 neighbours",
        (adds, churns, told, _curves(rows, "clients", "told again"), *_times(rows, "clients")),
        (
            *(
                Claim(
                    f"with 200 clients the forest needs at most a quarter of FP's tests in {what}",
                    _share(curves, "NRF exact", -1) <= 0.25,
                    f"{last(curves, 'FP'):,.0f} / {last(curves, 'NRF exact'):,.0f}",
                )
                for what, curves in (("add", adds), ("add/remove", churns))
            ),
            Claim("approximative NRF tells at most 3 % more then", 0 <= extra <= 0.03, f"+{extra:.1%}"),
        ),
    )  # fmt: skip


def matching(settings: Settings) -> Result:
    """E8: how many filters an event is compared with."""
    size = settings.size(500)
    rows: list[dict[str, Any]] = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        workload = Workload(seed, _SCHEMAS["2D"])
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


# One run


def _trusting(neighbours: Sequence[int]) -> Table[int]:
    return NonRedundantForest(neighbours, trusted=True)


def _replicated(
    settings: Settings, schema: str, size: int, *, interfaces: int, names: dict[str, Make], honest: bool = False
) -> list[dict[str, Any]]:
    """Rows for each structure and seed: build from nothing, then replace filters one by one."""
    rows = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        steps = _steps(Workload(seed, _SCHEMAS[schema]), random.Random(seed), size, interfaces, honest=honest)
        for name, make in names.items():
            rows.append({"structure": name, "seed": seed, **_run(make(()), *steps, settings.clock)})
    return rows


Pair = tuple[Filter, int]


def _steps(
    workload: Workload, rng: random.Random, size: int, interfaces: int, *, honest: bool
) -> tuple[list[Pair], list[tuple[Pair, Pair]]]:
    """The pairs to add, and those to remove with what comes instead.

    Who is `honest` sends nothing that is covered by what it sent before, as neighbours do.
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


def _forwarding(settings: Settings, counts: Sequence[tuple[int, int]], size: int) -> list[dict[str, Any]]:
    """Rows with what neighbours are told, for some numbers of neighbours and clients."""
    makes: dict[str, Make] = {
        "FP": Poset,
        "NRF exact": NonRedundantForest,
        "NRF approx.": lambda neighbours: NonRedundantForest(neighbours, exact=False),
        "Indexed": IndexedTable,
    }
    rows = []
    for seed in range(settings.seed, settings.seed + settings.replications):
        for there, clients in counts:
            adds, changes = _steps(
                Workload(seed, _SCHEMAS["2D"]), random.Random(seed), size, there + clients, honest=True
            )
            for name, make in makes.items():
                table = make(range(there))
                start = settings.clock()
                told = sum(_tell(table, TableUpdate(added=(f,)), i) for f, i in adds)
                built, add = settings.clock(), table.tests.cover
                table.tests.cover = 0
                again = 0
                for (old, interface), (new, _) in changes:
                    again += _tell(table, TableUpdate(removed=(old,)), interface)
                    again += _tell(table, TableUpdate(added=(new,)), interface)
                rows.append({
                    "structure": name, "neighbours": there, "clients": clients, "told": told, "told again": again,
                    "add": add,
                    "churn": table.tests.cover, "add ms": 1e3 * (built - start),
                    "churn ms": 1e3 * (settings.clock() - built),
                })  # fmt: skip
    return rows


def _tell(table: Table[int], update: TableUpdate, sender: int) -> int:
    """How many filters the neighbours are told of."""
    return sum(len(said.added) for said in apply(table, update, sender).values())


# Judging


def _curves(rows: Sequence[dict[str, Any]], x: str, value: str, schema: str = "") -> Curves:
    titles = {
        "add": "cover tests, add", "churn": f"cover tests, {CHANGES} × remove and add", "roots": "roots",
        "entries": "entries kept", "told": "filters told to neighbours, add",
        "told again": f"filters told to neighbours, {CHANGES} × remove and add", "add ms": "CPU ms, add",
        "churn ms": f"CPU ms, {CHANGES} × remove and add",
    }  # fmt: skip
    title = f"{titles[value]} ({schema})" if schema else titles[value]
    return curves_of(rows, title=title, x=x, line="structure", value=value)


def _times(rows: Sequence[dict[str, Any]], x: str, schema: str = "") -> tuple[Curves, Curves]:
    return _curves(rows, x, "add ms", schema), _curves(rows, x, "churn ms", schema)


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


def _share(curves: Curves, name: str, place: int) -> float:
    return (curves.lines[name][place] or 0) / (curves.lines["FP"][place] or 1)


def _spread(line: Sequence[float | None]) -> float:
    values = [value for value in line if value is not None]
    middle = sum(values) / len(values)
    return max(abs(value / middle - 1) for value in values)


def _growth(line: Sequence[float | None]) -> float:
    return (line[-1] or 0) / (line[0] or 1)
