"""One pattern as pure steps: `(state, input) -> (state, matches)`.

The state holds *instances*, the oldest first. An instance begins with an event and has at least a run, often several,
since an automaton may go on in several ways; the instance ends with the first match, or when no run is left. With
chronicle consumption an event goes to the oldest instance with a use for the event, and to no other; without any, the
event may begin an instance. With the other choices of `Policy` every event goes to all, and may begin another.

Instances are grouped by the names of interest: an event touches no others. Time is an input like events: timers
strike by `advance`, strictly before the given time, because an event of the same instant comes first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from fieldfare.patterns.automaton import Label
from fieldfare.patterns.program import DETECTED, Program
from fieldfare.patterns.runs import (
    IGNORED,
    NEVER,
    Changed,
    Item,
    Offer,
    Run,
    begun,
    best,
    expire,
    items_of,
    primitive,
    step,
)
from fieldfare.patterns.stamps import Key, Stamp

Skip: TypeAlias = Literal["chronicle", "past last", "to next", "to first", "to last"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The fate of events and instances: after a match, after the first result, and beyond the limits."""

    skip: Skip = "chronicle"
    target: str = ""
    """Name for "to first" and "to last"."""
    one_shot: bool = False
    instances: int = 10_000
    """Open instances; the oldest is dropped for another."""
    runs: int = 100
    """Ways of a single instance; the shortest are dropped."""


class Instance(NamedTuple):
    """Runs with the same first event."""

    id: int
    start: Key | None
    """Place of the first event; None before it comes to a pattern for one shot."""
    runs: tuple[Run, ...]

    @property
    def deadline(self) -> int:
        """The time of the next timer of a run."""
        return min([run.deadline for run in self.runs])


class Machine(NamedTuple):
    """The state of a pattern: open instances by interest, and counters."""

    groups: Mapping[frozenset[Label], tuple[Instance, ...]]
    started: int = 0
    """Number of instances so far, which is the id of the next."""
    open: int = 0
    dropped: int = 0
    """Instances and runs that exceeded a limit."""
    ended: bool = False
    """Whether a pattern for one shot is over."""

    def find(self, id: int) -> Instance | None:
        """Return the open instance with an id, or None after the end of the instance."""
        for group in self.groups.values():
            place = bisect_left(group, id, key=_id)
            if place < len(group) and group[place].id == id:
                return group[place]
        return None

    def instances(self) -> Iterator[Instance]:
        """Return the open instances, the oldest first."""
        return merge(*self.groups.values())

    @property
    def deadline(self) -> int:
        """The time of the next timer; `NEVER` without a timer."""
        return min((instance.deadline for group in self.groups.values() for instance in group), default=NEVER)


def _id(instance: Instance) -> int:
    return instance.id


class Step(NamedTuple):
    """The state after an input, the matches, and the new or changed instances."""

    machine: Machine
    matches: list[Match]
    changed: list[Instance]


class Match(NamedTuple):
    """A detection: constituents, duration, and the values of conditions."""

    items: tuple[Item, ...]
    stamp: Stamp
    values: tuple[Any, ...] = ()

    @property
    def events(self) -> list[Any]:
        """The events with names, in the order of the match."""
        return list(primitive(self.items))


IDLE: Final = Machine({})
"""the state without any instance"""


def initial(program: Program, policy: Policy) -> Machine:
    """Return the state to begin with; a pattern for a single shot waits with a first and last instance."""
    if not policy.one_shot:
        return IDLE
    runs = tuple(begun(program, _base(program)))
    return Machine({_interests(program, runs): (Instance(0, None, runs),)}, 1, 1)


def _base(program: Program) -> Run:
    return Run(0, values=program.bindings.start if program.bindings is not None else ())


def _interests(program: Program, runs: tuple[Run, ...]) -> frozenset[Label]:
    return program.interests(tuple([run.state for run in runs]))


