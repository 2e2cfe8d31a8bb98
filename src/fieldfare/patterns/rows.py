"""The state of a detector as rows, and back: all of it, or the changes since the last time.

Each open instance is a row, so that an event changes few rows. The runs of an instance share a list of events; a row
holds each event once. Patterns are not part of the state: add the patterns first, and restore the state then.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify
from typing import Any, Final

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.events.values import MISSING
from fieldfare.patterns.detector import END, Detector
from fieldfare.patterns.lanes import Place
from fieldfare.patterns.machine import Instance, Machine
from fieldfare.patterns.program import Program
from fieldfare.patterns.runs import NEVER, Cell, Composite, Item, Run
from fieldfare.patterns.stamps import Key, Occurrence
from fieldfare.protocol.journal import Row, StoredRows

VERSION: Final = 1
"""Version of the rows; a later version may append values to a list."""
KINDS: Final = ("pattern-detector", "pattern-state", "pattern-instance", "pattern-held", "pattern-lane")


def changes(detector: Detector, written: dict[Place, Machine]) -> list[Row]:
    """Return the rows to write since the last call; `written` is the state of that call, and is updated.

    An empty `written`, with all places marked as changed, gives all rows: see `all_rows`.
    """
    rows = [Row("pattern-detector", (), [VERSION, dict(detector.dropped_of)])]
    for place in sorted(detector.changed, key=_row_key):
        before, after = written.pop(place, None), detector.machines.get(place)
        rows += _machine_rows(place, before, after)
        if after is not None:
            written[place] = after
    detector.changed.clear()
    for disorder, lane in detector.lanes.items():
        rows.append(Row("pattern-lane", (disorder,), [lane.clock, lane.seen, lane.late, lane.count]))
        held = {count: event for _, count, event in lane.waiting}
        rows += [Row("pattern-held", (disorder, number)) for number in sorted(lane.stored - held.keys())]
        rows += [Row("pattern-held", (disorder, n), _event(held[n])) for n in sorted(held.keys() - lane.stored)]
        lane.stored = set(held)
    return rows


def all_rows(detector: Detector) -> list[Row]:
    """Return the whole state as rows, without any effect on `changes`."""
    rows = [Row("pattern-detector", (), [VERSION, dict(detector.dropped_of)])]
    for place in sorted(detector.machines, key=_row_key):
        rows += _machine_rows(place, None, detector.machines[place])
    for disorder, lane in detector.lanes.items():
        rows.append(Row("pattern-lane", (disorder,), [lane.clock, lane.seen, lane.late, lane.count]))
        rows += [Row("pattern-held", (disorder, count), _event(event)) for _, count, event in sorted(lane.waiting)]
    return rows


def restore(detector: Detector, stored: StoredRows) -> None:
    """Fill a detector, which has the patterns, with stored state; rows of unknown patterns are left out."""
    version, dropped = stored.get("pattern-detector", {}).get((), [VERSION, {}])[:2]
    if version > VERSION:
        raise ValueError(f"the state of patterns has version {version}, and this program reads up to {VERSION}")
    detector.dropped_of = {str(name): count for name, count in dropped.items() if name in detector.patterns}
    for (disorder,), value in stored.get("pattern-lane", {}).items():
        lane = detector.lanes.get(int(disorder))
        if lane is not None:
            lane.clock, lane.seen, lane.late, lane.count = value[:4]
    for (disorder, number), value in stored.get("pattern-held", {}).items():
        lane = detector.lanes.get(int(disorder))
        if lane is not None:
            event = _event_of(value)
            lane.waiting.append((event.key, int(number), event))
            lane.stored.add(int(number))
    for lane in detector.lanes.values():
        heapify(lane.waiting)
    instances: dict[tuple[Any, ...], list[Instance]] = {}
    for (name, key, id), value in sorted(stored.get("pattern-instance", {}).items()):
        if name in detector.patterns:
            program = detector.patterns[str(name)].program
            instances.setdefault((name, key), []).append(_instance_of(program, int(id), value))
    for (name, text), value in stored.get("pattern-state", {}).items():
        if name in detector.patterns:
            place = (str(name), _key_of(str(text)))
            detector.restored(place, _machine(detector, place, value, instances.get((name, text), [])))


def _machine(detector: Detector, place: Place, value: Any, instances: Iterable[Instance]) -> Machine:
    """Return a stored state, and start the timers."""
    pattern = detector.patterns[place[0]]
    lane = detector.lanes[pattern.disorder]
    groups: dict[Any, tuple[Instance, ...]] = {}
    for one in sorted(instances, key=lambda one: one.id):
        names = pattern.program.interests(tuple(run.state for run in one.runs))
        groups[names] = (*groups.get(names, ()), one)
        if one.deadline < NEVER:
            lane.start(one.deadline, place, one.id)
    if pattern.window:
        lane.start((place[1][-1][0] + 1) * pattern.window, place, END)
    started, dropped, ended = value[:3]
    return Machine(groups, started, sum(map(len, groups.values())), dropped, ended)


def _machine_rows(place: Place, before: Machine | None, after: Machine | None) -> list[Row]:
    name, key = _row_key(place)
    old = {} if before is None else {one.id: one for one in before.instances()}
    new = {} if after is None else {one.id: one for one in after.instances()}
    rows = [Row("pattern-instance", (name, key, id)) for id in old if id not in new]
    rows += [
        Row("pattern-instance", (name, key, id), _instance(one)) for id, one in new.items() if old.get(id) is not one
    ]
    value = None if after is None else [after.started, after.dropped, after.ended]
    return [*rows, Row("pattern-state", (name, key), value)]


def _row_key(place: Place) -> tuple[str, str]:
    parts = [[value, flag] for value, flag in place[1]]
    return place[0], msgpack.encode(Event({str(number): part for number, part in enumerate(parts)})).hex()


def _key_of(text: str) -> tuple[Any, ...]:
    found = msgpack.decode(bytes.fromhex(text)).tree
    return tuple(tuple(found[str(number)]) for number in range(len(found)))  # type: ignore[arg-type]


# Instances


def _event(event: Occurrence) -> list[Any]:
    given = event.event if isinstance(event.event, Event) else Event(event.event)
    return [event.low, event.high, msgpack.encode(given), event.source, event.number]


def _event_of(value: Any) -> Occurrence:
    low, high, data, source, number = value
    return Occurrence(low, high, msgpack.decode(data), source, number)


def _value(value: Any) -> list[Any]:
    """Return a value of a run; an empty list is a missing value."""
    if value is MISSING:
        return []
    if isinstance(value, tuple):
        return [0, *(_value(part) for part in value)]
    return [msgpack.encode(Event({"v": value}))]


def _value_of(value: Any) -> Any:
    if not value:
        return MISSING
    if value[0] == 0:
        return tuple(_value_of(part) for part in value[1:])
    return msgpack.decode(value[0])["v"]


class _Cells:
    """The cells of the runs of an instance, numbered: each after the cell before."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, cell: Cell | None) -> int:
        """Return the number of a cell, from 1; 0 stands for no cell."""
        path = []
        while cell is not None and id(cell) not in self._numbers:
            path.append(cell)
            cell = cell[0]
        for one in reversed(path):
            before = 0 if one[0] is None else self._numbers[id(one[0])]
            self.rows.append([before, *_item(one[1])])
            self._numbers[id(one)] = len(self.rows)
            cell = one
        return 0 if cell is None else self._numbers[id(cell)]


