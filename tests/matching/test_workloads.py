"""The classics on the benchmark's workloads, whose meaning is written down apart from all of this."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fieldfare.filters import Filter, parse
from fieldfare.matching import BruteForce, Counting, DecisionDiagram, DecisionTree, Matcher

SHARED = Path(os.environ.get("FIELDFARE_SHARED") or Path(__file__).parents[2].parent / "shared")
SOURCE = SHARED / "bench" / "workloads.py"

pytestmark = pytest.mark.skipif(not SOURCE.exists(), reason=f"no workloads at {SOURCE}; set FIELDFARE_SHARED")


@cache
def workload(name: str) -> tuple[list[Filter], list[dict[str, object]], list[set[int]]]:
    """Filters, events, and for each event the numbers of the filters it matches, as the workload itself sees it."""
    spec = importlib.util.spec_from_file_location("workloads", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows, events = module.generate(name, filters=300, events=200)
    hits = [{number for number, row in enumerate(rows) if module.matches(row, event)} for event in events]
    return [parse(module.expression(row)) for row in rows], events, hits


@pytest.mark.parametrize("name", ["eq", "stock", "begen"])
@pytest.mark.parametrize("matcher", [BruteForce, Counting, DecisionTree, DecisionDiagram])
def test_workload(name: str, matcher: type[Matcher[Any]]) -> None:
    filters, events, hits = workload(name)
    filled = matcher()
    filled.add_many(enumerate(filters))
    assert [set(filled.match(event)) for event in events] == hits
    assert sum(map(filled.count, events)) == sum(map(len, hits))
