"""CloudEvents SQL as filters: conditions on single attributes become value sets, and only the rest is computed.

A condition is translated to a pair of filters, for true and for false, both without error (see `logic`). CESQL casts,
so a condition on an attribute concerns values of several kinds: `x = '5'` is true of the string, of the integer and of
no other value, and is therefore a value set. `x = 5` is no value set: the condition is true of '5', '05', '+5' and so
on. The dimension is then the compared value, `CESQL('INT(x)') = 5`, and filters on this dimension still cover and merge
as sets.

Some conditions are sets for nearly all values: `x LIKE '%ab%'` is a set except for bytes, whose base64 text may match.
Such a condition is translated twice, `x CONTAINS 'ab' OR CESQL('STRING(x)') CONTAINS 'ab'`. The second part alone is
exact; the first part, which omits the odd kinds, exists so that filters on `x` are covered.

An interval in an event stands for its points, as in every filter; `evaluation` alone would count an interval as
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, cast

from fieldfare.events.values import MISSING, Kind
from fieldfare.filters import intervals, valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.errors import FilterOverBudget, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter
from fieldfare.filters.languages.cesql.casts import SEEN, is_string, one_of, spelt, values_of
from fieldfare.filters.languages.cesql.expression import Cesql, cast_to, constant, names, read, type_of
from fieldfare.filters.languages.cesql.logic import NEVER, Pair, combined, negated
from fieldfare.filters.languages.cesql.syntax import (
    Attribute,
    Binary,
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
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.valueset import FALSE, TRUE, ValueSet, whole

_INTEGERS: Final = ValueSet(numbers=intervals.FULL)
_STRINGS: Final = whole(Kind.STRING)
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def parse(text: str) -> Filter:
    """Return the filter of a CESQL text: an event passes if the result is the boolean true, without error.

    Calls of unknown functions are refused, and so is a text that no event can match.

    >>> print(parse("type IN ('com.sale', 'com.return') AND subject LIKE 'shop.%' AND hop < 3"))
    subject STARTS WITH 'shop.' AND type IN ('com.return', 'com.sale') AND CESQL('INT(hop)') < 3
    """
    expr = read(text)
    if type_of(expr) in (int, str):
        kind = "an integer" if type_of(expr) is int else "a string"
        raise FilterSyntaxError(text, expr.start, f"expected a condition, found {kind}")
    result = translate(expr)
    if result.is_empty:
        raise _contradiction(text, expr)
    return result


def translate(expr: Expr) -> Filter:
    """Return the filter of an expression whose functions all exist; the filter may match nothing."""
    if isinstance(expr, Attribute):
        return _has(expr.name, TRUE)  # not cast: the string 'true' is no boolean
    if type_of(expr) is not bool:
        return NOTHING
    sets = _Translation()
    result = sets.pair(expr).true
    return result | _Translation(sets.odd).pair(expr).true if sets.odd else result


class _Translation:
    """A single translation: as value sets, which omits some odd values, or with some attributes cast and computed.

    An omitted value is neither true nor false, that is, as if in error. Both sides of a pair only get smaller by the
    omission, and so do the sides of all combinations.
    """

    def __init__(self, cast_names: Collection[str] = ()) -> None:
        self._cast = cast_names
        self.odd: set[str] = set()
        """the attributes with omitted values"""

    def pair(self, expr: Expr) -> Pair:
        """Return the pair of the expression, cast to a boolean; computed in a single piece if too complex."""
        try:
            return self._translated(expr) if names(expr) else _computed(expr)
        except FilterOverBudget:
            raise
        except (TooComplex, FilterTooComplex):
            return _computed(expr)

    def _translated(self, expr: Expr) -> Pair:
        match expr:
            case Exists(name):
                return Pair(_has(name, SEEN), _has(name, ~SEEN))
            case Not(operand) if type_of(operand) is int:  # an error, a demand of the conformance kit
                return NEVER
            case Not(operand) if not isinstance(operand, Attribute):  # which may be an integer
                return negated(self.pair(operand))
            case Logic(op, operands):
                return combined(op, [self.pair(operand) for operand in operands])
            case Like(operand, pattern, is_negated):
                return negated(self._like(operand, like_pattern(pattern)), is_negated)
            case In(operand, items, is_negated):
                return negated(self._in(In(operand, items)), is_negated)
            case Binary() if type_of(expr) is bool:
                return self._compared(expr)
            case _:
                return _computed(expr)

    def _compared(self, expr: Binary) -> Pair:
        """Return the pair of a comparison; with a constant, a set of values of the other side."""
        right, left = constant(expr.right), constant(expr.left)
        if right is not None:
            return self._against(expr.op, expr.left, right)
        if left is None:
            return _computed(expr)
        if expr.op in _FLIPPED:
            return self._against(_FLIPPED[expr.op], expr.right, left)
        to = type_of(expr.right)  # which the left side is cast to
        if to is None:
            return negated(self._in(In(expr.right, (expr.left,))), expr.op == "!=")
        cast_left = constant(expr.left, to)
        return NEVER if cast_left is None else self._against(expr.op, expr.right, cast_left)

    def _against(self, op: str, operand: Expr, value: Value) -> Pair:
        """Return the pair of an operand compared with a constant."""
        if op in _FLIPPED:
            number = constant(Literal(value), int)
            return NEVER if number is None else _split(cast_to(operand, int), _range(op, cast(int, number)), _INTEGERS)
        match value:
            case bool():
                equal = negated(self.pair(operand), not value)
            case int():
                equal = _split(cast_to(operand, int), valueset.one_of([value]), _INTEGERS)
            case _ if isinstance(operand, Attribute) and operand.name not in self._cast:
                equal = _one_of(operand.name, one_of(spelt(value)))
            case _:
                equal = _split(cast_to(operand, str), valueset.one_of([value]), _STRINGS)
        return negated(equal, op == "!=")

    def _in(self, expr: In) -> Pair:
        """Return the pair of IN: each item is cast to the type of the operand, up to an equal item or a failed cast."""
        values = [constant(item) for item in expr.items]
        if None in values or type_of(expr.operand) is bool:
            return _computed(expr)
        items = [Literal(value) for value in values if value is not None]
        (texts, _), (numbers, all_numbers), (truths, all_truths) = (_castable(items, to) for to in (str, int, bool))
        if type_of(expr.operand) is str:
            return _split(expr.operand, valueset.one_of(texts), _STRINGS)
        if type_of(expr.operand) is int:
            equal = _split(expr.operand, valueset.one_of(numbers), _INTEGERS)
            return equal if all_numbers else Pair(equal.true, NOTHING)
        name = cast(Attribute, expr.operand).name
        strings = [value for text in texts for value in spelt(str(text)) if is_string(value)]
        true = one_of([*strings, *numbers, *truths])
        false = SEEN - true if all_truths else SEEN - true - whole(Kind.BOOL)
        if all_numbers:
            return Pair(_has(name, true), _has(name, false))
        # An integer that was not found is an error, any other number is a string: no interval says so.
        if name in self._cast:
            return Pair(_has(name, true), _where(expr, FALSE))
        self.odd.add(name)
        return Pair(_has(name, true), _has(name, false - whole(Kind.NUMBER)))

    def _like(self, operand: Expr, pattern: Pattern) -> Pair:
        if not isinstance(operand, Attribute) or operand.name in self._cast:
            return _split(cast_to(operand, str), valueset.like(pattern), _STRINGS)
        true, odd = values_of(valueset.like(pattern).strings)
        if not odd.is_empty:
            self.odd.add(operand.name)
        return Pair(_has(operand.name, true), _has(operand.name, SEEN - true - odd))


# --- computed dimensions ----------------------------------------------------------------------------------------------


def _where(expr: Expr, values: ValueSet) -> Filter:
    """Return the filter that the expression has a value in the set."""
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
    """Return the filter that the attribute has a value in the set."""
    if name == "data":  # no attribute, and hence missing
        return EVERYTHING if MISSING in values else NOTHING
    return Filter.where(name, Constraint(values))


def _range(op: str, end: int) -> ValueSet:
    closed = "[]" if op[-1] == "=" else "()"
    return valueset.between(None, end, closed) if op[0] == "<" else valueset.between(end, None, closed)


def _one_of(name: str, values: ValueSet) -> Pair:
    return Pair(_has(name, values), _has(name, SEEN - values))


def _castable(items: Sequence[Expr], to: type) -> tuple[list[Value], bool]:
    """Return the items before the first failed cast, and whether these are all items."""
    found: list[Value] = []
    for item in items:
        value = constant(item, to)
        if value is None:
            return found, False
        found.append(value)
    return found, True


# --- contradictions ---------------------------------------------------------------------------------------------------


def _contradiction(text: str, expr: Expr) -> FilterSyntaxError:
    """Return the error for a filter that matches nothing, with two operands of AND that exclude each other, if any."""
    shown = text[expr.start : expr.end]
    if isinstance(expr, Logic) and expr.op == "AND":
        for operand in expr.operands:
            if translate(cast_to(operand, bool)).is_empty:
                return _contradiction(text, operand)
        for i, second in enumerate(expr.operands):
            for first in expr.operands[:i]:
                if translate(Logic("AND", (first, second))).is_empty:
                    problem = f"{text[second.start : second.end]} contradicts {text[first.start : first.end]}"
                    return FilterSyntaxError(text, second.start, f"nothing can match: {problem}")
    return FilterSyntaxError(text, expr.start, f"nothing can match {shown}")
