"""The functions and operators of expressions, over columns of Arrow, with the three-valued logic of SQL.

A missing value makes the result of an operator missing; `and`, `or`, `not` know true, false and unknown. Whole numbers
are computed with 64 bits and overflow is an error; `/` gives a real number, and a division by zero a missing value.
Comparisons with NaN are false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fieldfare.patterns.row_patterns.tokens import Tokens

FUNCTIONS: Final[Mapping[str, tuple[int, int]]] = {
    "abs": (1, 1),
    "ceil": (1, 1),
    "coalesce": (1, 99),
    "concat": (1, 99),
    "floor": (1, 1),
    "greatest": (1, 99),
    "if": (2, 3),
    "least": (1, 99),
    "length": (1, 1),
    "lower": (1, 1),
    "nullif": (2, 2),
    "round": (1, 2),
    "substr": (2, 3),
    "substring": (2, 3),
    "trim": (1, 1),
    "upper": (1, 1),
}
"""functions with a name, and the least and greatest number of arguments"""
STRICT: Final = frozenset(
    {
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "add",
        "subtract",
        "multiply",
        "divide",
        "modulo",
        "negate",
        "like",
        "concat",
        "abs",
        "ceil",
        "floor",
        "length",
        "lower",
        "upper",
        "round",
        "substr",
        "substring",
        "trim",
        "cast",
        "not",
    }
)
"""functions whose result is missing if an argument is"""
_TYPES: Final[Mapping[str, Any]] = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "INTEGER": pa.int32(),
    "BIGINT": pa.int64(), "REAL": pa.float32(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(),
    "STRING": pa.string(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
}  # fmt: skip
_MICROS: Final = pa.timestamp("us")
_SPAN: Final = pa.duration("us")


class TypeMismatch(ValueError):
    """An operator that the types of its operands do not have."""


def type_named(tokens: Tokens) -> Any:
    """Read the name of a type."""
    token = tokens.name("a type")
    found = _TYPES.get(token.word)
    if token.word == "DOUBLE":
        tokens.accept("PRECISION")
    if token.word in {"VARCHAR", "DECIMAL"} and tokens.accept("("):
        precision = tokens.integer("a number of digits")
        scale = tokens.integer("a number of digits") if tokens.accept(",") else 0
        tokens.expect(")")
        if token.word == "DECIMAL":
            return pa.decimal128(precision, scale)
    if found is None:
        tokens.fail(f"the type {token.text} is not supported: write {', '.join(_TYPES)}", token.at)
    return found


def plain(column: Any) -> Any:
    """Return a column as a single array of a type that all functions take."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies in any case
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return column.cast(pa.string())
    return column


