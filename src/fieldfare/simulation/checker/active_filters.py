"""Subscriptions and advertisements in force, as a trace goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.matching.classic.brute import BruteForce
from fieldfare.matching.index import Index
from fieldfare.matching.matcher import Matcher
from fieldfare.simulation.trace import (
    Advertised,
    Left,
    Quiet,
    Record,
    Restarted,
    Subscribed,
    Trace,
    Unadvertised,
    Unsubscribed,
)

_FEW: Final = 100
"""so many filters are faster tried one by one than put into an index"""


class ActiveFilter(NamedTuple):
    """A subscription or advertisement in force."""

    broker: str
    since: int
    filter: Filter
    replaced: tuple[Filter, ...] = ()
    """filters of the id since the last quiet moment, which this one has replaced without a gap"""
    first_since: int = -1
    """when the first of the replaced filters began; -1: there are none"""

    def is_known(self, quiet: int, event: Event) -> bool:
        """Tell whether an event is due: every filter of the id since before a quiet moment accepts the event."""
        if self.since < quiet:
            return True
        fields = fields_of(event)
        return -1 < self.first_since < quiet and all(one.matches_fields(fields) for one in self.replaced)


class ActiveFilters:
    """The filters of all clients, either subscriptions or advertisements, updated record by record."""

    def __init__(self, begins: type[Subscribed | Advertised], ends: type[Unsubscribed | Unadvertised]) -> None:
        self._begins = begins
        self._ends = ends
        self.of: defaultdict[str, dict[str, ActiveFilter]] = defaultdict(dict)
        """by client and id"""
        self._replacing: set[tuple[str, str]] = set()
        """filters that have replaced others since the last quiet moment"""

    def ended(self, record: Record) -> list[tuple[str, str]]:
        """Return the client and id of each filter the record ends."""
        match record:
            case Subscribed() | Unsubscribed() | Advertised() | Unadvertised():
                mine = isinstance(record, (self._begins, self._ends)) and record.id in self.of[record.client]
                return [(record.client, record.id)] if mine else []
            case Left():
                return [(record.client, id) for id in self.of[record.client]]
            case Restarted(kept=False):
                return [(c, id) for c, mine in self.of.items() for id, a in mine.items() if a.broker == record.broker]
        return []

    def follow(self, record: Record) -> list[tuple[str, str]]:
        """Apply a record; return the client and id of each filter the record ends."""
        ended = self.ended(record)
        old: ActiveFilter | None = None
        for client, id in ended:
            old = self.of[client].pop(id)
        if isinstance(record, Subscribed | Advertised) and isinstance(record, self._begins):
            new = ActiveFilter(record.broker, record.order, record.filter)
            if old is not None:  # of the same client and id
                first = old.since if old.first_since < 0 else old.first_since
                new = new._replace(replaced=(*old.replaced, old.filter), first_since=first)
                self._replacing.add((record.client, record.id))
            self.of[record.client][record.id] = new
        elif isinstance(record, Quiet):
            for client, id in self._replacing:
                if id in self.of[client]:
                    self.of[client][id] = self.of[client][id]._replace(replaced=(), first_since=-1)
            self._replacing.clear()
        return ended


def subscribed() -> ActiveFilters:
    """Make a book of subscriptions at the begin of a trace."""
    return ActiveFilters(Subscribed, Unsubscribed)


def advertised() -> ActiveFilters:
    """Make a book of advertisements at the begin of a trace."""
    return ActiveFilters(Advertised, Unadvertised)


def any_match(asked: Mapping[str, ActiveFilter], event: Event) -> bool:
    """Tell whether at least a single filter accepts the event."""
    fields = fields_of(event)
    return any(one.filter.matches_fields(fields) for one in asked.values())


class MatchedSubscriptions:
    """The subscriptions of all clients, behind a matcher: an index if the trace has many."""

    def __init__(self, trace: Trace) -> None:
        self._book = subscribed()
        many = sum(isinstance(record, Subscribed) for record in trace) > _FEW
        self._matcher: Matcher[tuple[str, str]] = Index() if many else BruteForce()

    def follow(self, record: Record) -> list[tuple[str, str]]:
        """Apply a record; return the client and id of each subscription the record ends."""
        ended = self._book.follow(record)
        for key in ended:
            self._matcher.remove(key)
        if isinstance(record, Subscribed):
            self._matcher.add((record.client, record.id), record.filter)
        return ended

    def match(self, event: Event) -> Iterator[tuple[str, str, ActiveFilter]]:
        """Return client, id and subscription of each match."""
        for client, id in self._matcher.match(event):
            yield client, id, self._book.of[client][id]

    def accepts(self, client: str, id: str, event: Event) -> bool:
        """Tell whether a subscription is in force and matches an event."""
        asked = self._book.of[client].get(id)
        return asked is not None and asked.filter.matches(event)
