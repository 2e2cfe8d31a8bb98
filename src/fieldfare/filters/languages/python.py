"""Filters written in Python: `(field.price < 120) & field.symbol.isin(["IBM", "SUN"])`.

`field.a.b` is the field `a.b`, and so is `field["a.b"]`. The second form also names fields that Python cannot,
`field["unit price"]`, and fields with the name of a method, `field.data["contains"]`. The result is the `Filter` that
the native language makes of the same condition.

As in the native language, `!=` requires the field to exist; `~(field.x == 1)` is plain logic, and true without the
field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from fieldfare.events.values import Ordered, Scalar
from fieldfare.filters import elements, predicates, valueset
from fieldfare.filters.branch import Dimension
from fieldfare.filters.filter import Filter
from fieldfare.filters.predicates import TYPES

Operand: TypeAlias = "Scalar | Value"
OrderedOperand: TypeAlias = "Ordered | Value"


class Value:
    """A value of an event: a comparison with a `Value` makes a filter, arithmetic makes another `Value`.

    >>> print((field.bid * 1.1 > field.ask) & (call("LENGTH", field.symbol) <= 4))
    ask < bid * 1.1 AND LENGTH(symbol) <= 4
    """

    __slots__ = ("_dimension",)

    def __init__(self, dimension: Dimension) -> None:
        self._dimension = dimension

    def _says(self, condition: Filter) -> Filter:
        """Return the filter of a condition on the value."""
        return condition

    def _compared(self, op: str, other: object) -> Filter:
        return self._says(predicates.compared(self._dimension, op, _dimension(other)))

    def __lt__(self, other: OrderedOperand) -> Filter:
        return self._compared("<", other)

    def __le__(self, other: OrderedOperand) -> Filter:
        return self._compared("<=", other)

    def __gt__(self, other: OrderedOperand) -> Filter:
        return self._compared(">", other)

    def __ge__(self, other: OrderedOperand) -> Filter:
        return self._compared(">=", other)

    def __eq__(self, other: Operand) -> Filter:  # type: ignore[override]  # a filter, not a truth
        return self._compared("=", other)

    def __ne__(self, other: Operand) -> Filter:  # type: ignore[override]
        return self._compared("!=", other)

    __hash__ = None  # type: ignore[assignment]  # equal to everything, in a way

    def isin(self, items: Iterable[Operand]) -> Filter:
        """Return the filter that the value equals an item."""
        if isinstance(items, (str, bytes)):
            raise TypeError(f"isin needs a list of values, not {items!r}; did you mean [{items!r}]?")
        return self._says(predicates.one_of(self._dimension, [_dimension(item) for item in items]))

    def between(self, low: OrderedOperand, high: OrderedOperand) -> Filter:
        """Return the filter that the value lies between two ends, both included."""
        return self._says(predicates.between(self._dimension, _dimension(low), _dimension(high)))

    def startswith(self, text: str) -> Filter:
        """Return the filter that the value is a string with the prefix."""
        return self._fits("STARTS", text)

    def endswith(self, text: str) -> Filter:
        """Return the filter that the value is a string with the suffix."""
        return self._fits("ENDS", text)

    def contains(self, text: str) -> Filter:
        """Return the filter that the value is a string with the substring. For lists, see `Field.any`."""
        return self._fits("CONTAINS", text)

    def like(self, pattern: str) -> Filter:
        """Return the filter of a LIKE pattern: `%` any characters, `_` any character, a backslash escapes the next."""
        return self._fits("LIKE", pattern)

    def ilike(self, pattern: str) -> Filter:
        """Return the filter of a LIKE pattern that ignores case."""
        return self._fits("ILIKE", pattern)

    def _fits(self, op: str, text: str) -> Filter:
        return self._says(predicates.fits(self._dimension, op, _dimension(text)))

    def is_null(self) -> Filter:
        """Return the filter that the value exists and is null."""
        return self._says(predicates.inside(self._dimension, TYPES["NULL"]))

    def is_true(self) -> Filter:
        """Return the filter that the value is true: for fields and functions that are conditions."""
        return self._says(predicates.inside(self._dimension, valueset.TRUE))

    def exists(self) -> Filter:
        """Return the filter that the event has the value; null counts."""
        return predicates.inside(self._dimension, valueset.PRESENT)

    def missing(self) -> Filter:
        """Return the filter that the event does not have the value."""
        return predicates.inside(self._dimension, valueset.ABSENT)

    def __add__(self, other: Operand) -> Value:
        return _computed("+", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _computed("+", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _computed("-", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _computed("-", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _computed("*", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _computed("*", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _computed("/", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _computed("/", other, self)

    def __mod__(self, other: Operand) -> Value:
        return _computed("%", self, other)

    def __rmod__(self, other: Operand) -> Value:
        return _computed("%", other, self)

    def __neg__(self) -> Value:
        return _computed("-", 0, self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} is neither true nor false here: say what it must be, such as .is_true() or .exists()"
        )

    def __contains__(self, item: object) -> bool:
        raise TypeError(f"`in` cannot make a filter: use .isin([...]), .contains({item!r}) or .any() == {item!r}")

    def __repr__(self) -> str:
        return str(predicates.expression(self._dimension))


class Elements(Value):
    """Any or all elements of a list; a field that is no list counts as its own only element."""

    __slots__ = ("_quantifier",)

    def __init__(self, path: str, quantifier: str) -> None:
        super().__init__(path)
        self._quantifier = quantifier

    def _says(self, condition: Filter) -> Filter:
        return predicates.quantified(self._quantifier, condition)

    def __repr__(self) -> str:
        return f"{self._quantifier} {super().__repr__()}"


class Field(Value):
    """A field of the event; attributes and items lead to the fields below."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path

    def __getattr__(self, name: str) -> Field:
        _refuse_private(name)
        return _named(self._path, name)

    def __getitem__(self, name: str) -> Field:
        return _named(self._path, name)

    __iter__ = None

    def any(self) -> Elements:
        """Return some element of the list: `field.tags.any() == "a"`."""
        return Elements(self._path, "ANY")

    def all(self) -> Elements:
        """Return every element of the list: `field.scores.all() >= 50`."""
        return Elements(self._path, "ALL")

    def has(self, condition: Filter) -> Filter:
        """Return the filter that a single element of a list of objects satisfies the condition.

        The fields in the condition are the fields of the element.

        >>> print(field.items.has((field.sku == "a") & (field.qty > 2)))
        ANY items.qty > 2 AND ANY items.sku = 'a' AND items HAS (qty > 2 AND sku = 'a')
        """
        if not isinstance(condition, Filter):
            raise TypeError(f"has needs a filter such as field.sku == 'a', not {condition!r}")
        return elements.has(self._path, condition)


