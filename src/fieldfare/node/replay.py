"""Replay: a subscription with a beginning in the past. The log is searched, and new events follow without a gap.

The search runs beside the node's work, and again over newly logged events, until few are left; the last few
are searched in the same step in which the subscription begins. So past events come before new events, each once.

A replay delivers the same events as an earlier subscription would: of events with one replacement key
only the last, and no expired event.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from fieldfare.core.core import Core
from fieldfare.core.inputs import Input
from fieldfare.core.past_events import FoundEvents, matching
from fieldfare.core.state import RequestRefused
from fieldfare.filters.filter import Filter
from fieldfare.node.node import Node
from fieldfare.node.storage.storage import EventLog
from fieldfare.protocol import messages as m
from fieldfare.protocol.lineage import Lineage, still_valid

FEW: Final = 500
"""Number of entries that may be searched while the node waits."""
SLICE: Final = 20_000
"""Number of entries that are searched before other searches have a turn and the found events are counted."""


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
    change: Input | None = None,
) -> int:
    """Subscribe a session to a filter, from a position or a time on; `change` subscribes in another way.

    With `complete`, replaced and expired events count too, as far as the log reaches. Return the position where the
    log begins if `since` asks for older events, which are gone; else 0.
    """
    log = node.storage.log
    if life and isinstance(since, int):
        check_position(since, life, node.lives)
    number = channel_number(since)
    begin = log.first if number else first_position(log, since)
    older = begin == log.first > 1 and (since < begin if isinstance(since, int) else begin <= log.last)
    found = FoundEvents(id, complete=complete)
    begin_of, limit = log.first, node.config.sessions.limit
    while log.last - begin + 1 > FEW:
        end = min(log.last, begin + SLICE - 1)
        async with node.searches:
            await asyncio.to_thread(lambda a=begin, b=end: found.add(matching(log.read(a, b), filter, number)))  # type: ignore[misc]
        begin = end + 1
        if len(found.waiting(node.clock())) > limit:
            raise RequestRefused(f"more than {limit} events match since then: ask for fewer")

    def begin_now(core: Core, now: float) -> None:
        core.sessions.check_identity(session, identity)
        found.add(matching(log.read(begin, log.last), filter, number))
        found.add(matching(core.unwritten, filter, number))  # events of the same step, which are not in the log yet
        if change is None:
            core.presence.change_filters(m.Subscribe(id, filter), session, now)
        else:
            change(core, now)
        core.deliveries.replay(session, found.waiting(now + core.journal.ahead))

    await node.submit(begin_now)
    return begin_of if older else 0


def channel_number(since: float | str) -> int:
    """Return the number in a channel with which a replay begins; 0 for a position or a time.

    >>> channel_number("#101"), channel_number("2026-01-31T12:00:00Z"), channel_number(101)
    (101, 0, 0)
    """
    if not isinstance(since, str) or not since.startswith("#"):
        return 0
    if not since[1:].isdecimal() or int(since[1:]) == 0:
        raise RequestRefused(f"{since!r} is no number in a channel: write #1, or a higher number")
    return int(since[1:])


def check_position(position: int, life: str, lives: Lineage) -> None:
    """Refuse a position with another meaning in the present life of the log."""
    valid = still_valid(position, ((life, 1),), lives)
    if valid < position:
        known = f"the last that is the same is {valid}" if valid else "none that you have from it is the same"
        raise RequestRefused(f"position {position} is another event by now, since the node went back in time: {known}")


def first_position(log: EventLog, since: float | str) -> int:
    """Return the position to begin at; `since` is a position (int), seconds (float), or a time of RFC 3339 (str)."""
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