def steps(
    program: Program, policy: Policy, machine: Machine, inputs: Iterable[Offer], now: int = -NEVER
) -> tuple[Machine, list[Match]]:
    """Take in events in total order, then let the time be `now`; return the state after and all matches."""
    matches: list[Match] = []
    for given in inputs:
        machine, timed = advance(program, policy, machine, given.event.high)
        machine, found, _ = offer(program, policy, machine, given)
        matches += timed + found
    machine, timed = advance(program, policy, machine, now)
    return machine, matches + timed


def offer(program: Program, policy: Policy, machine: Machine, given: Offer) -> Step:
    """Offer an event to the instances of a pattern; timers of earlier times have struck before."""
    work = _Work(program, policy, machine)
    touched = [group for names, group in machine.groups.items() if not names.isdisjoint(given.labels)]
    exclusive = policy.skip == "chronicle"
    consumed = False
    for instance in touched[0] if len(touched) == 1 else merge(*touched):
        if instance.id in work.gone:
            continue
        advanced = work.feed(instance, given)
        if advanced and exclusive:
            consumed = True
            break
    if not consumed and not policy.one_shot and work.may_begin(given.key):
        work.begin(given)
    return work.result()


def advance(program: Program, policy: Policy, machine: Machine, until: int) -> tuple[Machine, list[Match]]:
    """Let all timers before a time strike, the earliest first; at the same time, timers of older instances first."""
    matches: list[Match] = []
    while True:
        due = min(((one.deadline, one.id, one) for one in machine.instances()), default=None)
        if due is None or due[0] >= until:
            return machine, matches
        machine, found, _ = strike(program, policy, machine, due[2])
        matches += found


def strike(program: Program, policy: Policy, machine: Machine, instance: Instance) -> Step:
    """Let the next timer of an instance strike."""
    work = _Work(program, policy, machine)
    deadline, runs = instance.deadline, list[Run]()
    for run in instance.runs:
        runs += expire(program, run) if run.deadline == deadline else [run]
    work.replace(instance, runs)
    return work.result()


def without(machine: Machine, id: int) -> Machine:
    """Return a state without an instance, which counts as dropped."""
    groups = {names: tuple(one for one in group if one.id != id) for names, group in machine.groups.items()}
    left = {names: group for names, group in groups.items() if group}
    return machine._replace(groups=left, open=sum(map(len, left.values())), dropped=machine.dropped + 1)


