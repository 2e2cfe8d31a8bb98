"""The items of a detection, `CommandLine|contains|all: [a, b]`, as filters.

A text matches strings without regard to case. In a list, some element must match. A text that is a number, and a
number, match the number and its digits as a string. A text is a set of strings; a list of texts, of which some rules
have thousands, is a call of `ILIKE_ANY`, which covers a call with fewer texts, and which the index finds by its pieces
like any other text.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fieldfare.filters import constraint, functions, patterns, valueset
from fieldfare.filters.branch import Dimension
from fieldfare.filters.budget import within
from fieldfare.filters.constraint import Constraint, any_of
from fieldfare.filters.errors import FilterDocumentError, FilterTooComplex
from fieldfare.filters.expressions import Call, Field, Literal
from fieldfare.filters.filter import Filter
from fieldfare.filters.functions import Function
from fieldfare.filters.languages.sigma import texts
from fieldfare.filters.languages.sigma.schema import LogSchema
from fieldfare.filters.languages.sigma.texts import TRANSFORMATIONS, Text
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.predicates import compared, conjunction
from fieldfare.filters.sizes import MAX_SIZE
from fieldfare.filters.valueset import Atom, ValueSet

MAX_STEPS: Final = 30_000
"""steps for the set of strings that fit all texts of an item; where it takes more, all but the longest are calls"""
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]+)?")
_NULL: Final = Constraint(ValueSet(atoms=Atom.NULL | Atom.MISSING))
_COMPARISONS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_FLAGS: Final = ("i", "m", "s")
_LIST: Final = ("all", "neq", "cased")
_MODIFIERS: Final = (*TRANSFORMATIONS, *_COMPARISONS, "expand", "re", *_FLAGS, "cidr", "exists", "fieldref", *_LIST)


class Way(NamedTuple):
    """A way to match a field: the field fits a pattern, or has a value, or passes a filter."""

    patterns: tuple[Pattern, ...] = ()
    values: ValueSet = valueset.EMPTY
    filters: tuple[Filter, ...] = ()


def item(key: str, written: object, schema: LogSchema, path: str) -> Filter:
    """Return the filter of an item; an item without a field looks at the keyword fields of the schema."""
    name, *modifiers = key.split("|")
    for modifier in modifiers:
        if modifier not in _MODIFIERS:
            raise FilterDocumentError(path, f"the modifier {modifier} is not supported")
    given = list(written) if isinstance(written, (list, tuple)) else [written]
    if not given:
        raise FilterDocumentError(path, "the list is empty")
    fields = [schema.path(name)] if name else list(schema.keywords)
    if not fields:
        raise FilterDocumentError(path, "the schema names no fields for keywords")
    try:
        ways = [_ways(field, given, modifiers if name else [*modifiers, "contains"], schema) for field in fields]
        every = "all" in modifiers
        if len(ways) == 1:
            found = _every(fields[0], ways[0]) if every else _some(fields[0], ways[0])
        else:
            sides = [
                _either(_some(field, [way]) for field, way in zip(fields, one, strict=True))
                for one in zip(*ways, strict=True)
            ]
            found = conjunction(sides) if every else _either(sides)
    except FilterTooComplex:
        raise
    except (ValueError, TypeError) as problem:
        raise FilterDocumentError(path, str(problem)) from None
    return ~found if "neq" in modifiers else found


def _ways(field: str, given: Sequence[object], modifiers: Sequence[str], schema: LogSchema) -> list[Way]:
    """Return the way to match the field for each value."""
    kinds = [name for name in modifiers if name in (*_COMPARISONS, "re", "cidr", "exists", "fieldref")]
    mixed = len(kinds) > 1 or (kinds and any(name in (*TRANSFORMATIONS, "expand", "cased") for name in modifiers))
    if mixed and (field not in schema.keywords or kinds != ["re"]):  # `contains` was added to a keyword
        raise ValueError(f"the modifiers {' and '.join(modifiers)} cannot be combined")
    if kinds == ["re"]:
        flags = "".join(name for name in modifiers if name in _FLAGS)
        return [Way(filters=(_regex(field, value, flags),)) for value in given]
    if any(name in _FLAGS for name in modifiers):
        raise ValueError("the modifiers i, m and s belong to re")
    if kinds:
        made: dict[str, Callable[[str, Any], Filter]] = {
            "cidr": _network,
            "exists": _exists,
            "fieldref": partial(_reference, schema=schema),
        }
        if kinds[0] in _COMPARISONS:
            return [Way(values=_range(_COMPARISONS[kinds[0]], value)) for value in given]
        return [Way(filters=(made[kinds[0]](field, value),)) for value in given]
    return [_plain(field, value, modifiers, schema) for value in given]


def _plain(field: str, value: object, modifiers: Sequence[str], schema: LogSchema) -> Way:
    """Return the way to match a value as such, or as a text that modifiers change."""
    made = [name for name in modifiers if name in TRANSFORMATIONS or name == "expand"]
    if isinstance(value, str) or (made and isinstance(value, (int, float)) and not isinstance(value, bool)):
        written = texts.read(value) if isinstance(value, str) else tuple(str(value))
        found: list[Text] = [written]
        for name in made:
            change = TRANSFORMATIONS[name] if name != "expand" else partial(texts.expand, values=schema.placeholders)
            found = [other for one in found for other in change(one)]
        cased = "cased" in modifiers
        digits = texts.plain(found[0]) if len(found) == 1 and not made else None
        return Way(
            tuple(patterns.pattern(*one, ignore_case=not cased) for one in found),
            valueset.EMPTY if digits is None or not _NUMBER.fullmatch(digits) else valueset.one_of([_number(digits)]),
        )
    if made:
        raise ValueError(f"{', '.join(made)} needs a text, not {_shown(value)}")
    if value is None:
        return Way(filters=(Filter.where(field, _NULL),))
    if isinstance(value, bool):
        word = patterns.pattern(*("true" if value else "false"), ignore_case=True)
        return Way((word,), valueset.one_of([value]))
    if isinstance(value, (int, float)) and math.isfinite(value):
        return Way(values=valueset.one_of([value, str(value)]))
    raise ValueError(f"{_shown(value)} is no value of a field")


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _shown(value: object) -> str:
    return repr(value)[:40]


def _range(sign: str, value: object) -> ValueSet:
    number = _number(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise ValueError(f"expected a number, not {_shown(value)}")
    closed = "[]" if sign[-1] == "=" else "()"
    return valueset.between(None, number, closed) if sign[0] == "<" else valueset.between(number, None, closed)


def _true(function: Function, field: str, *arguments: str) -> Filter:
    call = Call(function, (Field(field), *map(Literal, arguments)))
    return Filter.where(call, Constraint(valueset.TRUE))


def _network(field: str, value: object) -> Filter:
    try:
        network = ipaddress.ip_network(value if isinstance(value, str) else "", strict=False)
    except ValueError:
        raise ValueError(f"expected a network such as 10.0.0.0/8, not {_shown(value)}") from None
    return _true(functions.CIDR, field, str(network))


def _exists(field: str, value: object) -> Filter:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {_shown(value)}")
    return Filter.where(field, constraint.PRESENT if value else constraint.ABSENT)


def _regex(field: str, value: object, flags: str) -> Filter:
    if not isinstance(value, (str, int)):
        raise ValueError(f"expected a regular expression, not {_shown(value)}")
    written = f"(?{flags}){value}" if flags else str(value)
    functions.check_regex(written)
    return _true(functions.REGEX, field, written)


def _reference(field: str, value: object, schema: LogSchema) -> Filter:
    """Return the filter that two fields are equal; strings without regard to case."""
    if not isinstance(value, str):
        raise ValueError(f"expected the name of a field, not {_shown(value)}")
    lower = functions.find("LOWER")
    assert lower is not None
    sides: list[Dimension] = [Call(lower, (Field(path),)) for path in (field, schema.path(value))]
    same = compared(Field(field), "=", Field(schema.path(value)))
    return _either([same, compared(sides[0], "=", sides[1])])


# Joining


def _either(filters: Iterable[Filter]) -> Filter:
    given = list(filters)
    return given[0] if len(given) == 1 else Filter(branch for one in given for branch in one.boxes)


def _some(field: str, ways: Sequence[Way]) -> Filter:
    """Return the filter that one of the ways matches the field."""
    wanted = [pattern for way in ways for pattern in way.patterns]
    values = valueset.EMPTY
    for way in ways:
        values |= way.values
    found = [one for way in ways for one in way.filters]
    loose = [one for one in wanted if one.ignore_case or one.text != "".join(map(str, one.tokens))]
    values |= valueset.one_of([one.text for one in wanted if one not in loose])
    try:
        values |= valueset.like(loose[0]) if len(loose) == 1 else valueset.EMPTY
    except TooComplex:
        found.extend(_calls(field, loose))
    if len(loose) > 1:
        found.extend(_calls(field, loose))
    if not values.is_empty:
        found.append(Filter.where(field, any_of(values)))
    return _either(found)


def _every(field: str, ways: Sequence[Way]) -> Filter:
    """Return the filter that all ways match: a set of strings, or one for the longest text, and calls."""
    sides = [_some(field, [way]) for way in ways]
    try:
        with within(MAX_STEPS, MAX_SIZE):
            return conjunction(sides)
    except FilterTooComplex:
        order = sorted(range(len(ways)), key=lambda at: max((len(p.tokens) for p in ways[at].patterns), default=0))
        *rest, last = order
        calls = [ways[at] for at in rest]
        plain = [sides[at] for at in rest if not ways[at].patterns]
        return conjunction(
            [sides[last], *plain, *(_either(_calls(field, one.patterns)) for one in calls if one.patterns)]
        )


def _calls(field: str, wanted: Sequence[Pattern]) -> list[Filter]:
    """Return calls of `ILIKE_ANY` and `LIKE_ANY` for patterns; a pattern without letters has no case."""
    groups: Mapping[Function, list[str]] = {
        functions.ILIKE_ANY: [one.text for one in wanted if one.ignore_case],
        functions.LIKE_ANY: [one.text for one in wanted if not one.ignore_case],
    }
    return [_true(function, field, *sorted(set(listed))) for function, listed in groups.items() if listed]
