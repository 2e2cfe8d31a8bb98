"""CloudEvents SQL as filters: what it says of single attributes becomes value sets, and only the rest is computed.

A condition is lowered to a pair of filters, where it is true and where it is false, both without error. NOT swaps the
two, and AND, OR and XOR combine them as CESQL does, from left to right: `a OR b` is true where `a` is, and where `a` is
false and `b` true, so not where `a` fails.

CESQL casts, and so a condition on one attribute speaks of values of several kinds: `x = '5'` is true of the string, of
the integer and of no other value, which makes it a value set. Not so `x = 5`, which is true of '5', '05', '+5' and so
on. The dimension then is what CESQL compares, `CESQL('INT(x)') = 5`, and filters on it still cover and merge as sets.
Where a set says what is true of strings but not, say, of the base64 text of bytes, just that kind is computed.

An interval in an event stands for its points, as in every filter; `cesql_eval` alone would call it missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

from fieldfare.events.values import MISSING, Kind
from fieldfare.filters import intervals, valueset
from fieldfare.filters.automaton import TooComplex
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter
from fieldfare.filters.languages.cesql_expression import Cesql, cast_to, constant, names, read, type_of
from fieldfare.filters.languages.cesql_syntax import (
    Attribute,
    Binary,
    Call,
    Exists,
    Expr,
    In,
    Like,
    Literal,
    Logic,
    Not,
    Value,
    like_pattern,
)
from fieldfare.filters.languages.cesql_texts import SEEN, is_string, matching, one_of, spelt
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.valueset import FALSE, TRUE, ValueSet, whole

_INTEGERS: Final = ValueSet(numbers=intervals.FULL)
_STRINGS: Final = whole(Kind.STRING)
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Pair(NamedTuple):
    """Where a condition is true and where it is false; it is in error everywhere else."""

    true: Filter
    false: Filter


_NEVER: Final = Pair(NOTHING, NOTHING)


def parse(text: str) -> Filter:
    """The filter of a CESQL text: an event passes if the result is the boolean true, without error.

    Refused are calls of unknown functions, and a text that nothing can match.

    >>> print(parse("type IN ('sale', 'return') AND subject LIKE 'shop.%' AND hop < 3"))
    subject STARTS WITH 'shop.' AND type IN ('return', 'sale') AND CESQL('INT(hop)') < 3
    """
    expr = read(text)
    if type_of(expr) in (int, str):
        kind = "an integer" if type_of(expr) is int else "a string"
        raise FilterSyntaxError(text, expr.start, f"expected a condition, found {kind}")
    result = lower(expr)
    if result.is_empty:
        raise _contradiction(text, expr)
    return result


def lower(expr: Expr) -> Filter:
    """The filter of an expression whose functions all exist; it may be one that nothing can match."""
    if isinstance(expr, Attribute):
        return _has(expr.name, TRUE)  # not cast: the string 'true' is no boolean
    return _pair(expr).true if type_of(expr) is bool else NOTHING


# --- logic ------------------------------------------------------------------------------------------------------------


def _pair(expr: Expr) -> Pair:
    """Where the expression, cast to a boolean, is true and false; as one opaque piece if it is too complex otherwise."""
    try:
        return _lowered(expr) if names(expr) else _computed(expr)
    except (TooComplex, FilterTooComplex):
        return _computed(expr)


def _lowered(expr: Expr) -> Pair:
    match expr:
        case Exists(name):
            return Pair(_has(name, SEEN), _has(name, ~SEEN))
        case Not(operand) if type_of(operand) is int:  # an error, as the conformance kit wants it
            return _NEVER
        case Not(operand) if not isinstance(operand, Attribute):  # which may be an integer
            return _swapped(_pair(operand))
        case Logic(op, operands):
            return _folded(_LOGIC[op], [_pair(operand) for operand in operands])
        case Like(operand, pattern, negated):
            return _signed(_like(operand, like_pattern(pattern)), negated)
        case In(operand, items, negated):
            return _signed(_in(In(operand, items)), negated)
        case Binary() if type_of(expr) is bool:
            return _compared(expr)
        case _:
            return _computed(expr)


def _signed(pair: Pair, negated: bool) -> Pair:
    return _swapped(pair) if negated else pair


def _swapped(pair: Pair) -> Pair:
    return Pair(pair.false, pair.true)


def _and(a: Pair, b: Pair) -> Pair:
    return Pair(a.true & b.true, a.false | (a.true & b.false))


def _or(a: Pair, b: Pair) -> Pair:
    return _swapped(_and(_swapped(a), _swapped(b)))


def _xor(a: Pair, b: Pair) -> Pair:
    return Pair((a.true & b.false) | (a.false & b.true), (a.true & b.true) | (a.false & b.false))


_LOGIC: Final = {"AND": _and, "OR": _or, "XOR": _xor}


def _folded(combine: Callable[[Pair, Pair], Pair], pairs: Sequence[Pair]) -> Pair:
    """All combined. The order counts but not the grouping, and halving keeps a long list n log n."""
    if len(pairs) == 1:
        return pairs[0]
    half = len(pairs) // 2
    return combine(_folded(combine, pairs[:half]), _folded(combine, pairs[half:]))


# --- computed dimensions ----------------------------------------------------------------------------------------------


def _where(expr: Expr, values: ValueSet) -> Filter:
    """The expression has a value, and it is in the set."""
    dimension = Cesql(expr)
    if names(expr):
        return Filter.where(dimension, Constraint(values))
    return EVERYTHING if dimension.evaluate({}) in values else NOTHING


def _split(expr: Expr, inside: ValueSet, everything: ValueSet) -> Pair:
    return Pair(_where(expr, inside), _where(expr, everything - inside))


def _computed(expr: Expr) -> Pair:
    return _split(cast_to(expr, bool), TRUE, TRUE | FALSE)


# --- conditions -------------------------------------------------------------------------------------------------------


def _has(name: str, values: ValueSet) -> Filter:
    """The attribute is one of the values."""
    if name == "data":  # no attribute, and hence missing
        return EVERYTHING if MISSING in values else NOTHING
    return Filter.where(name, Constraint(values))


def _compared(expr: Binary) -> Pair:
    """A comparison; with a constant, it is a set of what the other side may be."""
    right, left = constant(expr.right), constant(expr.left)
    if right is not None:
        return _against(expr.op, expr.left, right)
    if left is None:
        return _computed(expr)
    if expr.op in _FLIPPED:
        return _against(_FLIPPED[expr.op], expr.right, left)
    to = type_of(expr.right)  # which the left side is cast to
    if to is None:
        return _signed(_in(In(expr.right, (expr.left,))), expr.op == "!=")
    cast_left = constant(expr.left, to)
    return _NEVER if cast_left is None else _against(expr.op, expr.right, cast_left)


def _against(op: str, operand: Expr, value: Value) -> Pair:
    """An operand compared with a constant."""
    if op in _FLIPPED:
        number = constant(Literal(value), int)
        if number is None:
            return _NEVER
        closed = "[]" if op[-1] == "=" else "()"
        ends = (None, cast(int, number)) if op[0] == "<" else (cast(int, number), None)
        return _split(cast_to(operand, int), valueset.between(*ends, closed), _INTEGERS)
    match value:
        case bool():
            equal = _signed(_pair(operand), not value)
        case int():
            equal = _split(cast_to(operand, int), valueset.one_of([value]), _INTEGERS)
        case str() if isinstance(operand, Attribute):
            equal = _one_of(operand.name, one_of(spelt(value)))
        case str():
            equal = _split(cast_to(operand, str), valueset.one_of([value]), _STRINGS)
    return _signed(equal, op == "!=")


def _one_of(name: str, values: ValueSet) -> Pair:
    return Pair(_has(name, values), _has(name, SEEN - values))


def _in(expr: In) -> Pair:
    """Each item is cast to the type of the operand, until one is equal or cannot be cast."""
    values = [constant(item) for item in expr.items]
    if None in values or type_of(expr.operand) is bool:
        return _computed(expr)
    items = [Literal(value) for value in values if value is not None]
    (texts, _), (numbers, all_numbers), (truths, all_truths) = (_castable(items, to) for to in (str, int, bool))
    match type_of(expr.operand):
        case None:
            name = cast(Attribute, expr.operand).name
            written = [value for text in texts for value in spelt(str(text)) if is_string(value)]
            true = one_of([*written, *numbers, *truths])
            false = SEEN - true if all_truths else SEEN - true - whole(Kind.BOOL)
            if all_numbers:
                return Pair(_has(name, true), _has(name, false))
            # An integer that was not found is an error, any other number is a string: no interval says so.
            others = _has(name, whole(Kind.NUMBER)) & _where(expr, FALSE)
            return Pair(_has(name, true), _has(name, false - whole(Kind.NUMBER)) | others)
        case to:
            found, complete, everything = (texts, True, _STRINGS) if to is str else (numbers, all_numbers, _INTEGERS)
            equal = _split(expr.operand, valueset.one_of(found), everything)
            return equal if complete else Pair(equal.true, NOTHING)


def _castable(items: Sequence[Expr], to: type) -> tuple[list[Value], bool]:
    """The items before the first that cannot be cast, and whether these are all."""
    found: list[Value] = []
    for item in items:
        value = constant(item, to)
        if value is None:
            return found, False
        found.append(value)
    return found, True


def _like(operand: Expr, pattern: Pattern) -> Pair:
    if isinstance(operand, Attribute):
        return like(operand.name, pattern)
    return _split(cast_to(operand, str), valueset.like(pattern), _STRINGS)


def like(name: str, pattern: Pattern) -> Pair:
    """The attribute, cast to a string, matches the pattern."""
    true, asked = matching(pattern)
    if asked.is_empty:
        return _one_of(name, true)
    others = _has(name, asked)
    texts = _split(Call("STRING", (Attribute(name),)), valueset.like(pattern), _STRINGS)
    return Pair(_has(name, true) | (others & texts.true), _has(name, SEEN - true - asked) | (others & texts.false))


# --- contradictions ---------------------------------------------------------------------------------------------------


def _contradiction(text: str, expr: Expr) -> FilterSyntaxError:
    """Why nothing can match: the two operands of AND that exclude each other, where there are two."""
    shown = text[expr.start : expr.end]
    if isinstance(expr, Logic) and expr.op == "AND":
        meanings = [_pair(operand).true for operand in expr.operands]
        for operand, meaning in zip(expr.operands, meanings, strict=True):
            if meaning.is_empty:
                return _contradiction(text, operand)
        for i, second in enumerate(expr.operands):
            for first, meaning in zip(expr.operands[:i], meanings, strict=False):
                if (meaning & meanings[i]).is_empty:
                    problem = f"{text[second.start : second.end]} contradicts {text[first.start : first.end]}"
                    return FilterSyntaxError(text, second.start, f"nothing can match: {problem}")
    return FilterSyntaxError(text, expr.start, f"nothing can match {shown}")
