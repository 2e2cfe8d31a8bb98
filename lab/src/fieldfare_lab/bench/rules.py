"""A rule: the plain form of a filter, a list of predicates that must all hold.

Each peer is given the rules in its own language. The function `holds` defines the meaning and is short enough to be
checked by eye; a predicate on a missing field never holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | float | bool | datetime
Event: TypeAlias = dict[str, Any]


class Predicate(NamedTuple):
    """A comparison of a field with operands; the operators are the keys of `TESTS`."""

    field: str
    op: str
    operands: tuple[Any, ...]


Rule: TypeAlias = list[Predicate]

TESTS: Final[dict[str, Callable[..., bool]]] = {
    "=": lambda value, x: value == x,
    "!=": lambda value, x: value != x,
    "<=": lambda value, x: value <= x,
    ">=": lambda value, x: value >= x,
    "between": lambda value, low, high: low <= value <= high,
    "in": lambda value, *items: value in items,
    "starts": lambda value, prefix: value.startswith(prefix),
    "exists": lambda value: True,
}

NATIVE: Final = {
    "=": "{f} = {0}",
    "!=": "{f} != {0}",
    "<=": "{f} <= {0}",
    ">=": "{f} >= {0}",
    "between": "{f} BETWEEN {0} AND {1}",
    "in": "{f} IN ({all})",
    "starts": "{f} STARTS WITH {0}",
    "exists": "EXISTS {f}",
}


def holds(rule: Rule, event: Mapping[str, Any]) -> bool:
    """Tell whether the event satisfies every predicate of the rule."""
    return all(field in event and TESTS[op](event[field], *operands) for field, op, operands in rule)


def native(rule: Rule) -> str:
    """Render the rule in Fieldfare's filter language.

    >>> native([Predicate("symbol", "=", ("IBM",)), Predicate("price", "between", (1, 2.5))])
    "symbol = 'IBM' AND price BETWEEN 1 AND 2.5"
    """
    return render(rule, NATIVE, native_literal, " AND ")


def render(rule: Rule, words: Mapping[str, str], literal: Callable[[Any], str], joint: str) -> str:
    """Render the rule in a language with a form for each operator: `{f}` is the field, `{0}`, `{all}` the operands."""
    return joint.join(words[op].format(*map(literal, xs), f=field, all=listed(xs, literal)) for field, op, xs in rule)


def listed(values: Iterable[Any], literal: Callable[[Any], str]) -> str:
    """Join the literals of the values with commas."""
    return ", ".join(map(literal, values))


def native_literal(value: Scalar) -> str:
    """Return the literal of a value in Fieldfare's filter language."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(UTC).isoformat().replace('+00:00', 'Z')}'"
    return str(value).upper() if isinstance(value, bool) else repr(value)


def operators(rules: Iterable[Rule]) -> set[str]:
    """Return the operators that occur in some rule."""
    return {op for rule in rules for _, op, _ in rule}
