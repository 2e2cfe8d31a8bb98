"""Subscribing to what has happened already: the log is searched, and the session goes on from there without a gap.

The search runs beside the node's work, and again over what was logged meanwhile, until little is left; the rest is
looked through in the same step in which the subscription begins. So old events come before new ones, each once.

A replay brings what would wait for a session that had subscribed in time: of events that replace each other only the
last, and none whose time to live is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from fieldfare.events import msgpack
from fieldfare.filters.filter import Filter
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.node import Node
from fieldfare.node.state import NEVER, Pending, RequestRefused
from fieldfare.node.storage.storage import EventLog
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import JournalEntry, details_of, is_handed_over, replacement_key
from fieldfare.protocol.lineage import Lineage, still_valid

FEW: Final = 500
"""entries that may be looked through while the node waits"""
SLICE: Final = 20_000
"""entries that are looked through before others have a turn, and before what was found is counted"""


async def subscribe(
    node: Node,
    session: str,
    id: str,
    filter: Filter,
    since: float | str,
    *,
    life: str = "",
    complete: bool = False,
    identity: str = "",
) -> int:
    """Let a session have what a filter matches, from a position or a time on.

    If it is to be `complete`, also what was replaced, or has outlived its time to live, as far as the log has it. Gives
    the position where the log begins, if older events were wanted, and are gone.
    """
    log = node.storage.log
    if life and isinstance(since, int):
        check_position(since, life, node.lives)
    begin = first_position(log, since)
    older = begin == log.first > 1 and (since < begin if isinstance(since, int) else begin <= log.last)
    found = Found(id, complete=complete)
    begin_of, limit = log.first, node.config.sessions.limit
    while log.last - begin + 1 > FEW:
        end = min(log.last, begin + SLICE - 1)
        async with node.searches:
            await asyncio.to_thread(lambda a=begin, b=end: found.add(matching(log.read(a, b), filter)))  # type: ignore[misc]
        begin = end + 1
        if len(found.waiting(node.clock())) > limit:
            raise RequestRefused(f"more than {limit} events match since then: ask for fewer")

    def begin_now(broker: DurableBroker, now: float) -> None:
        broker.check_same(session, identity)
        found.add(matching(log.read(begin, log.last), filter))
        found.add(matching(broker.unwritten, filter))  # events of the same group, which are not in the log yet
        broker.change(m.Subscribe(id, filter), session, now)
        broker.replay(session, found.waiting(now + broker.ahead))

    await node.submit(begin_now)
    return begin_of if older else 0


class Found:
    """Events of the past that a subscription gets, in their order."""

    def __init__(self, id: str, *, complete: bool = False) -> None:
        """None yet, for the subscription of an id; if it is to be `complete`, all of them count."""
        self._ids = (id,)
        self._complete = complete
        self._last: dict[object, Pending] = {}

    def add(self, entries: Iterable[JournalEntry]) -> None:
        """Add events that come behind all others; one replaces another of the same name."""
        for entry in entries:
            if self._complete:
                self._last[entry.position] = Pending(entry.position, self._ids, NEVER)
                continue
            rest = details_of(entry)
            name = replacement_key(entry.publisher, rest.replaces)
            self._last.pop(name, None)  # else the new one would stand in its place
            self._last[name or entry.position] = Pending(
                entry.position, self._ids, rest.expires or NEVER, replaces=name
            )

    def waiting(self, now: float) -> list[Pending]:
        """Those whose time to live is not over. One whose is has replaced others all the same."""
        return [pending for pending in self._last.values() if pending.expires > now]


def matching(entries: Iterable[JournalEntry], filter: Filter) -> Iterator[JournalEntry]:
    """The entries of the events that a filter matches, but for those that came with a session."""
    return (entry for entry in entries if not is_handed_over(entry) and filter.matches(msgpack.decode(entry.event)))


def check_position(position: int, life: str, lives: Lineage) -> None:
    """Refuse a position that has another meaning by now."""
    valid = still_valid(position, ((life, 1),), lives)
    if valid < position:
        known = f"the last that is the same is {valid}" if valid else "none that you have from it is the same"
        raise RequestRefused(f"position {position} is another event by now, since the node went back in time: {known}")


def first_position(log: EventLog, since: float | str) -> int:
    """Where to begin: a position is a whole number; a time is in seconds, or a text in the form of RFC 3339."""
    if isinstance(since, int):
        if since < 0:
            raise RequestRefused("positions begin with 1")
        if since > log.last + 1:
            raise RequestRefused(
                f"the log ends at {log.last}: {since} is no position. A time has a point, or is written as text"
            )
        return max(since, log.first)
    if isinstance(since, str):
        try:
            when = datetime.fromisoformat(since)
        except ValueError:
            raise RequestRefused(
                f"{since!r} is no time: write 2026-01-31T12:00:00Z, or a position as a number"
            ) from None
        since = when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    return log.position_at(since)
