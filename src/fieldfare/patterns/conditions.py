"""Conditions between the events of a match, and values computed of a match: `b.price > 1.1 * avg(a.price)`.

A condition is written in the native filter language. Its fields are values of the match: `a.price` and `last(a.price)`
are the field of the last event named a, `first` and `prev` the field of the first and of the last but one, and `count`,
`sum`, `avg`, `min`, `max` look at all events of the name. A value that does not exist (yet) is missing, with the rules
of the filter language: a comparison with a missing value is false.

`Accumulators` hold these values along a run. Every condition is checked in one place, as early as possible; `place_of`
says where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from fieldfare.events.values import MISSING, Interval, Kind, kind_of
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.expressions import Expression
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.native import nodes
from fieldfare.filters.languages.native.syntax import parse_tree
from fieldfare.filters.languages.native.translation import translate, translate_value
from fieldfare.patterns import tree as t

ANY: Final = "*"
"""stands for every name"""
SINGLE: Final = frozenset({"first", "last", "prev"})
AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max"})


class Reference(NamedTuple):
    """A value of the match: a function over the events of a name, or over a field of these events."""

    function: str
    name: str
    path: str

    @property
    def text(self) -> str:
        """The reference as a condition writes references."""
        return f"{self.function}({self.name}{'.' if self.path else ''}{self.path})"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as a filter over references."""

    text: str
    filter: Filter
    references: tuple[Reference, ...]
    source: str = ""
    """The text around, for errors, and the place of the condition in there."""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """A field of the composite event: a name and an expression over references."""

    name: str
    text: str
    value: Expression
    references: tuple[Reference, ...]


class _Names:
    """The names that a text may mention: those of the pattern, and the fields of the key."""

    def __init__(self, text: str, names: Sequence[str], keys: Sequence[str]) -> None:
        self._text, self._names, self._keys = text, names, keys
        self.found: dict[Reference, None] = {}

    def resolved(self, tree: Any) -> Any:
        """Return a tree with a name for each reference."""
        match tree:
            case nodes.Name():
                return self._named(tree, "last", tree.path)
            case nodes.Call(arguments=[nodes.Name(path=path)]) if tree.function.lower() in SINGLE | AGGREGATES:
                return self._named(tree, tree.function.lower(), path)
            case nodes.Call():
                return replace(tree, arguments=[self.resolved(one) for one in tree.arguments])
            case nodes.Operation() | nodes.Comparison():
                return replace(tree, left=self.resolved(tree.left), right=self.resolved(tree.right))
            case nodes.And() | nodes.Or():
                return replace(tree, parts=[self.resolved(part) for part in tree.parts])
            case nodes.Not() | nodes.Quantified():
                return replace(tree, condition=self.resolved(tree.condition))
            case nodes.Between():
                low, high = self.resolved(tree.low), self.resolved(tree.high)
                return replace(tree, operand=self.resolved(tree.operand), low=low, high=high)
            case nodes.In():
                items = [self.resolved(item) for item in tree.items]
                return replace(tree, operand=self.resolved(tree.operand), items=items)
            case nodes.TextTest():
                return replace(tree, operand=self.resolved(tree.operand), text=self.resolved(tree.text))
            case nodes.Is() | nodes.Exists():
                return replace(tree, operand=self.resolved(tree.operand))
            case nodes.Has() | nodes.Path():
                raise FilterSyntaxError(
                    self._text, tree.start, "HAS and PATH look at single events: write them in a filter"
                )
        return tree

    def _named(self, tree: Any, function: str, path: str) -> nodes.Name:
        name, dot, field = path.partition(".")
        if path in self._keys:
            reference = Reference("first", ANY, path)
        elif name not in self._names:
            known = ", ".join([*self._names, *self._keys])
            raise FilterSyntaxError(self._text, tree.start, f"{name!r} is no name of the pattern, which has {known}")
        elif not dot and function != "count":
            raise FilterSyntaxError(
                self._text, tree.start, f"{path!r} is an event: name a field of it, such as {path}.price"
            )
        else:
            reference = Reference(function, name, field)
        self.found[reference] = None
        return nodes.Name(tree.start, tree.end, reference.text)


