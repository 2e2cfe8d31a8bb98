"""`Clients`: who is at a broker, what they want and promise, and which of them an event is for.

Other brokers are told filters, not subscriptions: `subscribe` and the like give the `FilterUpdate` that says how the
filters of all clients together have changed, which is often nothing.
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
    """A client, as its broker knows it."""

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}


class Clients:
    """The clients of one broker."""

    def __init__(self, *, named: str | None = None, index: MakeIndex = Index) -> None:
        """Nobody yet. If `named`, subscriptions are told under names that begin so, and not as mere filters."""
        self.all: dict[str, Client] = {}
        self._named = named
        self._index = index()
        self._asking: dict[Filter, dict[tuple[str, str], None]] = {}
        """who asked for a filter, and under which id"""
        self._uses: dict[About, Counter[Filter]] = {"subscriptions": Counter(), "advertisements": Counter()}

    def get(self, client: str) -> Client:
        """A client by name; who is not known is from now on."""
        return self.all.setdefault(client, Client())

    def set(self, about: About, client: str, id: str, filter: Filter | None) -> FilterUpdate:
        """Let a client have a filter under an id, or no more; says what changes for all clients together."""
        if filter is None and client not in self.all:
            return FilterUpdate(about=about)
        kept: dict[str, Filter] = getattr(self.get(client), about)
        old = kept.pop(id, None)
        if filter is not None:
            kept[id] = filter
        if about == "subscriptions" and old != filter:
            self._ask((client, id), filter)  # first the new one, then the old one: there is no gap
            self._ask_no_more((client, id), old)
        added = self._count(about, filter, client, id, +1)
        removed = self._count(about, old, client, id, -1)
        if added == removed:
            added = removed = ()
        return FilterUpdate(added, removed, about)

    def leave(self, client: str) -> list[FilterUpdate]:
        """Forget a client."""
        known = self.all.get(client, Client())
        tells = [self.set("subscriptions", client, id, None) for id in list(known.subscriptions)]
        tells += [self.set("advertisements", client, id, None) for id in list(known.advertisements)]
        self.all.pop(client, None)
        return tells

    def match(self, event: Mapping[str, object]) -> dict[str, list[str]]:
        """The clients that want an event, each with the ids of the subscriptions that it matches."""
        return self._asking_for(self._index.match(event))

    def match_many(self, events: Sequence[Event]) -> list[dict[str, list[str]]]:
        """The same for each of several events."""
        return list(map(self._asking_for, self._index.match_many(events)))

    def _asking_for(self, filters: list[Filter]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for filter in filters:
            for client, id in self._asking[filter]:
                found.setdefault(client, []).append(id)
        return found

    def may_publish(self, client: str, event: Mapping[str, object]) -> bool:
        """Has the client advertised such an event?"""
        return any(filter.matches(event) for filter in self.all.get(client, Client()).advertisements.values())

    def _ask(self, id: tuple[str, str], filter: Filter | None) -> None:
        if filter is not None:
            if filter not in self._asking:
                self._index.add(filter, filter)
            self._asking.setdefault(filter, {})[id] = None

    def _ask_no_more(self, id: tuple[str, str], filter: Filter | None) -> None:
        if filter is not None:
            del self._asking[filter][id]
            if not self._asking[filter]:
                del self._asking[filter]
                self._index.remove(filter)

    def _count(self, about: About, filter: Filter | None, client: str, id: str, change: int) -> tuple[Filter, ...]:
        """The filter, if it is the first of its kind that comes, or the last that goes."""
        if filter is None:
            return ()
        if self._named is not None and about == "subscriptions":
            filter = NamedFilter(f"{self._named}/{client}/{id}", filter)
        uses = self._uses[about]
        uses[filter] += change
        if uses[filter] == 0:
            del uses[filter]
        return (filter,) if uses[filter] == max(change, 0) else ()
