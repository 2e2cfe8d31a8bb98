"""`Shape`: facts about all detections of a pattern, from the tree, so that most events need no automaton.

A history is cut into *segments*: successive events of a key with a name in a pattern. A segment in which a detection is
impossible is dropped columnwise. A shape may only err towards "possible": the automaton decides.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

from fieldfare.patterns import tree as t
from fieldfare.patterns.bounds import endless
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.runs import NEVER

_CLAUSES: Final = 8
"""conditions on the names in a segment, at most; further ones are left out"""

Clause = frozenset[str]
"""Names of which a detection has at least one."""


class Shape(NamedTuple):
    """Necessary conditions of a detection."""

    clauses: tuple[Clause, ...]
    events: int
    """The fewest events of a detection."""
    lifetime: int
    """Microseconds after an event by which all instances have ended, unless another event comes; `NEVER` if unknown."""
    timed: bool
    """Whether time alone may complete a detection."""


def shape(pattern: Pattern) -> Shape:
    """Return the shape of a pattern.

    >>> from fieldfare.patterns import parse_pattern
    >>> found = shape(parse_pattern("a: [x = 1] b: [x = 2] c: [x = 3] (a{2,} followed by (b or c)) within 1s"))
    >>> [sorted(clause) for clause in found.clauses], found.events, found.lifetime, found.timed
    ([['a'], ['b', 'c']], 3, 1000000, False)
    """
    tree = pattern.tree
    timers = frozenset(_timers(tree))
    clauses = sorted(_smallest(_clauses(tree, timers)), key=lambda clause: (len(clause), sorted(clause)))[:_CLAUSES]
    return Shape(tuple(clauses), _fewest(tree, timers), _lifetime(pattern), _timed(tree, timers))


def _timers(tree: t.Tree) -> set[str]:
    own = {tree.timer} if isinstance(tree, t.Timing) else set()
    return own.union(*map(_timers, t.children(tree)))


def _clauses(tree: t.Tree, timers: frozenset[str]) -> set[Clause]:
    match tree:
        case t.Atom():
            names = frozenset(tree.within if tree.negated else tree.names)
            return set() if names & timers else {names}
        case t.Repetition():
            return _clauses(tree.body, timers) if tree.low else set()
        case t.Alternation():
            pairs = product(_clauses(tree.left, timers), _clauses(tree.right, timers))
            return {left | right for left, right in [*pairs][: _CLAUSES * _CLAUSES]}
        case _:
            return set[Clause]().union(*(_clauses(child, timers) for child in t.children(tree)))


def _smallest(clauses: set[Clause]) -> list[Clause]:
    """Leave out clauses implied by others."""
    return [one for one in clauses if not any(other < one for other in clauses)]


def _fewest(tree: t.Tree, timers: frozenset[str]) -> int:
    match tree:
        case t.Atom():
            return 0 if timers.intersection(tree.within if tree.negated else tree.names) else 1
        case t.Repetition():
            return tree.low * _fewest(tree.body, timers)
        case t.Alternation():
            return min(_fewest(tree.left, timers), _fewest(tree.right, timers))
        case t.Parallel():  # both sides may take the same event
            return max(_fewest(tree.left, timers), _fewest(tree.right, timers))
        case _:
            return sum(_fewest(child, timers) for child in t.children(tree))


def _timed(tree: t.Tree, timers: frozenset[str]) -> bool:
    """Tell whether an atom waits for a time event, instead of only failing."""
    if isinstance(tree, t.Atom):
        return tree.negated or not timers.isdisjoint(tree.names)
    return any(_timed(child, timers) for child in t.children(tree))


def _lifetime(pattern: Pattern) -> int:
    """Return the time without events that ends all instances.

    After an event each timer of the tree starts once more at most, repetitions aside.
    """
    if pattern.policy.one_shot:
        return NEVER  # its end is remembered
    if isinstance(pattern.tree, t.Within):
        return pattern.tree.duration
    if endless(pattern) or pattern.window:
        return NEVER
    return _durations(pattern.tree, repeated=False)


def _durations(tree: t.Tree, *, repeated: bool) -> int:
    own = 0
    match tree:
        case t.Parallel():
            return NEVER
        case t.Within():
            own = NEVER if repeated else tree.duration
        case t.Timing():
            own = NEVER if repeated or isinstance(tree.when, t.At) else tree.when.duration
        case t.Repetition():
            repeated = repeated or tree.high != 1
    return min(NEVER, own + sum(_durations(child, repeated=repeated) for child in t.children(tree)))
