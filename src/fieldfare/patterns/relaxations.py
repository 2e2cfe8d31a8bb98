"""Relaxations of a pattern, and near misses: events of a history, kept from a match by a single demand.

A *relaxation* is the pattern with a demand less: without a limit on time, without an ending name of a run, with fewer
repetitions, or without a condition. A match of a relaxation is a near miss if no match of the pattern ends with the
same event. Detectors do the work, so a reason rests on exactly the meaning of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from fieldfare.events.event import fields_of
from fieldfare.patterns import tree as t
from fieldfare.patterns.conditions import Accumulators
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.detector import Detection, Detector
from fieldfare.patterns.durations import format_duration
from fieldfare.patterns.machine import Match
from fieldfare.patterns.runs import primitive
from fieldfare.patterns.stamps import Occurrence, moment

LONG: Final = 10**17
"""a limit beyond every history, in microseconds"""

Rebuild: TypeAlias = Callable[[int], t.Tree]
"""The whole tree with another number in one place."""


class NearMiss(NamedTuple):
    """Events short of a match by a single demand, and the reason given by the demand."""

    key: tuple[Any, ...]
    events: tuple[tuple[str, Occurrence], ...]
    reason: str


class Demand(Protocol):
    """A removable demand of a pattern."""

    def relaxed(self, pattern: Pattern) -> Pattern:
        """Return the pattern without the demand."""

    def reason(self, pattern: Pattern, match: Match, history: Sequence[Occurrence]) -> str:
        """Return why a match of the relaxed pattern is none of the pattern; empty if the demand alone is not why."""


def near_misses(pattern: Pattern, history: Sequence[Occurrence], most: int = 100) -> list[NearMiss]:
    """Return the near misses of a pattern in a history, in the order of the last events, `most` at most.

    >>> from fieldfare.patterns import parse_pattern
    >>> pair = parse_pattern("a: [x = 1] b: [x = 2] a followed by b within 10 s")
    >>> history = [Occurrence(second * 1_000_000, second * 1_000_000, {"x": x}) for second, x in ((0, 1), (14, 2))]
    >>> [one.reason for one in near_misses(pair, history)]
    ['the 2nd event, b, came 4s too late: within 10s']
    """
    events = sorted(history, key=lambda one: one.key)
    ends = {(one.key, one.match.stamp.high) for one in _detections(pattern, events)}
    found = []
    for demand in demands(pattern):
        for detection in _detections(demand.relaxed(pattern), events):
            if (detection.key, detection.match.stamp.high) in ends:
                continue
            match = detection.match
            if reason := demand.reason(pattern, match, events):
                found.append((match.stamp.high, NearMiss(detection.values, tuple(primitive(match.items)), reason)))
    return [miss for _, miss in sorted(found, key=lambda one: one[0])[:most]]


def demands(pattern: Pattern) -> Iterator[Demand]:
    """Yield the removable demands of a pattern, in the order of the text."""
    yield from _demands(pattern.tree, lambda tree: tree, frozenset())
    for place in range(len(pattern.conditions)):
        yield _Condition(place)


def _detections(pattern: Pattern, events: Sequence[Occurrence]) -> list[Detection]:
    return Detector({"": pattern}).step(events)


def _with_tree(pattern: Pattern, tree: t.Tree) -> Pattern:
    return replace(pattern, expression=replace(pattern.expression, tree=tree))


def _demands(tree: t.Tree, around: Callable[[t.Tree], t.Tree], timers: frozenset[str]) -> Iterator[Demand]:
    """Yield the demands of a part; `around` makes the whole tree from another version of the part."""
    match tree:
        case t.Atom() if not tree.negated:
            for name in tree.within:
                if name not in tree.names and name not in timers:
                    rest = tuple(one for one in tree.within if one != name)
                    yield _Absence(around(replace(tree, domain=rest)), name)
        case t.Within():
            yield _Limit(lambda duration: around(replace(tree, duration=duration)), tree.duration, from_end=False)
        case t.Timing(when=t.After(duration)) if _only_ends(tree.right, tree.timer):
            yield _Limit(lambda after: around(replace(tree, when=t.After(after))), duration, from_end=True)
        case t.Repetition(low=low) if low > 1:
            yield _Count(lambda least: around(replace(tree, low=least)), low, tuple(t.names(tree.body)))
    if isinstance(tree, t.Within | t.Repetition):
        yield from _demands(tree.body, lambda body: around(replace(tree, body=body)), timers)
    elif not isinstance(tree, t.Atom):
        inner = timers | {tree.timer} if isinstance(tree, t.Timing) else timers
        yield from _demands(tree.left, lambda left: around(replace(tree, left=left)), timers)
        yield from _demands(tree.right, lambda right: around(replace(tree, right=right)), inner)


def _only_ends(tree: t.Tree, timer: str) -> bool:
    """Tell whether a timer ends runs and none waits for it: then a longer time allows more."""
    return all(timer not in atom.names for atom in t.atoms(tree))


@dataclass(frozen=True, slots=True)
class _Limit:
    """A time in which something must happen."""

    rebuild: Rebuild
    duration: int
    from_end: bool
    """Whether the time counts from the end of the part before, rather than from the beginning of the whole."""

    def relaxed(self, pattern: Pattern) -> Pattern:
        return _with_tree(pattern, self.rebuild(LONG))

    def reason(self, pattern: Pattern, match: Match, history: Sequence[Occurrence]) -> str:
        del history
        items = list(primitive(match.items))
        events = [event for _, event in items]
        short, enough = self.duration, events[-1].high - min(event.low for event in events)
        if enough <= short or not self._matches(pattern, enough, events):
            return ""
        while enough - short > 1:  # the shortest time in which these events are a match
            middle = (short + enough) // 2
            if self._matches(pattern, middle, events):
                enough = middle
            else:
                short = middle
        place = self._late(events, enough)
        late, limit = format_duration(enough - self.duration), format_duration(self.duration)
        return f"the {_ordinal(place + 1)} event, {items[place][0]}, came {late} too late: within {limit}"

    def _matches(self, pattern: Pattern, duration: int, events: Sequence[Occurrence]) -> bool:
        return bool(_detections(_with_tree(pattern, self.rebuild(duration)), events))

    def _late(self, events: Sequence[Occurrence], duration: int) -> int:
        """Return the place of the event exactly so long after an earlier event."""
        for place, event in enumerate(events):
            if event.high - duration in {one.high if self.from_end else one.low for one in events[:place]}:
                return place
        return len(events) - 1


@dataclass(frozen=True, slots=True)
class _Absence:
    """A forbidden name: an event with the name ends a run."""

    tree: t.Tree
    name: str

    def relaxed(self, pattern: Pattern) -> Pattern:
        return _with_tree(pattern, self.tree)

    def reason(self, pattern: Pattern, match: Match, history: Sequence[Occurrence]) -> str:
        events = [event for _, event in primitive(match.items)]
        own, key = {event.key for event in events}, _key(pattern, events[-1])
        for event in history:
            between = match.stamp.low <= event.high <= match.stamp.high  # the end may be that of a timer
            if between and event.key not in own and self._is(pattern, event) and _key(pattern, event) == key:
                return f"{self.name} came at {moment(event.high):%Y-%m-%d %H:%M:%S}, and must not come"
        return ""

    def _is(self, pattern: Pattern, event: Occurrence) -> bool:
        return pattern.filters[self.name].matches(event.event)


@dataclass(frozen=True, slots=True)
class _Count:
    """A least number of repetitions."""

    rebuild: Rebuild
    low: int
    names: tuple[str, ...]

    def relaxed(self, pattern: Pattern) -> Pattern:
        return _with_tree(pattern, self.rebuild(1))

    def reason(self, pattern: Pattern, match: Match, history: Sequence[Occurrence]) -> str:
        del history
        events = [event for _, event in primitive(match.items)]
        few, enough = 1, self.low
        while enough - few > 1:  # the largest number of repetitions that these events have
            middle = (few + enough) // 2
            if _detections(_with_tree(pattern, self.rebuild(middle)), events):
                few = middle
            else:
                enough = middle
        return f"{' or '.join(self.names)} came {few} {'time' if few == 1 else 'times'}, and not at least {self.low}"


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition between events, by place."""

    place: int

    def relaxed(self, pattern: Pattern) -> Pattern:
        others = (*pattern.conditions[: self.place], *pattern.conditions[self.place + 1 :])
        return replace(pattern, conditions=others)

    def reason(self, pattern: Pattern, match: Match, history: Sequence[Occurrence]) -> str:
        del history
        condition = pattern.conditions[self.place]
        accumulators = Accumulators(condition.references)
        values = accumulators.start
        for name, event in primitive(match.items):
            values = accumulators.fold(values, name, fields_of(event.event))
        known = accumulators.fields(condition.references, values)
        said = ", ".join(f"{one.text} is {known.get(one.text, 'missing')}" for one in condition.references)
        return f"{condition.text} is false: {said}"


def _key(pattern: Pattern, event: Occurrence) -> tuple[Any, ...] | None:
    return pattern.key_of(fields_of(event.event), event.high)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
