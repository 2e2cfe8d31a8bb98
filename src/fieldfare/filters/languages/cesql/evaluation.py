"""Evaluation of CESQL: the value of an expression for an event and, if there was an error, the first error.

CESQL is total: there always is a value. An operator with a failed operand does not go on: the result is the zero value
of the operator's type (`false`, `0` or `''`) with the error of the operand. AND and OR do not evaluate an operand
without need, so an error in such an operand is no error. As a filter, an expression passes an event if the value is
`true` *without* error; note that `missing = 1 OR true` therefore does not pass, but `true OR missing = 1` does.

CESQL sees the context attributes of CloudEvents, and of those the types that CESQL knows:

- booleans, 32-bit integers and strings (also URIs) as they are; 5.0 is the integer 5, as everywhere in Fieldfare;
- timestamps as RFC 3339 strings in UTC, bytes as base64, as in the JSON format of CloudEvents;
- any other number as the string of its digits: CloudEvents has no type for such a number, and requires a string;
- any other value of a field (null, lists, objects, intervals) is no value of a CloudEvents attribute, and such an
  attribute counts as missing. So does `data`, which is no attribute;
- names are in lower case, as in CloudEvents: a field `userId` cannot be addressed, nor a field inside another.

The conformance kit decides two points: the kit demands a cast error for `NOT 10`, although everywhere else an integer
casts to a boolean as in the specification; and after a failed cast NOT negates `false`, the value of that cast. For a
result that does not fit in 32 bits the specification is silent, except for ABS; here such a result is a math error.
"""

from __future__ import annotations

import operator
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, cast
from typing import Literal as OneOf

from fieldfare.events.values import INT64_MAX, INT64_MIN, MISSING, Kind, Missing, format_timestamp, kind_of
from fieldfare.filters.languages.cesql.syntax import (
    INT32_MAX,
    INT32_MIN,
    Attribute,
    Binary,
    Call,
    Exists,
    Expr,
    In,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
    Value,
    like_pattern,
    read_integer,
)

ErrorKind: TypeAlias = OneOf[
    "parse", "math", "cast", "missingAttribute", "missingFunction", "functionEvaluation", "generic"
]
Attributes: TypeAlias = Mapping[str, object]

MAX_TEXT: Final = 1 << 20
"""characters of a text that a function may make"""