def parse_conditions(text: str, names: Sequence[str], keys: Sequence[str] = ()) -> list[Condition]:
    """Return the conditions of a text, one for each part that AND joins.

    >>> [one.text for one in parse_conditions("b.price > 1.1 * a.price AND count(a) > 2", ["a", "b"])]
    ['b.price > 1.1 * a.price', 'count(a) > 2']
    """
    tree = parse_tree(text)
    parts = tree.parts if isinstance(tree, nodes.And) else [tree]
    found = []
    for part in parts:
        reader = _Names(text, names, keys)
        resolved = reader.resolved(part)
        filter = translate(text, resolved, {})
        quoted = _balanced(text, part.start, part.end)
        if filter.is_empty:
            raise FilterSyntaxError(text, part.start, f"nothing can match {quoted}")
        found.append(Condition(quoted, filter, tuple(reader.found), text, part.start))
    return found


def _balanced(text: str, start: int, end: int) -> str:
    """Return a part of a text with all its parentheses: the span of a node leaves out those at its edges.

    >>> _balanced("NOT (x = 1) AND y = 2", 0, 10)
    'NOT (x = 1)'
    """
    unopened = unclosed = 0
    for sign in re.findall(r"'(?:[^']|'')*'|\"(?:\\.|[^\"])*\"|[()]", text[start:end]):
        if sign == "(":
            unclosed += 1
        elif sign == ")" and unclosed:
            unclosed -= 1
        elif sign == ")":
            unopened += 1
    for _ in range(unopened):
        start = text.rindex("(", 0, start)
    for _ in range(unclosed):
        end = text.index(")", end) + 1
    return text[start:end]


def parse_selection(name: str, text: str, names: Sequence[str], keys: Sequence[str] = ()) -> Selection:
    """Return a field of the composite event, from the text of an expression."""
    reader = _Names(text, names, keys)
    value = translate_value(text, reader.resolved(parse_tree(text)))
    return Selection(name, text, value, tuple(reader.found))


# Values along a run


def _number(value: object) -> bool:
    return kind_of(value) is Kind.NUMBER and not isinstance(value, Interval)


def _first(old: Any, value: Any) -> Any:
    return value if old is MISSING else old


def _last(old: Any, value: Any) -> Any:
    return value


def _prev(old: Any, value: Any) -> Any:
    return (MISSING if old is MISSING else old[1], value)


def _count(old: Any, value: Any) -> Any:
    return old if value is MISSING else 1 if old is MISSING else old + 1


def _sum(old: Any, value: Any) -> Any:
    return old if not _number(value) else value if old is MISSING else old + value


def _avg(old: Any, value: Any) -> Any:
    return old if not _number(value) else (value, 1) if old is MISSING else (old[0] + value, old[1] + 1)


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def fold(old: Any, value: Any) -> Any:
        if value is MISSING or value != value or kind_of(value) not in {Kind.NUMBER, Kind.STRING, Kind.TIME}:
            return old
        return value if old is MISSING or (kind_of(old) is kind_of(value) and better(value, old)) else old

    return fold


_FOLDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "first": _first,
    "last": _last,
    "prev": _prev,
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme(lambda value, old: value < old),
    "max": _extreme(lambda value, old: value > old),
}


def _read(function: str, value: Any) -> Any:
    """Return the value of an accumulator."""
    if value is MISSING:
        return 0 if function == "count" else MISSING
    return value[0] if function == "prev" else value[0] / value[1] if function == "avg" else value