class _Work:
    """A step of a machine under way: changed instances, and matches."""

    def __init__(self, program: Program, policy: Policy, machine: Machine) -> None:
        self._program = program
        self._policy = policy
        self._machine = machine
        self._new: list[Instance] = []
        self._matches: list[Match] = []
        self._from: Key | None = None
        """Since a match: events may begin an instance from this place on."""
        self._dropped = machine.dropped
        self._started = machine.started
        self._touched: set[frozenset[Label]] = set()
        self.gone: set[int] = set()

    def feed(self, instance: Instance, given: Offer) -> bool:
        """Offer an event to the runs of an instance; tell whether some run took the event."""
        runs, advanced, changed = list[Run](), False, False
        for run in instance.runs:
            result = step(self._program, run, given)
            if result is IGNORED:
                runs.append(run)
            elif isinstance(result, list):
                runs += result
                advanced = True
            else:
                changed = True
                if isinstance(result, Changed):
                    runs.append(result.run)
        if advanced or changed:
            self.replace(instance, runs)
        return advanced

    def begin(self, given: Offer) -> None:
        """Offer an event to the initial state."""
        runs = list[Run]()
        for run in _begun(self._program):
            result = step(self._program, run, given)
            if isinstance(result, list):
                runs += result
        if runs:
            self._started += 1
            self.replace(Instance(self._started - 1, given.key, ()), runs)

    def may_begin(self, key: Key) -> bool:
        """Tell whether an event may begin an instance after the matches of the step."""
        if self._from is None:
            return True
        return self._policy.skip != "past last" and key >= self._from

    def replace(self, instance: Instance, runs: list[Run]) -> None:
        """Replace the runs of an instance; a match, or no run left, ends the instance."""
        if self._program.sides and instance.start and self._policy.skip != "chronicle":
            runs = [run for run in runs if earliest(run) == instance.start]
        self.gone.add(instance.id)
        if instance.runs:
            self._touched.add(_interests(self._program, instance.runs))
        detected = [run for run in runs if run.state == DETECTED and run.length]
        if detected:
            self._match(best(self._program, detected), instance)
            return
        left = _distinct([run for run in runs if run.state != DETECTED]) if len(runs) > 1 else runs
        if len(left) > self._policy.runs:
            left.sort(key=lambda run: -run.length)
            self._dropped += len(left) - self._policy.runs
            left = left[: self._policy.runs]
        if left and left[0].state != DETECTED:
            self._new.append(Instance(instance.id, instance.start, tuple(left)))

    def _match(self, run: Run, instance: Instance) -> None:
        assert run.last is not None
        items = tuple(items_of(run.cell))
        self._matches.append(Match(items, Stamp(run.low, run.last[0]), run.values))
        match self._policy.skip:
            case "past last":
                self._drop_before((NEVER, 0, 0, "", 0))
            case "to first" | "to last":
                named = [event.key for name, event in primitive(items) if name == self._policy.target]
                if named:
                    self._drop_before(max(named) if self._policy.skip == "to last" else min(named))

    def _drop_before(self, key: Key) -> None:
        """Drop all instances with a beginning before a place."""
        self._from = key if self._from is None else max(key, self._from)
        self._new = [one for one in self._new if one.start is None or one.start >= key]
        self.gone |= {
            one.id for group in self._machine.groups.values() for one in group if one.start and one.start < key
        }
        self._touched |= self._machine.groups.keys()

    def result(self) -> Step:
        """Return the state after the step."""
        machine = self._machine
        if not self.gone:
            return Step(machine, [], [])
        groups = dict(machine.groups)
        for names in self._touched & groups.keys():
            group = groups[names]
            first = len(self.gone) == 1 and group[0].id in self.gone  # as in most steps
            kept = group[1:] if first else tuple([one for one in group if one.id not in self.gone])
            if kept:
                groups[names] = kept
            else:
                del groups[names]
        for one in self._new:
            names = _interests(self._program, one.runs)
            others = groups.get(names, ())
            groups[names] = tuple(sorted((*others, one))) if others and others[-1].id > one.id else (*others, one)
        count = sum(map(len, groups.values()))
        while count > self._policy.instances:
            names = min(groups, key=lambda names: groups[names][0].id)
            groups[names] = groups[names][1:]
            if not groups[names]:
                del groups[names]
            count -= 1
            self._dropped += 1
        ended = machine.ended or (self._policy.one_shot and not count)
        return Step(Machine(groups, self._started, count, self._dropped, ended), self._matches, self._new)


def earliest(run: Run) -> Key:
    """Return the place of the first event of a run; a side of a parallel part may have lost earlier events."""
    events = [event.key for _, event in primitive(items_of(run.cell))]
    return min(events + [earliest(one) for side in run.sides for one in side], default=(NEVER, 0, 0, "", 0))


def _begun(program: Program) -> list[Run]:
    return begun(program, _base(program))


def _distinct(runs: list[Run]) -> list[Run]:
    """Drop runs equal to another run: loops within loops lead to the same place by several ways."""
    found: dict[Any, Run] = {}
    for run in runs:
        events = (id(run.cell[0]), run.cell[1].name, run.length) if run.cell else ()
        key: Any = (run.state, run.last, events, run.registers, run.timers, run.counts)
        found.setdefault(id(run) if any(run.sides) else key, run)
    return list(found.values())
