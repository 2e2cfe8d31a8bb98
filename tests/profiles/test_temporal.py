"""Entries in time: what is told equals what a twin finds that looks at the whole list of entries at every instant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.examples import few
from tests.tables.spaces import everyday, rectangles

from fieldfare.filters import Filter, parse
from fieldfare.filters.filter import NOTHING
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.pairs import NaivePairing, Operator, Pairing
from fieldfare.profiles.temporal import PairChange, TimedEntry, TimedPairing, What, Which

WIDE, NARROW = parse("x < 10"), parse("x = 3")


def told(timed: TimedPairing, now: float) -> list[tuple[float, What, Any, list[Any]]]:
    return [(c.at, c.what, c.entry.id, [partner.id for partner in c.partners]) for c in timed.advance(now)]


def test_pairs_begin_and_end() -> None:
    timed = TimedPairing()
    timed.announce("query", WIDE, "ana", now=0, end=30)
    timed.announce("profile", NARROW, "lift", now=0, start=5, ttl=10)
    assert timed.due() == 0
    assert told(timed, 0) == [(0, "appeared", "ana", [])]
    assert timed.due() == 5
    assert told(timed, 5) == [(5, "appeared", "lift", ["ana"])]
    assert [(p.id, q.id) for p, q in timed.pairs()] == [("lift", "ana")]
    assert told(timed, 100) == [(15, "expired", "lift", ["ana"]), (30, "expired", "ana", [])]
    assert timed.due() is None


def test_at_the_end_it_holds_no_longer() -> None:
    timed = TimedPairing()
    timed.announce("profile", NARROW, "first", now=0, end=5)
    timed.announce("profile", NARROW, "second", now=0, start=5)
    timed.announce("query", WIDE, "ana", now=0)
    timed.advance(4)
    assert told(timed, 5) == [(5, "expired", "first", ["ana"]), (5, "appeared", "second", ["ana"])]


def test_the_newer_replaces_the_older() -> None:
    timed = TimedPairing()
    timed.announce("query", WIDE, "ana", now=0)
    timed.announce("profile", NARROW, "lift at 3", now=1, ttl=60, replaces="lift")
    timed.announce("profile", parse("x = 50"), "lift at 50", now=2, ttl=60, replaces="lift")
    timed.announce("query", WIDE, "a query's identifiers are its own", now=2, replaces="lift")
    assert told(timed, 2)[1:4] == [
        (1, "appeared", "lift at 3", ["ana"]),
        (2, "replaced", "lift at 3", ["ana"]),
        (2, "appeared", "lift at 50", []),
    ]


def test_what_is_to_come_replaces_when_it_comes() -> None:
    timed = TimedPairing()
    timed.announce("profile", NARROW, "now", now=0, replaces="lift")
    timed.announce("profile", NARROW, "much later", now=0, start=20, replaces="lift")
    timed.announce("profile", NARROW, "later", now=0, start=10, replaces="lift")  # newer, and earlier
    assert told(timed, 50) == [(0, "appeared", "now", []), (10, "replaced", "now", []), (10, "appeared", "later", [])]


def test_what_is_withdrawn_does_not_come() -> None:
    timed = TimedPairing()
    first = timed.announce("profile", NARROW, "first", now=0)
    second = timed.announce("profile", NARROW, "second", now=0, start=9)
    assert timed.withdraw(first, now=1)
    assert timed.withdraw(second, now=1)
    assert not timed.withdraw(first, now=2)
    assert told(timed, 20) == [(0, "appeared", "first", []), (1, "withdrawn", "first", [])]
    assert timed.due() is None


def test_one_that_comes_too_late_still_replaces() -> None:
    timed = TimedPairing()
    timed.announce("profile", NARROW, "old", now=0, replaces="lift")
    timed.announce("profile", NARROW, "late", now=9, start=3, end=5, replaces="lift")
    timed.announce("profile", NARROW, "later", now=9, end=5)
    assert told(timed, 9) == [(0, "appeared", "old", []), (9, "replaced", "old", [])]
    assert timed.holding() == []


def test_refusals() -> None:
    timed = TimedPairing()
    timed.advance(3)
    for now in (2, math.nan, math.inf):
        with pytest.raises(ValueError, match="time"):
            timed.advance(now)
    for period in ({"end": 9, "ttl": 1}, {"start": 5, "end": 5}, {"ttl": 0}, {"start": math.nan}, {"end": math.nan}):
        with pytest.raises(ValueError, match=r"end or a time to live|empty"):
            timed.announce("profile", NARROW, "a", now=3, **period)
    with pytest.raises(ValueError, match="no event"):
        timed.announce("profile", NOTHING, "a", now=3)
    assert (timed.advance(9), timed.due()) == ([], None)


def test_what_was_replaced_leaves_no_trace() -> None:
    timed = TimedPairing()
    for now in range(2000):
        timed.announce("profile", NARROW, "lift", now=now, ttl=1e9, replaces="lift")
    assert len(timed.advance(2000)) == 3999
    assert len(timed._agenda) < 100
    assert len(timed.pairing.profiles.ids(NARROW)) == 1


@dataclass
class Known:
    entry: TimedEntry
    gone: float = math.inf
    """when it was withdrawn"""


class Twin:
    """Keeps the list of all entries ever, and finds out everything from it."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.known: list[Known] = []
        self.now = -math.inf
        self.live: list[TimedEntry] = []
        self.told: list[PairChange] = []

    def holds(self, one: Known, at: float) -> bool:
        entry = one.entry
        return entry.start <= at < min(entry.end, one.gone) and not self.replaced(entry, at)

    def replaced(self, entry: TimedEntry, at: float) -> bool:
        return any(
            other.entry.start <= at
            for other in self.known
            if entry.replaces is not None
            and (other.entry.which, other.entry.replaces) == (entry.which, entry.replaces)
            and other.entry.number > entry.number
        )

    def meet(self, a: TimedEntry, b: TimedEntry) -> bool:
        if a.which == b.which:
            return False
        query, profile = (a.filter, b.filter) if a.which == "query" else (b.filter, a.filter)
        return query.covers(profile) if self.operator == "cover" else query.overlaps(profile)

    def look(self, at: float, withdrawn: TimedEntry | None = None) -> None:
        """Compare who holds with who held."""
        holding = [one.entry for one in self.known if self.holds(one, at)]
        for entry in [entry for entry in self.live if entry not in holding]:
            what: What = (
                "withdrawn"
                if entry is withdrawn
                else "replaced"
                if self.replaced(entry, at) and entry.end > at
                else "expired"
            )
            self.told.append(
                PairChange(at, what, entry, tuple(other for other in self.live if self.meet(entry, other)))
            )
            self.live.remove(entry)
        for entry in holding:
            if entry not in self.live:
                self.live = sorted([*self.live, entry], key=lambda entry: entry.number)
                self.told.append(
                    PairChange(at, "appeared", entry, tuple(other for other in self.live if self.meet(entry, other)))
                )

    def run(self, now: float) -> None:
        moments = {
            moment for one in self.known for moment in (one.entry.start, one.entry.end) if self.now < moment <= now
        }
        for moment in sorted(moments):
            self.look(moment)
        self.now = now

    def announce(self, entry: TimedEntry, now: float) -> None:
        self.run(now)
        self.known.append(Known(entry))
        self.look(now)

    def withdraw(self, entry: TimedEntry, now: float) -> None:
        self.run(now)
        for one in self.known:
            if one.entry == entry and one.gone == math.inf:
                one.gone = now
        self.look(now, entry)

    def due(self) -> float | None:
        """The first moment at which somebody comes or goes."""
        if self.told:
            return self.now
        moments = {
            moment for one in self.known for moment in (one.entry.start, one.entry.end) if self.now < moment < math.inf
        }
        live = {entry.number for entry in self.live}
        return next(
            (m for m in sorted(moments) if {one.entry.number for one in self.known if self.holds(one, m)} != live), None
        )


