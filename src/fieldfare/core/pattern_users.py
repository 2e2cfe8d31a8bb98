"""`PatternUsers`: the subscriptions to detections, and the end of patterns without subscribers.

A subscription to the detections of a pattern is an ordinary subscription, with a filter for these detections alone, so
the users of a pattern follow from the subscriptions of sessions. With the last user a pattern ends. If a session goes
on at another node, the pattern stays here, and the detections follow the filter of the session: until no neighbour has
such a filter any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fieldfare.core.standing_pattern import StandingPattern, delivery_filter
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.routing.table_routes import TableRoutes

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class PatternUsers:
    """Users of patterns by session, and patterns by the filter of the detections."""

    def __init__(self, core: Core) -> None:
        """Look for users among the sessions of a core."""
        self._core = core
        self._of: dict[str, dict[str, str]] = {}
        """Patterns by session and id of the subscription."""
        self._by_filter: dict[Filter, str] = {}

    def filter_of(self, one: StandingPattern) -> Filter:
        """Return the filter of a pattern's composite events."""
        return delivery_filter(one.type, one.key, self._core.broker.name)

    def add(self, one: StandingPattern) -> Filter:
        """Expect users of a pattern; return the filter of their subscriptions."""
        filter = self.filter_of(one)
        self._by_filter[filter] = one.key
        return filter

    def remove(self, one: StandingPattern) -> None:
        """Expect users of an ended pattern no longer."""
        del self._by_filter[self.filter_of(one)]
        for session, id in one.users:
            del self._of[session][id]

    def of_session(self, session: str) -> Mapping[str, str]:
        """Return the patterns of a session by id of the subscription."""
        return self._of.get(session, {})

    def subscribed(self, session: str, id: str, filter: Filter | None, now: float) -> None:
        """Note that a session has a filter under an id now, or none."""
        if not self._by_filter:
            return
        patterns = self._core.patterns
        key = None if filter is None else self._by_filter.get(unnamed(filter))
        mine = self._of.get(session, {})
        before = mine.get(id)
        if before is not None and before != key:
            del mine[id]
            patterns.known[before].users.discard((session, id))
            self.end_unused(before, now)
        if key is not None:
            self._of.setdefault(session, {})[id] = key
            patterns.known[key].users.add((session, id))

    def end_unused(self, key: str, now: float) -> None:
        """End a pattern without users, except a pattern of the settings."""
        one = self._core.patterns.known[key]
        if not one.users and not one.named:
            self._core.patterns.remove(key, now)

    def left(self, session: str, now: float) -> None:
        """End the patterns of an ending session, except those with other users."""
        for id, key in list(self._of.get(session, {}).items()):
            del self._of[session][id]
            self._core.patterns.known[key].users.discard((session, id))
            self.end_unused(key, now)
        self._of.pop(session, None)

    def released(self, session: str) -> None:
        """Keep the patterns of a session on the way to another node."""
        for id, key in self._of.pop(session, {}).items():
            self._core.patterns.known[key].users.discard((session, id))

    def maintain(self, now: float) -> None:
        """End the patterns without a subscriber here or elsewhere, at the second look."""
        for one in list(self._core.patterns.known.values()):
            one.idle = 0 if one.named or one.users or self._is_wanted(one) else one.idle + 1
            if one.idle > 1:
                self._core.patterns.remove(one.key, now)

    def _is_wanted(self, one: StandingPattern) -> bool:
        """Tell whether a neighbour has a filter for the detections; with flooding the answer is yes."""
        routes, links, filter = self._core.broker.routes, self._core.links, self.filter_of(one)
        if not isinstance(routes, TableRoutes):
            return bool(links)
        return any(unnamed(theirs).overlaps(filter) for link in links for theirs in routes.filters_of(link))

    def restore(self) -> None:
        """Find the users among the restored subscriptions."""
        for session, client in self._core.broker.clients.all.items():
            for id, filter in client.subscriptions.items() if session in self._core.sessions else ():
                self.subscribed(session, id, filter, self._core.now)
