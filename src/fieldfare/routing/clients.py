"""`Clients`: the clients of a broker with their subscriptions and advertisements, and the match of events with clients.

Other brokers learn filters, not subscriptions: each change returns the `FilterUpdate` of the filters of all clients
together, which is often empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol.messages import About, FilterUpdate
from fieldfare.tables.shared_index import Entries, Entry, Part, SharedIndex

Recipients: TypeAlias = Mapping[str, tuple[str, ...]]
"""clients of an event, each with the ids of the matching subscriptions; events share the mapping, equal ids a tuple"""

MOST: Final = 50_000
"""number of clients and filters, about, in the answers that `Clients` remembers"""


class Client(msgspec.Struct):
    """The subscriptions and advertisements of a client, by id."""

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}


class Clients:
    """The clients of a single broker."""

    def __init__(self, index: SharedIndex | None = None, *, named: str | None = None) -> None:
        """Make an empty set of clients, over a shared index or an index of its own.

        If `named`, subscriptions travel as named filters whose names begin so.
        """
        self.all: dict[str, Client] = {}
        self._named = named
        self._subscribers: Part[dict[tuple[str, str], None]] = (SharedIndex() if index is None else index).part()
        """the client and subscription id of each subscriber of a filter"""
        self._advertisers: Counter[Filter] = Counter()
        self._answers: dict[tuple[Entry, ...], Recipients] = {}
        """recipients by the matching filters: many events match the same filters"""
        self._room = MOST

    def get(self, client: str) -> Client:
        """Return a client by name; an unknown client is added."""
        return self.all.setdefault(client, Client())

    def set(self, about: About, client: str, id: str, filter: Filter | None) -> FilterUpdate:
        """Set or remove the filter of an id; return the change of the filters of all clients together."""
        if filter is None and client not in self.all:
            return FilterUpdate(about=about)
        kept: dict[str, Filter] = getattr(self.get(client), about)
        old = kept.pop(id, None)
        if filter is not None:
            kept[id] = filter
        if old == filter:
            return FilterUpdate(about=about)
        if about == "advertisements":
            return FilterUpdate(self._count(filter, +1), self._count(old, -1), about)
        self._forget_answers()
        # first the new filter, then the old, so that there is no gap
        added = () if filter is None else self._subscribe((client, id), filter)
        removed = () if old is None else self._unsubscribe((client, id), old)
        return FilterUpdate(added, removed, about)

    def leave(self, client: str) -> list[FilterUpdate]:
        """Forget a client and return the changes of the filters of all clients together."""
        known = self.all.get(client, Client())
        updates = [self.set("subscriptions", client, id, None) for id in list(known.subscriptions)]
        updates += [self.set("advertisements", client, id, None) for id in list(known.advertisements)]
        self.all.pop(client, None)
        return updates

    def match(self, event: Mapping[str, object]) -> Recipients:
        """Return the clients that an event matches, each with the ids of the matching subscriptions."""
        return self.recipients(self._subscribers.shared.match(event))

    def recipients(self, matched: Entries) -> Recipients:
        """Return the clients of an event with their subscription ids, given the matches of the shared index."""
        key = tuple(matched)
        known = self._answers.get(key)
        if known is None:
            known = self._find(matched)
            self._room -= len(known) + len(key)
            if self._room < 0:
                self._forget_answers()
            self._answers[key] = known
        return known

    def _forget_answers(self) -> None:
        if self._answers:
            self._answers, self._room = {}, MOST

    def _find(self, matched: Entries) -> Recipients:
        found: dict[str, list[str]] = {}
        for subscribers in self._subscribers.select(matched):
            for client, id in subscribers:
                if client in found:
                    found[client].append(id)
                else:
                    found[client] = [id]
        once: dict[tuple[str, ...], tuple[str, ...]] = {}
        return {client: once.setdefault(tuple(ids), tuple(ids)) for client, ids in found.items()}

    def may_publish(self, client: str, event: Mapping[str, object]) -> bool:
        """Tell whether an advertisement of the client matches the event."""
        return any(filter.matches(event) for filter in self.all.get(client, Client()).advertisements.values())

    def _subscribe(self, id: tuple[str, str], filter: Filter) -> tuple[Filter, ...]:
        """Add a subscriber of a filter; return the filter if the subscriber is its first."""
        sent = self._sent(id, filter)
        subscribers = self._subscribers.find(sent)
        if subscribers is not None:
            subscribers[id] = None
            return ()
        self._subscribers.add({id: None}, sent)
        return (sent,)

    def _unsubscribe(self, id: tuple[str, str], filter: Filter) -> tuple[Filter, ...]:
        """Remove a subscriber of a filter; return the filter if the subscriber was its last."""
        sent = self._sent(id, filter)
        subscribers = self._subscribers.find(sent)
        assert subscribers is not None
        del subscribers[id]
        if subscribers:
            return ()
        self._subscribers.remove(sent)
        return (sent,)

    def _sent(self, id: tuple[str, str], filter: Filter) -> Filter:
        """Return a filter in the form in which the filter is matched and sent."""
        return filter if self._named is None else NamedFilter(f"{self._named}/{id[0]}/{id[1]}", filter)

    def _count(self, advertisement: Filter | None, change: int) -> tuple[Filter, ...]:
        """Return the advertisement if its first use begins or its last use ends; else nothing."""
        if advertisement is None:
            return ()
        uses = self._advertisers
        uses[advertisement] += change
        if uses[advertisement] == 0:
            del uses[advertisement]
        return (advertisement,) if uses[advertisement] == max(change, 0) else ()
