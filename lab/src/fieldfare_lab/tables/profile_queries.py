"""E13–E17: profiles against queries, by cover and by overlap, with bounds and with preloading.

All comparisons of filters are counted, also those that find the place of a filter in its own forest. `Indexed` uses the
engine, whose work is no comparison of filters: compare `Indexed` with the others by CPU time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.indexed import IndexedPairing
from fieldfare.profiles.pairs import NaivePairing, Operator, Pairing
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last
from fieldfare_lab.tables.workload import Workload

STRUCTURES: dict[str, Callable[[Operator], Pairing[int, int]]] = {
    "set-based": NaivePairing,
    "forests": lambda operator: DoubleForest(operator, bounds=False),
    "with bounds": DoubleForest,
    "Indexed": lambda operator: IndexedPairing(Index(), Index(), operator),
}
_OPERATORS: tuple[Operator, ...] = ("cover", "overlap")


def one_side(settings: Settings) -> Result:
    """E13 and E14: a constant number of filters on one side, a growing number on the other."""
    constant = settings.size(1000)
    curves: list[Curves] = []
    claims: list[Claim] = []
    for operator in _OPERATORS:
        for growing, name in enumerate(("profiles", "queries")):
            rows = []
            for seed in _seeds(settings):
                fixed, more = _filters(seed, constant)
                for count in (constant // 4, constant // 2, constant):
                    steps = [(1 - growing, f) for f in fixed] + [(growing, f) for f in more[:count]]
                    rows += [{name: count, **row} for row in _runs(operator, steps, settings)]
            title = f"tests ({operator}, {constant} {'queries' if growing == 0 else 'profiles'} and more {name})"
            curves.append(_curves(rows, title, name, "tests"))
            curves.append(_curves(rows, title.replace("tests", "CPU ms"), name, "ms"))
            claims.append(_best(curves[-2], f"{operator}, more {name}"))
    return Result(
        "E13/E14", "Many against a constant number", f"2D ranges; {constant} on the constant side",
        tuple(curves), tuple(claims),
    )  # fmt: skip


def both_sides(settings: Settings) -> Result:
    """E15: both sides grow, in random order."""
    size = settings.size(1000)
    curves: list[Curves] = []
    shares: dict[str, float] = {}
    for operator in _OPERATORS:
        rows = [
            {"a side": count, **row}
            for seed in _seeds(settings)
            for count in (size // 4, size // 2, size)
            for row in _runs(operator, _mixed(seed, *(side[:count] for side in _filters(seed, size))), settings)
        ]
        curves.append(_curves(rows, f"tests ({operator})", "a side", "tests"))
        curves.append(_curves(rows, f"CPU ms ({operator})", "a side", "ms"))
        shares[operator] = last(curves[-2], "with bounds") / last(curves[-2], "set-based")
    return Result(
        "E15", "Profiles and queries in random order", f"2D ranges; {size} profiles and {size} queries",
        tuple(curves),
        (
            Claim(
                "cover: with bounds at most 45 % of the set-based tests", shares["cover"] <= 0.45,
                f"{shares['cover']:.0%}",
            ),
            Claim(
                "overlap: with bounds 70–90 % of the set-based tests", 0.7 <= shares["overlap"] <= 0.9,
                f"{shares['overlap']:.0%}",
            ),
        ),
    )  # fmt: skip


def preloaded(settings: Settings) -> Result:
    """E16 and E17: preloading of filters that come later, or of other filters, which is useless."""
    size = settings.size(1000)
    parts = (0, 25, 50, 75, 100)
    curves: list[Curves] = []
    found: dict[tuple[str, str], list[float]] = {}
    for operator in _OPERATORS:
        rows = []
        for seed in _seeds(settings):
            profiles, queries = _filters(seed, size)
            others = _filters(seed + 1000, size)
            for part in parts:
                few = size * part // 100
                for kind, known in (
                    ("true", (profiles[:few], queries[:few])),
                    ("useless", tuple(s[:few] for s in others)),
                ):
                    pairing: Pairing[int, int] = DoubleForest(operator)
                    pairing.profiles.preload(known[0])
                    pairing.queries.preload(known[1])
                    tests = _run(pairing, _mixed(seed, profiles, queries), settings)["tests"]
                    rows.append({"percent": part, "structure": f"{kind} preload", "tests": tests})
                rows.append({"percent": part, "structure": "set-based", "tests": len(profiles) * len(queries)})
        curves.append(_curves(rows, f"tests after preloading ({operator})", "percent", "tests"))
        for kind in ("true", "useless"):
            found[operator, kind] = [value or 0 for value in curves[-1].lines[f"{kind} preload"]]
    base = float(size * size)
    overlap = found["overlap", "useless"]
    steps = [b - a for a, b in itertools.pairwise(overlap)]
    return Result(
        "E16/E17", "Preloading", f"{size} profiles and {size} queries, 2D ranges, random order", tuple(curves),
        (
            Claim(
                "no test at all if everything was preloaded",
                found["cover", "true"][-1] == found["overlap", "true"][-1] == 0,
                f"{found['cover', 'true'][-1]:.0f} and {found['overlap', 'true'][-1]:.0f}",
            ),
            Claim(
                "cover: a useless preload stays below set-based", max(found["cover", "useless"]) < base,
                f"at most {max(found['cover', 'useless']) / base:.0%}",
            ),
            Claim(
                "overlap: a useless preload grows in proportion (steps within ± 30 %)",
                all(abs(step / (sum(steps) / len(steps)) - 1) <= 0.3 for step in steps),
                ", ".join(f"{value / base:.0%}" for value in overlap),
            ),
            Claim(
                "overlap: … and is above set-based from about a quarter on", all(v > base for v in overlap[1:]),
                f"{overlap[1] / base:.0%} at 25 %",
            ),
        ),
    )  # fmt: skip


# A single run

Step = tuple[int, Filter]
"""a filter for the profiles (0) or the queries (1)"""


def _seeds(settings: Settings) -> range:
    return range(settings.seed, settings.seed + settings.replications)


def _filters(seed: int, count: int) -> tuple[list[Filter], list[Filter]]:
    both = Workload(seed, (2, 2)).filters(2 * count)
    return both[:count], both[count:]


def _mixed(seed: int, profiles: Sequence[Filter], queries: Sequence[Filter]) -> list[Step]:
    steps = [(0, filter) for filter in profiles] + [(1, filter) for filter in queries]
    random.Random(seed).shuffle(steps)
    return steps


def _runs(operator: Operator, steps: Sequence[Step], settings: Settings) -> list[dict[str, Any]]:
    return [{"structure": name, **_run(make(operator), steps, settings)} for name, make in STRUCTURES.items()]


def _run(pairing: Pairing[int, int], steps: Sequence[Step], settings: Settings) -> dict[str, Any]:
    before, start = pairing.tests.cover + pairing.tests.overlap, settings.clock()
    for number, (side, filter) in enumerate(steps):
        (pairing.profiles, pairing.queries)[side].add(filter, number)
    return {
        "tests": pairing.tests.cover + pairing.tests.overlap - before,
        "ms": 1e3 * (settings.clock() - start),
    }


def _curves(rows: Sequence[dict[str, Any]], title: str, x: str, value: str) -> Curves:
    return curves_of(rows, title=title, x=x, line="structure", value=value)


def _best(curves: Curves, what: str) -> Claim:
    costs = {name: last(curves, name) for name in ("set-based", "forests", "with bounds")}
    return Claim(
        f"{what}: forests with bounds make the fewest tests",
        costs["with bounds"] == min(costs.values()),
        ", ".join(f"{name} {cost:,.0f}" for name, cost in costs.items()),
    )
