"""`Store`: the log-structured core of an index, in terms of filter numbers.

A new filter goes into the *delta*; a full delta becomes a *segment*, and segments of similar size are merged in the
background. Readers take a reference to an immutable tuple of segments and deltas and never wait; writers share a lock.
A removed filter loses the alive bits at once and the room at the next merge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.filter import Filter
from fieldfare.matching import backend
from fieldfare.matching.fallback import relations
from fieldfare.matching.match.substrings import SubstringIndex
from fieldfare.matching.match.verification import Check, check_of
from fieldfare.matching.store.bulk import Collector
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.decoder import filter_of
from fieldfare.matching.store.delta import Delta
from fieldfare.matching.store.entries import Entry, entries_of, forms_of
from fieldfare.matching.store.keys import MISSING_KEY
from fieldfare.matching.store.layout import SHARED_FLAG, VERIFY_FLAG, Words
from fieldfare.matching.store.looked_at import LookedAt
from fieldfare.matching.store.rows import Rows, extract, joined, rows_of
from fieldfare.matching.store.segment import build_arena
from fieldfare.matching.store.state import Segment, State

Ints = NDArray[np.int64]
_SAMPLE: Final = 1024
"""events kept for estimates of selectivity"""
FEW: Final = 10
"""filters of a lazy store that are checked one by one, some 1.5 µs each; more are worth the memory of the kernels"""
_RATIO: Final = 8
"""a segment is merged with newer entries if it is at most so many times as large: each segment costs every event and
every search some microseconds"""


class Store:
    """Filters under numbers. `state` is for readers; every writer takes `lock`."""

    def __init__(self, kernels: str, columns: Columns | None = None, arena: Words | None = None) -> None:
        """Make an empty store, or a store of the columns and the arena of a snapshot."""
        self._choice = backend.meaning(kernels)
        self._equipped = arena is not None or self._choice not in ("auto", "lazy")
        self.kernels: ModuleType | None = backend.choose(self._choice) if self._equipped else None
        self.few: tuple[tuple[int, Check], ...] | None = () if self._choice == "lazy" and arena is None else None
        """the checks of all filters by number, as long as they are few and the kernels are not worth their memory"""
        self.columns = columns or Columns()
        self.state = State(() if arena is None else (Segment(arena),), (Delta(),))
        self.inexact: dict[int, Filter] = {}
        """filters that their entries describe inexactly; `keep` adds one"""
        self.looked_at = LookedAt(self.columns)
        self.substrings = SubstringIndex()
        self.checks: dict[int, Check] = {}
        """the checks of filters that have been verified before"""
        self.lock = threading.RLock()
        self._merging: set[int] | None = None
        """during a merge: the filters removed since the start of the merge"""
        self._merger: threading.Thread | None = None
        self._sample: list[Ints] = []
        self._remembered = 0
        self._kills = 0
        self._table: tuple[object, relations.Table] | None = None

    def insert(self, number: int, wanted: Filter) -> None:
        """Store a filter, visible to every reader that begins later."""
        few = self.few
        if few is None or len(few) >= FEW:
            self.few = None
            self._equip()
        entries = entries_of(self.columns, wanted)
        plain = all(side.is_plain for branch in wanted.branches for side in branch.values())
        if not plain or any(entry.verify or entry.substring is not None for entry in entries):
            self.keep(number, wanted)
        owner = number | (SHARED_FLAG if len(entries) > 1 else 0)
        entries = self._index_substrings(number, owner, entries)
        if entries:
            self._insert_entries(number, owner, entries)
        if self.few is not None:
            self.few = (*self.few, (number, wanted.matches_fields))

    def _insert_entries(self, number: int, owner: int, entries: list[Entry]) -> None:
        delta = self.state.deltas[-1]
        fits = delta.fits(entries)
        if not fits:
            delta = Delta()
            self.state = self.state._replace(deltas=(*self.state.deltas, delta))
            self._schedule()
            fits = delta.fits(entries)
        if fits:
            delta.append(owner, number, entries)
        else:  # too large for any delta
            self._append(rows_of((owner | (VERIFY_FLAG if e.verify else 0), e) for e in entries))

    def keep(self, number: int, wanted: Filter) -> None:
        """Keep a filter that its entries describe inexactly."""
        self.looked_at.add(number, wanted)
        self.inexact[number] = wanted

    def _equip(self) -> None:
        """Load the kernels with the first filter: the kernels take a hundred megabytes, too much for an empty index."""
        if not self._equipped:
            self._equipped = True
            self.kernels = backend.choose(self._choice)

    def _index_substrings(self, number: int, owner: int, entries: list[Entry]) -> list[Entry]:
        """Put entries with a substring into the substring index; return the rest, which is for arenas."""
        for entry in entries:
            if entry.substring is not None:
                self.substrings.add(number, entry.substring, owner | (VERIFY_FLAG if entry.verify else 0))
        return [entry for entry in entries if entry.substring is None]

    def restore_substrings(self, number: int, wanted: Filter) -> None:
        """Put the entries of a filter from a snapshot that no segment has into the substring index."""
        forms = forms_of(self.columns, wanted)
        clued = [entry for plain, found in forms for entry in found or plain]
        there = sum(len(part.entries_of(number)) for part in self.state.segments)
        if there == sum(entry.substring is None for entry in clued):
            self._index_substrings(number, number | (SHARED_FLAG if len(clued) > 1 else 0), clued)
        elif there != sum(len(plain) for plain, _ in forms):  # written by a version that chose in another way
            self.kill(number)
            self.insert(number, wanted)

    def insert_many(self, first: int, filters: Iterable[Filter]) -> None:
        """Store many filters, under numbers from `first`, as a segment of their own."""
        self.few = None
        self._equip()
        collector = Collector(self.columns, self._index_substrings)
        for number, wanted in collector.load(first, filters):
            self.keep(number, wanted)
        self._append(collector.rows())
        self._schedule()

    def _append(self, rows: Rows) -> None:
        if not len(rows):
            return  # all are found by substrings
        self.state = self.state._replace(segments=(*self.state.segments, Segment(self._build(rows))))

    def kill(self, number: int) -> None:
        """Kill all entries of a filter, so that no event matches the filter."""
        self._kills += 1
        if self.few is not None:
            self.few = tuple(one for one in self.few if one[0] != number)
        if self._merging is not None:
            self._merging.add(number)
        state = self.state
        _ = any(delta.kill(number) for delta in state.deltas) or any(part.kill(number) for part in state.segments)
        self.substrings.kill(number)
        self.inexact.pop(number, None)
        self.looked_at.remove(number)
        self.checks.pop(number, None)

    def check(self, number: int) -> Check | None:
        """Return the check that verifies a filter; None if the filter was removed."""
        wanted = self.filter(number)
        if wanted is None or number not in self.inexact:  # decoded filters are seldom verified
            return None if wanted is None else wanted.matches_fields
        check = self.checks[number] = check_of(wanted, found_by_text=number in self.substrings)
        if number not in self.inexact:  # removed meanwhile: do not keep this for ever
            self.checks.pop(number, None)
        return check

    def filter(self, number: int) -> Filter | None:
        """Return the filter of a number: kept, or decoded from entries; None if the filter was removed."""
        inexact = self.inexact.get(number)
        if inexact is not None:
            return inexact
        state = self.state
        for part in state.segments:
            if len(entries := part.entries_of(number)):
                return filter_of(self.columns, part.arena, entries.tolist())
        for delta in state.deltas:
            if slots := delta.slots(number):
                return filter_of(self.columns, delta.arena, slots)
        return None

    def table(self) -> relations.Table:
        """Return all live entries as a table, for comparisons without kernels; kept until the next change."""
        with self.lock:
            version = (id(self.state), self.state.deltas[-1].count, self._kills)
            if self._table is None or self._table[0] != version:
                self._table = version, relations.table_of(self.state.arenas())
            return self._table[1]

    # Layout

    def remember(self, keys: Ints) -> None:
        """Add the keys of an event to the sample, for estimates of selectivity."""
        if len(self._sample) < _SAMPLE:
            self._sample.append(keys.copy())
        else:
            self._sample[self._remembered % _SAMPLE] = keys.copy()
        self._remembered += 1

    def sample(self) -> Ints:
        """Return the sampled keys, columns × events."""
        events = list(self._sample)
        sample = np.full((len(self.columns), len(events)), MISSING_KEY, np.int64)
        for i, keys in enumerate(events):
            sample[: len(keys), i] = keys
        return sample

    def roles(self) -> list[int]:
        """Return the role of each column."""
        return [column.role for column in self.columns.columns]

    def _build(self, rows: Rows) -> Words:
        sample = self.sample()
        return build_arena(rows, self.roles()[: len(sample)], sample, indexed=self.kernels is not None)

    # Merging

    def upgrade(self) -> None:
        """Use the kernels if they have been compiled meanwhile."""
        if self.few is None and self.kernels is None and (kernels := backend.choose(self._choice)) is not None:
            with self.lock:
                self.kernels = kernels
                self._schedule()

    def _schedule(self) -> None:
        """Start a merge in the background if there is something to merge and no merge runs."""
        if self._merging is None and mergeable(self.state, kernels=self.kernels is not None) is not None:
            self._merging = set()
            self._merger = threading.Thread(target=self._merge, name="fieldfare-merge", daemon=True)
            self._merger.start()

    def _merge(self) -> None:
        while True:
            with self.lock:
                plan = mergeable(self.state, kernels=self.kernels is not None)
                self._merging = None if plan is None else set()
            if plan is None:
                return
            rows = joined([extract(arena) for arena in plan.arenas()])
            built = Segment(self._build(rows))
            with self.lock:
                for number in self._merging or ():
                    built.kill(number)
                kept = [part for part in self.state.segments if part not in plan.segments]
                kept.insert(sum(part.entries >= built.entries for part in kept), built)
                self.state = State(tuple(kept), tuple(delta for delta in self.state.deltas if delta not in plan.deltas))

    def compact(self) -> Words:
        """Put all entries into a single segment, laid out by the events seen so far, and return the arena."""
        while True:
            if (merger := self._merger) is not None:
                merger.join()
            with self.lock:
                if self._merging is not None:
                    continue  # another merge has begun
                self.kernels = self.kernels or backend.choose(self._choice)
                self.substrings.compact()
                rows = joined([rows_of([]), *map(extract, self.state.arenas())])
                arena = self._build(rows)
                self.state = State((Segment(arena),) if len(rows) else (), (Delta(),))
                return arena


def mergeable(state: State, *, kernels: bool) -> State | None:
    """Return the next merge, or None: full deltas, with newer segments of at most twice the size of the merged rest.

    Two neighbouring segments of similar size are merged too. If kernels have arrived after segments were built without
    them, everything is built anew.
    """
    if kernels and not state.indexed:
        return State(state.segments, state.deltas[:-1])
    full = state.deltas[:-1]
    size = sum(delta.count for delta in full)
    taken = len(state.segments)
    if not size and taken > 1 and state.segments[-2].entries <= _RATIO * state.segments[-1].entries:
        taken -= 1
        size = state.segments[taken].entries
    while taken and state.segments[taken - 1].entries <= _RATIO * size:
        taken -= 1
        size += state.segments[taken].entries
    chosen = state.segments[taken:]
    return State(chosen, full) if full or len(chosen) > 1 else None
