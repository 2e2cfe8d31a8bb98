"""The leaves of event patterns: `["a", {"prefix": "b"}, {"numeric": [">", 5]}]` as a set of values.

The operators are the operators of Event Ruler; `patterns` documents the choices where Ruler's documentation is silent.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from fieldfare.events.values import Kind
from fieldfare.filters import patterns, valueset
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.patterns import MANY, Pattern, Token
from fieldfare.filters.valueset import Atom, ValueSet

_OBJECTS: Final = ValueSet(atoms=Atom.OBJECT)
LEAF: Final = ELEMENTS - _OBJECTS
"""the values that can stand at the end of a path"""
LEAFLESS: Final = Constraint(ValueSet(atoms=Atom.MISSING | Atom.OBJECT | Atom.LIST), every=_OBJECTS)
"""the values for `exists: false`: none, an object, or an array of objects only"""


class Leaf(NamedTuple):
    """The demand of a pattern on a field: a value in a set, or an address in a network, or no value."""

    values: ValueSet
    networks: tuple[str, ...]
    absent: bool


def leaf(alternatives: list[object] | tuple[object, ...], path: str) -> Leaf:
    """Return the meaning of the array at the end of a path."""
    if not alternatives:
        refuse(path, "the array is empty, so nothing could match")
    values, networks, absent = valueset.EMPTY, [], False
    for index, alternative in enumerate(alternatives):
        here = f"{path}/{index}"
        if not isinstance(alternative, Mapping):
            values |= _scalars([alternative], here)
            continue
        operator, operand = _single(alternative, here)
        here = f"{here}/{operator}"
        if operator == "exists":
            if not isinstance(operand, bool):
                refuse(here, "expected true or false")
            values, absent = (values | LEAF, absent) if operand else (values, True)
        elif operator == "cidr":
            networks.append(_network(operand, here))
        elif operator in _OPERATORS:
            values |= _OPERATORS[operator](operand, here)
        else:
            known = ", ".join(sorted([*_OPERATORS, "cidr", "exists"]))
            refuse(here, f"there is no operator {operator!r}; there are {known}")
    return Leaf(values, tuple(networks), absent)


def refuse(path: str, problem: str) -> NoReturn:
    """Raise the error for a problem in a pattern."""
    raise FilterDocumentError(path or "/", problem)


def _single(operation: Mapping[Any, object], path: str) -> tuple[str, object]:
    if len(operation) != 1:
        refuse(path, f"an operator is an object with one key, not {len(operation)}; put each in an object of its own")
    return next(iter(operation.items()))


def _items(operand: object) -> list[object]:
    return list(operand) if isinstance(operand, (list, tuple)) else [operand]


def _scalars(values: list[object], path: str) -> ValueSet:
    for value in values:
        if not (value is None or isinstance(value, (bool, int, float, str))):
            refuse(path, "expected a string, a number, true, false, null or an operator such as {'prefix': 'a'}")
        if isinstance(value, float) and not math.isfinite(value):
            refuse(path, f"{value} is not a number of JSON")
    return valueset.one_of(values)  # type: ignore[arg-type]  # checked above


def _network(operand: object, path: str) -> str:
    if isinstance(operand, str) and "/" in operand:
        try:
            return str(ipaddress.ip_network(operand, strict=False))
        except ValueError:
            pass
    refuse(path, "expected a network such as '10.0.0.0/8' or '2001:db8::/32'")


# Numbers

_LOWER: Final = {">": "()", ">=": "[]"}
_UPPER: Final = {"<": "()", "<=": "[]"}


def _numeric(operand: object, path: str) -> ValueSet:
    terms = _items(operand)
    signs, numbers = terms[::2], terms[1::2]
    kinds = ["=" if sign == "=" else ">" if sign in _LOWER else "<" if sign in _UPPER else "?" for sign in signs]
    if sorted(kinds) not in (["="], ["<"], [">"], ["<", ">"]) or len(numbers) != len(signs):
        refuse(path, "expected ['=', 1], or ['>', 0] with one of > >= < <=, or a range such as ['>', 0, '<=', 5]")
    values = valueset.whole(Kind.NUMBER)
    for sign, number in zip(signs, numbers, strict=True):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            refuse(path, f"{sign} needs a number, not {number!r}")
        _scalars([number], path)
        if sign == "=":
            values = valueset.one_of([number])
        elif sign in _LOWER:
            values &= valueset.between(number, None, _LOWER[sign])
        else:
            values &= valueset.between(None, number, _UPPER[str(sign)])
    if values.is_empty:
        refuse(path, "no number is in this range")
    return values


# Strings


def _wildcard(text: str, ignore_case: bool, path: str) -> Pattern:
    return patterns.pattern(*_wildcard_tokens(text, path), ignore_case=ignore_case)


def _wildcard_tokens(text: str, path: str) -> Iterator[Token]:
    if "**" in text.replace("\\\\", "").replace("\\*", ""):
        refuse(path, "one * stands for any characters; two in a row say no more")
    chars = iter(text)
    for char in chars:
        if char == "*":
            yield MANY
        elif char == "\\":
            escaped = next(chars, "")
            if escaped not in ("*", "\\"):
                refuse(path, r"a backslash may only stand before * or another backslash: \* or \\")
            yield escaped
        else:
            yield char


_TEXTS: Final[dict[str, Callable[[str, bool, str], Pattern]]] = {
    "exactly": lambda text, ignore_case, _: patterns.pattern(*text, ignore_case=ignore_case),
    "equals-ignore-case": lambda text, _, __: patterns.pattern(*text, ignore_case=True),
    "prefix": lambda text, ignore_case, _: patterns.pattern(*text, MANY, ignore_case=ignore_case),
    "suffix": lambda text, ignore_case, _: patterns.pattern(MANY, *text, ignore_case=ignore_case),
    "wildcard": _wildcard,
}
"""the pattern of each operator on strings, from the text, whether to ignore case, and the path"""


def _fitting(operator: str, operand: object, path: str, *, many: bool = False) -> ValueSet:
    """Return the strings that an operator accepts; with `many`, the operand may be a list."""
    ignore_case = False
    if operator in ("prefix", "suffix") and isinstance(operand, Mapping):
        inner, operand = _single(operand, path)
        if inner != "equals-ignore-case":
            refuse(f"{path}/{inner}", f"{operator} takes a string or {{'equals-ignore-case': 'a'}}")
        path, ignore_case = f"{path}/{inner}", True
    found = valueset.EMPTY
    texts = _items(operand) if many else [operand]
    for text in texts:
        if not isinstance(text, str):
            refuse(path, f"expected a string, not {text!r}")
        if many and not text:
            refuse(path, "the empty string would exclude every string")
        found |= valueset.like(_TEXTS[operator](text, ignore_case, path))
    if not texts:
        refuse(path, "the list is empty")
    return found


def _anything_but(operand: object, path: str) -> ValueSet:
    if not isinstance(operand, Mapping):
        excluded = _items(operand)
        if not excluded:
            refuse(path, "the list is empty; for any value at all there is {'exists': true}")
        return LEAF - _scalars(excluded, path)
    operator, inner = _single(operand, path)
    if operator not in _TEXTS:
        refuse(f"{path}/{operator}", f"anything-but takes values or one of {', '.join(sorted(_TEXTS))}")
    return LEAF - _fitting(operator, inner, f"{path}/{operator}", many=True)


def _text_operator(operator: str) -> Callable[[object, str], ValueSet]:
    return lambda operand, path: _fitting(operator, operand, path)


_OPERATORS: Final[dict[str, Callable[[object, str], ValueSet]]] = {
    **{operator: _text_operator(operator) for operator in _TEXTS},
    "numeric": _numeric,
    "anything-but": _anything_but,
}
