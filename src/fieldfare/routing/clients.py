"""`Clients`: who is at a broker, what they want and promise, and which of them an event is for.

Other brokers are told filters, not subscriptions: `subscribe` and the like give the `Tell` that says how the filters of
all clients together have changed, which is often nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.messages import Tell
from fieldfare.routing.named import NamedFilter

About: TypeAlias = Literal["subscriptions", "advertisements"]


class Client(msgspec.Struct):
    """A client, as its broker knows it."""

    subscriptions: dict[str, Filter] = {}
    advertisements: dict[str, Filter] = {}
    sequence: int = 0
    """of the last event that it published"""


class Clients:
    """The clients of one broker."""

    def __init__(self, *, named: str | None = None) -> None:
        """Nobody yet. If `named`, subscriptions are told under names that begin so, and not as mere filters."""
        self.all: dict[str, Client] = {}
        self._named = named
        self._wanted: Index[tuple[str, str]] = Index()
        self._uses: dict[About, Counter[Filter]] = {"subscriptions": Counter(), "advertisements": Counter()}

    def get(self, client: str) -> Client:
        """A client by name; who is not known is from now on."""
        return self.all.setdefault(client, Client())

    def set(self, about: About, client: str, id: str, filter: Filter | None) -> Tell:
        """Let a client have a filter under an id, or no more; says what changes for all clients together."""
        kept: dict[str, Filter] = getattr(self.get(client), about)
        old = kept.pop(id, None)
        if filter is not None:
            kept[id] = filter
        if about == "subscriptions":
            self._index((client, id), old, filter)
        added = self._count(about, filter, client, id, +1)
        removed = self._count(about, old, client, id, -1)
        if added == removed:
            added = removed = ()
        return Tell(added, removed, about)

    def leave(self, client: str) -> list[Tell]:
        """Forget a client."""
        known = self.all.get(client, Client())
        tells = [self.set("subscriptions", client, id, None) for id in list(known.subscriptions)]
        tells += [self.set("advertisements", client, id, None) for id in list(known.advertisements)]
        self.all.pop(client, None)
        return tells

    def match(self, event: Mapping[str, object]) -> dict[str, list[str]]:
        """The clients that want an event, each with the ids of the subscriptions that it matches."""
        found: dict[str, list[str]] = {}
        for client, id in self._wanted.match(event):
            found.setdefault(client, []).append(id)
        return found

    def may_publish(self, client: str, event: Mapping[str, object]) -> bool:
        """Has the client advertised such an event?"""
        return any(filter.matches(event) for filter in self.get(client).advertisements.values())

    def _index(self, id: tuple[str, str], old: Filter | None, new: Filter | None) -> None:
        if old is not None and new is not None:
            self._wanted.update(id, new)
        elif new is not None:
            self._wanted.add(id, new)
        elif old is not None:
            self._wanted.remove(id)

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
