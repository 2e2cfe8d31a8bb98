"""Patterns written in Python: `small.at_least(3).followed_by(large, within="1 hour")`.

`event("small", filter)` is the start of every expression; operators combine expressions into a tree of the core
language with the named filters. The language for people (`language`) reads a text into the same calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.native.translation import parse
from fieldfare.patterns import tree as t
from fieldfare.patterns.durations import parse_duration

MAX_CHOICES: Final = 100
"""combinations of `some_of`"""


@dataclass(frozen=True, slots=True)
class Expression:
    """A tree of the core language, with the filters of the names."""

    tree: t.Tree
    filters: Mapping[str, Filter] = field(default_factory=dict)
    timers: int = 0
    """Number of timers, which are named T1, T2, ..."""

    def followed_by(
        self, other: Expression, *, within: str | int | None = None, without: Expression | None = None
    ) -> Expression:
        """Return this, and afterwards the other, wholly after the end of this.

        Args:
            other: the following part.
            within: the time from the end of this to the end of the other, at most.
            without: events that must not happen from the end of this to the end of the other.
        """
        both, other = _united(self, other)
        if without is not None:
            both = replace(both, filters=_filters(both, without))
            other = replace(other, tree=_forbidden(other.tree, _names(without)))
        if within is None:
            return replace(both, tree=t.Sequence(self.tree, other.tree))
        timer = f"T{both.timers + 1}"
        right = _forbidden(other.tree, (timer,))
        tree = t.Timing(self.tree, right, timer, t.After(_microseconds(within)), strong=True)
        return replace(both, tree=tree, timers=both.timers + 1)

    def then(self, other: Expression) -> Expression:
        """Return this and next the other; intervals may overlap."""
        both, other = _united(self, other)
        return replace(both, tree=t.Concatenation(self.tree, other.tree))

    def after(self, other: Expression) -> Expression:
        """Return the other followed by this."""
        return other.followed_by(self)

    def not_followed_by(self, other: Expression, within: str | int) -> Expression:
        """Return this if none of the other events happens within a time from the end of this."""
        both = replace(self, filters=_filters(self, other))
        timer = f"T{both.timers + 1}"
        wait = t.Atom((timer,), (timer, *_names(other)))
        tree = t.Timing(self.tree, wait, timer, t.After(_microseconds(within)), strong=True)
        return replace(both, tree=tree, timers=both.timers + 1)

    def __and__(self, other: Expression) -> Expression:
        both, other = _united(self, other)
        return replace(both, tree=t.Parallel(self.tree, other.tree))

    def __or__(self, other: Expression) -> Expression:
        both, other = _united(self, other)
        return replace(both, tree=t.Alternation(self.tree, other.tree))

    def repeated(self, low: int, high: int | None = -1, *, greedy: bool = True) -> Expression:
        """Return this several times: exactly so often, or between two numbers; None stands for no upper bound."""
        high = low if high == -1 else high
        if t.may_be_empty(self.tree):
            raise ValueError("only a part with at least one event can be repeated")
        if low < 0 or (high is not None and high < max(low, 1)):
            raise ValueError(f"no repetition has between {low} and {high} parts")
        return replace(self, tree=t.Repetition(self.tree, low, high, greedy))

    def at_least(self, count: int) -> Expression:
        """Return this so often or more often."""
        return self.repeated(count, None)

    def optional(self) -> Expression:
        """Return the expression as an element which may be absent from a match."""
        return self.repeated(0, 1)

    def within(self, duration: str | int) -> Expression:
        """Return this with a limit on the time from the beginning of the first to the end of the last event."""
        return replace(self, tree=t.Within(self.tree, _microseconds(duration)))


def event(name: str, filter: Filter | str) -> Expression:
    """Return the next event that a filter accepts, under a name.

    >>> a, b = event("a", "price > 100"), event("b", "price < 50")
    >>> a.followed_by(b).tree
    Sequence(left=Atom(names=('a',), ...), right=Atom(names=('b',), ...))
    """
    if not name.isidentifier() or re.fullmatch(r"T\d+", name):
        raise ValueError(f"{name!r} is no name for events: names are words, and T1, T2, ... are timers")
    return Expression(t.Atom((name,)), {name: parse(filter) if isinstance(filter, str) else filter})


def any_of(*events: Expression) -> Expression:
    """Return the next event of several."""
    filters = _filters(*events)
    return Expression(t.Atom(tuple(name for one in events for name in _names(one))), filters)


def some_of(count: int, *parts: Expression) -> Expression:
    """Return so many different parts, in any order."""
    choices = list(combinations(parts, count))
    if not 1 <= count <= len(parts) or len(choices) > MAX_CHOICES:
        raise ValueError(f"{count} of {len(parts)} parts: there must be between 1 and {MAX_CHOICES} choices")
    either: Expression | None = None
    for choice in choices:
        together = choice[0]
        for part in choice[1:]:
            together &= part
        either = together if either is None else either | together
    assert either is not None
    return either


def _microseconds(duration: str | int) -> int:
    return parse_duration(str(duration))


def _names(expression: Expression) -> tuple[str, ...]:
    """Return the names of an expression that must stand for single events."""
    match expression.tree:
        case t.Atom(names=names, domain=()):
            return names
        case t.Alternation(left, right):
            return _names(Expression(left)) + _names(Expression(right))
    raise ValueError("only events, or a choice of events, can be forbidden or listed here")


def _filters(*parts: Expression) -> dict[str, Filter]:
    found: dict[str, Filter] = {}
    for part in parts:
        for name, filter in part.filters.items():
            if found.setdefault(name, filter) != filter:
                raise ValueError(f"the name {name} stands for two filters")
    return found


def _united(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return the left with the filters of both, and the right with timers of other names."""
    timers = {f"T{number}": f"T{number + left.timers}" for number in range(1, right.timers + 1)}
    moved = replace(right, tree=_renamed(right.tree, timers)) if left.timers and right.timers else right
    return Expression(left.tree, _filters(left, right), left.timers + right.timers), moved


def _renamed(tree: t.Tree, timers: Mapping[str, str]) -> t.Tree:
    def new(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(timers.get(name, name) for name in names)

    match tree:
        case t.Atom():
            return replace(tree, names=new(tree.names), domain=new(tree.domain))
        case t.Repetition() | t.Within():
            return replace(tree, body=_renamed(tree.body, timers))
        case t.Timing():
            left, right = _renamed(tree.left, timers), _renamed(tree.right, timers)
            return replace(tree, left=left, right=right, timer=timers.get(tree.timer, tree.timer))
        case _:
            return replace(tree, left=_renamed(tree.left, timers), right=_renamed(tree.right, timers))


def _forbidden(tree: t.Tree, names: tuple[str, ...]) -> t.Tree:
    """Return a tree in which events of further names end every part."""
    match tree:
        case t.Atom():
            return replace(tree, domain=tuple(dict.fromkeys((*tree.within, *names))))
        case t.Repetition() | t.Within():
            return replace(tree, body=_forbidden(tree.body, names))
        case _:
            return replace(tree, left=_forbidden(tree.left, names), right=_forbidden(tree.right, names))
