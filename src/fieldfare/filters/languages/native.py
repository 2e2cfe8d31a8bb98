"""The native filter language: SQL-like conditions over an event's fields.

    symbol = 'IBM' AND price BETWEEN 100 AND 120.5 AND NOT (venue IN ('X', 'Y')) AND name LIKE 'A%' AND EXISTS data.user

A predicate such as `venue != 'X'` or `venue NOT IN (…)` wants the field to be there; `NOT (…)` is plain logic, and is true
of an event without the field. `$name` is the value of another field of the same event, `:name` a parameter given to
`parse`. Lists are asked about with `ANY` and `ALL`, or with `HAS` for lists of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

from fieldfare.events.values import MISSING, ORDERED_KINDS, Kind, Scalar, kind_of
from fieldfare.filters import constraint, functions, patterns, valueset
from fieldfare.filters.automaton import TooComplex
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.elements import has
from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.filters.expressions import Arithmetic, Call, Compare, Expression, Field, Literal
from fieldfare.filters.filter import EVERYTHING, NOTHING, Filter
from fieldfare.filters.languages import native_syntax as syntax
from fieldfare.filters.languages.native_syntax import Tree, parse_tree
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.valueset import ValueSet

_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_OUTCOMES: Final = {
    "<": valueset.one_of([-1]),
    "<=": valueset.one_of([-1, 0]),
    "=": valueset.one_of([0]),
    ">=": valueset.one_of([0, 1]),
    ">": valueset.one_of([1]),
    "!=": valueset.PRESENT - valueset.one_of([0]),
}
_TYPES: Final = {
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


def parse(text: str, **parameters: Scalar) -> Filter:
    """The filter of a text. A text that nothing can match is refused, saying which parts contradict each other.

    >>> parse("price < :limit AND symbol = 'IBM'", limit=120.5)
    parse("price < 120.5 AND symbol = 'IBM'")
    """
    tree = parse_tree(text)
    lowering = _Lowering(text, parameters)
    try:
        result = lowering.condition(tree)
        if result.is_empty:
            raise lowering.contradiction(tree)
    except RecursionError:
        raise FilterSyntaxError(text, 0, "the filter is nested too deeply") from None
    except TooComplex as error:
        raise FilterTooComplex(f"the string patterns of a field cannot be combined: {error}") from None
    return result


class _Lowering:
    """One translation of a tree into a filter."""

    def __init__(self, text: str, parameters: Mapping[str, Scalar]) -> None:
        self._text = text
        self._parameters = parameters

    def _wrong(self, tree: Tree, problem: str) -> FilterSyntaxError:
        return FilterSyntaxError(self._text, tree.start, problem)

    def _quote(self, tree: Tree) -> str:
        return self._text[tree.start : tree.end]

    # Conditions

    def condition(self, tree: Tree) -> Filter:
        """The filter of a condition."""
        match tree:
            case syntax.And():
                return self._all([self.condition(part) for part in tree.parts])
            case syntax.Or():
                return Filter(branch for part in tree.parts for branch in self.condition(part).branches)
            case syntax.Not():
                return ~self.condition(tree.condition)
            case syntax.Comparison():
                return self._comparison(tree)
            case syntax.Between():
                return self._between(tree)
            case syntax.In():
                return self._in(tree)
            case syntax.TextTest():
                return self._text_test(tree)
            case syntax.Is():
                wanted = _TYPES[tree.type]
                return self._where(tree.operand, valueset.PRESENT - wanted if tree.negated else wanted)
            case syntax.Exists():
                return self._where(tree.operand, valueset.PRESENT)
            case syntax.Quantified():
                return self._quantified(tree)
            case syntax.Has():
                return has(tree.path, self.condition(tree.condition))
            case syntax.Constant(value=bool()):
                return EVERYTHING if tree.value else NOTHING
            case syntax.Name() | syntax.Call():
                return self._where(tree, valueset.TRUE)
        raise self._wrong(tree, f"expected a condition, found the value {self._quote(tree)}")

    @staticmethod
    def _all(filters: list[Filter]) -> Filter:
        """Their conjunction; single constraints on different dimensions are put together in one step."""
        sides: dict[Dimension, Constraint] = {}
        rest: list[Filter] = []
        for part in filters:
            if len(part.branches) == 1 and sides.keys().isdisjoint(part.branches[0]):
                sides.update(part.branches[0])
            else:
                rest.append(part)
        return reduce(Filter.intersect, rest, Filter([Branch(sides)]))

    def _where(self, operand: Tree, values: ValueSet) -> Filter:
        """The operand lies in the set."""
        dimension = self._dimension(operand)
        if isinstance(dimension, Literal):
            return EVERYTHING if dimension.value in values else NOTHING
        return Filter.where(dimension, Constraint(values))

    def _comparison(self, tree: syntax.Comparison) -> Filter:
        op = "!=" if tree.op == "<>" else tree.op
        left, right = self._dimension(tree.left), self._dimension(tree.right)
        if isinstance(left, Literal) and not isinstance(right, Literal):
            return self._compared(right, _FLIPPED[op], left.value, tree.left)
        if isinstance(right, Literal):
            if isinstance(left, Literal):
                wanted = self._compared("", op, right.value, tree.right)
                return EVERYTHING if wanted.matches({"": left.value}) else NOTHING
            return self._compared(left, op, right.value, tree.right)
        first, second = _expression(left), _expression(right)
        if first.text > second.text:  # one dimension for both ways round
            first, second, op = second, first, _FLIPPED[op]
        return Filter.where(Compare(first, second), Constraint(_OUTCOMES[op]))

    def _compared(self, dimension: Dimension, op: str, value: Scalar, place: Tree) -> Filter:
        """A dimension against a constant."""
        if op in ("=", "!="):
            values = valueset.one_of([value])
            return Filter.where(dimension, Constraint(values if op == "=" else valueset.PRESENT - values))
        ends = (None, value) if op[0] == "<" else (value, None)
        return Filter.where(dimension, Constraint(self._range(*ends, "[]" if op[-1] == "=" else "()", place)))

    def _range(self, low: Any, high: Any, closed: str, place: Tree) -> ValueSet:
        for end in (low, high):
            if end is not None and kind_of(end) not in ORDERED_KINDS:
                raise self._wrong(place, f"{self._quote(place)} has no order; use = or !=")
        try:
            return valueset.between(low, high, closed)
        except TypeError:
            raise self._wrong(place, "the two ends of a range must be of one kind") from None

    def _between(self, tree: syntax.Between) -> Filter:
        low, high = self._dimension(tree.low), self._dimension(tree.high)
        if isinstance(low, Literal) and isinstance(high, Literal):
            values = self._range(low.value, high.value, "[]", tree.low)
            return self._where(tree.operand, valueset.PRESENT - values if tree.negated else values)
        above = syntax.Comparison(tree.start, tree.low.end, ">=", tree.operand, tree.low)
        below = syntax.Comparison(tree.start, tree.end, "<=", tree.operand, tree.high)
        inside = self._comparison(above) & self._comparison(below)
        return self._present(tree.operand) & ~inside if tree.negated else inside

    def _in(self, tree: syntax.In) -> Filter:
        items = [self._dimension(item) for item in tree.items]
        constants = [item.value for item in items if isinstance(item, Literal)]
        if len(constants) == len(items):
            values = valueset.one_of(constants)
            return self._where(tree.operand, valueset.PRESENT - values if tree.negated else values)
        equal = [syntax.Comparison(tree.start, tree.end, "=", tree.operand, item) for item in tree.items]
        inside = Filter(branch for part in equal for branch in self._comparison(part).branches)
        return self._present(tree.operand) & ~inside if tree.negated else inside

    def _present(self, operand: Tree) -> Filter:
        return self._where(operand, valueset.PRESENT)

    def _text_test(self, tree: syntax.TextTest) -> Filter:
        given = self._dimension(tree.text)
        if not isinstance(given, Literal) or not isinstance(given.value, str):
            raise self._wrong(tree.text, f"{tree.op} wants a string such as 'abc', not {self._quote(tree.text)}")
        wanted = _TEXT_PATTERNS[tree.op](given.value)
        try:
            values = valueset.like(wanted)
        except TooComplex:  # keep it opaque: matched exactly, covered only by itself
            operand = self._dimension(tree.operand)
            call = Call(functions.MATCHES, (_expression(operand), Literal(wanted.text)))
            return Filter.where(call, Constraint(valueset.FALSE if tree.negated else valueset.TRUE))
        return self._where(tree.operand, valueset.PRESENT - values if tree.negated else values)

    def _quantified(self, tree: syntax.Quantified) -> Filter:
        inner = self.condition(tree.condition)
        dimensions = {dimension for branch in inner.branches for dimension in branch}
        path = next(iter(dimensions), None)
        if len(dimensions) != 1 or not isinstance(path, str) or not all(b.on(path).is_plain for b in inner.branches):
            raise self._wrong(tree, f"{tree.quantifier} wants a condition on the elements of one field")
        values = reduce(ValueSet.__or__, (branch.on(path).values for branch in inner.branches))
        quantifier = constraint.any_of if tree.quantifier == "ANY" else constraint.all_of
        return Filter.where(path, quantifier(values))

    # Values

    def _dimension(self, tree: Tree) -> Dimension:
        """What a value is: the path of a field, a literal, or something computed."""
        match tree:
            case syntax.Name():
                return tree.path
            case syntax.Constant():
                return Literal(self._in_range(tree, tree.value))
            case syntax.Parameter():
                if tree.name not in self._parameters:
                    raise self._wrong(tree, f"no value was given for the parameter :{tree.name}")
                return Literal(self._in_range(tree, self._parameters[tree.name]))
            case syntax.Operation():
                left, right = _expression(self._dimension(tree.left)), _expression(self._dimension(tree.right))
                return self._folded(tree, Arithmetic(tree.op, left, right))
            case syntax.Call():
                return self._call(tree)
            case syntax.Has():
                exact = has(tree.path, self.condition(tree.condition))
                return next(d for branch in exact.branches for d in branch if isinstance(d, Expression))
        raise self._wrong(tree, f"expected a value, found the condition {self._quote(tree)}")

    def _in_range(self, tree: Tree, value: Scalar) -> Scalar:
        if kind_of(value) in (None, Kind.LIST, Kind.OBJECT, Kind.INTERVAL):
            raise self._wrong(tree, f"{value!r} is not a value that a field can be compared with")
        if isinstance(value, float) and value in (float("inf"), float("-inf")) and self._quote(tree)[-1:].isdigit():
            raise self._wrong(tree, f"the number {self._quote(tree)} is out of range")
        return value

    def _call(self, tree: syntax.Call) -> Dimension:
        arguments = tuple(_expression(self._dimension(argument)) for argument in tree.arguments)
        if tree.function.upper() == "COMPARE" and len(arguments) == 2:
            return Compare(*arguments)
        function = functions.find(tree.function)
        if function is None:
            known = ", ".join(functions.names())
            raise self._wrong(tree, f"there is no function {tree.function.upper()}; there are {known}")
        if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
            raise self._wrong(tree, f"{function.name} does not take {len(arguments)} arguments")
        return self._folded(tree, Call(function, arguments))

    def _folded(self, tree: Tree, expression: Expression) -> Dimension:
        """A constant if nothing in it depends on the event."""
        if any(True for _ in expression.fields()):
            return expression
        value: Any = expression.evaluate({})
        if value is MISSING:
            raise self._wrong(tree, f"{self._quote(tree)} has no value")
        return Literal(value)

    # Contradictions

    def contradiction(self, tree: Tree) -> FilterSyntaxError:
        """Why nothing can match: the two parts of a conjunction that exclude each other, where there are two."""
        if isinstance(tree, syntax.Or):
            return self.contradiction(tree.parts[0])
        if isinstance(tree, syntax.And):
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


_TEXT_PATTERNS: Final[dict[str, Callable[[str], Pattern]]] = {
    "LIKE": patterns.like,
    "ILIKE": lambda text: patterns.like(text, ignore_case=True),
    "STARTS": lambda text: patterns.pattern(*text, MANY),
    "ENDS": lambda text: patterns.pattern(MANY, *text),
    "CONTAINS": lambda text: patterns.pattern(MANY, *text, MANY),
}


def _expression(dimension: Dimension) -> Expression:
    return Field(dimension) if isinstance(dimension, str) else dimension
