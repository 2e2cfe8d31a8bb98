"""`DynamicFilters`: filters with parameters, and the present values of each session: `price <= :budget`, `IN myloc`.

A session states values, and may change several at once. The filled-in filters of all subscriptions change in the same
step: every new filter is in force before an old filter ends, and each neighbour hears of the change in a single update.
So no event is lost whose match is the same before and after the change. The place of a session is the value of `myloc`;
`Places` says which places count as here. Neighbours are asked for the events of a few places more, and most moves need
no message.

The rows hold the filled-in filter beside the text: a node that knows no parameters keeps the last filter.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from fieldfare.core.base import Base
from fieldfare.core.sessions import SessionTable
from fieldfare.core.state import RequestRefused
from fieldfare.core.watchers import SessionWatcher
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import budget
from fieldfare.filters.dynamic import MYLOC, DynamicFilter, Values
from fieldfare.filters.filter import NOTHING, Filter
from fieldfare.filters.predicates import constant
from fieldfare.protocol.handover import SessionDescription
from fieldfare.protocol.journal import Row, StoredRows
from fieldfare.routing.clients import Told
from fieldfare.routing.places import Places

Fill: TypeAlias = Callable[[DynamicFilter, Values], Filter]
"""returns the filter for present values, or raises a ValueError, as for a filter that the client may not have"""

WIDER_STEPS: Final = 100_000
"""steps of work for the wider filter of a subscription; see `filters.budget`"""
WIDER_SIZE: Final = 40_000
"""characters of the wider filter, about"""
_NAME: Final = re.compile(r"[^\W\d]\w*")

logger = logging.getLogger("fieldfare.node")


class DynamicFilters(SessionWatcher):
    """The dynamic filters of all sessions, with the stated values."""

    def __init__(self, base: Base, sessions: SessionTable, places: Places) -> None:
        """Begin without filters and values; `places` says which places sessions may have."""
        self._base = base
        self._sessions = sessions
        self.places = places
        self.filters: dict[str, dict[str, DynamicFilter]] = {}
        """By session and id."""
        self.values: dict[str, dict[str, Any]] = {}
        """By session and name of the parameter."""
        self._anchors: dict[str, str] = {}
        """By session: the place around which neighbours are asked for events."""
        self._around = lru_cache(maxsize=1000)(self._fill_around)

    # Requests of clients

    def subscribe(self, name: str, id: str, text: str, now: float, fill: Fill = DynamicFilter.fill) -> Filter:
        """Subscribe to a dynamic filter; return the filter for the present values."""
        self._base.versions.require("SetParameters")
        filter = DynamicFilter(text)
        present = fill(filter, self.present(self.values.get(name, {})))
        self._apply(name, {id: filter}, {id: present}, self.values.get(name, {}), now)
        return present

    def set(
        self, name: str, changes: Mapping[str, object], now: float, *, fill: Fill = DynamicFilter.fill, most: int = 100
    ) -> None:
        """Set values of parameters, at most `most` in all, or forget values (None): all of the changes, or none."""
        values = self.merged(name, changes)
        if len(values) > most:
            raise RequestRefused(f"a session has at most {most} parameters")
        filters, present = self.filters.get(name, {}), self.present(values)
        # All are filled in, though some do not depend on the change: rights may have changed as well.
        self._apply(name, filters, {id: fill(filter, present) for id, filter in filters.items()}, values, now)

    def _check(self, parameter: str, value: object) -> None:
        if not _NAME.fullmatch(parameter):
            raise RequestRefused(f"{parameter!r} is no name of a parameter: a name has letters, digits and _")
        if value is None:
            return
        try:
            if parameter == MYLOC:
                self.places.check(value)
            for one in value if isinstance(value, (list, tuple)) else (value,):
                constant(one)  # a value that no field can be compared with is a TypeError
        except (TypeError, ValueError) as error:
            raise RequestRefused(f"{parameter}: {error}") from None

    # Filters

    def merged(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a session after changes; `RequestRefused` for an impossible change."""
        for parameter, value in changes.items():
            self._check(parameter, value)
        merged = {**self.values.get(name, {}), **changes}
        return {parameter: value for parameter, value in merged.items() if value is not None}

    def present(self, values: Mapping[str, Any]) -> Values:
        """Return the values for filters: `myloc` is the list of all places near enough to count as here."""
        return {**values, MYLOC: sorted(self.places.near(values[MYLOC]))} if MYLOC in values else values

    def _apply(
        self,
        name: str,
        filters: Mapping[str, DynamicFilter],
        present: Mapping[str, Filter],
        values: Mapping[str, Any],
        now: float,
    ) -> None:
        """Put filled-in filters in force, and store filters and values."""
        before = self.values.get(name, {})
        known = self.texts_of(name)
        self._sessions.set_subscriptions(name, self._told(name, filters, present, values), now)
        self.filters.setdefault(name, {}).update(filters)
        self.values[name] = dict(values)
        fresh = {id: filter.text for id, filter in filters.items() if known.get(id) != filter.text}
        self._store(name, *(Row("dynamic", (name, id), text) for id, text in fresh.items()))
        if values != before:
            self._store(name, Row("parameters", (name,), encode_values(values) or None))

    def _told(
        self,
        name: str,
        filters: Mapping[str, DynamicFilter],
        present: Mapping[str, Filter],
        values: Mapping[str, Any],
    ) -> dict[str, Told]:
        """Return filled-in filters with the wider filters for neighbours, and note the anchor."""
        if MYLOC not in values:
            self._anchors.pop(name, None)
            return {id: Told(one) for id, one in present.items()}
        anchor = self._anchors[name] = self.places.anchor(values[MYLOC], self._anchors.get(name))
        return {id: Told(one, self._wider(filters[id], one, values, anchor)) for id, one in present.items()}

    def _wider(self, filter: DynamicFilter, present: Filter, values: Mapping[str, Any], anchor: str) -> Filter | None:
        """Return the filter for all places around an anchor; None if neighbours are asked for no further places."""
        if self.places.graph is None or not self.places.ahead or MYLOC not in filter.parameters:
            return None
        others = {name: values[name] for name in filter.parameters if name != MYLOC and name in values}
        around = self._around(filter.text, encode_values(others), anchor)
        if around is None or around.covers(present):
            return around
        return _union([around, present])  # filled in at a node with another graph

    def _fill_around(self, text: str, values: bytes, anchor: str) -> Filter | None:
        """Return a filter for all places around an anchor; None for a filter beyond the limits."""
        filter, others = DynamicFilter(text), decode_values(values)
        places = sorted(self.places.within(anchor, self.places.ahead))
        try:
            with budget.within(WIDER_STEPS, WIDER_SIZE):
                return _union([filter.fill(self.present({**others, MYLOC: place})) for place in places])
        except ValueError:
            return None  # neighbours hear of each move then

    def filter_replaced(self, name: str, id: str) -> None:
        """Forget a dynamic filter whose id has ended, or has another filter now."""
        if id in self.filters.get(name, {}):
            del self.filters[name][id]
            self._store(name, Row("dynamic", (name, id)))

    def filters_dropped(self, name: str) -> None:
        """Forget all dynamic filters of a session."""
        for id in list(self.filters.get(name, {})):
            self.filter_replaced(name, id)
        self.filters.pop(name, None)
        self._anchors.pop(name, None)

    def session_ended(self, name: str) -> None:
        """Forget the values of an ended session; its filters are dropped before."""
        if self.values.pop(name, None):
            self._base.buffer.store(Row("parameters", (name,)))

    def _store(self, name: str, *rows: Row) -> None:
        if self._sessions[name].durable:
            self._base.buffer.store(*rows)

    # Handover and recovery

    def texts_of(self, name: str) -> dict[str, str]:
        """Return the dynamic filters of a session, by id."""
        return {id: filter.text for id, filter in self.filters.get(name, {}).items()}

    def accept(
        self,
        name: str,
        filters: Mapping[str, DynamicFilter],
        subscriptions: Mapping[str, Filter],
        values: Mapping[str, Any],
        now: float,
    ) -> None:
        """Take the dynamic filters of a session from another node, filled in as they were there."""
        if not filters and values == self.values.get(name, {}):
            return
        present = {id: subscriptions.get(id, NOTHING) for id in filters}
        self._apply(name, filters, present, values, now)

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; the filled-in filters are subscriptions already."""
        self.values = {str(name): decode_values(data) for (name,), data in stored.get("parameters", {}).items()}
        read: dict[str, dict[str, DynamicFilter]] = {}
        for (name, id), text in stored.get("dynamic", {}).items():
            try:
                read.setdefault(str(name), {})[str(id)] = DynamicFilter(text)
            except ValueError as error:
                logger.error("the filter %s of %s stays as it is: its parameters cannot be read: %s", id, name, error)
        broker = self._base.broker
        for name, filters in read.items():
            self.filters[name] = filters
            client = broker.clients.get(name)
            present = {id: client.subscriptions.get(id, NOTHING) for id in filters}
            broker.set_subscriptions(name, self._told(name, filters, present, self.values.get(name, {})), now)


def read_dynamic(description: SessionDescription) -> tuple[dict[str, DynamicFilter], dict[str, Any]]:
    """Return the dynamic filters and the values of a session that another node describes; ValueError if unreadable."""
    filters = {id: DynamicFilter(text) for id, text in description.dynamic.items()}
    return filters, decode_values(description.parameters)


def _union(filters: Iterable[Filter]) -> Filter:
    return Filter(box for filter in filters for box in filter.boxes)


def encode_values(values: Mapping[str, Any]) -> bytes:
    """Return values of parameters in the form of rows, messages and events."""
    return msgpack.encode(Event(values)) if values else b""


def decode_values(data: bytes) -> dict[str, Any]:
    """Return the values of parameters in a row or message; EventError if there are none."""
    return dict(msgpack.decode(data).tree) if data else {}
