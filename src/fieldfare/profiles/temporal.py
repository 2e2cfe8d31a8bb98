"""`TimedPairing`: profiles and queries that appear, expire and replace each other, and their pairs.

An entry holds in a period [start, end), or from now for a time to live. It may carry a *replace-identifier*: a newer
entry of the same side with the same identifier takes its place, from the newer one's start on. So a thing that moves
gives its positions one identifier, and when it falls silent, its last position lives no longer than was said.

There is no clock here: whoever has one says what time it is, and is told everything that has happened since, in order.
Of what happens at one instant, ends come before beginnings, and each in the order of announcement.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.pairs import Pairing, Side
from fieldfare.tables.base import satisfiable

What: TypeAlias = Literal["appeared", "expired", "replaced", "withdrawn"]
Which: TypeAlias = Literal["profile", "query"]
FOREVER: Final = math.inf


@dataclass(frozen=True, slots=True)
class TimedEntry:
    """A profile or a query as it was announced: it holds from `start`, and at `end` no longer."""

    number: int
    """entries are numbered as they come"""
    which: Which
    filter: Filter
    id: Hashable
    start: float
    end: float = FOREVER
    replaces: Hashable = None
    """the replace-identifier, if any"""


@dataclass(frozen=True, slots=True)
class PairChange:
    """What happened to an entry, and with which entries across it makes a pair from then on, or no longer."""

    at: float
    what: What
    entry: TimedEntry
    partners: tuple[TimedEntry, ...]


class _Step(IntEnum):
    """Which comes first if two are due at once."""

    END = 0
    START = 1


@dataclass(eq=False, slots=True)
class _Fate:
    """What becomes of an entry that waits or holds: when it will end, and why."""

    entry: TimedEntry
    end: float
    what: What = "expired"
    holds: bool = False


class TimedPairing:
    """Entries in time, over any pairing.

    >>> from fieldfare.filters import parse
    >>> timed = TimedPairing()
    >>> ana = timed.announce("query", parse("zone = 'A'"), "ana", now=0)
    >>> lift = timed.announce("profile", parse("zone = 'A' AND floor = 3"), "lift", now=5, ttl=10, replaces="lift")
    >>> [(change.at, change.what, change.entry.id, len(change.partners)) for change in timed.advance(20)]
    [(0, 'appeared', 'ana', 0), (5, 'appeared', 'lift', 1), (15, 'expired', 'lift', 1)]
    """

    def __init__(self, pairing: Pairing[Any, Any] | None = None) -> None:
        """No entries. The pairing must be empty but for what is preloaded, and nobody else may change it."""
        self.pairing: Pairing[Any, Any] = DoubleForest() if pairing is None else pairing
        self.now = -math.inf
        self._fates: dict[int, _Fate] = {}
        self._named: dict[tuple[Which, Hashable], list[int]] = {}
        self._agenda: list[tuple[float, _Step, int]] = []
        self._untold: list[PairChange] = []
        self._count = 0

    # Changes

    def announce(
        self,
        which: Which,
        filter: Filter,
        id: Hashable,
        *,
        now: float,
        start: float | None = None,
        end: float | None = None,
        ttl: float | None = None,
        replaces: Hashable = None,
    ) -> TimedEntry:
        """A new entry, which holds from now or from a later start, until an end or for a time to live.

        Entries with its identifier end at its start, once and for all: if it is withdrawn, they do not come back. One
        that comes too late to hold still replaces. What happens by all this is told by `advance`.
        """
        if end is not None and ttl is not None:
            raise ValueError("an entry has an end or a time to live, not both")
        self._run(now)
        begin = now if start is None else max(start, now)
        until = begin + ttl if ttl is not None else FOREVER if end is None else end
        if not (begin if ttl is not None else -math.inf if start is None else start) < until:
            raise ValueError("the period in which the entry holds is empty")
        entry = TimedEntry(self._count + 1, which, satisfiable(filter), id, begin, until, replaces)
        self._count += 1
        if replaces is not None:
            self._cut(which, replaces, begin)
            self._named.setdefault((which, replaces), []).append(entry.number)
        self._fates[entry.number] = _Fate(entry, until)
        self._plan(begin, _Step.START, entry.number)
        self._plan(until, _Step.END, entry.number)
        self._run(now)
        return entry

    def withdraw(self, entry: TimedEntry, *, now: float) -> bool:
        """End an entry now, or call it off; False if it is over already."""
        self._run(now)
        fate = self._fates.get(entry.number)
        if fate is None:
            return False
        fate.what = "withdrawn"
        self._end(fate, now)
        return True

    def advance(self, now: float) -> list[PairChange]:
        """Everything that has happened and was not told yet, up to and including now."""
        self._run(now)
        told, self._untold = self._untold, []
        return told

    # Questions

    def due(self) -> float | None:
        """When to ask next: nothing can happen before. None if nothing is going to happen by itself."""
        if self._untold:
            return self.now
        while self._agenda and not self._is_meant(*self._agenda[0]):
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def holding(self) -> list[TimedEntry]:
        """The entries that hold now."""
        return [fate.entry for fate in self._fates.values() if fate.holds]

    def partners(self, entry: TimedEntry) -> tuple[TimedEntry, ...]:
        """The entries across that hold now and meet a given one."""
        side = self._side(entry.which)
        met = sorted(number for filter in side.partners(entry.filter) for number in side.other.ids(filter))
        return tuple(self._fates[number].entry for number in met)

    def pairs(self) -> Iterator[tuple[TimedEntry, TimedEntry]]:
        """All pairs of a profile and a query that hold now."""
        for entry in self.holding():
            if entry.which == "profile":
                for query in self.partners(entry):
                    yield entry, query

    # Time

    def _plan(self, at: float, step: _Step, number: int) -> None:
        if at < FOREVER:
            heapq.heappush(self._agenda, (at, step, number))

    def _is_meant(self, at: float, step: _Step, number: int) -> bool:
        """Is it still so? Plans are not taken back when fates change."""
        fate = self._fates.get(number)
        return fate is not None and at == (fate.entry.start if step is _Step.START else fate.end)

    def _run(self, now: float) -> None:
        """Do what is due."""
        if not math.isfinite(now):
            raise ValueError(f"the time is a finite number, not {now}")
        if now < self.now:
            raise ValueError(f"time does not go back: it is {self.now} already, not {now}")
        if len(self._agenda) > 4 * len(self._fates) + 64:
            self._agenda = [plan for plan in self._agenda if self._is_meant(*plan)]
            heapq.heapify(self._agenda)
        while self._agenda and self._agenda[0][0] <= now:
            plan = heapq.heappop(self._agenda)
            if self._is_meant(*plan):
                at, step, number = plan
                (self._begin if step is _Step.START else self._end)(self._fates[number], at)
        self.now = now

    def _cut(self, which: Which, name: Hashable, at: float) -> None:
        """Let the entries of an identifier end when a newer one begins."""
        for number in self._named.get((which, name), ()):
            fate = self._fates[number]
            if at < fate.end:
                fate.end, fate.what = at, "replaced"
                self._plan(at, _Step.END, number)

    # Beginnings and ends

    def _side(self, which: Which) -> Side[int]:
        return self.pairing.profiles if which == "profile" else self.pairing.queries

    def _begin(self, fate: _Fate, at: float) -> None:
        entry = fate.entry
        fate.holds = True
        self._side(entry.which).add(entry.filter, entry.number)
        self._untold.append(PairChange(at, "appeared", entry, self.partners(entry)))

    def _end(self, fate: _Fate, at: float) -> None:
        entry = fate.entry
        if fate.holds:
            self._untold.append(PairChange(at, fate.what, entry, self.partners(entry)))
            self._side(entry.which).remove(entry.filter, entry.number)
        del self._fates[entry.number]
        if entry.replaces is not None:
            same = self._named[entry.which, entry.replaces]
            same.remove(entry.number)
            if not same:
                del self._named[entry.which, entry.replaces]
