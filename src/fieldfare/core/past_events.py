"""Past events for a subscription that begins in the past: the events that an earlier subscription would deliver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fieldfare.core.state import NEVER, Pending, pending_event
from fieldfare.events import msgpack
from fieldfare.filters.filter import Filter
from fieldfare.matching.match.single_filter import check_of
from fieldfare.protocol.journal import JournalEntry, channel_number_of, details_of, is_handed_over


class FoundEvents:
    """Past events for a subscription, in order."""

    def __init__(self, id: str, *, complete: bool = False) -> None:
        """Begin without events, for the subscription of an id; with `complete`, none is left out."""
        self._ids = (id,)
        self._complete = complete
        self._last: dict[object, Pending] = {}

    def add(self, entries: Iterable[JournalEntry]) -> None:
        """Add later events; an event replaces an earlier event with the same replacement key."""
        for entry in entries:
            if self._complete:
                self._last[entry.position] = Pending(entry.position, self._ids, NEVER)
                continue
            details = details_of(entry)
            pending = pending_event(entry.position, self._ids, entry.publisher, details)
            self._last.pop(pending.replaces, None)  # else the new event would stand at the old place of the key
            self._last[pending.replaces or entry.position] = pending

    def waiting(self, now: float) -> list[Pending]:
        """Return the unexpired events; an expired event has replaced others all the same."""
        return [pending for pending in self._last.values() if pending.expires > now]


def matching(entries: Iterable[JournalEntry], filter: Filter, number: int = 0) -> Iterator[JournalEntry]:
    """Yield the entries with a matching event, without events that this node does not route.

    With a `number`, only events with this number in a channel, or a higher one.
    """
    matches = check_of(filter)
    for entry in entries:
        if number and channel_number_of(entry) < number:
            continue
        if not is_handed_over(entry) and matches(msgpack.decode(entry.event)):
            yield entry
