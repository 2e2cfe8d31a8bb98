"""All matchers on the benchmark's workloads, whose answers are written down apart: tools/workload_fixtures.py made them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tools.workload_fixtures import TARGET, described, digest

from fieldfare.filters import parse
from fieldfare.matching import BruteForce, Counting, DecisionDiagram, DecisionTree, Matcher
from fieldfare.matching.index import Index
from fieldfare_lab.bench import reference_workloads, rules

STORED = [json.loads(line) for line in TARGET.read_text(encoding="utf-8").splitlines()]
MATCHERS: dict[str, Callable[[], Matcher[int]]] = {
    "brute": BruteForce,
    "counting": Counting,
    "tree": DecisionTree,
    "diagram": DecisionDiagram,
    "index": Index,
    "index in NumPy": lambda: Index(kernels="numpy"),
}
each = pytest.mark.parametrize("stored", STORED, ids=lambda one: f"{one['name']}-{one['filters']}-{one['seed']}")


@cache
def made(name: str, filters: int, events: int, seed: int) -> reference_workloads.Made:
    return reference_workloads.generate(name, filters, events, seed)


read = cache(parse)


def made_of(stored: dict[str, Any]) -> reference_workloads.Made:
    return made(stored["name"], stored["filters"], stored["events"], stored["seed"])


def test_every_workload_is_stored_and_matches_something() -> None:
    assert Path(TARGET).parent == Path(__file__).parent / "fixtures"
    assert {one["name"] for one in STORED} == set(reference_workloads.THREE)
    assert all(one["matches"] == sum(map(len, one["hits"].values())) > 0 for one in STORED)


@each
def test_the_generators_make_what_is_stored(stored: dict[str, Any]) -> None:
    made, events = made_of(stored)
    assert digest([rules.native(rule) for rule in made]) == stored["filters_digest"]
    assert digest(events) == stored["events_digest"]


@pytest.mark.parametrize("name", reference_workloads.THREE)
def test_the_tool_would_write_the_same(name: str) -> None:
    stored = min((one for one in STORED if one["name"] == name), key=lambda one: one["filters"] * one["events"])
    assert described(name, stored["filters"], stored["events"], stored["seed"]) == stored


LARGE = {name: max(one["filters"] for one in STORED if one["name"] == name) for name in reference_workloads.THREE}


def cases() -> Iterator[object]:
    """Every matcher with every workload; those of the literature are slow, and try the large ones only in long runs."""
    for stored in STORED:
        for matcher in MATCHERS:
            slow = not matcher.startswith("index") and stored["filters"] == LARGE[stored["name"]]
            id = f"{matcher}-{stored['name']}-{stored['filters']}-{stored['seed']}"
            yield pytest.param(stored, matcher, marks=[pytest.mark.long] if slow else [], id=id)


@pytest.mark.parametrize(("stored", "matcher"), list(cases()))
def test_matchers_find_what_is_stored(stored: dict[str, Any], matcher: str) -> None:
    made, events = made_of(stored)
    filled = MATCHERS[matcher]()
    filled.add_many(enumerate(map(read, map(rules.native, made))))
    found = {str(number): hits for number, event in enumerate(events) if (hits := sorted(filled.match(event)))}
    assert found == stored["hits"]
    if matcher != "brute":  # which tries all filters again, and counts in the same way
        assert sum(map(filled.count, events)) == stored["matches"]
