"""Requests to a running node for a stretch of its log: the events that match a filter, from a position on.

The request is that of any client: subscribe with `since`, in a session without a name. The node searches its log and
delivers matching events in order, followed by new events; the client gives credit for as many rows as the caller needs.
The result is exact:

- The node replays all entries of its log, also replaced and expired events. So the same request gives the same rows
  again.
- Deliveries are numbered without gaps. An event that expired, was replaced or was dropped while it waited leaves a
  gap; then the stretch ends before the gap, and the next stretch has the event. So the rows are complete up to the
  last row.
- To know that no more events wait, the client sends two requests without effect: the node sends waiting events before
  the second answer.
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
"""seconds for an answer of the node, which may have to search a long log"""


class Asked(NamedTuple):
    """The node and the filter of a request."""

    url: str
    token: str
    filter: str
    life: str = ""
    """the life of the node's log in which the position was read"""


class Stretch(NamedTuple):
    """A part of a node's log that matches a filter."""

    node: str
    """the name of the node"""
    found: list[f.Delivery]
    more: bool
    """whether the log may have more matching events"""
    life: str = ""
    """the life of the node's log with these positions"""


def replay(asked: Asked, since: int, limit: int, *, known: int = 0, wait: float = 0.0) -> Stretch:
    """Return the first events from a position on that match a filter, at most `limit`.

    With only `known` events in the log, wait up to `wait` seconds for the next event.
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
    """Return the next frame of the node, or None after so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return MSGPACK_CODEC.from_node(await socket.recv())
    except TimeoutError:
        return None


def _without_gap(items: Iterable[f.Delivery], number: int) -> list[f.Delivery]:
    """Return the deliveries whose numbers follow each other from a number on."""
    return [item for place, item in takewhile(lambda one: one[0] == one[1].number, enumerate(items, number))]
