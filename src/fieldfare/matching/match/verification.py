"""Verification of filters that arrays cannot decide: the results of `Filter.matches_fields`, several times faster.

A filter is verified for every event that its keys or its substring let through. The test of each field is therefore
prepared once: a set of strings, a substring, a suffix. Values other than strings and numbers, lists and intervals among
them, take the general way through `Constraint.matches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fieldfare.events.values import MISSING
from fieldfare.filters.branch import Branch, Dimension, satisfied
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import Language, StringSet

Fields: TypeAlias = Mapping[str, object]
Check: TypeAlias = Callable[[Fields, Mode], bool]
TextTest: TypeAlias = Callable[[str], bool]


def check_of(wanted: Filter, *, found_by_text: bool) -> Check:
    """Return the check of a filter. The parts that did not lead to the filter come first: texts, or all else."""
    branches = [_branch(branch, found_by_text=found_by_text) for branch in wanted.branches]
    return branches[0] if len(branches) == 1 else lambda fields, mode: any(one(fields, mode) for one in branches)


def _branch(branch: Branch, *, found_by_text: bool) -> Check:
    ordered = sorted(branch.items(), key=lambda side: isinstance(side[1].values.strings, Language) is found_by_text)
    sides = [_side(dimension, wanted) for dimension, wanted in ordered]
    if len(sides) == 1:
        return sides[0]

    def check(fields: Fields, mode: Mode) -> bool:
        for side in sides:  # noqa: SIM110 - `all` takes half as long again
            if not side(fields, mode):
                return False
        return True

    return check


def _side(dimension: Dimension, wanted: Constraint) -> Check:
    """Return the check of a constraint."""
    if not isinstance(dimension, str):
        return lambda fields, mode: satisfied(dimension, wanted, fields, mode)
    fits, numbers, may_be_missing = _test(wanted.values.strings), wanted.values.numbers, wanted.matches(MISSING)

    def check(fields: Fields, mode: Mode) -> bool:
        value = fields.get(dimension, MISSING)
        kind = type(value)
        if kind is str:
            return fits(value)  # type: ignore[arg-type]
        if value is MISSING:
            return may_be_missing
        if (kind is int or kind is float) and value == value:
            return value in numbers
        return wanted.matches(value, mode)

    return check


def _test(wanted: StringSet) -> TextTest:
    """Return the test of a string against a set of strings."""
    if isinstance(wanted, Intervals):
        listed = wanted.points()
        return wanted.__contains__ if listed is None else frozenset(listed).__contains__
    (fits, fails, leaf), *others = wanted.paths()
    if others or not leaf.is_full:
        return wanted.__contains__
    inside, outside = [*map(_fit, fits)], [*map(_fit, fails)]
    if len(inside) == 1 and not outside:
        return inside[0]
    return lambda value: all(fit(value) for fit in inside) and not any(fit(value) for fit in outside)


def _fit(pattern: Pattern) -> TextTest:
    """Return the test of a string against a pattern."""
    tokens = pattern.tokens
    literal = [token if isinstance(token, str) else "" for token in tokens]
    if pattern.ignore_case or not tokens:
        return pattern.matches
    if tokens[0] is MANY and tokens[-1] is MANY and all(literal[1:-1]):
        text = "".join(literal)
        return lambda value: text in value
    end = "".join(literal[max((i + 1 for i, char in enumerate(literal) if not char), default=0) :])
    if tokens[0] is MANY and len(end) == len(tokens) - 1:
        return lambda value: value.endswith(end)
    return lambda value: value.endswith(end) and pattern.matches(value)
