"""`Index`: the front of the matching engine. Filters under any ids, matched with single events and with whole batches.

Behind the index a `Store` holds the filters as flat arrays and a `Reader` looks entries up; this module adds ids,
verification of entries that arrays cannot decide, relations between filters, and snapshots. A match sees every `add`
that returned before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fieldfare.events.encoded import EncodedEvent
from fieldfare.events.event import Event, fields_of
from fieldfare.filters.constraint import Mode
from fieldfare.filters.diagnosis import BranchReport, diagnose
from fieldfare.filters.filter import Filter
from fieldfare.matching.ids import GONE, IdTable, arrow_ids
from fieldfare.matching.match.batch_rows import MANY, batch_of
from fieldfare.matching.match.decisions import Decisions, Replaced
from fieldfare.matching.match.encoded_reader import EncodedReader
from fieldfare.matching.match.json_reader import JsonReader
from fieldfare.matching.match.lookup import CHUNK, Reader
from fieldfare.matching.matcher import Id, Matcher, as_filter
from fieldfare.matching.relations import search
from fieldfare.matching.stats import Stats, stats_of, time_spent
from fieldfare.matching.store import layout, snapshot
from fieldfare.matching.store.layout import SHARED_FLAG
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
_NO_PAIRS: Final = np.zeros(0, np.int64), np.zeros(0, np.int64)
_BULK: Final = 256
"""number of filters added at once that become a segment of their own"""


class Index(Matcher[Id], Generic[Id]):
    """An index of many filters that matches all filters at once.

    >>> index = Index()
    >>> index.add("cheap", "symbol = 'IBM' AND price < 120.5")
    >>> index.match({"symbol": "IBM", "price": 119})
    ['cheap']
    """

    def __init__(self, items: Iterable[tuple[Id, Filter | str]] = (), *, kernels: str = "auto") -> None:
        """Make an index of some filters. `kernels` is "auto", "lazy", "numba" or "numpy"; see `backend`."""
        self._start(Store(kernels))
        self.add_many(items)

    def _start(self, store: Store, stored: Any = None) -> None:
        self._store = store
        self._reader = Reader(store)
        self._json = JsonReader(store), JsonReader(store, cloudevents=True)
        self._encoded = EncodedReader(store)
        self._decisions = Decisions(store)
        self._ids: IdTable[Id] = IdTable(store.lock, stored)
        self._changes = 0

    # Writing

    def add(self, id: Id, filter: Filter | str) -> None:
        """Store a filter under an id that is not in use."""
        wanted = as_filter(filter)
        with self._store.lock:
            if id in self._ids.numbers:
                raise KeyError(f"there is a filter {id!r} already; update() replaces it")
            self._ids.numbers[id] = self._insert(id, wanted)

    def update(self, id: Id, filter: Filter | str) -> None:
        """Replace the filter of an id, or add a filter: at every moment the old or the new filter is in force."""
        wanted = as_filter(filter)
        with self._store.lock:
            old = self._ids.numbers.get(id)
            self._changes += 1  # odd while both are there: readers then look for doubles
            self._ids.numbers[id] = self._insert(id, wanted)
            if old is not None:
                self._kill(old)  # the number keeps the id: a reader that has just matched the old filter is right
            self._changes += 1

    def remove(self, id: Id) -> None:
        """Remove the filter of an id."""
        with self._store.lock:
            number = self._ids.numbers.pop(id)
            self._kill(number)
            self._changes += 2  # before the id is gone, so that readers that miss the id look again
            self._ids.by_number[number] = GONE

    def add_many(self, items: Iterable[tuple[Id, Filter | str]]) -> None:
        """Store many filters at once: all of them, or none if a filter or id is wrong."""
        ids: list[Id] = []  # no list of pairs: a hundred thousand pairs would start the garbage collector
        wanted: list[Filter] = []
        for id, filter in items:
            ids.append(id)
            wanted.append(filter if isinstance(filter, Filter) else as_filter(filter))
        with self._store.lock:
            first = len(self._ids.by_number)
            fresh = dict(zip(ids, range(first, first + len(ids)), strict=True))
            if len(fresh) < len(ids) or not self._ids.numbers.keys().isdisjoint(fresh):
                taken = fresh.keys() & self._ids.numbers.keys()
                raise KeyError(f"ids in use or given twice: {sorted(map(repr, taken))[:5]}")
            if len(wanted) < _BULK:
                for id, filter in zip(ids, wanted, strict=True):
                    self._ids.numbers[id] = self._insert(id, filter)
                return
            self._ids.by_number.extend(ids)
            self._ids.numbers.update(fresh)
            self._store.insert_many(first, wanted)

    def _insert(self, id: Id, wanted: Filter) -> int:
        self._ids.by_number.append(id)
        number = len(self._ids.by_number) - 1
        self._store.insert(number, wanted)
        return number

    def _kill(self, number: int) -> None:
        self._store.kill(number)
        self._decisions.forget(number)

    def compact(self) -> None:
        """Put all entries into a single segment, laid out by the events seen so far. Matching never needs a call."""
        self._store.compact()

    # Content

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._ids.numbers

    def __iter__(self) -> Iterator[Id]:
        return iter(list(self._ids.numbers))

    def filter(self, id: Id) -> Filter:
        """Return the filter of an id."""
        found = self._store.filter(self._ids.numbers[id])
        assert found is not None
        return found

    # Matching

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Return the ids of all filters that the event matches, each once."""
        if type(event) is not EncodedEvent:
            return self._match(fields_of(event), mode)
        return self._encoded.settled(event, lambda fields: self._match(fields, mode))

    def _match(self, fields: Mapping[str, object], mode: Mode) -> list[Id]:
        changes, few = self._changes, self._store.few
        if few is not None:
            return self._named([number for number, check in few if check(fields, mode)], changes)
        owners, plain = self._reader.look(fields)
        return self._named(owners if plain else self._numbers(owners, fields, mode), changes) if owners else []

    def _named(self, numbers: list[int], changes: int) -> list[Id]:
        """Return the ids of filters; `changes` as it was before the match."""
        ids = self._ids.by_number
        found = [ids[number] for number in numbers]
        if changes & 1 or changes != self._changes:  # a filter may be removed, or found before and after an update
            return [id for id in dict.fromkeys(found) if id is not GONE]
        return found

    def _numbers(self, owners: list[int], fields: Mapping[str, object], mode: Mode) -> list[int]:
        """Turn owners into filter numbers; look again if a filter was replaced meanwhile."""
        while True:
            try:
                return self._decisions.one(owners, fields, mode)
            except Replaced:
                owners = self._reader.owners(fields)

    def match_json(self, text: bytes | str, mode: Mode = "overlaps", *, cloudevents: bool = False) -> list[Id]:
        """Return the ids of all filters that the event in a JSON text matches; only looked-at fields are decoded.

        Answers and errors are those of `match(json.decode(text))`; see `fieldfare.events`. With `cloudevents`, a text
        with the key `specversion` is a CloudEvent.
        """
        return self._json[cloudevents].settled(text, lambda fields: self._match(fields, mode))

    def match_json_lines(
        self, lines: bytes | str | Iterable[bytes | str], mode: Mode = "overlaps", *, cloudevents: bool = False
    ) -> Any:
        """Return the matches of lines of JSON, a text or an iterable of lines, as `match_batch` does.

        `event` is the number of the line, from 0; blank lines are skipped. An `EventError` names the line, from 1.
        """
        reader = self._json[cloudevents]
        pairs, changes = [_NO_PAIRS], self._changes
        pairs += reader.pairs(
            lines,
            lambda batch: self._match_part(batch, mode),
            lambda fields: self._numbers(self._reader.owners(fields), fields, mode),
        )
        return self._table(pairs, changes)

    def match_batch(self, batch: Any, mode: Mode = "overlaps") -> Any:
        """Return the matches of a record batch: an Arrow table with columns `event` (row number) and `id`, by event.

        Ids must be of a single type that Arrow has, such as str or int.
        """
        pairs, changes = [_NO_PAIRS], self._changes
        step = max(CHUNK, min(8 * CHUNK, (1 << 22) // max(1, len(self._store.columns))))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            event, number = self._match_part(part, mode)
            pairs.append((event + start, number))
        return self._table(pairs, changes)

    def _table(self, pairs: list[tuple[Ints, Ints]], changes: int) -> Any:
        """Return (event, number) pairs as a table with ids; `changes` as it was before the match."""
        events, numbers = (np.concatenate(side) for side in zip(*pairs, strict=True))
        found = pa.table({"event": events, "id": self._ids.arrow().take(pa.array(numbers))})
        if changes & 1 or changes != self._changes:  # an updated filter may occur twice, a removed filter has no id
            found = found.filter(pc.is_valid(found["id"])).group_by(["event", "id"]).aggregate([]).sort_by("event")
        return found

    def match_many(self, events: Sequence[Event], mode: Mode = "overlaps") -> list[list[Id]]:
        """Return the result of `match` for each of several events; many events are matched as a batch."""
        if self._store.few is not None or len(events) < MANY:
            return super().match_many(events, mode)
        while True:
            version = self._store.looked_at.version()
            batch, odd = batch_of(events, self._store.looked_at.paths(), self._encoded.reader())
            found = self._by_row(batch, mode) if len(odd) < len(events) else [[] for _ in events]
            for row in odd:
                found[row] = self.match(events[row], mode)
            if version == self._store.looked_at.version():  # else filters look at other fields by now
                return found

    def _by_row(self, batch: Any, mode: Mode) -> list[list[Id]]:
        """Return the ids that each row of a batch matches."""
        found, ids = list[list[Id]](), self._ids.by_number
        for start in range(0, batch.num_rows, CHUNK):
            part, changes, begin = batch.slice(start, CHUNK), self._changes, 0
            rows, numbers = self._match_part(part, mode)
            names = [ids[number] for number in numbers.tolist()]
            for end in np.searchsorted(rows, np.arange(part.num_rows), "right").tolist():
                found.append(names[begin:end])
                begin = end
            if changes & 1 or changes != self._changes:  # as in `match`
                found[start:] = [[id for id in dict.fromkeys(some) if id is not GONE] for some in found[start:]]
        return found

    def _match_part(self, part: Any, mode: Mode) -> tuple[Ints, Ints]:
        """Return (row, number) pairs of a few thousand rows, sorted by row."""
        while True:
            event, owner = self._reader.pairs(part)
            plain = bool(((owner >= 0) & (owner < SHARED_FLAG)).all())
            if plain:
                break
            with contextlib.suppress(Replaced):
                event, owner = self._decisions.batch(part, (event, owner), mode)
                break
        kernels = self._store.kernels
        if kernels is None:
            both = np.unique((event.astype(np.int64) << 40) | owner)
            return both >> 40, both & ((1 << 40) - 1)
        rows, numbers = np.empty(len(event), np.int64), np.empty(len(event), np.int64)
        kernels.by_event(part.num_rows, len(event), event, owner, rows, numbers)
        if plain:
            return rows, numbers
        count = kernels.drop_repeats(rows, numbers, len(self._ids.by_number))
        return rows[:count], numbers[:count]

    # Relations

    def covering(self, filter: Filter | str) -> list[Id]:
        """Return the ids of the filters that cover the given filter, in order of arrival."""
        owners = self._reader.owners
        return self._related(as_filter(filter), lambda wanted: search.covering(self._store, wanted, owners))

    def may_cover(self, filter: Filter | str) -> list[Id]:
        """Return the ids of few filters, among them all that cover the given filter; quicker than `covering`."""
        return self._related(as_filter(filter), lambda wanted: search.may_cover(wanted, self._reader.owners))

    def covered(self, filter: Filter | str) -> list[Id]:
        """Return the ids of the filters that the given filter covers, in order of arrival."""
        return self._related(as_filter(filter), lambda wanted: search.covered(self._store, wanted))

    def overlapping(self, filter: Filter | str) -> list[Id]:
        """Return the ids of the filters that overlap the given filter, in order of arrival."""
        return self._related(as_filter(filter), lambda wanted: search.overlapping(self._store, wanted))

    def _related(self, wanted: Filter, relation: Callable[[Filter], list[int]]) -> list[Id]:
        changes = self._changes
        found = self._ids.named(relation(wanted))
        if changes & 1 or changes != self._changes:  # a filter may have been seen before and after its update, or never
            with self._store.lock:
                found = self._ids.named(relation(wanted))
        return found

    # Looking inside

    def explain(self, event: Mapping[str, object], id: Id, mode: Mode = "overlaps") -> list[BranchReport]:
        """Return the reasons why an event does or does not match the filter of an id, constraint by constraint."""
        return diagnose(self.filter(id), event, mode)

    def profile(self, events: Iterable[Mapping[str, object]], clock: Callable[[], float]) -> dict[str, float]:
        """Return the seconds of each step of matching some events, by a clock such as `time.process_time`."""
        steps: dict[str, Callable[[Any], Any]] = {
            "flatten": fields_of,
            "look up": lambda fields: (self._reader.owners(fields), fields),
            "verify": lambda found: self._numbers(found[0], found[1], "overlaps"),
            "name": self._ids.named,
        }
        return time_spent(events, steps, clock)

    def stats(self) -> Stats:
        """Return figures on the content of the index and on the distribution of the work."""
        busiest = [(self._ids.by_number[number], count) for number, count in self._decisions.busiest(10)]
        return stats_of(self._store, len(self), busiest)

    # Snapshots

    def save(self, path: str | Path) -> None:
        """Write a snapshot to a file; an existing file is replaced as a whole."""
        target = Path(path)
        part = target.with_name(target.name + ".part")
        part.write_bytes(self.snapshot())
        part.replace(target)

    def snapshot(self) -> bytes:
        """Return the index as a buffer for `open`."""
        store = self._store
        arena = store.compact()
        with store.lock:
            if store.state.deltas[-1].count or len(store.state.deltas) > 1:
                return self.snapshot()  # something was added meanwhile
            live = sorted(self._ids.numbers.values())
            arena = layout.renumbered(arena, live, len(self._ids.by_number))
            inexact = {new: store.inexact[old] for new, old in enumerate(live) if old in store.inexact}
            ids = arrow_ids([self._ids.by_number[number] for number in live], "a snapshot")
            return snapshot.write(store.columns, arena, ids, inexact)

    @classmethod
    def open(cls, source: str | Path | bytes, *, kernels: str = "auto") -> Index[Any]:
        """Open an index from a snapshot; a file is mapped, and shared between processes until the index changes."""
        columns, arena, ids, inexact = snapshot.read(source)
        index: Index[Any] = cls.__new__(cls)
        index._start(Store(kernels, columns, arena if arena[layout.ENTRIES] else None), ids)
        for number, wanted in inexact.items():
            index._store.keep(number, wanted)
        for number, wanted in inexact.items():
            index._store.restore_substrings(number, wanted)
        return index
