"""`Index`: the engine. A small mutable part, immutable segments, tombstones, merges in the background.

An added filter goes into the *delta*; a full delta becomes a *segment*, and segments of like size are merged. Readers
take one reference to an immutable tuple of these and never wait; writers share a lock. A removed filter loses its alive
bits at once and its room at the next merge. So a match sees every add that returned before it began.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import NDArray

from fieldfare.events.event import fields_of
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Mode
from fieldfare.filters.diagnosis import BranchReport, diagnose
from fieldfare.filters.examples import example_fields
from fieldfare.filters.filter import Filter
from fieldfare.matching import arena as layout
from fieldfare.matching import backend, relations, scan, segment, snapshot
from fieldfare.matching.arena import NUMBER_MASK, SHARED_FLAG, VERIFY_FLAG, Words
from fieldfare.matching.base import Id, Matcher, as_filter
from fieldfare.matching.batches import Encoder
from fieldfare.matching.bulk import Collector
from fieldfare.matching.columns import MISSING_KEY, Columns, Entry
from fieldfare.matching.decoding import filter_of
from fieldfare.matching.delta import Delta
from fieldfare.matching.state import Segment, State, recent

Ints = NDArray[np.int64]
_GONE: Final = object()
"""stands where the id of a removed filter was"""
_SAMPLE: Final = 1024
_CHUNK: Final = 1024
"""events that a block meets while it is in cache"""


@dataclass
class Stats:
    """What an index holds and how its work is spread."""

    filters: int
    entries: int
    segments: list[int]
    """entries of each"""
    recent: int
    """entries not in a segment yet"""
    attributes: int
    columns: int
    bytes: int
    verified: int
    """filters that cannot be decided by kernels alone"""
    kernels: str
    selectivity: dict[str, float] = field(default_factory=dict)
    """for each attribute, the mean share of events that its predicates let pass, by the latest sample"""
    checks: list[tuple[Any, int]] = field(default_factory=list)
    """the filters that were verified most often"""


class Index(Matcher[Id], Generic[Id]):
    """Many filters, matched at once.

    >>> index = Index()
    >>> index.add("cheap", "symbol = 'IBM' AND price < 120.5")
    >>> index.match({"symbol": "IBM", "price": 119})
    ['cheap']
    """

    def __init__(self, items: Iterable[tuple[Id, Filter | str]] = (), *, kernels: str = "auto") -> None:
        """An index of some filters. `kernels` is "auto", "numba" or "numpy"; see `backend`."""
        self._choice = kernels
        self._kernels: ModuleType | None = backend.choose(kernels)
        self._columns = Columns()
        self._state = State((), (Delta(),))
        self._stored: Any = None
        self._given: list[Any] | None = []
        self._known: dict[Id, int] | None = {}
        self._kept: dict[int, Filter] = {}
        self._checks: Counter[int] = Counter()
        self._lock = threading.RLock()
        self._merging: set[int] | None = None
        self._merger: threading.Thread | None = None
        self._changes = 0
        self._sample: list[Ints] = []
        self._turn = 0
        self._blank = b""
        self._encoder = Encoder(self._columns)
        self._id_chunks: list[Any] = []
        self._room = 4.0
        self._real: Ints = np.zeros(0, np.int64)
        self.add_many(items)

    # Writing

    def add(self, id: Id, filter: Filter | str) -> None:
        """Store a filter under an id that is not in use."""
        wanted = as_filter(filter)
        with self._lock:
            if id in self._numbers:
                raise KeyError(f"there is a filter {id!r} already; update() replaces it")
            self._numbers[id] = self._insert(id, wanted)

    def update(self, id: Id, filter: Filter | str) -> None:
        """Replace the filter of an id: at every moment one of the two is in force."""
        wanted = as_filter(filter)
        with self._lock:
            old = self._numbers.get(id)
            self._changes += 1  # odd while both are there: readers then look for doubles
            self._numbers[id] = self._insert(id, wanted)
            if old is not None:
                self._kill(old)
            self._changes += 1

    def remove(self, id: Id) -> None:
        """Forget the filter of an id."""
        with self._lock:
            self._kill(self._numbers.pop(id))

    def add_many(self, items: Iterable[tuple[Id, Filter | str]]) -> None:
        """Store many filters at once: all of them, or none if one is wrong."""
        wanted = [(id, as_filter(filter)) for id, filter in items]
        if len(wanted) < 256:
            for id, filter in wanted:
                self.add(id, filter)
            return
        with self._lock:
            fresh = {id for id, _ in wanted}
            taken = fresh & self._numbers.keys()
            if taken or len(fresh) < len(wanted):
                raise KeyError(f"ids in use or given twice: {sorted(map(repr, taken))[:5]}")
            collector = Collector(self._columns)
            for id, filter in wanted:
                number = self._number(id)
                self._numbers[id] = number
                if not collector.add(number, filter):
                    self._kept[number] = filter
            built = Segment(self._build(collector.rows()))
            self._state = self._state._replace(segments=(*self._state.segments, built))
            self._schedule()

    def _number(self, id: Id) -> int:
        self._ids.append(id)
        return len(self._ids) - 1

    def _entries(self, number: int, wanted: Filter) -> tuple[int, list[Entry]]:
        entries = self._columns.entries(wanted)
        if any(entry.verify for entry in entries) or not _plain(wanted):
            self._kept[number] = wanted
        return number | (SHARED_FLAG if len(entries) > 1 else 0), entries

    def _insert(self, id: Id, wanted: Filter) -> int:
        number = self._number(id)
        owner, entries = self._entries(number, wanted)
        delta = self._state.deltas[-1]
        if not delta.fits(entries):
            delta = Delta()
            self._state = self._state._replace(deltas=(*self._state.deltas, delta))
            self._schedule()
        if delta.fits(entries):
            delta.append(owner, number, entries)
        else:  # too large for any delta
            rows = segment.rows_of((owner | (VERIFY_FLAG if e.verify else 0), e) for e in entries)
            self._state = self._state._replace(segments=(*self._state.segments, Segment(self._build(rows))))
        return number

    def _kill(self, number: int) -> None:
        if self._merging is not None:
            self._merging.add(number)
        state = self._state
        _ = any(delta.kill(number) for delta in state.deltas) or any(part.kill(number) for part in state.segments)
        self._ids[number] = _GONE
        self._kept.pop(number, None)
        self._checks.pop(number, None)

    # Segments

    def _roles(self) -> list[int]:
        return [column.role for column in self._columns.columns]

    def _build(self, rows: segment.Rows) -> Words:
        roles = self._roles()
        return segment.build(rows, roles, self._sampled(len(roles)), indexed=self._kernels is not None)

    def _sampled(self, columns: int) -> Ints:
        sample = np.full((columns, len(self._sample)), MISSING_KEY, np.int64)
        for i, keys in enumerate(list(self._sample)):
            sample[: len(keys), i] = keys[:columns]
        return sample

    def _schedule(self) -> None:
        """Start a merge in the background if there is something to merge and none is under way."""
        if self._merging is None and self._mergeable(self._state) is not None:
            self._merging = set()
            self._merger = threading.Thread(target=self._merge, name="fieldfare-merge", daemon=True)
            self._merger.start()

    def _mergeable(self, state: State) -> tuple[tuple[Segment, ...], tuple[Delta, ...]] | None:
        """Full deltas, and the newest segments as long as they are no more than twice as large as what joins them."""
        full = state.deltas[:-1]
        size = sum(delta.count for delta in full)
        taken = len(state.segments)
        stale = self._kernels is not None and not state.indexed
        while taken and (
            state.segments[taken - 1].entries <= 2 * size
            or (
                not size
                and taken == len(state.segments)
                and len(state.segments) > 1
                and state.segments[-2].entries <= 2 * state.segments[-1].entries
            )
        ):
            taken -= 1
            size += state.segments[taken].entries
        if stale:
            taken = 0
        chosen = state.segments[taken:]
        return (chosen, full) if full or len(chosen) > 1 or stale else None

    def _merge(self) -> None:
        while True:
            with self._lock:
                self._kernels = self._kernels or backend.choose(self._choice)
                plan = self._mergeable(self._state)
                if plan is None:
                    self._merging = None
                    return
                self._merging = set()
            chosen, full = plan
            arenas = [*(part.arena for part in chosen), *(delta.arena for delta in full)]
            rows = segment.joined([segment.extract(arena) for arena in arenas])
            built = Segment(self._build(rows))
            with self._lock:
                for number in self._merging:
                    built.kill(number)
                kept = tuple(s for s in self._state.segments if s not in chosen)
                place = sum(1 for s in kept if s.entries >= built.entries)
                rest = tuple(delta for delta in self._state.deltas if delta not in full)
                self._state = State((*kept[:place], built, *kept[place:]), rest)

    def settle(self) -> None:
        """Put everything into one segment, laid out by the events seen so far. Matching never needs it."""
        while (merger := self._merger) is not None and merger.is_alive():
            merger.join()
        with self._lock:
            self._kernels = self._kernels or backend.choose(self._choice)
            rows = segment.joined([segment.rows_of([]), *map(segment.extract, self._state.arenas())])
            self._state = State((Segment(self._build(rows)),) if len(rows) else (), (Delta(),))

    # Snapshots

    def save(self, path: str | Path) -> None:
        """Write a snapshot to a file, which is replaced as a whole."""
        target = Path(path)
        part = target.with_name(target.name + ".part")
        part.write_bytes(self.snapshot())
        part.replace(target)

    def snapshot(self) -> bytes:
        """The index as one buffer for `open`."""
        with self._lock:
            self.settle()
            state, ids = self._state, self._ids
            arena = state.segments[0].arena if state.segments else self._build(segment.rows_of([]))
            live = sorted(self._numbers.values())
            renumbered = np.full(max(1, len(ids)), -1, np.int64)
            renumbered[live] = np.arange(len(live))
            arena = arena.copy()
            owner: Any = layout.section(arena, layout.OWNER)[: int(arena[layout.ENTRIES])]
            owner[:] = renumbered[owner & NUMBER_MASK] | (owner & ~NUMBER_MASK)
            kept = {int(renumbered[number]): self._kept[number] for number in live if number in self._kept}
            return snapshot.write(self._columns, arena, [ids[number] for number in live], kept)

    @classmethod
    def open(cls, source: str | Path | bytes, *, kernels: str = "auto") -> Index[Any]:
        """An index from a snapshot: a file is mapped and shared between processes until it is changed."""
        index: Index[Any] = cls(kernels=kernels)
        index._columns, arena, index._stored, index._kept = snapshot.read(source)
        index._encoder = Encoder(index._columns)
        index._given = index._known = None
        index._id_chunks = [index._stored]
        index._state = State((Segment(arena),) if arena[layout.ENTRIES] else (), (Delta(),))
        return index

    @property
    def _ids(self) -> list[Any]:
        """The id of each number; of an opened snapshot made when first asked for."""
        if self._given is None:
            with self._lock:
                self._given = self._stored.to_pylist()
        return self._given

    @property
    def _numbers(self) -> dict[Id, int]:
        """The number of each id; likewise."""
        if self._known is None:
            with self._lock:
                self._known = {id: number for number, id in enumerate(self._ids)}
        return self._known

    # Reading

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """The ids of all filters that the event matches, each once."""
        fields = fields_of(event)
        changes = self._changes
        ids = self._collect(self._owners(fields), fields, mode)
        if changes & 1 or changes != self._changes:  # a filter may have been seen before and after its update
            return list(dict.fromkeys(ids))
        return ids

    def _owners(self, fields: Mapping[str, object]) -> list[int]:
        """The owners of all entries that an event satisfies."""
        state, kernels = self._state, self._kernels
        if len(self._blank) != 8 * len(self._columns):
            self._blank = np.full(len(self._columns), MISSING_KEY, np.int64).tobytes()
        keys = np.frombuffer(self._columns.encode(fields, self._blank), np.int64).reshape(-1, 1)
        if kernels is None or not state.indexed:
            found = np.concatenate([owner for _, owner in self._scanned(state, keys)])
            return [int(owner) for owner in found.tolist()]
        kernels.number_keys_of(self._number_columns(), keys)
        owners: list[int] = []
        for part in state.segments:
            work, out = part.borrow(), np.empty(256, np.int64)
            found = kernels.match_one(part.arena, keys, work, out)
            if found > len(out):
                out = np.empty(found, np.int64)
                found = kernels.match_one(part.arena, keys, work, out)
            part.give_back(work)
            owners += out[:found].tolist()
        for arena, first, last in recent(state, lambda: self._state):
            events, out = np.empty(last - first, np.int32), np.empty(last - first, np.int64)
            owners += out[: kernels.scan(arena, first, last, keys, events, out)].tolist()
        self._turn += 1
        if not self._turn & 15:
            self._remember(keys[:, 0])
        return owners

    def _scanned(self, state: State, keys: Ints) -> Iterable[tuple[NDArray[np.int32], Ints]]:
        """(event, owner) pairs without kernels."""
        scan.number_keys(self._number_columns(), keys)
        yield np.zeros(0, np.int32), np.zeros(0, np.int64)
        for part in state.segments:
            yield scan.scan(part.arena, 0, part.entries, keys)
        for arena, first, last in recent(state, lambda: self._state):
            yield scan.scan(arena, first, last, keys)

    def match_batch(self, batch: Any, mode: Mode = "overlaps") -> Any:
        """The matches of a record batch: an Arrow table with columns `event` (row number) and `id`, sorted by event.

        Ids must be of one type that Arrow has, such as str or int.
        """
        import pyarrow as pa  # noqa: PLC0415 - takes a while to import, and single events do not need it

        events: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        numbers: list[Ints] = [np.zeros(0, np.int64)]
        step = max(_CHUNK, min(8 * _CHUNK, (1 << 22) // max(1, len(self._columns))))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            event, number = self._match_chunk(part, mode)
            events.append(event + start)
            numbers.append(number)
        ids = self._arrow_ids().take(pa.array(np.concatenate(numbers)))
        return pa.table({"event": np.concatenate(events), "id": ids})

    def _match_chunk(self, part: Any, mode: Mode) -> tuple[Ints, Ints]:
        """(row, filter number) pairs of a few thousand rows, sorted by row."""
        changes, state = self._changes, self._state
        kernels = self._kernels if state.indexed else None
        keys = self._encoder.encode(part, kernels)
        rows = part.num_rows
        pairs: list[tuple[NDArray[np.int32], Ints]] = []
        if kernels is None:
            pairs.extend(self._scanned(state, keys))
        else:
            kernels.number_keys_of(self._number_columns(), keys)
            for start in range(0, rows, _CHUNK):
                some = np.ascontiguousarray(keys[:, start : start + _CHUNK])
                pairs.extend((event + np.int32(start), owner) for event, owner in self._pairs(kernels, state, some))
        event = np.concatenate([np.zeros(0, np.int32), *(e for e, _ in pairs)])
        owner = np.concatenate([np.zeros(0, np.int64), *(o for _, o in pairs)])
        self._room = max(4.0, 1.25 * len(event) / max(1, rows))
        self._turn += 1
        if rows and (not self._turn & 15 or not self._sample):
            for row in range(0, rows, max(1, rows // 64)):
                self._remember(keys[:, row])
        return self._settled(part, event, owner, mode, doubles=bool(changes & 1) or changes != self._changes)

    def _pairs(self, kernels: ModuleType, state: State, keys: Ints) -> Iterable[tuple[NDArray[np.int32], Ints]]:
        room = int(self._room * keys.shape[1])
        for s in state.segments:
            yield _grown(lambda e, o, a=s.arena: kernels.match_batch(a, keys, e, o), room)
        for arena, first, last in recent(state, lambda: self._state):
            yield _grown(lambda e, o, a=arena, f=first, n=last: kernels.scan(a, f, n, keys, e, o), room)

    def _settled(self, part: Any, event: Any, owner: Ints, mode: Mode, *, doubles: bool) -> tuple[Ints, Ints]:
        """Owners to numbers: verified where they must be, once for each row and filter."""
        plain = (owner >= 0) & (owner < SHARED_FLAG)
        if not plain.all():
            whose = np.where(owner < 0, -owner - 1, owner)
            check = (owner < 0) | (whose & VERIFY_FLAG != 0)
            numbers = whose & NUMBER_MASK
            good = np.ones(len(owner), bool)
            rows = _rows(part, np.unique(event[check]))
            for i in np.flatnonzero(check).tolist():
                good[i] = self._verify(int(numbers[i]), rows[int(event[i])], mode)
            event, owner = event[good], numbers[good]
            doubles = True
        if doubles:
            both = np.unique((event.astype(np.int64) << 40) | owner)
            return both >> 40, both & ((1 << 40) - 1)
        if self._kernels is None:
            order = np.argsort(event, kind="stable")
            return event[order].astype(np.int64), owner[order]
        out_event, out_owner = np.empty(len(event), np.int64), np.empty(len(event), np.int64)
        self._kernels.by_event(part.num_rows, len(event), event, owner, out_event, out_owner)
        return out_event, out_owner

    def _arrow_ids(self) -> Any:
        """All ids by number, as an Arrow array that grows by chunks."""
        import pyarrow as pa  # noqa: PLC0415

        with self._lock:
            known = sum(len(chunk) for chunk in self._id_chunks)
            if self._given is not None and known < len(self._ids):
                fresh = [None if id is _GONE else id for id in self._ids[known:]]
                try:
                    self._id_chunks.append(pa.array(fresh))
                except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                    raise TypeError(f"match_batch needs ids of one type that Arrow has, such as str: {error}") from None
            return pa.chunked_array(self._id_chunks) if self._id_chunks else pa.chunked_array([], pa.string())

    def _number_columns(self) -> Ints:
        """The columns whose keys come as raw floats."""
        if len(self._real) != len(self._columns.numbers):
            self._real = np.array(self._columns.numbers, np.int64)
        return self._real

    def _remember(self, keys: Ints) -> None:
        """Keep some events for estimating selectivities."""
        if len(self._sample) < _SAMPLE:
            self._sample.append(keys.copy())
        else:
            self._sample[(self._turn >> 4) % _SAMPLE] = keys.copy()

    def _collect(self, owners: list[int], fields: Mapping[str, object], mode: Mode) -> list[Id]:
        """Owners to ids: verified where they must be, once where a filter has several entries."""
        ids = self._ids
        found: list[Id] = []
        if not owners or (max(owners) < SHARED_FLAG and min(owners) >= 0):
            found = [ids[owner] for owner in owners]
            return [id for id in found if id is not _GONE] if _GONE in found else found
        seen: set[int] = set()
        for owner in owners:
            if 0 <= owner < SHARED_FLAG:
                found.append(ids[owner])
                continue
            sure, whose = (True, owner) if owner >= 0 else (False, -owner - 1)
            number = whose & NUMBER_MASK
            if number in seen:
                continue
            seen.add(number)
            if (sure and not whose & VERIFY_FLAG) or self._verify(number, fields, mode):
                found.append(ids[number])
            elif sure and whose & SHARED_FLAG:
                seen.discard(number)
        return [id for id in found if id is not _GONE] if _GONE in found else found

    def _verify(self, number: int, fields: Mapping[str, object], mode: Mode) -> bool:
        self._checks[number] += 1
        wanted = self.filter_of_number(number)
        return wanted is not None and wanted.matches_fields(fields, mode)

    def __len__(self) -> int:
        return len(self._stored) if self._known is None else len(self._numbers)

    def __contains__(self, id: object) -> bool:
        return id in self._numbers

    def __iter__(self) -> Any:
        return iter(list(self._numbers))

    def filter(self, id: Id) -> Filter:
        """The filter of an id."""
        found = self.filter_of_number(self._numbers[id])
        assert found is not None
        return found

    def filter_of_number(self, number: int) -> Filter | None:
        """The filter of an internal number: kept, or read back from its entries; None if it was removed meanwhile."""
        kept = self._kept.get(number)
        if kept is not None:
            return kept
        state = self._state
        for part in state.segments:
            entries = part.entries_of(number)
            if len(entries):
                return filter_of(self._columns, part.arena, entries.tolist())
        for delta in state.deltas:
            slots = delta.slots(number)
            if slots:
                return filter_of(self._columns, delta.arena, slots)
        return None

    # Relations

    def covering(self, filter: Filter | str) -> list[Id]:
        """The ids of the filters that cover a given one."""
        wanted = as_filter(filter)
        found = relations.candidates(wanted, self._matching_example)
        return self._named(n for n in found if (g := self.filter_of_number(n)) is not None and g.covers(wanted))

    def _matching_example(self, branch: Branch) -> set[int]:
        owners = self._owners(example_fields(branch))
        return {(owner if owner >= 0 else -owner - 1) & NUMBER_MASK for owner in owners}

    def covered(self, filter: Filter | str) -> list[Id]:
        """The ids of the filters that a given one covers."""
        wanted = as_filter(filter)
        return self._related(wanted, relations.covered_by, wanted.covers, every=True)

    def overlapping(self, filter: Filter | str) -> list[Id]:
        """The ids of the filters that overlap a given one."""
        wanted = as_filter(filter)
        return self._related(wanted, relations.overlapping, wanted.overlaps, every=False)

    def _related(self, wanted: Filter, judge: Any, compare: Any, *, every: bool) -> list[Id]:
        if not wanted.branches:
            return []
        table = relations.table_of(self._state.arenas())
        verdict = np.maximum.reduce([judge(table, self._columns, branch) for branch in wanted.branches])
        kept = np.fromiter(self._kept, np.int64)  # their entries say too little, or nothing about lists
        verdict[np.isin(table.owner & NUMBER_MASK, kept)] = relations.MAYBE

        def agrees(number: int) -> bool:
            stored = self.filter_of_number(number)
            return stored is not None and bool(compare(stored))

        return self._named(relations.numbers_where(table, verdict, agrees, every=every))

    def _named(self, numbers: Iterable[int]) -> list[Id]:
        return [id for number in numbers if (id := self._ids[number]) is not _GONE]

    def explain(self, event: Mapping[str, object], id: Id, mode: Mode = "overlaps") -> list[BranchReport]:
        """Why an event does or does not match the filter of an id, constraint by constraint."""
        return diagnose(self.filter(id), event, mode)

    def stats(self) -> Stats:
        """What the index holds and how its work is spread."""
        state = self._state
        parts = [*state.segments]
        busiest = [(self._ids[number], count) for number, count in self._checks.most_common(10)]
        return Stats(
            filters=len(self), entries=sum(p.entries for p in parts) + sum(d.count for d in state.deltas),
            segments=[p.entries for p in parts], recent=sum(d.count for d in state.deltas),
            attributes=len(self._columns.attributes), columns=len(self._columns),
            bytes=sum(p.arena.nbytes for p in parts) + sum(d.arena.nbytes for d in state.deltas),
            verified=len(self._kept), kernels="numba" if self._kernels else "numpy",
            selectivity=self._selectivity(), checks=busiest,
        )  # fmt: skip

    def _selectivity(self) -> dict[str, float]:
        totals: dict[str, list[float]] = {}
        roles = self._roles()
        for part in self._state.segments:
            rows = segment.extract(part.arena)
            share = segment.selectivity(rows, len(roles), self._sampled(len(roles)))
            for column in np.unique(rows.column).tolist():
                path = self._columns.columns[column].attribute.path
                totals.setdefault(path, []).append(float(share[rows.column == column].mean()))
        return {path: sum(shares) / len(shares) for path, shares in sorted(totals.items())}


def _grown(kernel: Any, room: int) -> tuple[NDArray[np.int32], Ints]:
    """The pairs a kernel finds; it is run again with enough room if there was not."""
    event, owner = np.empty(max(16, room), np.int32), np.empty(max(16, room), np.int64)
    found = kernel(event, owner)
    if found > len(event):
        event, owner = np.empty(found, np.int32), np.empty(found, np.int64)
        found = kernel(event, owner)
    return event[:found], owner[:found]


def _rows(part: Any, wanted: NDArray[np.int32]) -> dict[int, Mapping[str, object]]:
    """Some rows of a batch as flat fields."""
    from fieldfare.events import arrow  # noqa: PLC0415
    from fieldfare.matching.batches import without_views  # noqa: PLC0415

    taken = arrow.rows(without_views(part).take(wanted)) if len(wanted) else []
    return {int(row): fields_of(fields) for row, fields in zip(wanted, taken, strict=True)}


def _plain(wanted: Filter) -> bool:
    return all(side.is_plain for branch in wanted.branches for side in branch.values())
