"""The native filter language: SQL-like conditions over the fields of an event.

    symbol = 'IBM' AND price BETWEEN 100 AND 120.5 AND NOT (venue IN ('X', 'Y')) AND name LIKE 'A%' AND EXISTS data.user

A predicate such as `venue != 'X'` or `venue NOT IN (…)` requires the field to exist; `NOT (…)` is plain logic, and true
of an event without the field. `$name` is the value of another field of the same event, `:name` a parameter of `parse`;
behind IN, `:name` and `myloc` are lists (`filters.dynamic` has filters whose parameters change).
Conditions on lists use `ANY` and `ALL`, or `HAS` for lists of objects; `PATH` finds objects at any depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf

from fieldfare.events.values import Scalar
from fieldfare.filters import predicates, valueset
from fieldfare.filters.branch import Dimension
from fieldfare.filters.elements import has
from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.filters.expressions import Expression, Literal
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter
from fieldfare.filters.languages.native import nodes
from fieldfare.filters.languages.native.nodes import Tree
from fieldfare.filters.languages.native.syntax import parse_tree
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.paths import Selector, path, selector


def parse(text: str, **parameters: Scalar | Sequence[Scalar]) -> Filter:
    """Return the filter of a text. A filter that no event can match is refused, with the parts that contradict.

    >>> parse("price < :limit AND symbol = 'IBM'", limit=120.5)
    parse("price < 120.5 AND symbol = 'IBM'")
    """
    if not isinstance(text, str):
        raise TypeError(f"a filter is parsed from a str, not from {type(text).__name__}")
    tree = parse_tree(text)
    result = translate(text, tree, parameters)
    if result.is_empty:
        raise _Translation(text, parameters).contradiction(tree)
    if unused := parameters.keys() - nodes.parameters(tree):
        raise TypeError(f"the filter has no parameter :{min(unused)}")
    return result


def translate(text: str, tree: Tree, parameters: Mapping[str, Scalar | Sequence[Scalar]]) -> Filter:
    """Return the filter of the tree of a text; the filter may be empty, and some parameters without use."""
    try:
        return _Translation(text, parameters).condition(tree)
    except RecursionError:
        raise FilterSyntaxError(text, 0, "the filter is nested too deeply") from None
    except TooComplex as error:
        raise FilterTooComplex(f"the string patterns of a field cannot be combined: {error}") from None


def translate_value(text: str, tree: Tree) -> Expression:
    """Return the expression of the tree of a value, such as `price * 2`."""
    return predicates.expression(_Translation(text, {})._dimension(tree))


class _Translation:
    """A single translation of a tree into a filter."""

    def __init__(self, text: str, parameters: Mapping[str, Scalar | Sequence[Scalar]]) -> None:
        self._text = text
        self._parameters = parameters

    def _wrong(self, tree: Tree, problem: str) -> FilterSyntaxError:
        return FilterSyntaxError(self._text, tree.start, problem)

    def _quote(self, tree: Tree) -> str:
        return self._text[tree.start : tree.end]

    # Conditions

    def condition(self, tree: Tree) -> Filter:
        """Return the filter of a condition."""
        try:
            return self._condition(tree)
        except TypeError as error:
            raise self._wrong(_culprit(tree), str(error)) from None

    def _condition(self, tree: Tree) -> Filter:
        match tree:  # the most frequent first
            case nodes.Comparison():
                op = "!=" if tree.op == "<>" else tree.op
                return predicates.compared(self._dimension(tree.left), op, self._dimension(tree.right))
            case nodes.And():
                return predicates.conjunction([self.condition(part) for part in tree.parts])
            case nodes.Between():
                operand, low, high = (self._dimension(part) for part in (tree.operand, tree.low, tree.high))
                return predicates.between(operand, low, high, tree.negated)
            case nodes.In():
                items = [one for item in tree.items for one in self._items(item)]
                return predicates.one_of(self._dimension(tree.operand), items, tree.negated)
            case nodes.TextTest():
                return predicates.fits(self._dimension(tree.operand), tree.op, self._dimension(tree.text), tree.negated)
            case nodes.Or():
                return Filter(branch for part in tree.parts for branch in self.condition(part).boxes)
            case nodes.Not():
                return ~self.condition(tree.condition)
            case nodes.Is():
                return predicates.inside(self._dimension(tree.operand), predicates.TYPES[tree.type], tree.negated)
            case nodes.Exists():
                return predicates.inside(self._dimension(tree.operand), valueset.PRESENT)
            case nodes.Quantified():
                return predicates.quantified(tree.quantifier, self.condition(tree.condition))
            case nodes.Has():
                return has(tree.path, self.condition(tree.condition))
            case nodes.Path():
                condition = EVERYTHING if tree.condition is None else self.condition(tree.condition)
                return path(self._selector(tree.selector), condition)
            case nodes.Name() | nodes.Call():
                return predicates.inside(self._dimension(tree), valueset.TRUE)
            case nodes.Constant(value=bool()):
                return EVERYTHING if tree.value else NOTHING
        raise self._wrong(tree, f"expected a condition, found the value {self._quote(tree)}")

    def _items(self, tree: Tree) -> Sequence[Dimension]:
        """Return the values of an item of a list: one, or those of a parameter that is a list itself."""
        if not isinstance(tree, nodes.ParameterList):
            return (self._dimension(tree),)
        if tree.name not in self._parameters:
            raise self._wrong(tree, f"no values were given for {self._quote(tree)}")
        given = self._parameters[tree.name]
        if not isinstance(given, (list, tuple)):
            raise self._wrong(tree, f"{self._quote(tree)} behind IN is a list of values, not {given!r}")
        try:
            return [predicates.constant(value) for value in given]
        except (TypeError, ValueError) as error:
            raise self._wrong(tree, str(error)) from None

    def _selector(self, tree: Tree) -> Selector:
        match self._dimension(tree):
            case Literal(value=str(text)):
                try:
                    return selector(text)
                except ValueError as error:
                    raise self._wrong(tree, str(error)) from None
        raise self._wrong(tree, f"PATH needs a selector such as '//item/cpu', not {self._quote(tree)}")

    # Values

    def _dimension(self, tree: Tree) -> Dimension:
        """Return the dimension of a value: the path of a field, a literal, or an expression."""
        match tree:
            case nodes.Name():
                return tree.path
            case nodes.Constant():
                if isinstance(tree.value, float) and isinf(tree.value) and self._quote(tree)[-1:].isdigit():
                    raise self._wrong(tree, "the number is out of range")
                return Literal(tree.value)
            case nodes.Parameter() | nodes.Operation() | nodes.Call():
                try:
                    return self._computed(tree)
                except FilterSyntaxError:
                    raise
                except (TypeError, ValueError) as error:
                    raise self._wrong(tree, str(error)) from None
        raise self._wrong(tree, f"expected a value, found the condition {self._quote(tree)}")

    def _computed(self, tree: nodes.Parameter | nodes.Operation | nodes.Call) -> Dimension:
        match tree:
            case nodes.Parameter():
                if tree.name not in self._parameters:
                    raise ValueError(f"no value was given for the parameter :{tree.name}")
                return predicates.constant(self._parameters[tree.name])
            case nodes.Operation():
                return predicates.arithmetic(tree.op, self._dimension(tree.left), self._dimension(tree.right))
            case nodes.Call():
                return predicates.call(tree.function, [self._dimension(argument) for argument in tree.arguments])

    # Contradictions

    def contradiction(self, tree: Tree) -> FilterSyntaxError:
        """Return the error for a filter that matches nothing: two parts that exclude each other, if there are two."""
        if isinstance(tree, nodes.Or):
            return self.contradiction(tree.parts[0])
        if isinstance(tree, nodes.And):
            filters = [self.condition(part) for part in tree.parts]
            for part, meaning in zip(tree.parts, filters, strict=True):
                if meaning.is_empty:
                    return self.contradiction(part)
            for i, second in enumerate(filters):
                for j in range(i):
                    if (filters[j] & second).is_empty:
                        first, then = self._quote(tree.parts[j]), self._quote(tree.parts[i])
                        return self._wrong(tree.parts[i], f"nothing can match: {then} contradicts {first}")
        return self._wrong(tree, f"nothing can match {self._quote(tree)}")


def _culprit(tree: Tree) -> Tree:
    """Return the part of a predicate that can have a wrong type."""
    match tree:
        case nodes.Comparison():
            return tree.right if isinstance(tree.right, (nodes.Constant, nodes.Parameter)) else tree.left
        case nodes.Between():
            return tree.low
        case nodes.TextTest():
            return tree.text
        case _:
            return tree
