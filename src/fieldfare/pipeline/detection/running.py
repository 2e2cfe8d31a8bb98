"""The automata over segments: only here an event of a history takes steps of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fieldfare.events import arrow
from fieldfare.patterns.automaton import Label
from fieldfare.patterns.bounds import Bounds
from fieldfare.patterns.machine import Match, Step, initial, offer, strike, without
from fieldfare.patterns.runs import NEVER, Offer
from fieldfare.patterns.stamps import Occurrence
from fieldfare.pipeline.detection.plan import Prepared, Sought
from fieldfare.pipeline.detection.segments import FIELD, Rows, Segments

_EVENTS: Final = Bounds().events
"""events of a way of an instance, as many as in a node"""
_NO_FIELDS: Final[Mapping[str, Any]] = {}


class Found(NamedTuple):
    """A detection: number of the pattern, a row of the key, and the match with numbers of rows for events."""

    pattern: int
    row: int
    match: Match


def detections(prepared: Prepared, rows: Rows, segments: Segments) -> Iterator[Found]:
    """Run the patterns over all segments."""
    fields = _fields(prepared, rows, segments)
    low, high = rows.low.tolist(), rows.high.tolist()
    names = Labels(prepared)
    spans = zip(*(column.tolist() for column in segments[:4]), strict=True)
    for number, start, end, until in spans:
        sought = prepared.sought[number]
        places = segments.row[start:end].tolist()
        labels = names.of(number, segments.bits[start:end].tolist())
        events = [Occurrence(low[row], high[row], fields.get(row, _NO_FIELDS), "", row) for row in places]
        for match in _run(sought, zip(events, labels, strict=True), until):
            yield Found(number, places[0], match)


def _run(sought: Sought, touches: Iterator[tuple[Occurrence, frozenset[Label]]], until: int) -> Iterator[Match]:
    """Run a pattern over the events of a segment, then let the timers strike; as a `Detector` does for a key."""
    pattern = sought.pattern
    program, policy, starts = pattern.program, pattern.policy, sought.starts
    machine = initial(program, policy)
    timers: list[tuple[int, int, int]] = []
    entries = 0

    def after(step: Step) -> None:
        nonlocal machine, entries
        machine = step.machine
        for instance in step.changed:
            if max(run.length for run in instance.runs) > _EVENTS:
                machine = without(machine, instance.id)
            deadline = instance.deadline
            if deadline < NEVER:
                entries += 1
                heappush(timers, (deadline, entries, instance.id))

    def struck(time: int) -> Iterator[Match]:
        while timers and timers[0][0] < time:
            deadline, _, id = heappop(timers)
            instance = machine.find(id)
            if instance is not None and instance.deadline == deadline:
                step = strike(program, policy, machine, instance)
                after(step)
                yield from step.matches

    for event, labels in touches:
        if timers and timers[0][0] < event.high:
            yield from struck(event.high)
        if not machine.open and (machine.ended or labels.isdisjoint(starts)):
            continue
        step = offer(program, policy, machine, Offer(event, event.key, labels, event.event))
        after(step)
        yield from step.matches
    yield from struck(until)


def _fields(prepared: Prepared, rows: Rows, segments: Segments) -> dict[int, Mapping[str, Any]]:
    """Return the fields in conditions and selections, by row."""
    wanted = [number for number, one in enumerate(prepared.sought) if one.pattern.bindings is not None]
    chosen = [at for at, number in enumerate(segments.pattern.tolist()) if number in set(wanted)]
    places = sorted({row for at in chosen for row in segments.row[segments.start[at] : segments.end[at]].tolist()})
    if not places:
        return {}
    columns = [name for name in rows.table.schema.names if name.startswith(FIELD)]
    taken = rows.table.select(columns).take(pa.array(places))
    if isinstance(taken, pa.Table):
        taken = taken.combine_chunks().to_batches()[0]
    batch = pa.RecordBatch.from_arrays(taken.columns, names=[name.removeprefix(FIELD) for name in columns])
    return dict(zip(places, arrow.rows(batch), strict=True))


class Labels:
    """Sets of names for bits, each made once."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._known: dict[tuple[int, int], frozenset[Label]] = {}

    def of(self, pattern: int, bits: list[int]) -> list[frozenset[Label]]:
        """Return the names of the touches of a pattern."""
        found = []
        for one in bits:
            key = (pattern, one)
            names = self._known.get(key)
            if names is None:
                known = self._prepared.sought[pattern].pattern.names
                names = self._known[key] = frozenset(name for bit, name in enumerate(known) if one >> bit & 1)
            found.append(names)
        return found
