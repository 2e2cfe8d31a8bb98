"""`SharedIndex`: one index for the filters of many tables, each filter stored once.

A broker has a single shared index. The filters of its clients and of its neighbours stand in the same index, so an
event is matched once for all; each table has a `Part`, which knows the members of the table and answers like an index
of these alone. A filter is forgotten when the last part lets go.

The search for covers is cheaper than `Index.covering`: a cover of a filter matches every event of the filter, hence the
two events at the ends. Only the members of a part among those are compared, one by one, until the caller has enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index

Id = TypeVar("Id")


class Entry:
    """A filter in a shared index, with the number of parts that hold the filter."""

    __slots__ = ("filter", "holders")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self.holders = 0


Entries: TypeAlias = Collection[Entry]
"""an answer of a shared index: a list, or the keys of a dict"""


class _Answers:
    """The relations of a filter, as far as they have been asked for: one change of a broker asks several times."""

    __slots__ = ("covered", "filter", "may_cover")

    def __init__(self, filter: Filter | None = None) -> None:
        self.filter = filter
        self.may_cover: Entries | None = None
        self.covered: Entries | None = None


class SharedIndex:
    """The filters of many tables."""

    def __init__(self) -> None:
        self._index: Index[Entry] = Index(kernels="lazy")
        self._entries: dict[Filter, Entry] = {}
        self._answers = _Answers()
        self._beside: SharedIndex | None = None

    def part(self) -> Part[Any]:
        """Return an empty part, for a single table."""
        return Part(self)

    def beside(self) -> SharedIndex:
        """Return a second index, always the same, for filters with which no event is matched: advertisements."""
        if self._beside is None:
            self._beside = type(self)()
        return self._beside

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, filter: object) -> bool:
        return filter in self._entries

    def __iter__(self) -> Iterator[Filter]:
        return iter(list(self._entries))

    # Filters

    def hold(self, filters: Sequence[Filter]) -> list[Entry]:
        """Return the entries of filters, each held once more; the caller must release each."""
        fresh: dict[Filter, Entry] = {}
        found: list[Entry] = []
        for filter in filters:
            entry = self._entries.get(filter) or fresh.get(filter)
            if entry is None:
                entry = fresh[filter] = Entry(filter)
            found.append(entry)
        if fresh:
            self._add(fresh)
        for entry in found:
            entry.holders += 1
        return found

    @contextmanager
    def holding(self, filters: Sequence[Filter]) -> Iterator[None]:
        """Hold filters for the length of a `with` block, so that many new filters enter the index at once."""
        entries = self.hold(filters)
        try:
            yield
        finally:
            for entry in entries:
                self.release(entry)

    def entry(self, filter: Filter) -> Entry | None:
        """Return the entry of a filter; None if no part holds the filter."""
        return self._entries.get(filter)

    def release(self, entry: Entry) -> None:
        """Let go of a filter, which is forgotten when no part holds the filter any more."""
        entry.holders -= 1
        if not entry.holders:
            self._forget(entry)

    def _add(self, fresh: dict[Filter, Entry]) -> None:
        if len(fresh) == 1:
            for filter, entry in fresh.items():
                self._index.add(entry, filter)
        else:
            self._index.add_many((entry, filter) for filter, entry in fresh.items())
        self._entries.update(fresh)
        self._answers = _Answers()

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.filter]
        self._index.remove(entry)
        self._answers = _Answers()

    # Questions

    def match(self, event: Mapping[str, object]) -> Entries:
        """Return the filters of all parts that an event matches."""
        return self._index.match(event)

    def match_many(self, events: Sequence[Event]) -> Sequence[Entries]:
        """Return the matching filters of all parts for each of several events."""
        if len(events) == 1:  # a batch with a single event costs more than a match
            return [self.match(events[0])]
        return self._index.match_many(events)

    def may_cover(self, filter: Filter) -> Entries:
        """Return few filters, among them all that cover a given filter."""
        answers = self._about(filter)
        if answers.may_cover is None:
            answers.may_cover = self._index.may_cover(filter)
        return answers.may_cover

    def covers(self, entry: Entry, filter: Filter) -> bool:
        """Tell whether a filter that `may_cover` returned covers the given filter."""
        return entry.filter.covers(filter)

    def covered(self, filter: Filter) -> Entries:
        """Return the filters of all parts which a given filter covers."""
        answers = self._about(filter)
        if answers.covered is None:
            answers.covered = self._index.covered(filter)
        return answers.covered

    def overlapping(self, filter: Filter) -> Entries:
        """Return the filters of all parts that overlap a given filter."""
        return self._index.overlapping(filter)

    def _about(self, filter: Filter) -> _Answers:
        if self._answers.filter is not filter:
            self._answers = _Answers(filter)
        return self._answers


class Part(Generic[Id]):
    """The filters of a single table, each with an id: like an `Index` of the table's own.

    >>> from fieldfare.filters import parse
    >>> shared = SharedIndex()
    >>> here, there = shared.part(), shared.part()
    >>> here.add("five", parse("x < 5"))
    >>> there.add("nine", parse("x < 9"))
    >>> list(here.covering(parse("x < 3"))), list(there.covered(parse("x < 9"))), here.match({"x": 7})
    (['five'], ['nine'], [])
    """

    __slots__ = ("_own", "shared")

    def __init__(self, shared: SharedIndex) -> None:
        self.shared = shared
        self._own: dict[Entry, Id] = {}

    def add(self, id: Id, filter: Filter) -> None:
        """Store a filter that the part does not have, in the shared index too if new."""
        (entry,) = self.shared.hold((filter,))
        if entry in self._own:
            self.shared.release(entry)
            raise KeyError(f"the part has the filter {filter} already")
        self._own[entry] = id

    def find(self, filter: Filter) -> Id | None:
        """Return the id of a filter; None if the part does not have the filter."""
        entry = self.shared.entry(filter)
        return None if entry is None else self._own.get(entry)

    def remove(self, filter: Filter) -> Id:
        """Forget a filter, in the shared index too if no other part holds the filter; return the id."""
        entry = self.shared.entry(filter)
        if entry is None:
            raise KeyError(f"the part does not have the filter {filter}")
        id = self._own.pop(entry)
        self.shared.release(entry)
        return id

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Id]:
        return iter(list(self._own.values()))

    def select(self, found: Entries) -> list[Id]:
        """Return the ids of the members among some entries."""
        own = self._own
        if isinstance(found, dict) and len(own) < len(found):
            return [id for entry, id in own.items() if entry in found]
        return [id for id in map(own.get, found) if id is not None]

    def match(self, event: Mapping[str, object]) -> list[Id]:
        """Return the ids of the filters that an event matches."""
        return self.select(self.shared.match(event))

    def covering(self, filter: Filter, among: Callable[[Id], bool] | None = None) -> Iterator[Id]:
        """Yield the ids of the filters that cover a given filter; each is compared only when its turn comes."""
        shared, own = self.shared, self._own
        found = shared.may_cover(filter)
        if isinstance(found, dict) and len(own) < len(found):
            found = [entry for entry in own if entry in found]
        for entry in found:
            if entry in own and (among is None or among(own[entry])) and shared.covers(entry, filter):
                yield own[entry]

    def covered(self, filter: Filter, among: Callable[[Id], bool] | None = None) -> list[Id]:
        """Return the ids of the filters which a given filter covers."""
        found = self.select(self.shared.covered(filter))
        return found if among is None else [id for id in found if among(id)]

    def overlapping(self, filter: Filter) -> list[Id]:
        """Return the ids of the filters that overlap a given filter."""
        return self.select(self.shared.overlapping(filter))
