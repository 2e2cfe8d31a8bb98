"""Sets of strings: intervals where they suffice, otherwise a `Language` of intervals and patterns.

A `Language` is a decision diagram: patterns are tested in a fixed order, and the leaf is a set of intervals that
decides. Union, intersection and complement work on diagrams; relations between two languages are decided exactly on
their automata. In normal form, a union of a few intervals is never a `Language`, so that `STARTS WITH 'a' AND CONTAINS
'a'` is `STARTS WITH 'a'`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from fieldfare.filters import automaton
from fieldfare.filters.automaton import Automaton
from fieldfare.filters.budget import remembered, spend
from fieldfare.filters.intervals import EMPTY, FULL, Intervals, points, prefix
from fieldfare.filters.machines import MAX_STATES, IntervalsMachine, Machine, PatternMachine, TooComplex
from fieldfare.filters.patterns import MANY, Pattern

MAX_PATTERNS: Final = 128
"""patterns that a diagram tests one after another"""
MAX_NODES: Final = 4096
"""nodes of a diagram that an operation makes"""


@dataclass(frozen=True, slots=True)
class Node:
    """A test of a pattern: `high` decides for strings that match, `low` for all others."""

    pattern: Pattern
    high: Diagram
    low: Diagram


Diagram: TypeAlias = "Intervals | Node"


class Language:
    """A set of strings that intervals cannot express. Use `matching` and the operators, never the constructor."""

    __slots__ = ("_automaton", "_example", "diagram")

    def __init__(self, diagram: Node, known: Automaton | None = None) -> None:
        self.diagram: Final = diagram
        self._automaton = known
        self._example: str | None = None

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton, made at first use."""
        if self._automaton is None:
            self._automaton = _automaton(self.diagram)
        return self._automaton

    @property
    def example(self) -> str:
        """A shortest string in the language."""
        if self._example is None:
            self._example = self.automaton.shortest()
        return self._example

    is_empty: Final = False
    is_full: Final = False

    def __contains__(self, text: str) -> bool:
        diagram: Diagram = self.diagram
        while isinstance(diagram, Node):
            diagram = diagram.high if diagram.pattern.matches(text) else diagram.low
        return text in diagram

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Language):
            return NotImplemented
        return self is other or self.diagram == other.diagram or self.automaton == other.automaton

    def __hash__(self) -> int:
        return hash(self.automaton)

    def __invert__(self) -> StringSet:
        flipped = _apply(lambda a, _: ~a, self.diagram, EMPTY)
        assert isinstance(flipped, Node)
        # The complement of a language is never a union of few intervals: no need to look.
        return Language(flipped, None if self._automaton is None else ~self._automaton)

    def __or__(self, other: StringSet) -> StringSet:
        return either(self, other)

    def __and__(self, other: StringSet) -> StringSet:
        return both(self, other)

    def paths(self) -> Iterator[tuple[tuple[Pattern, ...], tuple[Pattern, ...], Intervals]]:
        """Yield the language as alternatives: patterns that match, patterns that do not, intervals."""
        return _paths(self.diagram, (), ())

    def __repr__(self) -> str:
        return f"Language({self.diagram!r})"


StringSet: TypeAlias = Intervals | Language


def matching(pattern: Pattern) -> StringSet:
    """Return the strings that match a pattern."""
    tokens = pattern.tokens
    literal = [token for token in tokens if isinstance(token, str)]
    if not pattern.ignore_case:
        if len(literal) == len(tokens):
            return points(["".join(literal)])
        if len(literal) == len(tokens) - 1 and tokens[-1] is MANY:
            return prefix("".join(literal))
        if MANY in tokens[:-1] and len(literal) + tokens.count(MANY) == len(tokens) < MAX_STATES:
            return Language(Node(pattern, FULL, EMPTY))  # a % before text is never a union of intervals
    return _normal(Node(pattern, FULL, EMPTY))


def either(a: StringSet, b: StringSet) -> StringSet:
    """Return the union of two sets of strings."""
    if isinstance(a, Intervals) and isinstance(b, Intervals):
        return a | b
    if contains(a, b):
        return a
    return b if contains(b, a) else _normal(_apply(Intervals.__or__, _diagram(a), _diagram(b)))


def both(a: StringSet, b: StringSet) -> StringSet:
    """Return the intersection of two sets of strings."""
    if isinstance(a, Intervals) and isinstance(b, Intervals):
        return a & b
    for some, other in ((a, b), (b, a)):
        listed = some.points() if isinstance(some, Intervals) else None
        if listed is not None:
            return points(text for text in listed if text in other)
    if contains(a, b):
        return b
    return a if contains(b, a) else _normal(_apply(Intervals.__and__, _diagram(a), _diagram(b)))


