"""Subscribing to what has happened already: the log is searched, and the session goes on from there without a gap.

The search runs beside the node's work, and again over what was logged meanwhile, until little is left; the rest is
looked through in the same step in which the subscription begins. So old events come before new ones, each once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from fieldfare.events import msgpack
from fieldfare.filters.filter import Filter
from fieldfare.node.durable import DurableBroker
from fieldfare.node.kept import Refusal, is_behind
from fieldfare.node.node import Node
from fieldfare.node.storage import EventLog
from fieldfare.routing import messages as m

FEW: Final = 500
"""entries that may be looked through while the node waits"""


async def subscribe(node: Node, session: str, id: str, filter: Filter, since: float | str) -> None:
    """Let a session have what a filter matches, from a position or a time on."""
    log = node.storage.log
    begin = first_position(log, since)
    found: list[int] = []
    limit = node.config.sessions.limit
    while log.last - begin + 1 > FEW:
        end = log.last
        async with node.searches:
            found += await asyncio.to_thread(lambda a=begin, b=end: list(matching(log, filter, a, b)))  # type: ignore[misc]
        begin = end + 1
        if len(found) > limit:
            raise Refusal(f"more than {limit} events match since then: ask for fewer")

    def begin_now(broker: DurableBroker, now: float) -> None:
        last = [*matching(log, filter, begin, log.last)]
        seen = _unwritten(broker, filter)
        broker.change(m.Subscribe(id, filter), session, now)
        broker.replay(session, id, [*found, *last, *seen])

    await node.submit(begin_now)


def _unwritten(broker: DurableBroker, filter: Filter) -> Iterator[int]:
    """Events of the same group, which are not in the log yet."""
    return (
        entry.position
        for entry in broker.unwritten
        if not is_behind(entry) and filter.matches(msgpack.decode(entry.event))
    )


def matching(log: EventLog, filter: Filter, first: int, last: int) -> Iterator[int]:
    """The positions of the events that a filter matches."""
    for entry in log.read(first, last):
        if not is_behind(entry) and filter.matches(msgpack.decode(entry.event)):
            yield entry.position


def first_position(log: EventLog, since: float | str) -> int:
    """Where to begin: a position is a whole number; a time is in seconds, or a text in the form of RFC 3339."""
    if isinstance(since, int):
        if since < 0:
            raise Refusal("positions begin with 1")
        if since > log.last + 1:
            raise Refusal(
                f"the log ends at {log.last}: {since} is no position. A time has a point, or is written as text"
            )
        return max(since, log.first)
    if isinstance(since, str):
        try:
            when = datetime.fromisoformat(since)
        except ValueError:
            raise Refusal(f"{since!r} is no time: write 2026-01-31T12:00:00Z, or a position as a number") from None
        since = when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    return log.position_at(since)
