"""Bounds: what a pattern can cost in state, known before it runs, and the refusal of a pattern without bounds.

An open instance costs memory until it ends. A pattern *ends by itself* if time alone ends every instance: in every
state behind the first event a timer runs that the state listens to. Otherwise an instance may wait for ever, for each
key; such a pattern needs a time (`within`, windows) or says how many instances it may have (`limit`).
"""

from __future__ import annotations

from typing import NamedTuple

from fieldfare.patterns import tree as t
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.durations import format_duration
from fieldfare.patterns.machine import Policy


class Unbounded(ValueError):
    """A pattern may need more than a node grants."""


class Bounds(NamedTuple):
    """The largest patterns that a node takes, and the state that each may have."""

    states: int = 1_000
    """States of the automaton, with repetitions written out."""
    instances: int = 100_000
    """Open instances of a pattern over all keys; the key with the oldest state is dropped for another."""
    events: int = 10_000
    """Events in a way of an instance; a longer instance is dropped."""
    seconds: float = 31 * 86_400.0
    """Longest duration in a pattern."""
    depth: int = 4
    """Levels of composite events inside composite events."""


def endless(pattern: Pattern) -> str:
    """Return a name for which an instance may wait for ever; empty if time alone ends all instances.

    >>> from fieldfare.patterns import parse_pattern
    >>> endless(parse_pattern("a: [x = 1] b: [x = 2] (a followed by b) within 1 hour"))
    ''
    >>> endless(parse_pattern("a: [x = 1] b: [x = 2] at least 3 a followed by b within 1 hour"))
    'a'
    """
    return "" if pattern.window else _waits(pattern.tree, frozenset(), begun=False, covered=False)


def _waits(tree: t.Tree, timers: frozenset[str], *, begun: bool, covered: bool) -> str:
    """Return a name that may be waited for without any timer, once an instance has `begun`.

    `timers` are those that run; `covered` says that a limit runs, which ends any wait.
    """
    if covered:
        return ""
    match tree:
        case t.Atom():
            return tree.names[0] if begun and timers.isdisjoint(tree.within) else ""
        case t.Within():  # the limit begins with the first event, so the wait for that event counts
            return _first(tree.body, timers) if begun else ""
        case t.Repetition():
            once = _waits(tree.body, timers, begun=begun, covered=False)
            return once if once or tree.high == 1 else _waits(tree.body, timers, begun=True, covered=False)
        case t.Alternation():
            return _either(tree, timers, begun, begun)
        case t.Parallel():  # either side may begin, and then waits for the other
            return _either(tree, timers, True, True)
        case t.Timing():
            left = _waits(tree.left, timers, begun=begun, covered=False)
            return left or _waits(tree.right, timers | {tree.timer}, begun=True, covered=False)
        case _:
            return _either(tree, timers, begun, True)


def _either(
    tree: t.Concatenation | t.Sequence | t.Alternation | t.Parallel, timers: frozenset[str], *begun: bool
) -> str:
    sides = zip((tree.left, tree.right), begun, strict=True)
    return next((name for side, b in sides if (name := _waits(side, timers, begun=b, covered=False))), "")


def _first(tree: t.Tree, timers: frozenset[str]) -> str:
    """Return a name, not covered by a timer, that the first event of a tree may have."""
    match tree:
        case t.Atom():
            return tree.names[0] if timers.isdisjoint(tree.within) else ""
        case t.Repetition() | t.Within():
            return _first(tree.body, timers)
        case t.Alternation() | t.Parallel():
            return _first(tree.left, timers) or _first(tree.right, timers)
        case _:
            more = _first(tree.right, timers) if t.may_be_empty(tree.left) else ""
            return _first(tree.left, timers) or more


def longest(tree: t.Tree) -> int:
    """Return the longest duration that a tree mentions, in microseconds."""
    own = 0
    if isinstance(tree, t.Within):
        own = tree.duration
    elif isinstance(tree, t.Timing) and isinstance(tree.when, t.After):
        own = tree.when.duration
    return max([own, *map(longest, t.children(tree))])


def states(pattern: Pattern) -> int:
    """Return the number of states of a pattern that wait for events, those of parallel sides included."""
    pending, count = [pattern.program], 0
    while pending:
        program = pending.pop()
        count += len(program.wants)
        pending += [side for pair in program.sides.values() for side in pair]
    return count


def check(pattern: Pattern, bounds: Bounds) -> None:
    """Raise `Unbounded` for a pattern that needs more than the bounds allow, with the reason and a way out."""
    if (size := states(pattern)) > bounds.states:
        raise Unbounded(f"the automaton has {size} states, more than the limit of {bounds.states}")
    duration = max(longest(pattern.tree), pattern.window, pattern.disorder)
    if duration > bounds.seconds * 1e6:
        most = format_duration(int(bounds.seconds * 1e6))
        raise Unbounded(f"{format_duration(duration)} is longer than the limit of {most}")
    name = endless(pattern)
    if pattern.policy.one_shot and pattern.keys and pattern.policy.instances == Policy().instances:
        raise Unbounded("the end of each key is remembered for ever: write 'limit 1' beside 'once'")
    if name and pattern.policy.instances == Policy().instances:
        raise Unbounded(
            f"the state may grow without bound, because an instance may wait for {name} for ever: write"
            " 'within 1 hour' around the whole, 'in windows of 1 hour', or 'limit 100' (instances for each key)"
        )
