"""Which stored filters cover a given one, are covered by it, or overlap it: from the arrays that match events.

Every branch of the given filter is put as a `Query`. Kernels find the entries that may be the answer, by the bits
that events are matched with, and compare them with the branch as exactly as keys can; what keys do not decide is
compared as filters. Whatever covers a branch is satisfied by every event that satisfies the branch, hence also by its
*extremes*: two events, which lead to the few entries that may cover it.

A filter need not be what its entries say. If an entry must be verified, the filter lies in it, but may be less: it is
covered if the entry is, it does not overlap if the entry does not, and it is compared otherwise. If a filter looks into
lists, its entries tell of single values only. Both sorts are among the filters that a store has `kept`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.fallback import relations
from fieldfare.matching.match.event_keys import KeyBuffer
from fieldfare.matching.relations.layout import ALL, COVERED, COVERING, DOUBT_FLAG, OVERLAPPING, SURE, UNSURE, Query
from fieldfare.matching.relations.lists import lists_of
from fieldfare.matching.relations.query import query_of
from fieldfare.matching.relations.text_tables import resolve
from fieldfare.matching.relations.witnesses import witnesses_of
from fieldfare.matching.store import layout
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.delta import Delta
from fieldfare.matching.store.layout import BLOCK, NUMBER_MASK, SHARED_FLAG, Words
from fieldfare.matching.store.state import Segment, State
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
Fields = Mapping[str, object]
_NONE: Final = np.zeros(0, np.int64)
_MANY: Final = 500
"""answers that are not sorted one by one"""


def covering(store: Store, wanted: Filter, match: Callable[[Fields], Iterable[int]]) -> list[int]:
    """The numbers of the filters that cover a given one. `match` gives the owners that an event may satisfy."""
    sure: set[int] = set()
    likely: set[int] = set()
    for i, branch in enumerate(wanted.branches):
        yes, maybe = _covering_branch(store, branch, match)
        likely = likely & (yes | maybe) if i else yes | maybe
        sure = sure & yes if i else yes
        if not likely:
            return []
    return _with(store, sorted(sure), likely, wanted, COVERING)


def _covering_branch(
    store: Store, branch: Branch, match: Callable[[Fields], Iterable[int]]
) -> tuple[set[int], set[int]]:
    """The filters that cover a branch, and those that may."""
    kernels, fields = _kernels(store), witnesses_of(branch)
    if kernels is None:
        return set(), {(owner if owner >= 0 else -owner - 1) & NUMBER_MASK for owner in match(fields[0])}
    yes, maybe = _find(store, kernels, branch, COVERING, fields)
    substrings = store.substrings.owners(fields[0]) if store.substrings.version else ()
    return set(_numbers(yes)), {*_numbers(maybe), *(owner & NUMBER_MASK for owner in substrings)}


def covered(store: Store, wanted: Filter) -> list[int]:
    """The numbers of the filters that a given one covers."""
    kernels = _kernels(store)
    if kernels is None:
        return _compared(store, wanted, COVERED)
    found: list[Ints] = []
    unsure: set[int] = set()
    shared: Counter[int] = Counter()
    for branch in wanted.branches:
        yes, maybe = _find(store, kernels, branch, COVERED)
        if len(maybe) or (len(yes) and int(yes.max()) >= SHARED_FLAG):
            alone, among = (owners & SHARED_FLAG == 0 for owners in (yes, maybe))
            unsure.update(_numbers(maybe[among]))
            # A filter of several entries is covered if a branch covers them all, and may be if several branches do.
            together = Counter(_numbers(yes[~alone]))
            shared.update(together)
            shared.update(_numbers(maybe[~among]))
            whole = [number for number, count in together.items() if count == _entries(store.state, number)]
            found.append(np.array(whole, np.int64))
            yes = yes[alone]
        found.append(yes)
    unsure.update(number for number, count in shared.items() if count >= _entries(store.state, number))
    sure = _distinct(found)
    if store.inexact:
        substrings = set(store.substrings.numbers)
        less = {number for number in sure if number in substrings or not _is_plain(store.inexact.get(number))}
        sure = [number for number in sure if number not in less]
        unsure |= less | substrings
    return _with(store, sure, unsure, wanted, COVERED)


def overlapping(store: Store, wanted: Filter) -> list[int]:
    """The numbers of the filters that overlap a given one: those that have an entry that does."""
    kernels = _kernels(store)
    if kernels is None:
        return _compared(store, wanted, OVERLAPPING)
    found: list[Ints] = []
    unsure: set[int] = set(store.substrings.numbers)
    for branch in wanted.branches:
        yes, maybe = _find(store, kernels, branch, OVERLAPPING)
        found.append(yes)
        unsure.update(_numbers(maybe))
    return _with(store, _distinct(found), unsure, wanted, OVERLAPPING)


def _kernels(store: Store) -> ModuleType | None:
    if store.kernels is None:
        store.upgrade()
    return store.kernels


# Asking


def _find(
    store: Store, kernels: ModuleType, branch: Branch, relation: int, fields: tuple[Fields, Fields] | None = None
) -> tuple[Ints, Ints]:
    """The owners of entries that are in a relation to a branch, and of those that may be."""
    state = store.state
    deltas = [(delta, delta.count) for delta in state.deltas]  # first these: every text they know is then known
    query = query_of(store.columns, branch, relation, doubts=bool(store.inexact))
    if query is None:
        return _NONE, _NONE
    keys = None if fields is None else _keys(store.columns, fields, query)
    search = _Search(kernels, query, relation, keys, bool(store.inexact))
    found = search.everywhere(state.segments, deltas)
    if query.open and resolve(query, store.columns):
        found = search.everywhere(state.segments, deltas)
    if not len(found) or found.min() >= 0:
        return found, _NONE
    maybe = -found[found < 0] - 1
    if (maybe & DOUBT_FLAG).any():
        inexact = store.inexact
        real = [owner & DOUBT_FLAG == 0 or owner & (DOUBT_FLAG - 1) in inexact for owner in maybe.tolist()]
        maybe = maybe[real] & ~DOUBT_FLAG
    return found[found >= 0], maybe


class _Search(NamedTuple):
    """A query on its way through a store."""

    kernels: ModuleType
    query: Query
    relation: int
    keys: Ints | None
    """of two events, for what may cover a branch"""
    inexact: bool
    """are there filters that their entries do not say exactly?"""

    def everywhere(self, segments: Iterable[Segment], deltas: Iterable[tuple[Delta, int]]) -> Ints:
        """The owners of all entries that are in the relation, and -owner - 1 of those that may be."""
        parts = [found for part in segments for found in self._in_segment(part)]
        parts += [self._in_delta(delta, count) for delta, count in deltas if count]
        return np.concatenate([_NONE, *parts])

    def _in_segment(self, part: Segment) -> Iterator[Ints]:
        work = part.borrow()
        blocks = int(part.arena[layout.BLOCKS])
        entries = work[1 + 2 * blocks : 1 + 2 * blocks + blocks * BLOCK]  # where `match_one` has its entries
        if self.relation != COVERED:
            yield self._judged(part.arena, entries, self._candidates(part, work, entries), ALL, entries)
        else:
            if not self.query.hopeless:
                yield self._judged(part.arena, entries, self._candidates(part, work, entries), SURE, entries)
            if self.inexact:
                unsure = lists_of(part, self.kernels).unsure
                yield self._judged(part.arena, unsure, len(unsure), UNSURE, entries)
        part.give_back(work)

    def _in_delta(self, delta: Delta, count: int) -> Ints:
        hopeless = self.relation == COVERED and self.query.hopeless
        if hopeless and not self.inexact:
            return _NONE
        entries = np.arange(count)
        return self._judged(delta.arena, entries, count, UNSURE if hopeless else ALL, entries)

    def _candidates(self, part: Segment, work: Ints, entries: Ints) -> int:
        """Write down the entries of a segment that may be in the relation; how many?"""
        kernels, arena, plan = self.kernels, part.arena, self.query.plan
        if not part.indexed:
            entries[: part.entries] = np.arange(part.entries)
            return part.entries
        if self.keys is not None:
            return int(kernels.satisfied_by_both(arena, self.keys, work, entries))
        if self.relation == OVERLAPPING or not plan[0]:
            return int(kernels.survivors(arena, plan, entries))
        at, postings = lists_of(part, kernels).postings
        few = int(kernels.shortest_postings(arena, plan, at, postings, int(arena[layout.BLOCKS]), entries))
        if few >= 0:
            return few
        count = int(kernels.survivors(arena, plan, entries))
        few = int(kernels.shortest_postings(arena, plan, at, postings, count, entries))
        return few if few >= 0 else count

    def _judged(self, arena: Words, entries: Ints, count: int, which: int, out: Ints) -> Ints:
        words, columns, tables, *_ = self.query
        found = self.kernels.judge(arena, entries, count, words, columns, tables, self.relation, which, out)
        return out[:found].copy()


def _keys(columns: Columns, fields: tuple[Fields, Fields], query: Query) -> Ints:
    """The keys of two events; of one, twice, where a filter may be satisfied by different entries of it."""
    while True:
        size = len(columns)
        buffer = KeyBuffer(size)
        keys = np.empty((len(buffer.keys), 2), np.int64)
        try:
            keys[:] = buffer.write(columns, fields[0])
            if query.joined:
                keys[:, 1:] = buffer.write(columns, fields[1])
        except IndexError:  # another column has come
            if len(columns) == size:
                raise
        else:
            return keys


# Numbers


def _numbers(owners: Ints) -> list[int]:
    found: list[int] = (owners & NUMBER_MASK).tolist()
    return found


def _distinct(found: list[Ints]) -> list[int]:
    """The numbers of some owners, in order, each once."""
    numbers = np.concatenate([_NONE, *found]) & NUMBER_MASK
    if len(numbers) < _MANY:
        return sorted(set(numbers.tolist()))
    marked = np.zeros(int(numbers.max()) + 1, np.bool_)  # faster than sorting, with few gaps
    marked[numbers] = True
    return np.flatnonzero(marked).tolist()


def _entries(state: State, number: int) -> int:
    """How many entries a filter has in segments and deltas."""
    for part in state.segments:
        if count := len(part.entries_of(number)):
            return count
    return max((len(delta.slots(number)) for delta in state.deltas), default=0)


def _is_plain(inexact: Filter | None) -> bool:
    """Do the entries of a filter tell of all that it may match, lists too?"""
    return inexact is None or all(side.is_plain for branch in inexact.branches for side in branch.values())


# Comparing filters


def _with(store: Store, sure: list[int], unsure: set[int], wanted: Filter, relation: int) -> list[int]:
    """The sure ones, and those of the others that prove to be in the relation."""
    more = unsure.difference(sure) if unsure else ()
    return sorted([*sure, *_agreeing(store, more, wanted, relation)]) if more else sure


def _agreeing(store: Store, numbers: Iterable[int], wanted: Filter, relation: int) -> list[int]:
    """Those of some filters that are in a relation to another one."""
    compare = {COVERED: _covers(wanted), COVERING: lambda stored: stored.covers(wanted), OVERLAPPING: wanted.overlaps}
    stored = ((number, store.filter(number)) for number in numbers)
    return [number for number, found in stored if found is not None and compare[relation](found)]  # None: removed


def _covers(wanted: Filter) -> Callable[[Filter], bool]:
    """Does a filter cover another? Often told by the fields that they look at."""
    looks = [{path for path in branch if isinstance(path, str)} for branch in wanted.branches]

    def covers(stored: Filter) -> bool:
        if not all(any(branch.keys() >= paths for paths in looks) for branch in stored.branches):
            return False
        return wanted.covers(stored)

    return covers


def _compared(store: Store, wanted: Filter, relation: int) -> list[int]:
    """The same without kernels."""
    if wanted.is_empty:
        return []
    sure, unsure = relations.related(store.table(), store.columns, wanted, store.inexact, covered=relation == COVERED)
    return _with(store, sure, unsure.union(store.substrings.numbers), wanted, relation)
