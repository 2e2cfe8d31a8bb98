"""Patterns from the network: admission, rights, and a beginning in the past.

A pattern is parsed like a filter, in a thread and within bounds. Its subscriber must be allowed to subscribe to each of
its filters, because a composite event carries all events that contributed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from fieldfare.core.core import Core
from fieldfare.core.past_events import matching
from fieldfare.core.pattern_inputs import SubscribePattern
from fieldfare.core.state import RequestRefused
from fieldfare.filters.filter import Filter
from fieldfare.node import replay
from fieldfare.node.config.patterns import read
from fieldfare.node.node import Node
from fieldfare.node.security.filter_admission import within
from fieldfare.node.security.permissions import may_subscribe
from fieldfare.node.security.principals import Principal
from fieldfare.patterns import Pattern
from fieldfare.protocol.journal import JournalEntry


async def subscribe(
    node: Node,
    session: str,
    id: str,
    text: str,
    principal: Principal,
    *,
    since: float | str | None = None,
    life: str = "",
    identity: str = "",
) -> int:
    """Subscribe a session to a pattern; return the position where the log begins if older events are gone, else 0."""
    limits = node.config.limits
    pattern = await within(lambda: read(text, limits), limits)
    for filter in pattern.filters.values():
        may_subscribe(principal, filter)
    mine = node.core.patterns.users.of_session(session)
    if len(mine) >= limits.patterns and id not in mine:
        raise RequestRefused(f"a session has at most {limits.patterns} patterns")
    if since is None:
        await node.submit(SubscribePattern(session, id, text, identity))
        return 0
    return await _subscribe_since(node, SubscribePattern(session, id, text, identity), pattern, since, life)


async def _subscribe_since(
    node: Node, subscribe: SubscribePattern, pattern: Pattern, since: float | str, life: str
) -> int:
    """Search the log beside the work of the node, then let the pattern begin with what was found."""
    log, filters = node.storage.log, tuple(pattern.filters.values())
    if life and isinstance(since, int):
        replay.check_position(since, life, node.lives)
    begin = replay.first_position(log, since)
    older = begin == log.first > 1 and (since < begin if isinstance(since, int) else begin <= log.last)
    first, found, most = log.first, list[JournalEntry](), node.config.sessions.limit
    while log.last - begin + 1 > replay.FEW:
        end = min(log.last, begin + replay.SLICE - 1)
        async with node.searches:
            found += await asyncio.to_thread(lambda a=begin, b=end: list(_matching(log.read(a, b), filters)))  # type: ignore[misc]
        begin = end + 1
        if len(found) > most:
            raise RequestRefused(f"more than {most} events concern the pattern since then: ask for fewer")

    def begin_now(core: Core, now: float) -> None:
        last = [*log.read(begin, log.last), *core.unwritten]
        history = (*found, *_matching(last, filters))
        SubscribePattern(subscribe.session, subscribe.id, subscribe.text, subscribe.identity, history)(core, now)

    await node.submit(begin_now)
    return first if older else 0


def _matching(entries: Iterable[JournalEntry], filters: Iterable[Filter]) -> Iterator[JournalEntry]:
    """Yield the entries that match a filter, each once, in order."""
    any_of = Filter(box for filter in filters for box in filter.boxes)
    return matching(entries, any_of)