class Accumulators:
    """The values of some references, folded event by event."""

    def __init__(self, references: Iterable[Reference]) -> None:
        """Take the references of all conditions and selections of a pattern."""
        self._references = tuple(dict.fromkeys(references))
        self._places = {reference: place for place, reference in enumerate(self._references)}
        self._by_name: dict[str, list[tuple[int, str, Callable[[Any, Any], Any]]]] = {}
        for place, (function, name, path) in enumerate(self._references):
            self._by_name.setdefault(name, []).append((place, path, _FOLDS[function]))
        self._any = self._by_name.get(ANY, [])
        self.start: tuple[Any, ...] = (MISSING,) * len(self._references)

    def fold(self, values: tuple[Any, ...], name: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values after another event of a name."""
        changed = [*self._by_name.get(name, ()), *self._any]
        if not changed:
            return values
        new = list(values)
        for place, path, fold in changed:
            new[place] = fold(new[place], fields.get(path, MISSING) if path else True)
        return tuple(new)

    def fields(self, references: Iterable[Reference], values: tuple[Any, ...]) -> dict[str, Any]:
        """Return references as the fields of an event, for filters and expressions."""
        found = {}
        for reference in references:
            value = _read(reference.function, values[self._places[reference]])
            if value is not MISSING:
                found[reference.text] = value
        return found


@dataclass(frozen=True, slots=True)
class Placed:
    """The conditions of a pattern, each in the place of the check; the `Bindings` of a program."""

    accumulators: Accumulators
    names: Mapping[str, tuple[Condition, ...]]
    parts: Mapping[t.Parallel, tuple[Condition, ...]]
    whole: tuple[Condition, ...]

    @property
    def start(self) -> tuple[Any, ...]:
        """The values before the first event."""
        return self.accumulators.start

    def fold(self, values: tuple[Any, ...], name: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values after another event of a name."""
        return self.accumulators.fold(values, name, fields)

    def holds(self, name: str, values: tuple[Any, ...], fields: Mapping[str, Any]) -> bool:
        """Tell whether an event may have a name in a match with the values so far."""
        conditions = self.names.get(name)
        return conditions is None or self._all(conditions, self.accumulators.fold(values, name, fields))

    def fit(self, tree: t.Parallel, values: tuple[Any, ...]) -> bool:
        """Tell whether the two sides of a parallel part fit together."""
        return self._all(self.parts.get(tree, ()), values)

    def complete(self, values: tuple[Any, ...]) -> bool:
        """Tell whether a match may end with the values."""
        return self._all(self.whole, values)

    def _all(self, conditions: Iterable[Condition], values: tuple[Any, ...]) -> bool:
        return all(
            condition.filter.matches_fields(self.accumulators.fields(condition.references, values))
            for condition in conditions
        )


def place_of(condition: Condition, tree: t.Tree, order: Sequence[str]) -> str | t.Parallel | None:
    """Return the place where a condition is checked: at events of a name, at a parallel part, or None for the end.

    The place is the last name of the pattern that the condition mentions. A condition that only counts or sums up the
    events of the last name is checked at the end; names on both sides of a parallel part, when both sides are there.
    """
    mentioned = {reference.name for reference in condition.references if reference.name != ANY}
    if not mentioned:
        return None
    last = max(mentioned, key=order.index)
    part = _separating(tree, mentioned, last)
    if part is not None:
        return part
    single = any(one.name == last and one.function in SINGLE for one in condition.references)
    return last if single else None


def _separating(tree: t.Tree, mentioned: set[str], last: str) -> t.Parallel | None:
    """Return the innermost parallel part with the last name on a side, and another name on the other side only."""
    for child in t.children(tree):
        found = _separating(child, mentioned, last)
        if found is not None:
            return found
    if isinstance(tree, t.Parallel):
        left, right = set(t.names(tree.left)), set(t.names(tree.right))
        mine, other = (left, right) if last in left else (right, left)
        if last in mine and mentioned & (other - mine):
            return tree
    return None


def placed(
    conditions: Sequence[Condition], selections: Sequence[Selection], tree: t.Tree, order: Sequence[str]
) -> Placed | None:
    """Return the conditions in place; None for a pattern with neither conditions nor selections."""
    if not conditions and not selections:
        return None
    found: dict[str | t.Parallel | None, tuple[Condition, ...]] = {}
    for condition in conditions:
        place = place_of(condition, tree, order)
        for other in found.get(place, ()):
            if not condition.filter.overlaps(other.filter):
                problem = f"nothing can match: {condition.text} contradicts {other.text}"
                raise FilterSyntaxError(condition.source, condition.start, problem)
        found[place] = (*found.get(place, ()), condition)
    by_name = {place: some for place, some in found.items() if isinstance(place, str)}
    by_part = {place: some for place, some in found.items() if isinstance(place, t.Parallel)}
    references = [one for condition in conditions for one in condition.references]
    references += [one for selection in selections for one in selection.references]
    return Placed(Accumulators(references), by_name, by_part, found.get(None, ()))
