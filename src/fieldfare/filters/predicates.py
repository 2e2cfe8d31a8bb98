"""Predicates: the meaning of `=`, `<`, BETWEEN, IN, LIKE, ANY and the other operators, as filters.

A language reads its own notation and takes the meaning from here, so that all languages make equal filters. A predicate
without meaning, such as `x < NULL`, is a TypeError or a ValueError, which a language may turn into an error with a
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import reduce
from typing import Any, Final

from fieldfare.events.values import MISSING, ORDERED_KINDS, Kind, Scalar, kind_of, utc
from fieldfare.filters import constraint, functions, patterns, valueset
from fieldfare.filters.branch import Dimension, with_consequences
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.expressions import Arithmetic, Call, Compare, Expression, Field, Literal
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter
from fieldfare.filters.languages.cesql.expression import cesql_dimension
from fieldfare.filters.literals import literal, writable
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.valueset import ValueSet
from fieldfare.filters.whole import meets_dimension

TYPES: Final = {
    "NULL": valueset.whole(Kind.NULL),
    "BOOL": valueset.whole(Kind.BOOL),
    "NUMBER": valueset.whole(Kind.NUMBER),
    "STRING": valueset.whole(Kind.STRING),
    "TIMESTAMP": valueset.whole(Kind.TIME),
    "BYTES": valueset.whole(Kind.BYTES),
    "LIST": valueset.whole(Kind.LIST),
    "OBJECT": valueset.whole(Kind.OBJECT),
    "NAN": valueset.NAN,
    "MISSING": valueset.ABSENT,
}
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OUTCOMES: Final = {
    "<": valueset.one_of([-1]),
    "<=": valueset.one_of([-1, 0]),
    "=": valueset.one_of([0]),
    ">=": valueset.one_of([0, 1]),
    ">": valueset.one_of([1]),
    "!=": valueset.PRESENT - valueset.one_of([0]),
}
_QUANTIFIERS: Final = {"ANY": constraint.any_of, "ALL": constraint.all_of}
_PATTERNS: Final[dict[str, Callable[[str], Pattern]]] = {
    "LIKE": patterns.like,
    "ILIKE": lambda text: patterns.like(text, ignore_case=True),
    "STARTS": lambda text: patterns.pattern(*text, MANY),
    "ENDS": lambda text: patterns.pattern(MANY, *text),
    "CONTAINS": lambda text: patterns.pattern(MANY, *text, MANY),
}

# Values


def constant(value: object) -> Literal:
    """Return a value from the user as a literal, checked."""
    if isinstance(value, datetime):
        value = utc(value)
    elif kind_of(value) in (None, Kind.LIST, Kind.OBJECT, Kind.INTERVAL):
        raise TypeError(f"{value!r} is not a value that a field can be compared with")
    return Literal(writable(value))  # type: ignore[arg-type]  # the other kinds are the scalars


def expression(dimension: Dimension) -> Expression:
    """Return the dimension as an expression."""
    return Field(dimension) if isinstance(dimension, str) else dimension


def arithmetic(op: str, left: Dimension, right: Dimension) -> Dimension:
    """Return `left op right` as a dimension, a literal if constant."""
    return _folded(Arithmetic(op, expression(left), expression(right)))


def call(name: str, arguments: Sequence[Dimension]) -> Dimension:
    """Return a call of a function as a dimension, a literal if constant."""
    given = tuple(map(expression, arguments))
    build = _SPECIAL.get(name.upper())
    if build is not None:
        return _folded(build(given))
    function = functions.find(name)
    if function is None:
        raise ValueError(f"there is no function {name.upper()}; there are {', '.join(functions.names())}")
    if len(given) < function.least or (function.most is not None and len(given) > function.most):
        raise TypeError(f"{function.name} does not take {len(given)} arguments")
    return _folded(Call(function, given))


def _folded(computed: Expression) -> Dimension:
    """Return a literal if the expression reads no field."""
    if any(True for _ in computed.fields()):
        return computed
    value: Any = computed.evaluate({})
    if value is MISSING:
        raise ValueError(f"{computed.text} has no value")
    return Literal(writable(value))


def _compare(arguments: Sequence[Expression]) -> Expression:
    match arguments:
        case (left, right):
            return Compare(left, right)
    raise TypeError(f"COMPARE does not take {len(arguments)} arguments")


_SPECIAL: Final[dict[str, Callable[[Sequence[Expression]], Expression]]] = {
    "COMPARE": _compare,
    "CESQL": cesql_dimension,
    "MEETS": meets_dimension,
}
"""expressions that are written like function calls"""

# Predicates


def inside(dimension: Dimension, values: ValueSet, negated: bool = False) -> Filter:
    """Return the filter that the dimension lies in the set or, negated, exists and does not."""
    if negated:
        values = valueset.PRESENT - values
    if isinstance(dimension, Literal):
        return EVERYTHING if dimension.value in values else NOTHING
    return Filter.where(dimension, Constraint(values))


def compared(left: Dimension, op: str, right: Dimension) -> Filter:
    """Return the filter `left op right`; either side may be a constant."""
    if isinstance(right, Literal):
        return inside(left, _against(op, right.value))
    if isinstance(left, Literal):
        return Filter.where(right, Constraint(_against(_FLIPPED[op], left.value)))
    first, second = expression(left), expression(right)
    if first.text > second.text:  # the same dimension for both orders
        first, second, op = second, first, _FLIPPED[op]
    return Filter.where(Compare(first, second), Constraint(_OUTCOMES[op]))


def _against(op: str, value: Scalar) -> ValueSet:
    """Return all values that compare with the constant in the given way."""
    if op == "=":
        return valueset.one_of([value])
    if op == "!=":
        return valueset.PRESENT - valueset.one_of([value])
    end = _ordered(value)
    closed = "[]" if op[-1] == "=" else "()"
    return valueset.between(None, end, closed) if op[0] == "<" else valueset.between(end, None, closed)


def _ordered(value: Any) -> Any:
    """Return the end of a range; TypeError for a value without order."""
    if kind_of(value) not in ORDERED_KINDS:
        raise TypeError(f"{literal(value)} has no order; use = or !=")
    return value


def between(dimension: Dimension, low: Dimension, high: Dimension, negated: bool = False) -> Filter:
    """Return the filter `dimension BETWEEN low AND high`, both ends included."""
    if isinstance(low, Literal) and isinstance(high, Literal):
        return inside(dimension, valueset.between(_ordered(low.value), _ordered(high.value)), negated)
    return _present_but(dimension, compared(dimension, ">=", low) & compared(dimension, "<=", high), negated)


def one_of(dimension: Dimension, items: Sequence[Dimension], negated: bool = False) -> Filter:
    """Return the filter `dimension IN (items)`; items may be fields."""
    constants = [item.value for item in items if isinstance(item, Literal)]
    if len(constants) == len(items):
        return inside(dimension, valueset.one_of(constants), negated)
    equal = Filter(branch for item in items for branch in compared(dimension, "=", item).boxes)
    return _present_but(dimension, equal, negated)


def _present_but(dimension: Dimension, condition: Filter, negated: bool) -> Filter:
    return inside(dimension, valueset.PRESENT) & ~condition if negated else condition


def fits(dimension: Dimension, op: str, text: Dimension, negated: bool = False) -> Filter:
    """Return the filter `dimension LIKE text`, or ILIKE, STARTS WITH, ENDS WITH, CONTAINS."""
    if not isinstance(text, Literal) or not isinstance(text.value, str):
        said = f"{op} WITH" if op in ("STARTS", "ENDS") else op
        raise TypeError(f"{said} needs a string such as 'abc', not {expression(text).text}")
    wanted = _PATTERNS[op](text.value)
    try:
        values = valueset.like(wanted)
    except TooComplex:  # an opaque predicate: matched exactly, covered only by an equal predicate
        function = functions.IMATCHES if wanted.ignore_case else functions.MATCHES
        opaque = Call(function, (expression(dimension), Literal(wanted.text)))
        return inside(opaque, valueset.FALSE if negated else valueset.TRUE)
    return inside(dimension, values, negated)


def quantified(quantifier: str, condition: Filter) -> Filter:
    """Return the filter `ANY condition` or `ALL condition`, on the elements of the single field in the condition."""
    dimensions = {dimension for branch in condition.branches for dimension in branch}
    path = next(iter(dimensions), None)
    if len(dimensions) != 1 or not isinstance(path, str) or not all(b.on(path).is_plain for b in condition.branches):
        raise TypeError(f"{quantifier} needs a condition on the elements of a single field")
    values = reduce(ValueSet.__or__, (branch.on(path).values for branch in condition.branches))
    return Filter.where(path, _QUANTIFIERS[quantifier](values))


def conjunction(filters: Iterable[Filter]) -> Filter:
    """Return the conjunction of filters; single branches on different dimensions are joined in a single step."""
    sides: dict[Dimension, Constraint] = {}
    rest: list[Filter] = []
    for part in filters:
        if len(part.boxes) == 1 and sides.keys().isdisjoint(part.boxes[0]):
            sides.update(part.boxes[0].items())
        else:
            rest.append(part)
    box = with_consequences(sides)
    return reduce(Filter.intersect, rest, NOTHING if box is None else Filter([box]))
