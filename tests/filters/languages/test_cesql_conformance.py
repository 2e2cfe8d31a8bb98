"""The conformance kit of CloudEvents SQL, case by case."""

from __future__ import annotations

from typing import Any

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


def cases() -> dict[str, dict[str, Any]]:
    """Every case of the kit; the expressions are taken as they are written (`TRUE`, `0`), not as YAML reads them."""
    found = {}
    for path in sorted(KIT.glob("*.yaml")):
        text = path.read_text("utf-8")
        read, written = yaml.load(text, Loader), yaml.load(text, yaml.CBaseLoader)
        for number, (case, raw) in enumerate(zip(read["tests"], written["tests"], strict=True)):
            found[f"{path.stem} {number}: {case['name']}"] = {**case, "expression": raw["expression"]}
    return found


CASES = cases()


def is_right(case: dict[str, Any]) -> bool:
    event = case.get("event") or {**EVENT, **case.get("eventOverrides", {})}
    try:
        outcome = evaluate(parse(case["expression"]), event)
    except FilterSyntaxError:
        return case.get("error") == "parse"  # no tree, hence no value to compare
    same = "result" not in case or (type(outcome.value), outcome.value) == (type(case["result"]), case["result"])
    return same and (outcome.error and outcome.error.kind) == case.get("error")


def is_right_as_a_filter(case: dict[str, Any]) -> bool:
    event = case.get("event") or {**EVENT, **case.get("eventOverrides", {})}
    try:
        matches = translation.parse(case["expression"]).matches(event)
    except FilterSyntaxError:  # also what can never be true is refused
        matches = False
    return matches == (case.get("result") is True and "error" not in case)


def test_the_kit_is_whole() -> None:
    assert len(CASES) == 275


def test_values_and_errors() -> None:
    assert [name for name, case in CASES.items() if not is_right(case)] == []


def test_as_filters() -> None:
    assert [name for name, case in CASES.items() if not is_right_as_a_filter(case)] == []
