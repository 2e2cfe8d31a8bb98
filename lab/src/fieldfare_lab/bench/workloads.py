"""Workloads: filters and events, the same every time, from a name and two numbers.

`generate("stock", 1000, 20_000)` makes a thousand filters and 20,000 events. Parameters of a generator follow its name:
`sweep:dimensions=400,equality=1`.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from fieldfare.filters import Filter, parse
from fieldfare_lab.bench import design_workloads, realistic_workloads, reference_workloads
from fieldfare_lab.bench.parametric_workload import Sweep
from fieldfare_lab.bench.reference_workloads import SEED, Made
from fieldfare_lab.bench.rules import Event, Predicate, Rule, native

SEEN: Final = 512
"""number of events that an index may learn from before the measurement"""
ABOUT: Final = {
    "eq": "3 equalities out of 10 string attributes",
    "stock": "symbol or sector, a price range, sometimes more; Zipf 0.8",
    "begen": "5 predicates over 400 dimensions, Zipf 1.0",
    "w1": "5 ranges over 20 integer attributes",
    "w2": "2-3 equalities of Zipf words and a range",
    "w3": "40 attributes of all types, 8 operators",
    "sweep": "BE-Gen style, all parameters free: sweep:dimensions=400,equality=1",
    "ads": "ad exchange: IN, OR, budgets, NOT",
    "alerts": "log lines: CONTAINS, ENDS WITH, LIKE",
    "lots": "GeoJSON features with nested coordinates; take --filters 5",
}
EXPECTED: Final = {**reference_workloads.EXPECTED, **realistic_workloads.EXPECTED}
_DESIGNED: Final = {"w1": design_workloads.w1, "w2": design_workloads.w2, "w3": design_workloads.w3}
_LIFELIKE: Final = {
    "ads": realistic_workloads.ads,
    "alerts": realistic_workloads.alerts,
    "lots": realistic_workloads.lots,
}


@dataclass(frozen=True, eq=False)
class Workload:
    """Filters, and events to match with the filters; two workloads are never equal, so that caches keep them apart."""

    name: str
    filters: list[str]
    """in Fieldfare's filter language"""
    events: list[Event]
    rules: list[Rule] | None = None
    """the filters as plain rules; None if some filter is no conjunction"""
    expected: int | None = None
    """number of matches that other engines found; None: unknown"""
    seen: list[Event] = field(default_factory=list)
    """more events of the same kind, for engines that learn from events; not measured"""

    @cached_property
    def parsed(self) -> list[Filter]:
        """Return the parsed filters; parsing happens once for all contenders."""
        return [parse(text) for text in self.filters]


def generate(name: str, filters: int, events: int, seed: int = SEED) -> Workload:
    """Generate the workload with a name of `ABOUT`; the same arguments give the same workload."""
    base, _, options = name.partition(":")
    known = EXPECTED.get((base, filters)) if (events, seed) == (reference_workloads.EVENTS, SEED) else None
    if options and base != "sweep":
        raise ValueError(f"{base} has no parameters; only sweep has")
    if base in reference_workloads.THREE:
        rules, made = _three(base, filters, events + SEEN, seed)
        return Workload(name, [native(rule) for rule in rules], made[:events], rules, known, made[events:])
    rng = np.random.default_rng(seed)
    if base in _LIFELIKE:
        texts, made = _LIFELIKE[base](rng, filters, events + SEEN)
        return Workload(name, texts, made[:events], expected=known, seen=made[events:])
    if base == "sweep":
        rules, made = sweep(options).make(rng, filters, events + SEEN)
    elif base in _DESIGNED:
        rules, made = _DESIGNED[base](rng, filters, events + SEEN)
    else:
        raise ValueError(f"there is no workload {base!r}; there are {', '.join(ABOUT)}")
    return Workload(name, [native(rule) for rule in rules], made[:events], rules, seen=made[events:])


def sweep(options: str) -> Sweep:
    """Parse parameters such as `dimensions=40,skew=0.5`.

    >>> sweep("dimensions=40,skew=0.5").skew
    0.5
    """
    types = {one.name: int if isinstance(one.default, int) else float for one in fields(Sweep)}
    given: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if key not in types:
            raise ValueError(f"sweep has no parameter {key!r}; it has {', '.join(types)}")
        given[key] = types[key](value)
    return Sweep(**given)


def _three(name: str, filters: int, events: int, seed: int) -> Made:
    original = shared()
    if original is None:
        return reference_workloads.generate(name, filters, events, seed)
    rules, made = original.generate(name, filters, events, seed)
    return [[Predicate(name, op, tuple(operands)) for name, op, *operands in rule] for rule in rules], made


@cache
def shared() -> ModuleType | None:
    """Import the original of the reference workloads from `shared/` beside the repository or from $FIELDFARE_SHARED.

    None if the original is in neither folder; then the copy in `reference_workloads` serves.
    """
    given = os.environ.get("FIELDFARE_SHARED")
    folders = [Path(given)] if given else [parent / "shared" for parent in Path(__file__).parents]
    for folder in folders:
        file = folder / "bench" / "workloads.py"
        spec = importlib.util.spec_from_file_location("shared_workloads", file) if file.is_file() else None
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None
