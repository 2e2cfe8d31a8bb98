"""Rule libraries from PyPI, which compile a rule and test the rule, one rule and one event at a time.

No library has an index over rules, so the time grows with the filters and the libraries get only a few events. A
predicate is guarded against a missing field only where some event lacks the field: a rule is as fast as can be.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from fieldfare_lab.bench.engines import Contender, Feed, Run
from fieldfare_lab.bench.rules import Event, Rule, render
from fieldfare_lab.bench.workloads import Workload

_WORDS: Final = {
    "=": "{f} == {0}",
    "!=": "{f} != {0}",
    "<=": "{f} <= {0}",
    ">=": "{f} >= {0}",
    "between": "{f} >= {0} {and} {f} <= {1}",
    "in": "{f} in [{all}]",
}
OPERATORS: Final = frozenset(_WORDS)


def _literal(value: Any) -> str:
    return json.dumps(value)


def _double(value: Any) -> str:
    return json.dumps(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def optional_fields(events: Sequence[Event]) -> set[str]:
    """Return the fields that some events have and others lack."""
    everywhere = set.intersection(*(set(event) for event in events)) if events else set()
    return {field for event in events for field in event} - everywhere


def texts(
    workload: Workload, joint: str, guard: str, *, prefix: str = "", literal: Callable[[Any], str] = _literal
) -> list[str]:
    """Render the rules in a language like Python, JavaScript or CEL, with a guard where a field may be missing."""
    unsure = {field for rule in workload.rules or () for field, _, _ in rule} & optional_fields(workload.events)
    unsure |= {field for rule in workload.rules or () for field, _, _ in rule if field not in workload.events[0]}
    words = {op: form.replace("{and}", joint).replace("{f}", prefix + "{f}") for op, form in _WORDS.items()}
    guarded = {op: f"{guard} {joint} {form}" for op, form in words.items()}

    def text(rule: Rule) -> str:
        parts = (render([p], guarded if p.field in unsure else words, literal, "") for p in rule)
        return f" {joint} ".join(parts)

    return [text(rule) for rule in workload.rules or ()]


def _zen(workload: Workload) -> Feed:
    zen = importlib.import_module("zen")
    rules = [zen.compile_expression(text).evaluate for text in texts(workload, "and", "{f} != null")]

    def feed(events: Sequence[Event]) -> Run:
        return lambda: sum(rule(event) is True for event in events for rule in rules)

    return feed


def _rule_engine(workload: Workload) -> Feed:
    library = importlib.import_module("rule_engine")
    context = library.Context(default_value=None)
    rules = [library.Rule(text, context=context).matches for text in texts(workload, "and", "{f} != null")]

    def feed(events: Sequence[Event]) -> Run:
        return lambda: sum(rule(event) for event in events for rule in rules)

    return feed


def _cel(workload: Workload) -> Feed:
    cel = importlib.import_module("cel")
    rules = [cel.compile(text).execute for text in texts(workload, "&&", "has(e.{f})", prefix="e.")]

    def feed(events: Sequence[Event]) -> Run:
        def run() -> int:
            total = 0
            for event in events:
                context = cel.Context({"e": event})
                total += sum(rule(context) for rule in rules)
            return total

        return run

    return feed


def _celpy(workload: Workload) -> Feed:
    """Prepare cel-python with doubles only, because the library cannot compare numbers of different types."""
    celpy = importlib.import_module("celpy")
    environment = celpy.Environment()
    written = texts(workload, "&&", "has(e.{f})", prefix="e.", literal=_double)
    rules = [environment.program(environment.compile(text)).evaluate for text in written]

    def doubled(event: Event) -> Event:
        return {name: float(x) if type(x) is int else x for name, x in event.items()}

    def feed(events: Sequence[Event]) -> Run:
        def run() -> int:
            total = 0
            for event in events:
                context = {"e": celpy.json_to_cel(doubled(event))}
                total += sum(bool(rule(context)) for rule in rules)
            return total

        return run

    return feed


def _library(
    name: str, about: str, prepare: Callable[[Workload], Feed], module: str, package: str, *, pairs: float, most: float
) -> Contender:
    return Contender(
        name, about, prepare, module, package, rules_only=True, operators=OPERATORS, times=False,
        pairs=lambda _: pairs, most_filters=most,
    )  # fmt: skip


CONTENDERS: Final = (
    _library("zen", "zen-engine, rule by rule (Rust)", _zen, "zen", "zen-engine", pairs=3e5, most=100_000),
    _library(
        "rule-engine", "rule-engine, rule by rule", _rule_engine, "rule_engine", "rule-engine", pairs=1e5, most=10_000
    ),
    _library(
        "cel", "common-expression-language, rule by rule (Rust)", _cel, "cel", "common-expression-language",
        pairs=3e5, most=100_000,
    ),
    _library("celpy", "cel-python, rule by rule", _celpy, "celpy", "cel-python", pairs=2e3, most=1_000),
)  # fmt: skip
