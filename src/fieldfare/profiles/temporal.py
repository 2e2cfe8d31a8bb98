"""`TimedPairing`: profiles and queries that appear, expire and replace each other, and their pairs in time.

An entry holds in a period [start, end), or from now for a time to live. An entry may carry a *replace-identifier*: a
newer entry of the same side with the same identifier takes its place, from the newer entry's start on. So a moving
thing gives all its positions the same identifier, and when the thing falls silent, its last position expires.

There is no clock here: the caller passes the time, and gets all changes since the last call, in order. Of the changes
at the same instant, ends come before beginnings, and each in the order of announcement.
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
    """A profile or a query as announced: the entry holds from `start`, and at `end` no longer."""

    number: int
    """entries are numbered in the order of announcement"""
    which: Which
    filter: Filter
    id: Hashable
    start: float
    end: float = FOREVER
    replaces: Hashable = None
    """the replace-identifier, if any"""


@dataclass(frozen=True, slots=True)
class PairChange:
    """A change of an entry, with the partners of the pairs that begin or end."""

    at: float
    what: What
    entry: TimedEntry
    partners: tuple[TimedEntry, ...]


class _Step(IntEnum):
    """The order of steps that are due at the same time."""

    END = 0
    START = 1


@dataclass(eq=False, slots=True)
class _Fate:
    """The future of a waiting or holding entry: the time and the cause of its end."""

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
        """Make a timed pairing over a pairing without entries, which nobody else may change.

        Preloaded filters are allowed.
        """
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
        """Announce an entry that holds from now or from a later start, until an end or for a time to live.

        Entries with the same identifier end at its start, for good: after a withdrawal they do not come back. An entry
        that comes too late to hold still replaces others. `advance` reports the resulting changes.
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
        """End an entry now, or cancel its start; False if the entry is over already."""
        self._run(now)
        fate = self._fates.get(entry.number)
        if fate is None:
            return False
        fate.what = "withdrawn"
        self._end(fate, now)
        return True

    def advance(self, now: float) -> list[PairChange]:
        """Return all changes up to and including now that were not reported yet."""
        self._run(now)
        told, self._untold = self._untold, []
        return told

    # Questions

    def due(self) -> float | None:
        """Return the time of the next change; None if no change will happen without an announcement."""
        if self._untold:
            return self.now
        while self._agenda and not self._is_meant(*self._agenda[0]):
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def holding(self) -> list[TimedEntry]:
        """Return the entries that hold now."""
        return [fate.entry for fate in self._fates.values() if fate.holds]

    def partners(self, entry: TimedEntry) -> tuple[TimedEntry, ...]:
        """Return the holding entries on the other side that meet a given entry."""
        side = self._side(entry.which)
        met = sorted(number for filter in side.partners(entry.filter) for number in side.other.ids(filter))
        return tuple(self._fates[number].entry for number in met)

    def pairs(self) -> Iterator[tuple[TimedEntry, TimedEntry]]:
        """Yield all pairs of a profile and a query that hold now."""
        for entry in self.holding():
            if entry.which == "profile":
                for query in self.partners(entry):
                    yield entry, query

    # Time

    def _plan(self, at: float, step: _Step, number: int) -> None:
        if at < FOREVER:
            heapq.heappush(self._agenda, (at, step, number))

    def _is_meant(self, at: float, step: _Step, number: int) -> bool:
        """Tell whether a plan is still valid: plans are not removed from the agenda when fates change."""
        fate = self._fates.get(number)
        return fate is not None and at == (fate.entry.start if step is _Step.START else fate.end)

    def _run(self, now: float) -> None:
        """Perform all planned steps up to now."""
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
        """Let the entries of an identifier end when a newer entry begins."""
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