class InTime(RuleBasedStateMachine):
    """Entries are announced and withdrawn, and time passes."""

    operator: Operator
    pairings: tuple[Callable[[Operator], Pairing[Any, Any]], ...] = (DoubleForest, NaivePairing)

    @initialize()
    def start(self) -> None:
        self.timed = [TimedPairing(make(self.operator)) for make in self.pairings]
        self.twin = Twin(self.operator)
        self.now = 0

    steps = st.integers(0, 3)
    some = st.one_of(rectangles, everyday)

    @rule(
        which=st.sampled_from(["profile", "query"]),
        filter=some,
        passed=steps,
        start=st.none() | st.integers(-2, 6),
        length=st.none() | st.integers(1, 6),
        ttl=st.booleans(),
        replaces=st.sampled_from([None, "a", "b"]),
    )
    def announce(
        self,
        *,
        which: Which,
        filter: Filter,
        passed: int,
        start: int | None,
        length: int | None,
        ttl: bool,
        replaces: str | None,
    ) -> None:
        self.now += passed
        begin = None if start is None else self.now + start
        period: dict[str, float | None] = {"start": begin}
        if length is not None:
            period |= {"ttl": length} if ttl else {"end": (self.now if begin is None else begin) + length}
        entries = [
            timed.announce(which, filter, f"{which} at {self.now}", now=self.now, replaces=replaces, **period)
            for timed in self.timed
        ]
        assert len(set(entries)) == 1
        self.twin.announce(entries[0], self.now)

    @precondition(lambda self: self.twin.known)
    @rule(data=st.data(), passed=steps)
    def withdraw(self, data: st.DataObject, passed: int) -> None:
        self.now += passed
        entry = data.draw(st.sampled_from(self.twin.known)).entry
        for timed in self.timed:
            timed.withdraw(entry, now=self.now)
        self.twin.withdraw(entry, self.now)

    @rule(passed=st.integers(0, 8))
    def advance(self, passed: int) -> None:
        self.now += passed
        self.twin.run(self.now)
        for timed in self.timed:
            assert timed.advance(self.now) == self.twin.told
        self.twin.told = []

    @invariant()
    def the_same_holds(self) -> None:
        pairs = [(p, q) for p in self.twin.live if p.which == "profile" for q in self.twin.live if self.twin.meet(p, q)]
        for timed in self.timed:
            assert timed.holding() == self.twin.live
            assert list(timed.pairs()) == pairs

    @invariant()
    def something_is_told_just_when_it_is_due(self) -> None:
        for timed in self.timed:
            due, expected = timed.due(), self.twin.due()
            if expected is not None:
                assert due is not None
                assert due <= expected  # a plan may come to nothing, but none is missed


class Covering(InTime):
    operator: Operator = "cover"


class Overlapping(InTime):
    operator: Operator = "overlap"


TestCovering = pytest.mark.timeout(1200)(Covering.TestCase)
TestOverlapping = pytest.mark.timeout(1200)(Overlapping.TestCase)
TestCovering.settings = TestOverlapping.settings = settings(few(40), stateful_step_count=20)
