"""`Detector`: many patterns at once over a stream of events.

The filters of all patterns stand in one index, each distinct filter once. An event is matched once; the answer names
the patterns of interest, and of these only the instances of the key of the event are touched. Timers of all patterns
stand in heaps. Patterns that wait for late events form a *lane* for each amount of disorder: a lane holds events back,
in order, until none can be late.

Time and events are inputs, and `changes` returns the state as rows, so that a detector can be a part of a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.patterns.automaton import Label
from fieldfare.patterns.bounds import Bounds
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.lanes import Lane, Place
from fieldfare.patterns.machine import IDLE, Machine, Match, Step, initial, offer, strike, without
from fieldfare.patterns.runs import NEVER, Offer
from fieldfare.patterns.stamps import Occurrence, microseconds

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


class Detector:
    """Patterns by name, with the state for each key.

    >>> from fieldfare.patterns import Occurrence, parse_pattern
    >>> detector = Detector({"rise": parse_pattern("up: [up = 1] down: [up = 0] up followed by down for each symbol")})
    >>> events = [{"symbol": "IBM", "up": 1}, {"symbol": "SUN", "up": 0}, {"symbol": "IBM", "up": 0}]
    >>> found = detector.step([Occurrence(at, at, event) for at, event in enumerate(events)])
    >>> [(one.pattern, one.values, one.match.stamp) for one in found]
    [('rise', ('IBM',), Stamp(low=0, high=2))]
    """

    def __init__(
        self,
        patterns: Mapping[str, Pattern] | None = None,
        *,
        kernels: str = "auto",
        matches: bool = True,
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
    ) -> None:
        """Take patterns by name; `kernels` are those of the index.

        Without `matches` there is no index: the caller matches events, as a broker does, and calls `offer`.
        """
        self.patterns: dict[str, Pattern] = {}
        self.machines: dict[Place, Machine] = {}
        """State by pattern and key; without an entry, the state is that before the first event."""
        self.dropped_of: dict[str, int] = {}
        """By pattern: instances and ways that exceeded a limit."""
        self.lanes: dict[int, Lane] = {}
        self.changed: set[Place] = set()
        """Places whose state changed since the rows were asked for."""
        self.open_of: dict[str, int] = {}
        """Open instances by pattern."""
        self.detected_of: dict[str, int] = {}
        """Detections by pattern since the start."""
        self._bounds = bounds
        self._places: dict[str, dict[Place, None]] = {}
        """Places with a state by pattern, the oldest first."""
        self._index: Index[int] | None = Index(kernels=kernels) if matches else None
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
                if self._index is not None:
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
                if self._index is not None:
                    self._index.remove(atom)
        for place in list(self._places.get(name, ())):
            self._put(place, None)
        for counts in (self.dropped_of, self.open_of, self.detected_of, self._places):
            counts.pop(name, None)
        if all(one.disorder != pattern.disorder for one in self.patterns.values()):
            del self.lanes[pattern.disorder]

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def distinct_filters(self) -> int:
        """Number of different filters of all patterns."""
        return len(self._atoms)

    @property
    def open(self) -> int:
        """Number of open instances over all patterns and keys."""
        return sum(self.open_of.values())

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
        assert self._index is not None, "a detector without an index takes matched events: see `offer`"
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
            self._put(place, machine)
        elif place in self.machines:
            self._put(place, None)
        if step.matches:
            self.detected_of[place[0]] = self.detected_of.get(place[0], 0) + len(step.matches)
        self._bound(place, step)
        if pattern.program.timers:
            for instance in step.changed:
                deadline = instance.deadline
                if deadline < NEVER:
                    lane.start(deadline, place, instance.id)
        found += [Detection(*place, match) for match in step.matches]

    def _put(self, place: Place, machine: Machine | None) -> None:
        """Set or forget the state of a place, and count the open instances."""
        before = self.machines.get(place)
        change = (0 if machine is None else machine.open) - (0 if before is None else before.open)
        self.open_of[place[0]] = self.open_of.get(place[0], 0) + change
        self.changed.add(place)
        if machine is None:
            self.machines.pop(place, None)
            self._places.get(place[0], {}).pop(place, None)
        else:
            self.machines[place] = machine
            self._places.setdefault(place[0], {})[place] = None

    def _bound(self, place: Place, step: Step) -> None:
        """Drop an instance with too many events, and the oldest keys of a pattern with too many instances."""
        name, most = place[0], self._bounds.events
        for instance in step.changed:
            machine = self.machines.get(place)
            if machine is not None and max(run.length for run in instance.runs) > most:
                self._put(place, without(machine, instance.id))
                self.dropped_of[name] = self.dropped_of.get(name, 0) + 1
        places, limit = self._places.get(name, {}), self._bounds.instances
        while len(places) > 1 and (self.open_of.get(name, 0) > limit or len(places) > limit):
            oldest = next(iter(places))
            self.dropped_of[name] = self.dropped_of.get(name, 0) + self.machines[oldest].open
            self._put(oldest, None)

    def _strike(self, lane: Lane, until: int, found: list[Detection]) -> None:
        """Let the timers of a lane strike that come before a time."""
        while lane.timers and lane.timers[0][0] < until:
            deadline, _, place, id = heappop(lane.timers)
            machine = self.machines.get(place)
            if machine is None:
                continue
            if id == END:
                self._put(place, None)
                continue
            instance = machine.find(id)
            if instance is not None and instance.deadline == deadline:
                pattern = self.patterns[place[0]]
                step = strike(pattern.program, pattern.policy, machine, instance)
                self._after(lane, place, machine, step, found)

    # Events that a broker has matched

    def offer(self, event: Occurrence, names: Names) -> list[Detection]:
        """Take in an event with the patterns that it concerns, for patterns that wait for no late events."""
        found: list[Detection] = []
        self._take(self.lanes[0], event, names, found)
        return found

    def advance(self, time: int) -> list[Detection]:
        """Let the time of all patterns be a time, in microseconds; time never goes back."""
        found: list[Detection] = []
        for disorder, lane in self.lanes.items():
            if disorder:
                released = list(lane.due(time))
                for event, names in zip(released, self._matched(released), strict=True):
                    self._take(lane, event, names, found)
            else:
                lane.clock = max(lane.clock, time)
            self._strike(lane, lane.clock, found)
        return found

    @property
    def deadline(self) -> int:
        """The time of the next timer, or of the next held event that can be handled; `NEVER` without any."""
        times = [lane.timers[0][0] for lane in self.lanes.values() if lane.timers]
        times += [lane.waiting[0][0][0] + lane.disorder for lane in self.lanes.values() if lane.waiting]
        return min(times, default=NEVER)

    def adopt(self, other: Detector, name: str) -> None:
        """Take over the state of a pattern from another detector, which has seen the past."""
        for disorder, lane in other.lanes.items():
            for deadline, _, place, id in lane.timers:
                self.lanes[disorder].start(deadline, place, id)
        for place, machine in other.machines.items():
            self._put(place, machine)
        for mine, theirs in ((self.dropped_of, other.dropped_of), (self.detected_of, other.detected_of)):
            mine[name] = mine.get(name, 0) + theirs.get(name, 0)

    def machines_of(self, name: str) -> Iterator[tuple[Place, Machine]]:
        """Yield the states of a pattern by key, the oldest first."""
        for place in self._places.get(name, ()):
            yield place, self.machines[place]

    def restored(self, place: Place, machine: Machine) -> None:
        """Set the state of a place as stored."""
        self._put(place, machine)
        self.changed.discard(place)

    def event(self, detection: Detection, detector: str = "") -> Event:
        """Return the composite event of a detection."""
        pattern = self.patterns[detection.pattern]
        return pattern.event(detection.match, name=detection.pattern, detector=detector)
