"""Runs: ways through an automaton, and the step rule of the literature.

A run in a state ignores an event outside of the domain of the state, follows a transition if the event has a label of
the transition and the order holds, and fails otherwise. Several ways on from a state make several runs, which share a
list of events. A run is an immutable value: a step returns `IGNORED`, `FAILED`, or the runs that go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.patterns.automaton import Barrier, Count, Effect, Label, Lift, Mark, Start
from fieldfare.patterns.program import DETECTED, Program, Way
from fieldfare.patterns.stamps import Key, Occurrence
from fieldfare.patterns.tree import After, At

NEVER: Final = 1 << 62
"""deadline of a limit whose first event has not come"""


class Verdict(Enum):
    """The end of a run, or no change."""

    IGNORED = "ignored"
    FAILED = "failed"


IGNORED: Final = Verdict.IGNORED
FAILED: Final = Verdict.FAILED


class Offer(NamedTuple):
    """An event, or a time event, with labels."""

    event: Occurrence
    key: Key
    labels: frozenset[Label]
    fields: Mapping[str, Any]
    timed: bool = False


class Composite(NamedTuple):
    """The events of a side of a parallel part, as a single constituent."""

    low: int
    high: int
    items: tuple[Item, ...]


class Item(NamedTuple):
    """A constituent of a match: an event with a name, or a composite without."""

    name: str
    what: Occurrence | Composite


Cell: TypeAlias = "tuple[Cell | None, Item]"
"""A list of items, the last first: runs that part later share the beginning."""


class Run(NamedTuple):
    """The state of a way through an automaton, with the events so far."""

    state: int
    cell: Cell | None = None
    length: int = 0
    """Number of events."""
    last: Key | None = None
    """Place of the last event in the total order."""
    low: int = NEVER
    """Earliest beginning of an event."""
    floor: int = -NEVER
    """Barrier from outside: the end that all events must begin after."""
    registers: tuple[Any, ...] = ()
    timers: tuple[tuple[int, int], ...] = ()
    """Running timers: deadline and number."""
    counts: tuple[int, ...] = ()
    """Parts of each repetition with a preference."""
    values: tuple[Any, ...] = ()
    """Values for conditions between events."""
    sides: tuple[tuple[Run, ...], tuple[Run, ...]] = ((), ())
    """In a parallel state: the runs of both sides; none if the side waits for its first event."""

    @property
    def barrier(self) -> int:
        """The end after which the next event must begin."""
        barrier = self.floor
        for value in self.registers:
            if value is not None and value is not True and value is not False:
                barrier = max(barrier, value)
        return barrier

    @property
    def deadline(self) -> int:
        """The time of the next timer, of sides as well; `NEVER` without one."""
        deadline = min(self.timers)[0] if self.timers else NEVER
        for side in self.sides:
            for run in side:
                deadline = min(deadline, run.deadline)
        return deadline


class Changed(NamedTuple):
    """A run after a failure on a side of a parallel part; the side begins anew, and the event is not used."""

    run: Run


Outcome: TypeAlias = Verdict | Changed | list[Run]


def items_of(cell: Cell | None) -> list[Item]:
    """Return the items of a list, the first first."""
    found = []
    while cell is not None:
        cell, item = cell
        found.append(item)
    return found[::-1]


def primitive(items: list[Item] | tuple[Item, ...]) -> Iterator[tuple[str, Occurrence]]:
    """Yield the events of items with names, also the events in composites."""
    for name, what in items:
        if isinstance(what, Composite):
            yield from primitive(what.items)
        else:
            yield name, what


def begun(program: Program, base: Run) -> list[Run]:
    """Return the runs before the first event; `base` gives barrier, time and values to begin with."""
    registers = (None,) * program.automaton.registers
    base = base._replace(registers=registers, counts=(0,) * len(program.repetitions))
    return [_along(program, base, way) for way in program.start if way.target != DETECTED]


def step(program: Program, run: Run, offer: Offer) -> Outcome:
    """Offer an event to a run."""
    if offer.labels.isdisjoint(program.wants[run.state]):
        return IGNORED
    late = (run.last is not None and offer.key < run.last) or offer.event.low <= run.barrier
    if late and program.skip:
        return IGNORED
    part = program.parts.get(run.state)
    if part is None:
        return _step_sides(program, run, offer)
    name = _first(program, run, part.names, offer)
    if part.negated:
        name = _first(program, run, part.domain, offer) if name is None else None
    if name is None:
        return IGNORED if _first(program, run, part.domain, offer) is None else FAILED
    if late:
        return FAILED
    return _advanced(program, run, name, offer)


def _first(program: Program, run: Run, names: tuple[Label, ...], offer: Offer) -> Label | None:
    """Return the first of some names to which the event has a right, by filter and by conditions."""
    bindings = program.bindings
    for name in names:
        if name in offer.labels and (
            bindings is None or isinstance(name, int) or bindings.holds(name, run.values, offer.fields)
        ):
            return name
    return None


def _advanced(program: Program, run: Run, name: Label, offer: Offer) -> Verdict | list[Run]:
    """Return the runs after an event has matched."""
    cell, length, values = run.cell, run.length, run.values
    if isinstance(name, str):
        cell, length = (cell, Item(name, offer.event)), length + 1
        if program.bindings is not None:
            values = program.bindings.fold(values, name, offer.fields)
    moved = _touched(program, run, offer)._replace(cell=cell, length=length, values=values)
    return _onwards(program, moved)


def _touched(program: Program, run: Run, offer: Offer) -> Run:
    """Return a run after an event, with new time, limits and flags."""
    timers, registers = run.timers, run.registers
    if timers and not offer.timed and any(deadline == NEVER for deadline, _ in timers):
        timers = tuple(
            (offer.event.low + _limit(program, timer) if deadline == NEVER else deadline, timer)
            for deadline, timer in timers
        )
    if program.flags:
        registers = tuple(True if register in program.flags else value for register, value in enumerate(registers))
    return run._replace(last=offer.key, low=min(run.low, offer.event.low), timers=timers, registers=registers)


def _limit(program: Program, timer: int) -> int:
    duration = program.timers[timer].when
    assert isinstance(duration, int)
    return duration


def _onwards(program: Program, run: Run) -> Verdict | list[Run]:
    """Return the runs behind the present state; a match against the conditions did not happen."""
    runs = [_along(program, run, way) for way in program.follow[run.state]]
    if program.bindings is not None and program.whole:
        runs = [one for one in runs if one.state != DETECTED or program.bindings.complete(one.values)]
    return runs or IGNORED


def _along(program: Program, run: Run, way: Way) -> Run:
    """Return a run at the end of a way."""
    if not way.effects:
        return run._replace(state=way.target)
    registers, timers, counts = list(run.registers), run.timers, run.counts
    for effect in way.effects:
        match effect:
            case Mark(register):
                registers[register] = False
            case Barrier(register, unless):
                if run.last is not None and (unless < 0 or registers[unless]):
                    registers[register] = run.last[0]
            case Lift(register):
                registers[register] = None
            case Count(repetition):
                counts = (*counts[:repetition], counts[repetition] + 1, *counts[repetition + 1 :])
            case _:
                timers = _timed(program, run, effect, timers)
    return run._replace(state=way.target, registers=tuple(registers), timers=timers, counts=counts)


def _timed(
    program: Program, run: Run, effect: Effect, timers: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Return the running timers after the start or the stop of a timer."""
    number = effect[0]
    timers = tuple(one for one in timers if one[1] != number)
    if not isinstance(effect, Start):
        return timers
    end = run.last[0] if run.last is not None else 0
    match program.timers[number].when:
        case After(duration):
            return (*timers, (end + duration, number))
        case At(time):
            return (*timers, (max(time, end), number))
    return (*timers, (NEVER, number))


