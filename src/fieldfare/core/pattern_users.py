"""`PatternUsers`: the subscriptions to detections, and the end of patterns without subscribers.

A subscription to the detections of a pattern is an ordinary subscription, with a filter for these detections alone, so
the users of a pattern follow from the subscriptions of sessions. With the last user a pattern ends. If a session goes
on at another node, the pattern stays here, and the detections follow the filter of the session: until no neighbour has
such a filter any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from fieldfare.core.base import Base
from fieldfare.core.sessions import SessionTable
from fieldfare.core.standing_pattern import StandingPattern, delivery_filter
from fieldfare.core.watchers import SessionWatcher
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.protocol.messages import Role
from fieldfare.routing.table_routes import TableRoutes


class PatternUsers(SessionWatcher):
    """Users of patterns by session, and patterns by the filter of the detections."""

    def __init__(self, base: Base, sessions: SessionTable, known: Mapping[str, StandingPattern]) -> None:
        """Look for users of the `known` patterns of a node among its sessions."""
        self._base = base
        self._sessions = sessions
        self._known = known
        self._of: dict[str, dict[str, str]] = {}
        """Patterns by session and id of the subscription."""
        self._by_filter: dict[Filter, str] = {}
        self._dropped: dict[str, dict[str, bool]] = {}
        """Patterns of sessions without filters now, and whether earlier sessions had followed them elsewhere."""
        self._unused: set[str] = set()
        """Patterns that may have lost their last user in this step."""

    def filter_of(self, one: StandingPattern) -> Filter:
        """Return the filter of a pattern's composite events."""
        return delivery_filter(one.type, one.key, self._base.name)

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

    # Changes of sessions

    def filter_replaced(self, name: str, id: str) -> None:
        """Note the new filter of a session under an id, or the end of the subscription."""
        if not self._by_filter:
            return
        client = self._base.broker.clients.all.get(name)
        filter = client.subscriptions.get(id) if client is not None else None
        key = None if filter is None else self._by_filter.get(unnamed(filter))
        before = self._of.get(name, {}).get(id)
        if before is not None and before != key:
            self._forget(name, id)
            self._unused.add(before)
        if key is not None:
            self._of.setdefault(name, {})[id] = key
            self._known[key].users.add((name, id))

    def session_changed(self, name: str) -> None:
        """Look at the filters of patterns again: a filter with parameters may have replaced one."""
        for id in list(self._of.get(name, ())):
            self.filter_replaced(name, id)

    def filters_dropped(self, name: str) -> None:
        """Keep the patterns of a session that ends or departs, until `session_left` says more."""
        self._dropped[name] = {key: self._known[key].followed for key in self._of.get(name, {}).values()}
        for key in self._dropped[name]:
            self._note(key, followed=True)
        for id in list(self._of.get(name, ())):
            self._forget(name, id)
        self._of.pop(name, None)

    def session_left(self, name: str) -> None:
        """End the patterns of a session that has ended for good, except those with other users."""
        for key, followed in self._dropped.pop(name, {}).items():
            if key in self._known:
                self._note(key, followed=followed)
                self._unused.add(key)

    def _note(self, key: str, *, followed: bool) -> None:
        one = self._known[key]
        one.followed = followed
        self._base.buffer.store(*one.rows())

    def _forget(self, name: str, id: str) -> None:
        self._known[self._of[name].pop(id)].users.discard((name, id))

    # The end of patterns

    def take_unused(self) -> list[str]:
        """Return the patterns that have lost their last user since the last call, except those of the settings."""
        if not self._unused:  # as at nearly every step
            return []
        unused, self._unused = self._unused, set()
        known = ((key, self._known.get(key)) for key in sorted(unused))
        free = [(key, one) for key, one in known if one is not None and not (one.users or one.named or one.wanted)]
        return [key for key, one in free if not one.followed or not self._is_wanted(one)]

    def take_idle(self) -> list[str]:
        """Return the patterns without a subscriber here or elsewhere, at the second look."""
        self._dropped.clear()
        for one in self._known.values():
            kept = one.named or one.users or any(map(self._is_known, one.wanted))
            one.idle = 0 if kept or self._is_wanted(one) else one.idle + 1
        return [key for key, one in self._known.items() if one.idle > 1]

    def _is_known(self, user: tuple[str, str]) -> bool:
        """Tell whether a node that waits for a part is still in the network; it says when it needs the part no more."""
        return user[0] == self._base.name or self._base.envelopes.knows(user[0])

    def _is_wanted(self, one: StandingPattern) -> bool:
        """Tell whether a neighbour has a filter for the detections.

        With flooding, and with a parent, which gets all events unasked, the answer is yes.
        """
        routes, links, filter = self._base.broker.routes, self._base.links, self.filter_of(one)
        if not isinstance(routes, TableRoutes) or any(link.role is Role.PARENT for link in links.values()):
            return bool(links)
        return any(unnamed(theirs).overlaps(filter) for link in links for theirs in routes.filters_of(link))

    def restore(self) -> None:
        """Find the users among the restored subscriptions."""
        for session, client in self._base.broker.clients.all.items():
            for id in client.subscriptions if session in self._sessions else ():
                self.filter_replaced(session, id)
