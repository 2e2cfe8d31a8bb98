"""The slow, obvious twin of `match_recognize`: rows as dictionaries, all ways through a pattern tried one by one.

Only the parser is shared. A way through the pattern is a list of variables; ways are tried in the order of preference,
conditions are evaluated anew for each row, and measures are computed row by row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from fieldfare.patterns.row_patterns import syntax as s
from fieldfare.patterns.row_patterns.parser import parse_clause

Row = dict[str, Any]


class Failed(Exception):
    """A skip that is impossible."""


@dataclass(frozen=True)
class View:
    """The rows and variables that an expression may see: those of a match up to the row `now`."""

    clause: s.Clause
    rows: list[Row]
    start: int
    labels: list[str]
    """of the whole match, or up to now in DEFINE"""
    now: int
    number: int

    def places(self, variable: str | None, semantics: str) -> list[int]:
        until = len(self.labels) if semantics == "FINAL" else self.now - self.start + 1
        wanted = None if variable is None else set(self.clause.subsets.get(variable, (variable,)))
        return [self.start + i for i in range(until) if wanted is None or self.labels[i] in wanted]

    def label(self, row: int) -> str | None:
        return self.labels[row - self.start] if 0 <= row - self.start < len(self.labels) else None


def variables_in(expression: s.Expression) -> set[str | None]:
    match expression:
        case s.Column() | s.Classifier():
            return {expression.variable}
        case s.Call():
            return set().union(*map(variables_in, expression.arguments))
        case s.Navigation() | s.Aggregate():
            return set() if expression.argument is None else variables_in(expression.argument)
    return set()


def value(e: s.Expression, view: View, row: int | None = None) -> Any:
    """Return the value of an expression, in a row if one is given."""
    match e:
        case s.Literal():
            return e.value.as_py()
        case s.MatchNumber():
            return view.number
        case s.Column() | s.Classifier():
            places = view.places(e.variable, "") if row is None else [row]
            if not places:
                return None
            row = places[-1]
            return view.label(row) if isinstance(e, s.Classifier) else view.rows[row][e.name]
        case s.Navigation():
            return navigated(e, view)
        case s.Aggregate():
            return total(e, view)
        case s.Call():
            return called(e.function, [value(one, view, row) for one in e.arguments])
    raise AssertionError(e)


def navigated(e: s.Navigation, view: View) -> Any:
    steps = 0
    if e.function in ("PREV", "NEXT"):
        steps = -e.offset if e.function == "PREV" else e.offset
        e = e.argument if isinstance(e.argument, s.Navigation) else s.Navigation("LAST", e.argument, 0, "")
    (variable,) = variables_in(e.argument)
    places = view.places(variable, "FINAL" if e.function == "FIRST" else e.semantics)
    if e.function == "LAST":
        places = places[::-1]
    if e.offset >= len(places):
        return None
    row = places[e.offset] + steps
    return value(e.argument, view, row) if 0 <= row < len(view.rows) else None


def total(e: s.Aggregate, view: View) -> Any:
    if e.argument is None:
        return len(view.places(e.variable, e.semantics))
    variable = next(iter(variables_in(e.argument)), None)
    values = [value(e.argument, view, row) for row in view.places(variable, e.semantics)]
    values = [one for one in values if one is not None]
    if e.function == "count":
        return len(values)
    if not values:
        return None
    functions: dict[str, Any] = {"sum": sum, "min": min, "max": max, "avg": lambda some: sum(some) / len(some)}
    return functions[e.function](values)


def called(function: str, a: list[Any]) -> Any:
    if function == "and":
        return False if False in a else None if None in a else True
    if function == "or":
        return True if True in a else None if None in a else False
    if function == "is_null":
        return a[0] is None
    if function == "distinct":
        return a[0] != a[1]
    if function == "coalesce":
        return next((one for one in a if one is not None), None)
    if function == "case":
        for condition, then in zip(a[:-1:2], a[1:-1:2], strict=True):
            if condition is True:
                return then
        return a[-1]
    if None in a:
        return None
    functions: dict[str, Any] = {
        "not": lambda x: not x, "equal": lambda x, y: x == y, "not_equal": lambda x, y: x != y,
        "less": lambda x, y: x < y, "less_equal": lambda x, y: x <= y, "greater": lambda x, y: x > y,
        "greater_equal": lambda x, y: x >= y, "add": lambda x, y: x + y, "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y, "negate": lambda x: -x, "abs": abs, "greatest": max, "least": min,
        "divide": lambda x, y: x / y if y else None, "concat": lambda *some: "".join(some), "lower": str.lower,
        "modulo": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else None,
    }  # fmt: skip
    return functions[function](*a)


class Point(NamedTuple):
    """How far a way has come: the next row, the variables so far with "is hidden", and the points since the last row."""

    row: int
    labels: tuple[tuple[str, bool], ...]
    passed: frozenset[tuple[Any, ...]]


Found = tuple[tuple[str, bool], ...] | None
Then = Callable[[Point], Found]


@dataclass(frozen=True)
class Ways:
    """All ways through a pattern from a row on; `then` is the rest of the pattern behind a part."""

    clause: s.Clause
    rows: list[Row]
    start: int
    number: int

    def holds(self, variable: str, point: Point) -> bool:
        condition = self.clause.definitions.get(variable)
        names = [*(name for name, _ in point.labels), variable]
        view = View(self.clause, self.rows, self.start, names, point.row, self.number)
        return condition is None or value(condition, view) is True

    def way(self, p: s.Pattern, path: tuple[Any, ...], point: Point, then: Then, *, hidden: bool = False) -> Found:
        if path in point.passed:
            return None
        point = point._replace(passed=point.passed | {path})
        match p:
            case s.Variable(name):
                if point.row < len(self.rows) and self.holds(name, point):
                    return then(Point(point.row + 1, (*point.labels, (name, hidden)), frozenset()))
                return None
            case s.Anchor(end):
                return then(point) if point.row == (len(self.rows) if end else 0) else None
            case s.Exclusion(part):
                return self.way(part, (*path, "x"), point, then, hidden=True)
            case s.Repetition():
                return self.repeated(p, (*path, 0), point, then, hidden=hidden)
            case s.Alternation(parts):
                return self.one_of([(part,) for part in parts], path, point, then, hidden=hidden)
            case s.Permutation(parts):
                return self.one_of(list(itertools.permutations(parts)), path, point, then, hidden=hidden)
            case s.Concatenation(parts):
                return self.one_of([parts], path, point, then, hidden=hidden)

    def one_of(
        self, ways: list[tuple[s.Pattern, ...]], path: tuple[Any, ...], point: Point, then: Then, *, hidden: bool
    ) -> Found:
        for number, some in enumerate(ways):
            step = then
            for place in reversed(range(len(some))):
                step = partial(self._turned, some[place], (*path, number, place), then=step, hidden=hidden)
            if (found := step(point)) is not None:
                return found
        return None

    def _turned(self, p: s.Pattern, path: tuple[Any, ...], point: Point, *, then: Then, hidden: bool) -> Found:
        return self.way(p, path, point, then, hidden=hidden)

    def repeated(self, p: s.Repetition, path: tuple[Any, ...], point: Point, then: Then, *, hidden: bool) -> Found:
        """The last number of the path is the count of repetitions so far."""
        *above, done = path
        # The loop without limit comes back to the same points of the pattern.
        copy = min(done, max(p.low - 1, 0)) if p.high is None else done
        again = partial(self._again, p, (*above, done + 1), then=then, hidden=hidden)

        def more(point: Point) -> Found:
            return self.way(p.part, (*above, "copy", copy), point, again, hidden=hidden)

        if done < p.low:
            return more(point)
        if done == p.high:
            return then(point)
        fork = (*above, "fork", done > 0 if p.high is None else done)
        if fork in point.passed:
            return None
        point = point._replace(passed=point.passed | {fork})
        for one in (more, then) if p.greedy else (then, more):
            if (found := one(point)) is not None:
                return found
        return None

    def _again(self, p: s.Repetition, path: tuple[Any, ...], point: Point, *, then: Then, hidden: bool) -> Found:
        return self.repeated(p, path, point, then, hidden=hidden)


def found_match(clause: s.Clause, rows: list[Row], start: int, number: int) -> Found:
    """Return the preferred match from a row on."""
    ways = Ways(clause, rows, start, number)
    return ways.way(clause.pattern, (), Point(start, (), frozenset()), lambda point: point.labels)


def match_rows(rows: list[Row], text: str) -> list[Row]:
    clause = parse_clause(text)
    keys = [column.name for column in clause.partition]
    ordered = list(rows)
    for key in reversed(clause.order):
        some = [row for row in ordered if row[key.column.name] is not None]
        some.sort(key=itemgetter(key.column.name), reverse=key.descending)
        none = [row for row in ordered if row[key.column.name] is None]
        ordered = none + some if key.nulls_first else some + none
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in ordered:
        parts.setdefault(tuple(row[key] for key in keys), []).append(row)
    order = sorted(parts, key=lambda key: [(one is None, one or 0) for one in key])
    return [found for key in order for found in match_partition(clause, parts[key], keys)]


def match_partition(clause: s.Clause, rows: list[Row], keys: list[str]) -> list[Row]:
    out: list[Row] = []
    start, number, covered = 0, 1, -1
    while start < len(rows):
        found = found_match(clause, rows, start, number)
        source = rows[start]
        if found is None:
            if clause.unmatched_rows and start > covered:
                out.append({**source, **{one.name: None for one in clause.measures}})
            start += 1
            continue
        names = [name for name, _ in found]
        if not found:
            if clause.empty_matches:
                view = View(clause, rows, start, [], start - 1, number)
                shown = source if clause.all_rows else {key: source[key] for key in keys}
                out.append({**shown, **{one.name: value(one.value, view) for one in clause.measures}})
            start, number = start + 1, number + 1
            continue
        for i, (_, hidden) in enumerate(found):
            last = i == len(found) - 1
            if (clause.all_rows and not hidden) or (not clause.all_rows and last):
                view = View(clause, rows, start, names, start + i, number)
                shown = rows[start + i] if clause.all_rows else {key: source[key] for key in keys}
                out.append({**shown, **{one.name: value(one.value, view) for one in clause.measures}})
        covered = max(covered, start + len(found) - 1)
        number += 1
        if clause.skip.to == "PAST LAST ROW":
            start += len(found)
        elif clause.skip.to == "NEXT ROW":
            start += 1
        else:
            skip = clause.skip.variable or ""
            wanted = set(clause.subsets.get(skip, (skip,)))
            places = [i for i, name in enumerate(names) if name in wanted]
            to = (places[0] if clause.skip.to == "FIRST" else places[-1]) if places else 0
            if to == 0:
                raise Failed
            start += to
    return out
