"""`Detector`: many patterns at once over a stream of events.

The filters of all patterns stand in one index, each distinct filter once. An event is matched once; the answer names
the patterns of interest, and of these only the instances of the key of the event are touched. Timers of all patterns
stand in heaps. Patterns that wait for late events form a *lane* for each amount of disorder: a lane holds events back,
in order, until none can be late.

Time and events are inputs, and `changes` returns the state as rows, so that a detector can be a part of a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.patterns.automaton import Label
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.machine import IDLE, Machine, Match, Step, initial, offer, strike
from fieldfare.patterns.runs import NEVER, Offer
from fieldfare.patterns.stamps import Key, Occurrence, microseconds

Place: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""Name of a pattern, and a key."""
Names: TypeAlias = "list[tuple[str, frozenset[Label]]]"
MANY: Final = 64
"""events that are matched as a batch"""
END: Final = -1
"""instance number of a heap entry for the end of a window"""


class Detection(NamedTuple):
    """A match of a pattern, for a key."""

    pattern: str
    key: tuple[Any, ...]
    match: Match

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the key, and the number of the window behind."""
        return tuple(value for value, _ in self.key)


class Lane:
    """Patterns that wait equally long for late events, with the events and timers of these patterns."""

    def __init__(self, disorder: int) -> None:
        """Begin without events, at no time."""
        self.disorder = disorder
        self.clock = -NEVER
        """Time up to which events and timers were handled."""
        self.seen = -NEVER
        """Latest end of an event."""
        self.waiting: list[tuple[Key, int, Occurrence]] = []
        self.timers: list[tuple[int, int, Place, int]] = []
        """Deadline, number of the entry, place, and id of the instance."""
        self.late = 0
        """Events that came too late, and were left out."""
        self.count = 0
        """Number of held events so far."""
        self.stored: set[int] = set()
        """Numbers of held events that are rows; see `rows`."""
        self._entries = 0

    def start(self, deadline: int, place: Place, id: int) -> None:
        """Start a timer of an instance."""
        self._entries += 1
        heappush(self.timers, (deadline, self._entries, place, id))

    def hold(self, event: Occurrence) -> None:
        """Keep an event until no earlier event can come; leave out an event that is later than allowed."""
        if event.high < max(self.clock, self.seen - self.disorder):
            self.late += 1
            return
        self.count += 1
        self.seen = max(self.seen, event.high)
        heappush(self.waiting, (event.key, self.count, event))

    def due(self, now: int) -> Iterator[Occurrence]:
        """Yield the held events before which nothing can come any more."""
        until = max(self.seen, now) - self.disorder
        while self.waiting and self.waiting[0][0][0] < until:
            yield heappop(self.waiting)[2]
        self.clock = max(self.clock, until)


class Detector:
    """Patterns by name, with the state for each key.

    >>> from fieldfare.patterns import Occurrence, parse_pattern
    >>> detector = Detector({"rise": parse_pattern("up: [up = 1] down: [up = 0] up followed by down for each symbol")})
    >>> events = [{"symbol": "IBM", "up": 1}, {"symbol": "SUN", "up": 0}, {"symbol": "IBM", "up": 0}]
    >>> found = detector.step([Occurrence(at, at, event) for at, event in enumerate(events)])
    >>> [(one.pattern, one.values, one.match.stamp) for one in found]
    [('rise', ('IBM',), Stamp(low=0, high=2))]
    """

    def __init__(self, patterns: Mapping[str, Pattern] | None = None, *, kernels: str = "auto") -> None:
        """Take patterns by name; `kernels` are those of the index."""
        self.patterns: dict[str, Pattern] = {}
        self.machines: dict[Place, Machine] = {}
        """State by pattern and key; without an entry, the state is that before the first event."""
        self.dropped_of: dict[str, int] = {}
        """By pattern: instances and ways that exceeded a limit."""
        self.lanes: dict[int, Lane] = {}
        self.changed: set[Place] = set()
        """Places whose state changed since the rows were asked for."""
        self._index: Index[int] = Index(kernels=kernels)
        self._atoms: dict[Filter, int] = {}
        self._concerned: dict[int, dict[str, frozenset[Label]]] = {}
        """By number of a filter: patterns, with the names that stand for the filter."""
        self._starts: dict[str, frozenset[Label]] = {}
        self._made = 0
        for name, pattern in (patterns or {}).items():
            self.add(name, pattern)

    # Patterns

    def add(self, name: str, pattern: Pattern) -> None:
        """Add a pattern, which sees the events from now on."""
        if name in self.patterns:
            raise KeyError(f"there is a pattern {name!r} already")
        self.patterns[name] = pattern
        self.lanes.setdefault(pattern.disorder, Lane(pattern.disorder))
        program = pattern.program
        wanted = [program.wants[way.target] for way in program.start if way.target >= 0]
        self._starts[name] = frozenset().union(*wanted)
        for label in pattern.names:
            filter = pattern.filters[label]
            atom = self._atoms.get(filter)
            if atom is None:
                self._made += 1
                atom = self._atoms[filter] = self._made
                self._index.add(atom, filter)
            patterns = self._concerned.setdefault(atom, {})
            patterns[name] = patterns.get(name, frozenset()) | {label}

    def remove(self, name: str) -> None:
        """Remove a pattern with all state."""
        pattern = self.patterns.pop(name)
        del self._starts[name]
        for label in pattern.names:
            filter = pattern.filters[label]
            atom = self._atoms.get(filter)
            if atom is None:
                continue
            self._concerned[atom].pop(name, None)
            if not self._concerned[atom]:
                del self._concerned[atom], self._atoms[filter]
                self._index.remove(atom)
        self.dropped_of.pop(name, None)
        for place in [place for place in self.machines if place[0] == name]:
            del self.machines[place]
            self.changed.add(place)
        if all(one.disorder != pattern.disorder for one in self.patterns.values()):
            del self.lanes[pattern.disorder]

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def distinct_filters(self) -> int:
        """Number of filters in the index."""
        return len(self._index)

    @property
    def open(self) -> int:
        """Number of open instances over all patterns and keys."""
        return sum(machine.open for machine in self.machines.values())

    @property
    def dropped(self) -> int:
        """Number of instances and ways that exceeded a limit."""
        return sum(self.dropped_of.values())

    @property
    def late(self) -> int:
        """Number of events that came later than a pattern allows."""
        return sum(lane.late for lane in self.lanes.values())

    # Steps

    def step(self, inputs: Iterable[Occurrence], now: float | None = None) -> list[Detection]:
        """Take in events, then let the time be `now`, in seconds; return the detections in order.

        Without `now` time goes on with events only, as over a history.
        """
        events, found = list(inputs), list[Detection]()
        matched = self._matched(events)
        time = -NEVER if now is None else microseconds(now)
        for disorder, lane in self.lanes.items():
            if disorder:
                for event in events:
                    lane.hold(event)
                released = list(lane.due(time))
                for event, names in zip(released, self._matched(released), strict=True):
                    self._take(lane, event, names, found)
                self._strike(lane, lane.clock, found)
                continue
            for event, names in zip(events, matched, strict=True):
                self._take(lane, event, names, found)
            lane.clock = max(lane.clock, time)
            self._strike(lane, lane.clock, found)
        return found

    def _matched(self, events: Sequence[Occurrence]) -> list[Names]:
        """Return the patterns that each event concerns, with the names that the event has there."""
        if not events:
            return []
        if len(events) >= MANY and all(isinstance(one.event, Event) for one in events):
            atoms = self._index.match_many([one.event for one in events])  # type: ignore[misc]
        else:
            atoms = [self._index.match(one.event) for one in events]
        return [self._names(found) for found in atoms]

    def _names(self, atoms: list[int]) -> Names:
        if len(atoms) == 1:
            return list(self._concerned[atoms[0]].items())
        found: dict[str, frozenset[Label]] = {}
        for atom in atoms:
            for name, labels in self._concerned[atom].items():
                known = found.get(name)
                found[name] = labels if known is None else known | labels
        return list(found.items())

    def _take(self, lane: Lane, event: Occurrence, names: Names, found: list[Detection]) -> None:
        """Offer an event to the patterns that it concerns, after the timers before."""
        if lane.timers and lane.timers[0][0] < event.high:
            self._strike(lane, event.high, found)
        lane.clock = max(lane.clock, event.high)
        if not names:
            return
        fields, order = fields_of(event.event), event.key
        keys: dict[Any, tuple[Any, ...] | None] = {}
        for name, labels in names:
            pattern = self.patterns[name]
            if pattern.disorder != lane.disorder:
                continue
            how = (pattern.keys, pattern.window)
            if how not in keys:
                keys[how] = pattern.key_of(fields, event.high)
            key = keys[how]
            if key is None:
                continue
            place = (name, key)
            machine = self.machines.get(place)
            if machine is None:
                if labels.isdisjoint(self._starts[name]):
                    continue
                machine = self._begin(lane, place, event.high)
            step = offer(pattern.program, pattern.policy, machine, Offer(event, order, labels, fields))
            self._after(lane, place, machine, step, found)

    def _begin(self, lane: Lane, place: Place, time: int) -> Machine:
        """Return the state of a new key; a window ends by a timer."""
        pattern = self.patterns[place[0]]
        if pattern.window:
            lane.start((time // pattern.window + 1) * pattern.window, place, END)
        return initial(pattern.program, pattern.policy)

    def _after(self, lane: Lane, place: Place, before: Machine, step: Step, found: list[Detection]) -> None:
        """Keep the state after a step."""
        machine, pattern = step.machine, self.patterns[place[0]]
        if machine is before and machine is not IDLE:
            return
        if machine.dropped > before.dropped:
            lost = machine.dropped - before.dropped
            self.dropped_of[place[0]] = self.dropped_of.get(place[0], 0) + lost
        if machine.open or pattern.policy.one_shot:
            self.machines[place] = machine
            self.changed.add(place)
        elif place in self.machines:
            del self.machines[place]
            self.changed.add(place)
        if pattern.program.timers:
            for instance in step.changed:
                deadline = instance.deadline
                if deadline < NEVER:
                    lane.start(deadline, place, instance.id)
        found += [Detection(*place, match) for match in step.matches]

    def _strike(self, lane: Lane, until: int, found: list[Detection]) -> None:
        """Let the timers of a lane strike that come before a time."""
        while lane.timers and lane.timers[0][0] < until:
            deadline, _, place, id = heappop(lane.timers)
            machine = self.machines.get(place)
            if machine is None:
                continue
            if id == END:
                del self.machines[place]
                self.changed.add(place)
                continue
            instance = machine.find(id)
            if instance is not None and instance.deadline == deadline:
                pattern = self.patterns[place[0]]
                step = strike(pattern.program, pattern.policy, machine, instance)
                self._after(lane, place, machine, step, found)

    def event(self, detection: Detection, detector: str = "") -> Event:
        """Return the composite event of a detection."""
        pattern = self.patterns[detection.pattern]
        return pattern.event(detection.match, name=detection.pattern, detector=detector)
