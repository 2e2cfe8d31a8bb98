"""`Clients`: the clients of a broker with their subscriptions and advertisements, and the match of events with clients.

Other brokers learn filters, not subscriptions: each change returns the `FilterUpdate` of the filters of all clients
together, which is often empty.

A subscription may be told *wider* than it is: neighbours then hear of the wider filter, which changes less often, and
the clients' own broker alone is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol.messages import About, FilterUpdate
from fieldfare.tables.shared_index import Entries, Entry, Part, SharedIndex

Recipients: TypeAlias = Mapping[str, tuple[str, ...]]
"""clients of an event, each with the ids of the matching subscriptions; events share the mapping, clients the tuple"""

MOST: Final = 50_000
"""number of clients and filters, about, in the answers that `Clients` remembers"""


class Client(msgspec.Struct):
    """The subscriptions and advertisements of a client, by id."""

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}


class Told(NamedTuple):
    """A subscription, and the filter for neighbours; an empty filter is neither matched nor told."""

    filter: Filter
    wider: Filter | None = None
    """A filter that covers the first; None: the same."""

    def matches_as(self, other: Told | None) -> bool:
        """Tell whether the same entry of the index serves another subscription of the same id."""
        return other is not None and self.filter == other.filter and (self.wider is None) == (other.wider is None)


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
        self._widened: Part[dict[tuple[str, str], None]] = self._subscribers.shared.part()
        """the same for the filters of which neighbours hear only wider ones"""
        self._wider: Counter[Filter] = Counter()
        """how many subscriptions are told as each wider filter"""
        self._wider_of: dict[tuple[str, str], Filter] = {}
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
        key, old = (client, id), kept.pop(id, None)
        wider = self._wider_of.pop(key, None) if about == "subscriptions" else None
        if filter is not None:
            kept[id] = filter
        if old == filter and wider is None:
            return FilterUpdate(about=about)
        if about == "advertisements":
            return FilterUpdate(self._count(filter, +1), self._count(old, -1), about)
        self._forget_answers()
        # first the new filter, then the old, so that there is no gap
        new = None if filter is None else Told(filter)
        before = None if old is None else Told(old, wider)
        added = () if new is None else self._begin(key, new, before)
        removed = () if before is None else self._end(key, before, new)
        return FilterUpdate(added, removed, about)

    def set_subscriptions(self, client: str, changes: Mapping[str, Told]) -> FilterUpdate:
        """Set several subscriptions at once: all new filters are in force before any old filter ends."""
        self._forget_answers()
        kept = self.get(client).subscriptions
        before = {id: Told(kept[id], self._wider_of.pop((client, id), None)) for id in changes if id in kept}
        added: list[Filter] = []
        removed: list[Filter] = []
        for id, told in changes.items():
            kept[id] = told.filter
            added += self._begin((client, id), told, before.get(id))
        for id, old in before.items():
            removed += self._end((client, id), old, changes[id])
        return FilterUpdate(tuple(added), tuple(removed))

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
        found: dict[str, tuple[str, ...]] = {}
        ids = ("",)
        for part in (self._subscribers, self._widened) if self._wider_of else (self._subscribers,):
            for subscribers in part.select(matched):
                for client, id in subscribers:
                    if client in found:
                        found[client] += (id,)
                        continue
                    if id != ids[0]:
                        ids = (id,)
                    found[client] = ids
        return found

    def may_publish(self, client: str, event: Mapping[str, object]) -> bool:
        """Tell whether an advertisement of the client matches the event."""
        return any(filter.matches(event) for filter in self.all.get(client, Client()).advertisements.values())

    def _begin(self, id: tuple[str, str], new: Told, old: Told | None) -> tuple[Filter, ...]:
        """Let a subscription begin; return the filter for neighbours, if new."""
        fresh = not (new.filter.is_empty or new.matches_as(old)) and self._enter(id, new)
        if new.wider is None:
            sent = self._sent(id, new.filter)
            return (sent,) if fresh and sent not in self._wider else ()
        self._wider_of[id] = new.wider
        sent = self._sent(id, new.wider)
        if new.wider.is_empty:
            return ()
        self._wider[sent] += 1
        return (sent,) if self._wider[sent] == 1 and self._subscribers.find(sent) is None else ()

    def _end(self, id: tuple[str, str], old: Told, new: Told | None) -> tuple[Filter, ...]:
        """Let a subscription end; return the filter for neighbours, if no longer in use."""
        last = not (old.filter.is_empty or old.matches_as(new)) and self._exit(id, old)
        if old.wider is None:
            sent = self._sent(id, old.filter)
            return (sent,) if last and sent not in self._wider else ()
        sent = self._sent(id, old.wider)
        if old.wider.is_empty:
            return ()
        self._wider[sent] -= 1
        if self._wider[sent]:
            return ()
        del self._wider[sent]
        return (sent,) if self._subscribers.find(sent) is None else ()

    def _enter(self, id: tuple[str, str], new: Told) -> bool:
        """Add a subscriber of a filter; return True for the first subscriber."""
        sent, part = self._sent(id, new.filter), self._part_of(new)
        subscribers = part.find(sent)
        if subscribers is not None:
            subscribers[id] = None
            return False
        part.add({id: None}, sent)
        return True

    def _exit(self, id: tuple[str, str], old: Told) -> bool:
        """Remove a subscriber of a filter; return True for the last subscriber."""
        sent, part = self._sent(id, old.filter), self._part_of(old)
        subscribers = part.find(sent)
        assert subscribers is not None
        del subscribers[id]
        if subscribers:
            return False
        part.remove(sent)
        return True

    def _part_of(self, told: Told) -> Part[dict[tuple[str, str], None]]:
        return self._subscribers if told.wider is None else self._widened

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
