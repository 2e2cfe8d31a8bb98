"""The workloads that others wrote, where they lie beside the repository: ours are the same, and so are the answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.matching.test_workloads import STORED
from tools.workload_fixtures import digest

from fieldfare_lab.bench import reference_workloads, rules, workloads


@pytest.mark.parametrize("stored", STORED, ids=lambda one: f"{one['name']}-{one['filters']}-{one['seed']}")
def test_the_stored_answers_are_theirs(stored: dict[str, Any]) -> None:
    original = workloads.shared()
    assert original is not None
    made, events = original.generate(stored["name"], stored["filters"], stored["events"], stored["seed"])
    assert digest([original.expression(rule) for rule in made]) == stored["filters_digest"]
    assert digest(events) == stored["events_digest"]
    found = [[number for number, rule in enumerate(made) if original.matches(rule, event)] for event in events]
    assert {str(number): hits for number, hits in enumerate(found) if hits} == stored["hits"]


@pytest.mark.parametrize("name", reference_workloads.THREE)
def test_ours_are_the_shared_ones(name: str) -> None:
    original = workloads.shared()
    assert original is not None
    for seed in (42, 7):
        wanted, events = original.generate(name, 300, 200, seed)
        made, ours = reference_workloads.generate(name, 300, 200, seed)
        assert [[(field, op, *operands) for field, op, operands in rule] for rule in made] == wanted
        assert [list(event.items()) for event in ours] == [list(event.items()) for event in events]
        assert [rules.native(rule) for rule in made] == [original.expression(rule) for rule in wanted]
    assert original.EXPECTED == reference_workloads.EXPECTED
