"""Event patterns of Amazon EventBridge and Event Ruler: JSON in the shape of the events that match.

    {"source": ["shop"], "detail": {"state": [{"anything-but": "draft"}], "total": [{"numeric": [">", 0, "<=", 100]}]}}

All named fields must match; a field matches if an alternative in the array of the field does. Arrays in the event are
looked through: some element must match, and all demands of a pattern below an array must be met by the same element.
Where Ruler's documentation leaves a choice, or the implementation of Ruler has no rule to follow:

- `anything-but` demands a value of any type that is not excluded; in an array, some element that is not excluded.
- `exists` asks for leaves: an object or an empty array is none, null is a leaf. `exists: false` below an array concerns
  the element in which the other fields of the object were found; if the pattern demands nothing else there, all
  elements. (Ruler does so too, but only looks at fields with names that sort before.)
- A dot in a name is a step down, as in `{"detail.state": [...]}`. No field may be named twice, by dots or in `$or`.
- Numbers are exact and unbounded, 1 is 1.0, and the string "1" is no number. A string equals only itself: Ruler takes
  two spellings of an IP address for equal. Ignoring case maps single characters: "ß" is not "SS".
- A timestamp in a field, such as `time` in CloudEvents, is no string; `prefix` does not match a timestamp.
- Fieldfare accepts some patterns that Ruler refuses: `numeric` with the upper bound first, `cidr` of a single address,
  and in `anything-but` any mixture of scalars. `$or` always is an operator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.filters import functions, valueset
from fieldfare.filters.branch import MAX_BRANCHES, Branch
from fieldfare.filters.constraint import Constraint, any_of
from fieldfare.filters.elements import has
from fieldfare.filters.errors import FilterDocumentError, FilterTooComplex
from fieldfare.filters.expressions import Call, Field, Literal
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.ruler.leaves import LEAFLESS, Leaf, leaf, refuse
from fieldfare.filters.languages.ruler.printer import document
from fieldfare.filters.machines import TooComplex

MAX_WAYS: Final = 64
"""ways in which the leaves of an object may be found or absent; `exists: false` beside other values doubles the ways"""

Steps: TypeAlias = tuple[str, ...]
"""a path as a tuple of steps"""
Rule: TypeAlias = dict[Steps, Leaf]
"""a pattern without `$or`: the demand at the end of each path"""


def parse(document: str | bytes | Mapping[str, Any]) -> Filter:
    """Return the filter of a pattern, given as JSON text or as decoded JSON.

    >>> print(parse('{"detail": {"state": ["open", {"prefix": "re"}]}}'))
    ANY (detail.state = 'open' OR detail.state STARTS WITH 're')
    """
    try:
        pattern = _json(document) if isinstance(document, (str, bytes)) else document
        _check(pattern, "")
        return Filter(branch for rule in _rules(pattern, "", ()) for branch in _filter(rule).branches)
    except RecursionError:
        raise FilterDocumentError("/", "the pattern is nested too deeply") from None
    except TooComplex as error:
        raise FilterTooComplex(f"the string patterns of a field cannot be combined: {error}") from None


def render(filter: Filter) -> dict[str, Any]:  # as in every language
    """Return the pattern of a filter, or raise a ValueError that names a constraint without a pattern.

    >>> render(parse({"a.b": [{"prefix": "x"}, 1]}))
    {'a': {'b': [1, {'prefix': 'x'}]}}
    """
    pattern = document(filter)
    if parse(pattern) != filter:
        raise ValueError(f"no pattern can express {filter}")
    return pattern


# Reading


def _json(text: str | bytes) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise FilterDocumentError("/", problem) from None
    except ValueError as error:  # bytes that are no UTF-8, and numbers with thousands of digits
        raise FilterDocumentError("/", f"not JSON: {error}") from None


def _constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


class _Twice:
    """A placeholder for the values of a repeated name, until the place is known."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        found[name] = _Twice() if name in found else value
    return found


def _check(value: object, path: str) -> None:
    """Refuse values that cannot be part of a pattern."""
    if isinstance(value, _Twice):
        refuse(path, "the name occurs twice in its object")
    if isinstance(value, str) and not value.isascii():
        _check_text(value, path)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                refuse(path, f"the name {name!r} is not a string")
            _check_text(name, path)
            _check(item, _below(path, name))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check(item, f"{path}/{index}")


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(path, "the string holds a lone surrogate, which no event can")


