"""Asking a running node for a stretch of its log: what a filter matches, from a position on.

The conversation is that of any client: subscribe with `since`, in a session without a name. The node searches its log
and delivers what it finds in order, followed by what happens meanwhile; we give it credit for as many rows as are
wanted. What is given back is exact:

- The node is asked for all that its log has: also what was replaced since, or has outlived its time to live. So what is
  asked for again is the same.
- Deliveries are numbered without gaps. Something that expired, was replaced or had to be dropped while it waited leaves
  a gap; then we stop before it, and it is in the log the next time. So the rows are all that the log has up to the
  last.
- To know that nothing more waits we ask the node for something that has no effect, twice: it sends what waits before it
  answers the second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import takewhile
from typing import Final, NamedTuple

import websockets

from fieldfare.client.errors import ConnectionLost, ConnectionRefused, Refused
from fieldfare.client.handshake import check_url, dial, reason_of
from fieldfare.client.registrations import NO_SUBSCRIPTION
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC

PATIENCE: Final = 60.0
"""seconds for the node to say something: it may have to search a long log"""


class Asked(NamedTuple):
    """What to ask of which node."""

    url: str
    token: str
    filter: str
    life: str = ""
    """of the node's log, in which the position is known"""


class Stretch(NamedTuple):
    """Part of what a node's log has for a filter."""

    node: str
    """its name"""
    found: list[f.Delivery]
    more: bool
    """may there be more by now?"""
    life: str = ""
    """of its log, in which it gives these positions"""


def replay(asked: Asked, since: int, limit: int, *, known: int = 0, wait: float = 0.0) -> Stretch:
    """The first events from a position on that match a filter, at most so many.

    If there are not more than those that are `known`, wait so many seconds for the next one.
    """
    check_url(asked.url)
    return asyncio.run(_replay(asked, since, limit, known, wait))


async def _replay(asked: Asked, since: int, limit: int, known: int, wait: float) -> Stretch:
    codec, hello = MSGPACK_CODEC, f.Hello(token=asked.token, credit=limit)
    socket, welcome = await dial([asked.url], codec, None, lambda: hello, insecure=True)
    nothing = codec.encode(f.Unsubscribe(2, NO_SUBSCRIPTION))
    found: list[f.Delivery] = []
    answers = 0
    """since something was delivered"""
    try:
        await socket.send(codec.encode(f.Subscribe(1, "replay", asked.filter, since, asked.life, complete=True)))
        while True:
            idle = answers == 2
            if idle and (len(found) > known or not wait):
                return Stretch(welcome.node, found, more=False, life=welcome.life)
            match await _heard(socket, wait if idle else PATIENCE):
                case f.Deliveries(items=items):
                    whole = _without_gap(items, len(found) + 1)
                    found += whole
                    if len(found) >= limit or len(whole) < len(items):
                        return Stretch(welcome.node, found, more=True, life=welcome.life)
                    if idle:  # it came just now; else there is still an answer to come
                        await socket.send(nothing)
                    answers = 0
                case f.Done():
                    answers += 1
                    if answers < 2:
                        await socket.send(nothing)
                case f.Refused(reason=reason, code=code):
                    raise Refused(reason, code)
                case f.Bye(reason=reason):
                    raise ConnectionRefused(reason)
                case None if idle:
                    return Stretch(welcome.node, found, more=False, life=welcome.life)
                case None:
                    raise ConnectionLost(f"{asked.url}: the node has said nothing for {PATIENCE:g} seconds")
    except websockets.ConnectionClosed as closed:
        raise ConnectionLost(f"{asked.url}: {reason_of(closed)}") from None
    finally:
        await socket.close()


async def _heard(socket: websockets.ClientConnection, seconds: float) -> f.FromNode | None:
    """What the node says, or None if it says nothing for so long."""
    try:
        async with asyncio.timeout(seconds):
            return MSGPACK_CODEC.from_node(await socket.recv())
    except TimeoutError:
        return None


def _without_gap(items: Iterable[f.Delivery], number: int) -> list[f.Delivery]:
    """Those whose numbers follow each other from a number on."""
    return [item for place, item in takewhile(lambda one: one[0] == one[1].number, enumerate(items, number))]