def expire(program: Program, run: Run) -> list[Run]:
    """Let the next timer of a run strike."""
    deadline = run.deadline
    own = [timer for when, timer in run.timers if when == deadline]
    if not own:
        return _expire_sides(program, run, deadline)
    number = min(own)
    if isinstance(program.timers[number].when, int):
        return []  # a limit is over
    run = run._replace(timers=tuple(one for one in run.timers if one[1] != number))
    result = step(program, run, time_event(deadline, number))
    if isinstance(result, Changed):
        return [result.run]
    return result if isinstance(result, list) else [run] if result is IGNORED else []


def time_event(deadline: int, number: int) -> Offer:
    """Return the event of a timer, which comes after the events of the same instant."""
    return Offer(
        Occurrence(deadline, deadline, {}), (deadline, deadline, 1, "", number), frozenset((number,)), {}, True
    )


# Parallel parts


def _step_sides(program: Program, run: Run, offer: Offer) -> Outcome:
    """Offer an event to both sides of a parallel state."""
    sides, moved = list(run.sides), False
    for place, side in enumerate(program.sides[run.state]):
        result = _step_side(side, run, run.sides[place], offer)
        if result is FAILED:
            return FAILED
        if not isinstance(result, Verdict):
            sides[place], changed = result
            moved = moved or changed
    if not moved:
        if run.length == 0 and not any(sides):
            return FAILED if any(run.sides) else IGNORED
        return IGNORED if tuple(sides) == run.sides else Changed(run._replace(sides=(sides[0], sides[1])))
    after = _touched(program, run, offer)._replace(sides=(sides[0], sides[1]), last=run.last, low=run.low)
    return _joined(program, run, after)