@dataclass(frozen=True, slots=True)
class Error:
    """An error of evaluation, with a kind named by CESQL."""

    kind: ErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of an expression and the first error of the evaluation."""

    value: Value
    error: Error | None = None

    @property
    def passes(self) -> bool:
        """Tell whether an event with this outcome passes the filter."""
        return self.value is True and self.error is None


def evaluate(expr: Expr, attributes: Attributes) -> Outcome:
    """Return the outcome of an expression for an event; never raises.

    >>> from fieldfare.filters.languages.cesql.syntax import parse
    >>> evaluate(parse("hop + 1"), {"hop": "4"})
    Outcome(value=5, error=None)
    >>> evaluate(parse("hop + 1"), {}).error
    Error(kind='missingAttribute', message="the event has no attribute 'hop'")
    """
    try:
        return Outcome(_value(expr, attributes))
    except _Failure as failure:
        value = failure.value if failure.value is not None else _zero(expr)
        return Outcome(value, Error(failure.kind, failure.message))


def attribute(attributes: Attributes, name: str) -> Value | Missing:
    """Return an attribute of an event as CESQL sees attributes."""
    value = attributes.get(name, MISSING) if name != "data" else MISSING
    match kind_of(value):
        case Kind.BOOL:
            return cast(bool, value)
        case Kind.STRING:
            return str.__str__(cast(str, value))  # a plain string also of an enum or another subclass
        case Kind.NUMBER:
            return _number(cast("int | float", value))
        case Kind.TIME:
            try:
                return format_timestamp(cast(datetime, value))
            except (ValueError, OverflowError):  # without a time zone, or in UTC beyond the calendar
                return MISSING
        case Kind.BYTES:
            return b64encode(cast(bytes, value)).decode()
        case _:
            return MISSING


def _number(value: int | float) -> int | str | Missing:
    if isinstance(value, float) and not (value.is_integer() and INT64_MIN <= value <= INT64_MAX):
        return repr(float(value))
    if INT32_MIN <= value <= INT32_MAX:
        return int(value)
    return str(int(value)) if INT64_MIN <= value <= INT64_MAX else MISSING  # no field holds a larger integer


class _Failure(Exception):  # a way out, not an error to report
    """An error in an operand; `value` is the result despite the error, or None for the zero value of the operation."""

    def __init__(self, kind: ErrorKind, message: str, value: Value | None = None) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.value = value


def _value(expr: Expr, attributes: Attributes) -> Value:
    match expr:
        case Literal(value):
            return value
        case Attribute(name):
            found = attribute(attributes, name)
            if found is MISSING:
                raise _Failure("missingAttribute", f"the event has no attribute {name!r}")
            return found
        case Exists(name):
            return attribute(attributes, name) is not MISSING
        case Binary():
            return _binary(expr, attributes)
        case Logic():
            return _logic(expr, attributes)
        case Like(operand, pattern, negated):
            return like_pattern(pattern).matches(_string(_operand(operand, attributes))) is not negated
        case In():
            return _in(expr, attributes)
        case Not(operand):
            return _not(_operand(operand, attributes))
        case Negate(operand):
            return _fitting(-_integer(_operand(operand, attributes)))
        case Call():
            return _call(expr, attributes)


def _operand(expr: Expr, attributes: Attributes) -> Value:
    try:
        return _value(expr, attributes)
    except _Failure as failure:
        failure.value = None  # the enclosing operation gives its own zero value
        raise


def _zero(expr: Expr) -> Value:
    """Return the value of a failed expression; `false` if the type is unknown."""
    match expr:
        case Negate():
            return 0
        case Binary(op) if op in _MATH:
            return 0
        case Call(function, args):
            found = find_function(function, len(args))
            return found.returns() if found else False
        case _:
            return False


# --- casts ------------------------------------------------------------------------------------------------------------


def _string(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(value: Value) -> int:
    if not isinstance(value, str):
        return int(value)
    number = read_integer(value)
    if number is None:
        raise _Failure("cast", f"{_shown(value)} is not a 32-bit integer")
    return number


def _boolean(value: Value) -> bool:
    if not isinstance(value, str):
        return bool(value)
    match value.lower():
        case "true":
            return True
        case "false":
            return False
    raise _Failure("cast", f"{_shown(value)} is neither true nor false")


_CASTS: Final[dict[type, Callable[[Value], Value]]] = {str: _string, int: _integer, bool: _boolean}


def _shown(value: str, most: int = 40) -> str:
    return repr(value if len(value) <= most else value[:most] + "…")


# --- operators --------------------------------------------------------------------------------------------------------


def _not(value: Value) -> bool:
    if type(value) is int:  # a demand of the conformance kit, see above
        raise _Failure("cast", f"NOT needs a boolean, not the integer {value}", True)
    try:
        return not _boolean(value)
    except _Failure as failure:
        failure.value = True
        raise


def _logic(expr: Logic, attributes: Attributes) -> bool:
    values = (_boolean(_operand(operand, attributes)) for operand in expr.operands)
    match expr.op:
        case "AND":
            return all(values)
        case "OR":
            return any(values)
        case "XOR":
            return sum(values) % 2 == 1


def _binary(expr: Binary, attributes: Attributes) -> Value:
    left, right = _operand(expr.left, attributes), _operand(expr.right, attributes)
    if expr.op in ("=", "!="):
        return (_CASTS[type(right)](left) == right) is (expr.op == "=")  # the right operand sets the type
    x, y = _integer(left), _integer(right)
    if expr.op in _ORDER:
        return _ORDER[expr.op](x, y)
    if y == 0 and expr.op in ("/", "%"):
        raise _Failure("math", f"{x} {expr.op} 0: division by zero")
    return _fitting(_MATH[expr.op](x, y))


def _fitting(number: int) -> int:
    if not INT32_MIN <= number <= INT32_MAX:
        raise _Failure("math", f"{number} does not fit in 32 bits")
    return number


def _quotient(x: int, y: int) -> int:
    """Divide and round towards zero; Python rounds down."""
    return abs(x) // abs(y) * (1 if (x < 0) is (y < 0) else -1)


_ORDER: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MATH: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda x, y: x - y * _quotient(x, y),
}


def _in(expr: In, attributes: Attributes) -> bool:
    value = _operand(expr.operand, attributes)
    to_its_type = _CASTS[type(value)]
    found = any(value == to_its_type(_operand(item, attributes)) for item in expr.items)
    return found is not expr.negated


# --- functions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in function: casts of arguments, type of result. A variadic function repeats the last parameter."""

    takes: tuple[Callable[[Value], Value], ...]
    returns: type[bool] | type[int] | type[str]
    run: Callable[..., Value]
    variadic: bool = False

    def accepts(self, arity: int) -> bool:
        """Tell whether a call may have that many arguments."""
        return arity >= len(self.takes) - 1 if self.variadic else arity == len(self.takes)


