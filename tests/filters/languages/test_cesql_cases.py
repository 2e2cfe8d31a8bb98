"""Our own cases of CloudEvents SQL, written from its specification: those of `cesql_cases`, evaluated and as filters.

A file has groups. Each names the section of the specification it rests on, what it is about, the attributes of the
event beside those that every event has, and its cases, one a line: `expression -> value`, `expression -> value, error`
or `expression -> error` where the specification leaves the value open. Values are written as in JSON. An expression
with line breaks stands alone, as `expression` and `gives`. What `ours` says differs from the specification on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import yaml

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.languages.cesql import evaluation, translation
from fieldfare.filters.languages.cesql.evaluation import ErrorKind, evaluate, find_function
from fieldfare.filters.languages.cesql.syntax import (
    Binary,
    Call,
    CompareOp,
    Expr,
    In,
    Like,
    Literal,
    Logic,
    LogicOp,
    MathOp,
    Value,
    children,
    parse,
)

FOLDER = Path(__file__).parent / "cesql_cases"
EVENT = {"specversion": "1.0", "id": "1", "source": "/tests", "type": "test"}
KINDS = set(get_args(ErrorKind))
UNUSED = {"generic"}  # any error that is of no other kind: the specification knows none
REFUSED = "TRUE OR NOSUCH()"  # as a filter: errors that can be seen early should be, says section 3.3
CASTS = {"INT": int, "BOOL": bool, "STRING": str}


class Outcome(NamedTuple):
    """A value, or None where any will do, and the kind of the error."""

    value: Value | None
    error: str | None

    def allows(self, found: Outcome) -> bool:
        same = (type(self.value), self.value) == (type(found.value), found.value)
        return self.error == found.error and (self.value is None or same)


@dataclass(frozen=True)
class Case:
    """An expression, an event, what the specification says, and what we do instead, if so."""

    file: str
    section: str
    expression: str
    event: dict[str, Any]
    wanted: Outcome
    ours: Outcome | None

    @property
    def passes(self) -> bool:
        value, error = self.ours or self.wanted
        return value is True and error is None

    def found(self) -> Outcome:
        try:
            outcome = evaluate(parse(self.expression), self.event)
        except FilterSyntaxError:
            return Outcome(None, "parse")
        return Outcome(outcome.value, outcome.error.kind if outcome.error else None)


def read_outcome(text: str) -> Outcome:
    value, _, error = text.rpartition(", ")
    if error not in KINDS:
        value, error = text, ""
    return Outcome(json.loads(value) if value else None, error or None)


def read() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for group in yaml.load(path.read_text("utf-8"), yaml.CSafeLoader):
            lines = [line.rpartition("->") for line in group.get("cases", "").splitlines()]
            pairs = [(expression.strip(), outcome.strip()) for expression, _, outcome in lines]
            if "expression" in group:
                pairs.append((group["expression"], group["gives"]))
            event = {**EVENT, **group.get("event", {})}
            ours = read_outcome(group["ours"]) if "ours" in group else None
            for expression, outcome in pairs:
                yield Case(path.stem, group["section"], expression, event, read_outcome(outcome), ours)


ALL = list(read())


# All cases are one test: as 931 tests they took five times as long.


def problem(case: Case) -> str:
    """Tell what is wrong with a case; an empty text if nothing is."""
    found = case.found()
    if case.ours is None:
        return "" if case.wanted.allows(found) else f"{case.section}: {case.wanted} is wanted, not {found}"
    if not case.ours.allows(found):
        return f"{case.ours} is what we do, not {found}"
    return f"{case.section}: this is no difference any more" if case.wanted.allows(found) else ""


def passes_as_a_filter(case: Case) -> bool:
    try:
        return translation.parse(case.expression).matches(case.event)
    except FilterSyntaxError:  # also what can never be true is refused
        return False


def test_values_and_errors() -> None:
    told = [(f"{case.file}: {case.expression}", problem(case)) for case in ALL]
    assert [(case, wrong) for case, wrong in told if wrong] == []


def test_as_filters() -> None:
    wrong = [case for case in ALL if passes_as_a_filter(case) != (case.passes and case.expression != REFUSED)]
    assert wrong == []


# --- nothing is left out ----------------------------------------------------------------------------------------------


def nodes(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from nodes(child)


# Of a case with an error one cannot tell what was reached.
GOOD = [case for case in ALL if case.wanted.error is None and case.ours is None]
NODES = [node for case in GOOD for node in nodes(parse(case.expression))]
FAILED = {
    error: [node for case in ALL if case.wanted.error == error for node in nodes(parse(case.expression))]
    for error in KINDS - {"parse"}
}


def test_no_case_is_there_twice() -> None:
    seen = [(case.file, case.expression, str(case.event)) for case in ALL]
    assert sorted(one for one in set(seen) if seen.count(one) > 1) == []


def test_every_operator_has_a_case() -> None:
    assert {type(node) for node in NODES} == set(get_args(Expr))
    assert {node.op for node in NODES if isinstance(node, Logic)} == set(get_args(LogicOp))
    assert {node.op for node in NODES if isinstance(node, Binary)} == {*get_args(CompareOp), *get_args(MathOp)}
    assert any("<>" in case.expression for case in GOOD)
    for negatable in (Like, In):
        assert {node.negated for node in NODES if isinstance(node, negatable)} == {False, True}


def test_every_operator_has_both_outcomes() -> None:
    conditions: dict[str, set[object]] = {}
    for case in GOOD:
        match top := parse(case.expression):
            case Binary(op) | Logic(op):
                conditions.setdefault(op, set()).add(case.wanted.value)
            case Like() | In():
                conditions.setdefault(f"{top.negated} {type(top).__name__}", set()).add(case.wanted.value)
            case _:
                conditions.setdefault(type(top).__name__, set()).add(case.wanted.value)
    one_sided = [name for name, values in conditions.items() if len(values) < 2]
    assert one_sided == []


def test_every_function_has_a_case() -> None:
    known = [(name, one) for name, overloads in evaluation._FUNCTIONS.items() for one in overloads]
    calls = [node for node in NODES if isinstance(node, Call)]
    for name, function in known:
        arities = {len(call.args) for call in calls if find_function(call.function, len(call.args)) is function}
        least = len(function.takes)
        wanted = {least - 1, least, least + 1} if function.variadic else {least}
        assert arities >= wanted, f"{name} of {wanted - arities} arguments has no case"


def test_every_kind_of_error_has_a_case() -> None:
    assert {case.wanted.error for case in ALL} - {None} == KINDS - UNUSED


def test_every_cast_has_a_case() -> None:
    every = {(of, to) for of in CASTS.values() for to in CASTS.values()}
    failing = {(str, int), (str, bool)}
    assert explicit(NODES) == every
    assert compared(NODES) == every
    assert listed(NODES) == every
    assert explicit(FAILED["cast"]) >= failing
    assert compared(FAILED["cast"]) >= failing
    assert listed(FAILED["cast"]) >= failing


def explicit(found: list[Expr]) -> set[tuple[type, type]]:
    calls = [node for node in found if isinstance(node, Call) and node.function in CASTS]
    return {(type(arg.value), CASTS[call.function]) for call in calls for arg in call.args if isinstance(arg, Literal)}


def compared(found: list[Expr]) -> set[tuple[type, type]]:
    """Casts of the left side to the type of the right one."""
    pairs = [(node.left, node.right) for node in found if isinstance(node, Binary) and node.op == "="]
    return {(type(x.value), type(y.value)) for x, y in pairs if isinstance(x, Literal) and isinstance(y, Literal)}


def listed(found: list[Expr]) -> set[tuple[type, type]]:
    """Casts of elements to the type of the left side."""
    pairs = [(item, node.operand) for node in found if isinstance(node, In) for item in node.items]
    return {(type(x.value), type(y.value)) for x, y in pairs if isinstance(x, Literal) and isinstance(y, Literal)}