def apply(function: str, arguments: Sequence[Any], option: Any = None) -> Any:
    """Return a function of columns and scalars; TypeMismatch for types that do not fit."""
    try:
        return _TABLE[function](*arguments) if option is None else _cast(arguments[0], option)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        kinds = " and ".join(str(one.type) for one in arguments)
        raise TypeMismatch(f"{function.replace('_', ' ')} is not possible for {kinds}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"{function.replace('_', ' ')}: {error}") from None


def _number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _time(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def together(arguments: Sequence[Any]) -> list[Any]:
    """Return columns of a common type; TypeMismatch if there is none."""
    kinds = [one.type for one in arguments if not pa.types.is_null(one.type)]
    if not kinds:
        return list(arguments)
    return [one.cast(common(kinds)) for one in arguments]


def common(kinds: Sequence[Any]) -> Any:
    """Return the type to which values of several types are cast for a comparison or a choice."""
    if all(kind == kinds[0] for kind in kinds) and not pa.types.is_integer(kinds[0]):
        return kinds[0]
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    if all(map(_number, kinds)):
        whole = not any(map(pa.types.is_floating, kinds))
        if whole and all(map(pa.types.is_decimal, kinds)):
            scale = max(kind.scale for kind in kinds)
            return pa.decimal128(min(38, scale + max(kind.precision - kind.scale for kind in kinds)), scale)
        return pa.float64()
    if all(map(_time, kinds)):
        return _MICROS
    if all(map(pa.types.is_duration, kinds)):
        return _SPAN
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
        return pa.string()
    raise TypeMismatch(f"values of the types {', '.join(sorted({str(kind) for kind in kinds}))} do not go together")


def _compared(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: compare(*together([left, right]))


def _numeric(arguments: Sequence[Any]) -> list[Any]:
    found = together(arguments)
    for one in found:
        if not _number(one.type) and not pa.types.is_null(one.type):
            raise TypeMismatch(f"arithmetic is not possible for {one.type}")
    return found


def _add(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if _time(one.type) and pa.types.is_duration(other.type):
            return pc.add_checked(one.cast(_MICROS), other.cast(_SPAN))
    if pa.types.is_duration(left.type) and pa.types.is_duration(right.type):
        return pc.add_checked(left.cast(_SPAN), right.cast(_SPAN))
    return pc.add_checked(*_numeric([left, right]))


def _subtract(left: Any, right: Any) -> Any:
    if _time(left.type) and _time(right.type):
        return pc.subtract_checked(left.cast(_MICROS), right.cast(_MICROS)).cast(_SPAN)
    if _time(left.type) and pa.types.is_duration(right.type):
        return pc.subtract_checked(left.cast(_MICROS), right.cast(_SPAN))
    if pa.types.is_duration(left.type) and pa.types.is_duration(right.type):
        return pc.subtract_checked(left.cast(_SPAN), right.cast(_SPAN))
    return pc.subtract_checked(*_numeric([left, right]))


def _multiply(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if pa.types.is_duration(one.type) and pa.types.is_integer(other.type):
            return pc.multiply_checked(one.cast(_SPAN).cast(pa.int64()), other.cast(pa.int64())).cast(_SPAN)
    return pc.multiply_checked(*_numeric([left, right]))


def _without_zero(divisor: Any) -> Any:
    return pc.if_else(pc.equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)


def _divide(left: Any, right: Any) -> Any:
    left, right = (one.cast(pa.float64()) for one in _numeric([left, right]))
    return pc.divide(left, _without_zero(right))


def _modulo(left: Any, right: Any) -> Any:
    left, right = _numeric([left, right])
    if pa.types.is_decimal(left.type):
        raise TypeMismatch("% is not possible for decimals: CAST to BIGINT or DOUBLE")
    right = _without_zero(right)
    if pa.types.is_integer(left.type):
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if not isinstance(left, pa.Array) and not isinstance(right, pa.Array):
        return _modulo(pa.array([left.as_py()], pa.float64()), right)[0]
    found = np.fmod(*(pc.fill_null(one, 1.0) for one in (left, right)))
    missing = pc.or_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(missing, pa.scalar(None, pa.float64()), pa.array(found, pa.float64()))


def _negate(value: Any) -> Any:
    if pa.types.is_duration(value.type):
        return pc.negate_checked(value.cast(pa.int64())).cast(value.type)
    return pc.negate_checked(*_numeric([value]))


def _logical(value: Any) -> Any:
    if not pa.types.is_boolean(value.type) and not pa.types.is_null(value.type):
        raise TypeMismatch(f"expected a condition, found a value of the type {value.type}")
    return value.cast(pa.bool_())


def _like(value: Any, pattern: Any) -> Any:
    if isinstance(pattern, pa.Array):
        raise TypeMismatch("LIKE takes a text in quotes")
    if pattern.as_py() is None:
        return pa.nulls(len(value), pa.bool_()) if isinstance(value, pa.Array) else pa.scalar(None, pa.bool_())
    return pc.match_like(value, pattern.as_py())


def _cast(value: Any, kind: Any) -> Any:
    if pa.types.is_integer(kind) and pa.types.is_floating(value.type):
        value = pc.trunc(value)
    if pa.types.is_timestamp(kind) and not _time(value.type) and not pa.types.is_string(value.type):
        raise TypeMismatch(f"a value of the type {value.type} is no timestamp")
    return value.cast(kind)


def _round(value: Any, digits: Any = None) -> Any:
    if pa.types.is_integer(value.type):
        return value.cast(pa.int64())
    return pc.round(value, 0 if digits is None else digits.as_py(), round_mode="half_towards_infinity")


def _substr(value: Any, start: Any, length: Any = None) -> Any:
    if isinstance(start, pa.Array) or isinstance(length, pa.Array):
        raise TypeMismatch("the places in substr() must be numbers, not columns")
    first = start.as_py() - 1
    stop = None if length is None else first + length.as_py()
    return pc.utf8_slice_codeunits(value, first, stop)


def _case(*parts: Any) -> Any:
    conditions = [_logical(one) for one in parts[:-1:2]]
    *values, otherwise = together([*parts[1:-1:2], parts[-1]])
    found = otherwise
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        found = pc.if_else(pc.fill_null(condition, False), value, found)
    return found


def _distinct(left: Any, right: Any) -> Any:
    left, right = together([left, right])
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(both, False, pc.fill_null(pc.not_equal(left, right), True))


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: choose(*together(values), skip_nulls=False)


def _strings(arguments: Sequence[Any]) -> list[Any]:
    return [one if pa.types.is_string(one.type) else one.cast(pa.string()) for one in arguments]


def _coalesce(*values: Any) -> Any:
    return pc.coalesce(*together(values))


def _nullif(value: Any, other: Any) -> Any:
    same = pc.fill_null(pc.equal(*together([value, other])), False)
    return pc.if_else(same, pa.scalar(None, value.type), value)


_TABLE: Final[Mapping[str, Callable[..., Any]]] = {
    "and": lambda left, right: pc.and_kleene(_logical(left), _logical(right)),
    "or": lambda left, right: pc.or_kleene(_logical(left), _logical(right)),
    "not": lambda value: pc.invert(_logical(value)),
    "equal": _compared(pc.equal),
    "not_equal": _compared(pc.not_equal),
    "less": _compared(pc.less),
    "less_equal": _compared(pc.less_equal),
    "greater": _compared(pc.greater),
    "greater_equal": _compared(pc.greater_equal),
    "distinct": _distinct,
    "is_null": pc.is_null,
    "like": _like,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "modulo": _modulo,
    "negate": _negate,
    "case": _case,
    "if": lambda condition, value, *other: _case(condition, value, *(other or [pa.scalar(None)])),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "greatest": _extreme(pc.max_element_wise),
    "least": _extreme(pc.min_element_wise),
    "abs": lambda value: pc.abs_checked(*_numeric([value])),
    "ceil": lambda value: value if pa.types.is_integer(value.type) else pc.ceil(value),
    "floor": lambda value: value if pa.types.is_integer(value.type) else pc.floor(value),
    "round": _round,
    "concat": lambda *values: pc.binary_join_element_wise(*_strings(values), ""),
    "length": lambda value: pc.utf8_length(value).cast(pa.int64()),
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
    "substr": _substr,
    "substring": _substr,
}