def _item(item: Item) -> list[Any]:
    if isinstance(item.what, Composite):
        return ["", item.what.low, item.what.high, [_item(one) for one in item.what.items]]
    return [item.name, _event(item.what)]


def _item_of(value: Any) -> Item:
    if value[0]:
        return Item(value[0], _event_of(value[1]))
    return Item("", Composite(value[1], value[2], tuple(_item_of(one) for one in value[3])))


def _instance(instance: Instance) -> list[Any]:
    cells = _Cells()
    runs = [_run(run, cells) for run in instance.runs]
    return [None if instance.start is None else list(instance.start), runs, cells.rows]


def _instance_of(program: Program, id: int, value: Any) -> Instance:
    start, runs, rows = value[:3]
    cells: list[Cell | None] = [None]
    for before, *item in rows:
        cells.append((cells[before], _item_of(item)))
    return Instance(id, _place(start), tuple(_run_of(run, cells) for run in runs))


def _place(value: Any) -> Key | None:
    return None if value is None else (value[0], value[1], value[2], value[3], value[4])


def _run(run: Run, cells: _Cells) -> list[Any]:
    sides = [[_run(one, cells) for one in side] for side in run.sides]
    last = None if run.last is None else list(run.last)
    timers = [list(timer) for timer in run.timers]
    values = [_value(value) for value in run.values]
    seat = [run.state, cells.number(run.cell), run.length, last, run.low, run.floor]
    return [*seat, list(run.registers), timers, list(run.counts), values, sides]


def _run_of(value: Any, cells: list[Cell | None]) -> Run:
    state, cell, length, last, low, floor, registers, timers, counts, values, sides = value[:11]
    left, right = (tuple(_run_of(one, cells) for one in side) for side in sides)
    known = tuple(_value_of(one) for one in values)
    pairs = tuple((deadline, number) for deadline, number in timers)
    return Run(
        state,
        cells[cell],
        length,
        _place(last),
        low,
        floor,
        tuple(registers),
        pairs,
        tuple(counts),
        known,
        (left, right),
    )
