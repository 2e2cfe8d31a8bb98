"""`Clients`: the clients of a broker with their subscriptions and advertisements, and the match of events with clients.

Other brokers learn filters, not subscriptions: each change returns the `FilterUpdate` of the filters of all clients
together, which is often empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.matching.index import Index
from fieldfare.protocol.messages import About, FilterUpdate
from fieldfare.tables.base import MakeIndex


class Client(msgspec.Struct):
    """The subscriptions and advertisements of a client, by id."""

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}


class Clients:
    """The clients of a single broker."""

    def __init__(self, *, named: str | None = None, index: MakeIndex = Index) -> None:
        """Make an empty set of clients. If `named`, subscriptions travel as named filters whose names begin so."""
        self.all: dict[str, Client] = {}
        self._named = named
        self._index = index()
        self._subscribers: dict[Filter, dict[tuple[str, str], None]] = {}
        """the client and subscription id of each subscriber of a filter"""
        self._uses: dict[About, Counter[Filter]] = {"subscriptions": Counter(), "advertisements": Counter()}

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
        if about == "subscriptions" and old != filter:
            self._subscribe((client, id), filter)  # first the new filter, then the old, so that there is no gap
            self._unsubscribe((client, id), old)
        added = self._count(about, filter, client, id, +1)
        removed = self._count(about, old, client, id, -1)
        if added == removed:
            added = removed = ()
        return FilterUpdate(added, removed, about)

    def leave(self, client: str) -> list[FilterUpdate]:
        """Forget a client and return the changes of the filters of all clients together."""
        known = self.all.get(client, Client())
        updates = [self.set("subscriptions", client, id, None) for id in list(known.subscriptions)]
        updates += [self.set("advertisements", client, id, None) for id in list(known.advertisements)]
        self.all.pop(client, None)
        return updates

    def match(self, event: Mapping[str, object]) -> dict[str, list[str]]:
        """Return the clients that an event matches, each with the ids of the matching subscriptions."""
        return self._by_client(self._index.match(event))

    def match_many(self, events: Sequence[Event]) -> list[dict[str, list[str]]]:
        """Return the matching clients for each of several events."""
        return list(map(self._by_client, self._index.match_many(events)))

    def _by_client(self, filters: list[Filter]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for filter in filters:
            for client, id in self._subscribers[filter]:
                found.setdefault(client, []).append(id)
        return found

    def may_publish(self, client: str, event: Mapping[str, object]) -> bool:
        """Tell whether an advertisement of the client matches the event."""
        return any(filter.matches(event) for filter in self.all.get(client, Client()).advertisements.values())

    def _subscribe(self, id: tuple[str, str], filter: Filter | None) -> None:
        if filter is not None:
            if filter not in self._subscribers:
                self._index.add(filter, filter)
            self._subscribers.setdefault(filter, {})[id] = None

    def _unsubscribe(self, id: tuple[str, str], filter: Filter | None) -> None:
        if filter is not None:
            del self._subscribers[filter][id]
            if not self._subscribers[filter]:
                del self._subscribers[filter]
                self._index.remove(filter)

    def _count(self, about: About, filter: Filter | None, client: str, id: str, change: int) -> tuple[Filter, ...]:
        """Return the filter if its first use begins or its last use ends; else nothing."""
        if filter is None:
            return ()
        if self._named is not None and about == "subscriptions":
            filter = NamedFilter(f"{self._named}/{client}/{id}", filter)
        uses = self._uses[about]
        uses[filter] += change
        if uses[filter] == 0:
            del uses[filter]
        return (filter,) if uses[filter] == max(change, 0) else ()