class Fields:
    """All fields of an event; the only object is `field`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Field:
        _refuse_private(name)
        return _named("", name)

    def __getitem__(self, name: str) -> Field:
        return _named("", name)

    __iter__ = None

    def __repr__(self) -> str:
        return "field"


field: Final = Fields()
"""the start of every filter: `field.price`, `field["unit price"]`"""


def call(function: str, *arguments: Operand) -> Value:
    """Return a function of values: `call("LENGTH", field.name) > 5`."""
    return Value(predicates.call(function, [_dimension(argument) for argument in arguments]))


def _refuse_private(name: str) -> None:
    if name.startswith("_"):  # a request of Python itself: copying, pickling, notebooks
        raise AttributeError(f"write a field with this name as field[{name!r}]")


def _named(path: str, name: object) -> Field:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a field is named by a string, not by {name!r}; for elements of a list see any() and all()")
    return Field(f"{path}.{name}" if path else name)


def _computed(op: str, left: object, right: object) -> Value:
    return Value(predicates.arithmetic(op, _dimension(left), _dimension(right)))


def _dimension(operand: object) -> Dimension:
    """Return the dimension of an operand."""
    if isinstance(operand, Elements):
        raise TypeError(f"{operand!r} can only be compared with constants")
    return operand._dimension if isinstance(operand, Value) else predicates.constant(operand)
