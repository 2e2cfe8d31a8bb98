"""The conformance kit of CloudEvents SQL, case by case."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.shared import KIT

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.languages.cesql import translation
from fieldfare.filters.languages.cesql.evaluation import evaluate
from fieldfare.filters.languages.cesql.syntax import parse

EVENT = {"specversion": "1.0", "id": "an-id", "source": "/a/source", "type": "a.type"}


class Loader(yaml.CSafeLoader):
    """YAML as the kit means it: a timestamp is the string that JSON would have."""


Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)


def cases() -> list[pytest.ParameterSet]:
    """Every case of the kit; the expressions are taken as they are written (`TRUE`, `0`), not as YAML reads them."""
    found = []
    for path in sorted(KIT.glob("*.yaml")):
        text = path.read_text("utf-8")
        read, written = yaml.load(text, Loader), yaml.load(text, yaml.CBaseLoader)
        for case, raw in zip(read["tests"], written["tests"], strict=True):
            found.append(pytest.param({**case, "expression": raw["expression"]}, id=f"{path.stem}: {case['name']}"))
    return found


def test_the_kit_is_whole() -> None:
    assert len(cases()) == 275


@pytest.mark.parametrize("case", cases())
def test_case(case: dict[str, Any]) -> None:
    event = case.get("event") or {**EVENT, **case.get("eventOverrides", {})}
    try:
        outcome = evaluate(parse(case["expression"]), event)
    except FilterSyntaxError:
        assert case.get("error") == "parse"  # no tree, hence no value to compare
        return
    assert (outcome.error and outcome.error.kind) == case.get("error")
    if "result" in case:
        assert (type(outcome.value), outcome.value) == (type(case["result"]), case["result"])


@pytest.mark.parametrize("case", cases())
def test_case_as_a_filter(case: dict[str, Any]) -> None:
    event = case.get("event") or {**EVENT, **case.get("eventOverrides", {})}
    try:
        matches = translation.parse(case["expression"]).matches(event)
    except FilterSyntaxError:  # also what can never be true is refused
        matches = False
    assert matches == (case.get("result") is True and "error" not in case)