def find_function(name: str, arity: int) -> Function | None:
    """Return the function for a call, or None if there is none; `name` is in upper case."""
    return next((function for function in _FUNCTIONS.get(name, ()) if function.accepts(arity)), None)


def _call(expr: Call, attributes: Attributes) -> Value:
    function = find_function(expr.function, len(expr.args))
    if function is None:
        raise _Failure("missingFunction", f"there is no function {expr.function} of {len(expr.args)} arguments")
    values = [_operand(arg, attributes) for arg in expr.args]
    casts = function.takes + function.takes[-1:] * (len(values) - len(function.takes))
    return function.run(*(cast_to(value) for cast_to, value in zip(casts, values, strict=False)))


def _abs(number: int) -> int:
    if number == INT32_MIN:
        raise _Failure("math", f"the absolute value of {number} does not fit in 32 bits", INT32_MAX)
    return abs(number)


def _concat(mark: str, *texts: str) -> str:
    if sum(map(len, texts)) + len(mark) * len(texts) > MAX_TEXT:  # a short filter can ask for a long field many times
        raise _Failure("functionEvaluation", f"the text would have more than {MAX_TEXT} characters", "")
    return mark.join(texts)


def _left(text: str, length: int) -> str:
    return text[: _length(length, text)]


def _right(text: str, length: int) -> str:
    return text[max(0, len(text) - _length(length, text)) :]


def _substring(text: str, position: int, length: int = INT32_MAX) -> str:
    _length(length, "")
    if abs(position) > len(text):
        raise _Failure("functionEvaluation", f"position {position} lies outside {_shown(text)}", "")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _length(length: int, otherwise: str) -> int:
    """Return a length that is not negative; `otherwise` is the result of the function for a negative length."""
    if length < 0:
        raise _Failure("functionEvaluation", f"the length {length} is negative", otherwise)
    return length


# What Unicode calls white space. Python's own strip takes four control characters besides.
_WHITE_SPACE: Final = "".join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)

_FUNCTIONS: Final[dict[str, tuple[Function, ...]]] = {
    "INT": (Function((_integer,), int, int),),
    "BOOL": (Function((_boolean,), bool, bool),),
    "STRING": (Function((_string,), str, str),),
    "ABS": (Function((_integer,), int, _abs),),
    "LENGTH": (Function((_string,), int, len),),
    "LOWER": (Function((_string,), str, str.lower),),
    "UPPER": (Function((_string,), str, str.upper),),
    "TRIM": (Function((_string,), str, lambda text: text.strip(_WHITE_SPACE)),),
    "CONCAT": (Function((_string,), str, lambda *texts: _concat("", *texts), variadic=True),),
    "CONCAT_WS": (Function((_string, _string), str, _concat, variadic=True),),
    "LEFT": (Function((_string, _integer), str, _left),),
    "RIGHT": (Function((_string, _integer), str, _right),),
    "SUBSTRING": (
        Function((_string, _integer), str, _substring),
        Function((_string, _integer, _integer), str, _substring),
    ),
}