def _below(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _rules(pattern: object, path: str, above: Steps) -> list[Rule]:
    """Return the alternatives of a pattern: `$or` is multiplied out, since fields on both sides may share an array."""
    if not isinstance(pattern, Mapping):
        refuse(path, "a pattern is an object of field names")
    if not pattern:
        refuse(path, "the object is empty; name at least one field")
    rules: list[Rule] = [{}]
    for name, value in pattern.items():
        here = _below(path, name)
        ways = list(_ways(name, value, here, above))
        if len(rules) * len(ways) > MAX_BRANCHES:
            raise FilterTooComplex(f"the pattern has more than {MAX_BRANCHES} alternatives by its $or")
        rules = [_joined(rule, way, here) for rule in rules for way in ways]
    return rules


def _ways(name: str, value: object, path: str, above: Steps) -> Iterator[Rule]:
    """Yield the demands of an entry of a pattern, as alternatives."""
    if name == "$or":
        if not isinstance(value, (list, tuple)) or len(value) < 2:  # a single pattern is no choice
            refuse(path, "$or needs an array of two or more patterns")
        for index, alternative in enumerate(value):
            yield from _rules(alternative, f"{path}/{index}", above)
        return
    steps = (*above, *name.split("."))
    if "" in steps:
        refuse(path, "a field needs a name, also between two dots")
    if isinstance(value, Mapping):
        yield from _rules(value, path, steps)
    elif isinstance(value, (list, tuple)):
        yield {steps: leaf(value, path)}
    else:
        refuse(path, f"wrap the value in an array: [{json.dumps(value, default=repr)}]")


def _joined(rule: Rule, other: Rule, path: str) -> Rule:
    for steps in rule.keys() & other.keys():
        refuse(path, f"the pattern already has a condition on {'.'.join(steps)}")
    return {**rule, **other}


# Meaning


class _Meaning(NamedTuple):
    """The demand of a part of a rule on an object."""

    found: Filter
    """some leaves have demanded values, the others too or are rightly absent"""
    absent: frozenset[str] | None
    """or all of these paths have no leaf; None if not all may be absent"""


def _filter(rule: Rule) -> Filter:
    return Filter(branch for branch, _ in _combined([_part(steps, group) for steps, group in _groups(rule)]))


def _object(rule: Rule) -> _Meaning:
    """Return the demand on an object below, which may be an element of an array.

    Only found values tie a pattern to an element, and only then does absence concern that element; hence the two are
    kept apart.
    """
    parts = [_part(steps, group) for steps, group in _groups(rule)]
    found = Filter(branch for branch, anything_found in _combined(parts) if anything_found)
    absent = [part.absent for part in parts if part.absent is not None]
    return _Meaning(found, frozenset().union(*absent) if len(absent) == len(parts) else None)


def _combined(parts: list[_Meaning]) -> Iterator[tuple[Branch, bool]]:
    """Yield all ways to satisfy all parts, each with a flag that tells whether any value is found."""
    ways = [[(branch, True) for branch in part.found.branches] for part in parts]
    for some, part in zip(ways, parts, strict=True):
        if part.absent is not None:
            some.append((Branch(dict.fromkeys(part.absent, LEAFLESS)), False))
    if math.prod(map(len, ways)) > MAX_WAYS:
        raise FilterTooComplex(f"the pattern has more than {MAX_WAYS} alternatives of what is there and what is not")
    for chosen in product(*ways):
        yield Branch({d: wanted for branch, _ in chosen for d, wanted in branch.items()}), any(f for _, f in chosen)


def _part(steps: Steps, group: Rule) -> _Meaning:
    """Return the demand of leaves that share the steps. A single leaf needs no HAS: its path can be constrained."""
    path = ".".join(steps)
    if len(group) == 1:
        ((rest, wanted),) = group.items()
        full = ".".join((*steps, *rest))
        return _Meaning(_found(full, wanted), frozenset((full,)) if wanted.absent else None)
    inner = _object(group)
    absent = None if inner.absent is None else frozenset(f"{path}.{below}" for below in inner.absent)
    return _Meaning(has(path, inner.found), absent)


def _groups(rule: Rule) -> Iterator[tuple[Steps, Rule]]:
    """Group the rule by shared first steps, as many as possible; a leaf at this level stands alone."""
    groups: dict[object, Rule] = {}
    for steps, wanted in rule.items():
        groups.setdefault(steps if len(steps) == 1 else steps[0], {})[steps] = wanted
    for group in groups.values():
        shared, most = 0, min(map(len, group)) - 1
        while shared < most and len({steps[shared] for steps in group}) == 1:
            shared += 1
        yield next(iter(group))[:shared], {steps[shared:]: wanted for steps, wanted in group.items()}


def _found(path: str, wanted: Leaf) -> Filter:
    """Return the filter that some value at the path is a demanded value."""
    ways = [] if wanted.values.is_empty else [Filter.where(path, any_of(wanted.values))]
    for network in wanted.networks:
        call = Call(functions.CIDR, (Field(path), Literal(network)))
        ways.append(Filter.where(call, Constraint(valueset.TRUE)))
    return Filter(branch for way in ways for branch in way.branches)