def contains(a: StringSet, b: StringSet) -> bool:
    """Tell whether a contains every string of b. A "yes" is always right; too much work gives "no"."""
    if isinstance(a, Intervals) and isinstance(b, Intervals):
        return a >= b
    if a.is_full or b.is_empty:
        return True
    listed = b.points() if isinstance(b, Intervals) else None
    if listed is not None:
        return all(text in a for text in listed)
    if a == b:
        return True
    if isinstance(b, Language) and b.example not in a:  # decides most pairs with little work
        return False
    try:
        return automaton_of(a) >= automaton_of(b)
    except TooComplex:
        return False


def overlap(a: StringSet, b: StringSet) -> bool:
    """Tell whether some string is in both sets. A "no" is always right; too much work gives "yes"."""
    if isinstance(a, Intervals) and isinstance(b, Intervals):
        return a.overlaps(b)
    try:
        return automaton_of(a).overlaps(automaton_of(b))
    except TooComplex:
        return True


def automaton_of(values: StringSet) -> Automaton:
    """Return the minimal automaton of any set of strings."""
    return values.automaton if isinstance(values, Language) else _automaton(values)


def machine_of(values: StringSet) -> Machine:
    """Return a machine that accepts the strings in the set; unlike an automaton, the machine need not be minimal."""
    return values.automaton if isinstance(values, Language) else IntervalsMachine(values)


def _diagram(values: StringSet) -> Diagram:
    return values if isinstance(values, Intervals) else values.diagram


def _apply(operation: Callable[[Intervals, Intervals], Intervals], a: Diagram, b: Diagram) -> Diagram:
    """Return the diagram of a Boolean operation; `TooComplex` if there are too many patterns or nodes."""
    made = 0

    def apply(a: Diagram, b: Diagram, depth: int) -> Diagram:
        """Split on the first pattern of the two diagrams; join equal results."""
        nonlocal made
        if isinstance(a, Intervals) and isinstance(b, Intervals):
            spend(4 + (len(a.cuts) + len(b.cuts)) // 4)
            return operation(a, b)
        made += 1
        if made > MAX_NODES or depth > MAX_PATTERNS:
            raise TooComplex(f"more than {MAX_PATTERNS} patterns, or in more than {MAX_NODES} ways")
        spend(8)
        first = min((d.pattern for d in (a, b) if isinstance(d, Node)), key=lambda pattern: pattern.sort_key)
        a_high, a_low = (a.high, a.low) if isinstance(a, Node) and a.pattern == first else (a, a)
        b_high, b_low = (b.high, b.low) if isinstance(b, Node) and b.pattern == first else (b, b)
        high, low = apply(a_high, b_high, depth + 1), apply(a_low, b_low, depth + 1)
        return high if high == low else Node(first, high, low)

    return apply(a, b, 0)


@remembered(4096)
def _normal(diagram: Diagram) -> StringSet:
    if isinstance(diagram, Intervals):
        return diagram
    built = _automaton(diagram)
    simple = automaton.as_intervals(built)
    return simple if simple is not None else Language(diagram, built)


@remembered(4096)
def _automaton(diagram: Diagram) -> Automaton:
    patterns: list[Pattern] = []
    leaves: list[Intervals] = []

    def collect(part: Diagram) -> None:
        if isinstance(part, Node):
            if part.pattern not in patterns:
                patterns.append(part.pattern)
            collect(part.high)
            collect(part.low)
        elif part not in leaves:
            leaves.append(part)

    collect(diagram)
    machines: list[Machine] = [*map(PatternMachine, patterns), *map(IntervalsMachine, leaves)]

    def accepts(bits: object) -> bool:
        answers = dict(zip([*patterns, *leaves], bits, strict=True))  # type: ignore[call-overload]
        part = diagram
        while isinstance(part, Node):
            part = part.high if answers[part.pattern] else part.low
        return bool(answers[part])

    return automaton.build(machines, accepts)


def _paths(
    diagram: Diagram, fits: tuple[Pattern, ...], fails: tuple[Pattern, ...]
) -> Iterator[tuple[tuple[Pattern, ...], tuple[Pattern, ...], Intervals]]:
    if isinstance(diagram, Node):
        yield from _paths(diagram.high, (*fits, diagram.pattern), fails)
        yield from _paths(diagram.low, fits, (*fails, diagram.pattern))
    elif not diagram.is_empty:
        yield fits, fails, diagram
