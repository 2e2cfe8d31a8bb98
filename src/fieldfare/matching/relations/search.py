"""The search for stored filters that cover, are covered by, or overlap a filter, in the arrays of the index.

Every branch of the given filter becomes a `Query`. Kernels find candidates by the bits that match events, and compare
the candidates with the branch as exactly as keys allow; undecided filters are compared as filters. A filter that covers
a branch is satisfied by every event that satisfies the branch, hence also by the *witnesses*: two events that lead to
the few entries which may cover the branch.

An entry may describe its filter inexactly. If an entry must be verified, the filter is a part of the entry: the filter
is covered if the entry is covered, does not overlap if the entry does not overlap, and is compared otherwise. If a
filter looks into lists, the entries describe single values only. Both sorts of filters are in `Store.inexact`.
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
_FEW: Final = 4
"""number of candidates that are not worth another match"""
_MANY: Final = 500
"""number of answers from which marking is faster than sorting"""


def covering(store: Store, wanted: Filter, match: Callable[[Fields], Iterable[int]]) -> list[int]:
    """Return the numbers of the filters that cover a filter. `match` returns the owners that an event may satisfy."""
    sure: set[int] = set()
    likely: set[int] = set()
    for i, branch in enumerate(wanted.branches):
        yes, maybe = _covering_branch(store, branch, match)
        likely = likely & (yes | maybe) if i else yes | maybe
        sure = sure & yes if i else yes
        if not likely:
            return []
    return _with(store, sorted(sure), likely, wanted, COVERING)


def may_cover(wanted: Filter, match: Callable[[Fields], Iterable[int]]) -> list[int]:
    """Return the numbers of the filters that the witnesses of all branches satisfy, as every cover does.

    No comparison of filters, no query: for a caller who compares a few of them anyway.
    """
    likely: set[int] | None = None
    for branch in wanted.branches:
        for fields in witnesses_of(branch):
            found = {(owner if owner >= 0 else -owner - 1) & NUMBER_MASK for owner in match(fields)}
            likely = found if likely is None else likely & found
            if len(likely) <= _FEW:
                break  # to compare them is as quick as another match
        if not likely:
            return []
    return sorted(likely or ())


def _covering_branch(
    store: Store, branch: Branch, match: Callable[[Fields], Iterable[int]]
) -> tuple[set[int], set[int]]:
    """Return the filters that surely cover a branch, and the filters that may."""
    kernels, fields = _kernels(store), witnesses_of(branch)
    if kernels is None:
        return set(), {(owner if owner >= 0 else -owner - 1) & NUMBER_MASK for owner in match(fields[0])}
    yes, maybe = _find(store, kernels, branch, COVERING, fields)
    substrings = store.substrings.owners(fields[0]) if store.substrings.version else ()
    return set(_numbers(yes)), {*_numbers(maybe), *(owner & NUMBER_MASK for owner in substrings)}


def covered(store: Store, wanted: Filter) -> list[int]:
    """Return the numbers of the filters that a given filter covers."""
    kernels = _kernels(store)
    if kernels is None:
        return _compared(store, wanted, COVERED)
    if len(wanted.branches) == 1 and not store.inexact:  # most filters, and most stores
        yes, maybe = _find(store, kernels, wanted.branches[0], COVERED)
        numbers = sorted(set(yes.tolist()))
        if not len(maybe) and not store.inexact and (not numbers or numbers[-1] < SHARED_FLAG):
            return numbers
    found: list[Ints] = []
    unsure: set[int] = set()
    shared: Counter[int] = Counter()
    for branch in wanted.branches:
        yes, maybe = _find(store, kernels, branch, COVERED)
        if len(maybe) or (len(yes) and int(yes.max()) >= SHARED_FLAG):
            alone, among = (owners & SHARED_FLAG == 0 for owners in (yes, maybe))
            unsure.update(_numbers(maybe[among]))
            # A filter of several entries is covered if a branch covers all entries, and may be if several branches do.
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
    """Return the numbers of the filters that overlap a given filter: filters with an entry that overlaps."""
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
    """Return the owners of entries in a relation to a branch, and the owners of undecided entries."""
    state = store.state
    deltas = [(delta, delta.count) for delta in state.deltas]  # before the query, which then knows all texts
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
    """A query with a store to search."""

    kernels: ModuleType
    query: Query
    relation: int
    keys: Ints | None
    """keys of two witnesses, for the search of covering entries"""
    inexact: bool
    """whether there are filters that their entries describe inexactly"""

    def everywhere(self, segments: Iterable[Segment], deltas: Iterable[tuple[Delta, int]]) -> Ints:
        """Return the owners of all entries in the relation, and -owner - 1 for undecided entries."""
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
        """Write the candidates of a segment to `entries` and return their number."""
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
    """Return the keys of two witnesses; the first twice, if a filter may cover the branch by several entries."""
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
    """Return the distinct numbers of some owners, in order."""
    numbers = np.concatenate([_NONE, *found]) & NUMBER_MASK
    if len(numbers) < _MANY:
        return sorted(set(numbers.tolist()))
    marked = np.zeros(int(numbers.max()) + 1, np.bool_)  # faster than sorting, with few gaps
    marked[numbers] = True
    return np.flatnonzero(marked).tolist()


def _entries(state: State, number: int) -> int:
    """Return the number of entries of a filter in segments and deltas."""
    for part in state.segments:
        if count := len(part.entries_of(number)):
            return count
    return max((len(delta.slots(number)) for delta in state.deltas), default=0)


def _is_plain(inexact: Filter | None) -> bool:
    """Tell whether the entries of a filter describe all matching values, lists too."""
    return inexact is None or all(side.is_plain for branch in inexact.branches for side in branch.values())


# Comparing filters


def _with(store: Store, sure: list[int], unsure: set[int], wanted: Filter, relation: int) -> list[int]:
    """Return the sure numbers, with the unsure numbers that prove to be in the relation."""
    more = unsure.difference(sure) if unsure else ()
    return sorted([*sure, *_agreeing(store, more, wanted, relation)]) if more else sure


def _agreeing(store: Store, numbers: Iterable[int], wanted: Filter, relation: int) -> list[int]:
    """Return the numbers of the filters that are in a relation to another filter."""
    compare = {COVERED: _covers(wanted), COVERING: lambda stored: stored.covers(wanted), OVERLAPPING: wanted.overlaps}
    stored = ((number, store.filter(number)) for number in numbers)
    return [number for number, found in stored if found is not None and compare[relation](found)]  # None: removed


def _covers(wanted: Filter) -> Callable[[Filter], bool]:
    """Return a test for covered filters that often decides by the names of the fields alone."""
    looks = [{path for path in branch if isinstance(path, str)} for branch in wanted.branches]

    def covers(stored: Filter) -> bool:
        if not all(any(branch.keys() >= paths for paths in looks) for branch in stored.branches):
            return False
        return wanted.covers(stored)

    return covers


def _compared(store: Store, wanted: Filter, relation: int) -> list[int]:
    """Return the filters in a relation, without kernels."""
    if wanted.is_empty:
        return []
    sure, unsure = relations.related(store.table(), store.columns, wanted, store.inexact, covered=relation == COVERED)
    return _with(store, sure, unsure.union(store.substrings.numbers), wanted, relation)
