"""Trees of the core language, with a few more nodes for the language for people.

The core language is the language of the literature: `Atom`, `Concatenation`, `Sequence`, `Repetition` (without bounds
an iteration), `Alternation`, `Timing` and `Parallel`. The extension adds bounds and a preference to `Repetition`, and
`Within`, a limit on the duration of a part. Trees are immutable and hashable, read by `parser`, written by `printer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Atom:
    """The next event of the domain must be in a named set; with `negated`, must not be in the set.

    Names stand for sets of events: filters, or timers of an enclosing `Timing`. Other events of the domain end the run,
    and events outside of the domain are ignored.
    """

    names: tuple[str, ...]
    domain: tuple[str, ...] = ()
    """Names of the domain; without any, the names themselves."""
    negated: bool = False

    @property
    def within(self) -> tuple[str, ...]:
        """The names of the domain, matching names included."""
        return self.domain or self.names


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Left, then right, and the events follow weakly: intervals may overlap."""

    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Sequence:
    """Left, then right, and all events of the right begin after the end of the left."""

    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Repetition:
    """The body several times in a row (weakly); between two is nothing else of the domain of the body."""

    body: Tree
    low: int = 0
    high: int | None = None
    greedy: bool | None = None
    """Among several ways to complete at the same event: prefer many or few; None leaves it to the longest match."""


@dataclass(frozen=True, slots=True)
class Alternation:
    """Left or right, and the first detection counts."""

    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Parallel:
    """Left and right, in any order and interleaved."""

    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class After:
    """A time relative to the end of the left operand of a timing, in microseconds."""

    duration: int


@dataclass(frozen=True, slots=True)
class At:
    """An absolute time, in microseconds since the epoch."""

    time: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Left, then right, in which `timer` names a time event: so long after the left, or at a time.

    The right follows weakly; with `strong`, all events of the right begin after the end of the left.
    """

    left: Tree
    right: Tree
    timer: str
    when: After | At
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Within:
    """The body, with all events until `duration` microseconds after the start of the first event."""

    body: Tree
    duration: int


Tree: TypeAlias = Atom | Concatenation | Sequence | Repetition | Alternation | Parallel | Timing | Within


def children(tree: Tree) -> tuple[Tree, ...]:
    """Return the operands of a node, in the order of the text."""
    match tree:
        case Atom():
            return ()
        case Repetition() | Within():
            return (tree.body,)
        case Concatenation() | Sequence() | Alternation() | Parallel() | Timing():
            return tree.left, tree.right


def atoms(tree: Tree) -> Iterator[Atom]:
    """Yield the atoms of a tree, in the order of the text."""
    if isinstance(tree, Atom):
        yield tree
    for child in children(tree):
        yield from atoms(child)


def names(tree: Tree) -> list[str]:
    """Return the names of all sets of events, without timers, in the order of first mention."""
    return list(_names(tree, frozenset()))


def _names(tree: Tree, timers: frozenset[str]) -> dict[str, None]:
    if isinstance(tree, Atom):
        return {name: None for name in (*tree.names, *tree.within) if name not in timers}
    if isinstance(tree, Timing):
        return _names(tree.left, timers) | _names(tree.right, timers | {tree.timer})
    found: dict[str, None] = {}
    for child in children(tree):
        found |= _names(child, timers)
    return found


def may_be_empty(tree: Tree) -> bool:
    """Tell whether a tree is detected without any event."""
    match tree:
        case Atom() | Parallel():  # what happens in parallel is detected by events on both sides
            return False
        case Repetition():
            return tree.low == 0 or may_be_empty(tree.body)
        case Within():
            return may_be_empty(tree.body)
        case Alternation():
            return may_be_empty(tree.left) or may_be_empty(tree.right)
        case _:
            return all(map(may_be_empty, children(tree)))