def _step_side(side: Program, run: Run, runs: tuple[Run, ...], offer: Offer) -> Verdict | tuple[tuple[Run, ...], bool]:
    """Return the runs of a side after an event, and whether some run took the event; a failed side begins anew.

    A time event comes only once: a side that fails by a time event has failed for good.
    """
    if runs and runs[0].state == DETECTED:
        return IGNORED
    left, moved, failed = _step_all(side, runs, offer) if runs else ([], False, False)
    if not left:
        fresh = begun(side, Run(0, last=run.last, floor=run.barrier, values=run.values))
        after, started, refused = _step_all(side, tuple(fresh), offer)
        if started:
            return tuple(_best_first(side, [one for one in after if one.last != run.last or any(one.sides)])), True
        if offer.timed and (refused or failed):
            return FAILED
    return tuple(_best_first(side, left)), moved


def _step_all(side: Program, runs: tuple[Run, ...], offer: Offer) -> tuple[list[Run], bool, bool]:
    """Return the runs left, whether some took the event, and whether some failed."""
    left, moved, failed = list[Run](), False, False
    for run in runs:
        result = step(side, run, offer)
        if isinstance(result, list):
            left += result
            moved = True
        elif result is IGNORED:
            left.append(run)
        elif isinstance(result, Changed):
            left.append(result.run)
        else:
            failed = True
    return left, moved, failed


def _best_first(side: Program, runs: list[Run]) -> list[Run]:
    """Return the detection alone if a run has detected the side."""
    detected = [run for run in runs if run.state == DETECTED and run.length]
    return [best(side, detected)] if detected else [run for run in runs if run.state != DETECTED]


def _expire_sides(program: Program, run: Run, deadline: int) -> list[Run]:
    """Let the timer of a run in a side strike; a side without runs begins anew."""
    sides = list(run.sides)
    for place, side in enumerate(program.sides[run.state]):
        due = [one for one in sides[place] if one.deadline == deadline]
        if due:
            others = [one for one in sides[place] if one is not due[0]]
            sides[place] = tuple(_best_first(side, others + expire(side, due[0])))
            break
    if run.length == 0 and not any(sides):
        return []
    joined = _joined(program, run, run._replace(sides=(sides[0], sides[1])))
    return joined if isinstance(joined, list) else []


def _joined(program: Program, before: Run, run: Run) -> Verdict | list[Run]:
    """Return the runs behind a parallel state if both sides are detected, else the unchanged run."""
    if not all(side and side[0].state == DETECTED for side in run.sides):
        return [run]
    pair = sorted((side[0] for side in run.sides), key=lambda one: one.last or ())
    cell, values, counts = run.cell, before.values, run.counts
    for one in pair:
        items = items_of(one.cell)
        high = one.last[0] if one.last is not None else 0
        cell = (cell, items[0] if len(items) == 1 else Item("", Composite(one.low, high, tuple(items))))
        counts = tuple(map(sum, zip(counts, one.counts, strict=True)))
    if program.bindings is not None:
        events = [both for one in pair for both in primitive(items_of(one.cell))]
        for name, event in sorted(events, key=lambda both: both[1].key):
            values = program.bindings.fold(values, name, event.event)
        tree = program.automaton.states[run.state].tree
        if tree is not None and not program.bindings.fit(tree, values):
            return IGNORED
    joined = run._replace(
        cell=cell,
        length=run.length + sum(one.length for one in pair),
        last=max(one.last for one in pair if one.last is not None),
        low=min(run.low, *(one.low for one in pair)),
        values=values,
        counts=counts,
        sides=((), ()),
    )
    return _onwards(program, joined)


# Preference


def best(program: Program, runs: list[Run]) -> Run:
    """Return the preferred run of several detections at the same event.

    The first repetition with a preference decides, then the next; then the longest match, then the earliest events.
    """
    if len(runs) == 1:
        return runs[0]
    return min(runs, key=lambda run: _rank(program, run))


def _rank(program: Program, run: Run) -> tuple[Any, ...]:
    counts = [-count if many else count for count, many in zip(run.counts, program.repetitions, strict=True)]
    events = list(primitive(items_of(run.cell)))
    return counts, -run.length, [event.key for _, event in events], [name for name, _ in events]
