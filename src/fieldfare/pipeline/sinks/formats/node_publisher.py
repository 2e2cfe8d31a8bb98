"""Publishing of numbered events to a node, each once, however often the attempt is repeated.

A node knows the last number that it has accepted from a session, and tells a client at the connection; events up to
that number are not sent again. A frame is sent only after the frame before was accepted: if a frame were refused, the
node would accept the later numbers, and the gap would stay unnoticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec
import websockets

from fieldfare.client.errors import ConnectionLost, ConnectionRefused, Refused
from fieldfare.client.handshake import check_url, dial, reason_of
from fieldfare.client.outbox import MARGIN
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC

FRAME_EVENTS: Final = 2000
FRAME_BYTES: Final = 256 << 10
PATIENCE: Final = 60.0
"""seconds for the node to accept a frame"""


def publish(url: str, token: str, session: str, first: int, events: Iterable[bytes]) -> int:
    """Publish events (in MessagePack) under the numbers from `first` on, except those that the node has.

    Return the number of new events. ConnectionLost if the node went away: a repetition is safe then, if the session has
    a name.
    """
    check_url(url)
    return asyncio.run(_publish(url, token, session, first, iter(events)))


async def _publish(url: str, token: str, session: str, first: int, events: Iterator[bytes]) -> int:
    codec = MSGPACK_CODEC
    socket, welcome = await dial([url], codec, None, lambda: f.Hello(session=session, token=token), insecure=True)
    number = begin = max(first, welcome.accepted + 1)
    try:
        for frame in _frames(islice(events, begin - first, None), welcome):
            await socket.send(codec.encode(f.Publish(number, list(map(msgspec.Raw, frame)))))
            number += len(frame)
            async with asyncio.timeout(PATIENCE):
                while not _is_accepted(codec.from_node(await socket.recv()), number - 1):
                    pass
    except websockets.ConnectionClosed as closed:
        raise ConnectionLost(f"{url}: {reason_of(closed)}") from None
    except TimeoutError:
        raise ConnectionLost(f"{url}: the node has not accepted events for {PATIENCE:g} seconds") from None
    finally:
        await socket.close()
    return number - begin


def _frames(events: Iterator[bytes], welcome: f.Welcome) -> Iterator[list[bytes]]:
    """Yield the events of each frame, as many as the node accepts at once."""
    most, largest = min(FRAME_EVENTS, welcome.max_batch or FRAME_EVENTS), (welcome.max_frame or 1 << 30) - MARGIN
    frame: list[bytes] = []
    size = 0
    for event in events:
        if len(event) > largest:
            raise Refused(
                f"an event of {len(event)} bytes: the node takes at most {largest} (limits.frame_bytes)", "limit"
            )
        if frame and (len(frame) >= most or size + len(event) + 1 > min(FRAME_BYTES, largest)):
            yield frame
            frame, size = [], 0
        frame.append(event)
        size += len(event) + 1
    if frame:
        yield frame


def _is_accepted(frame: f.FromNode, number: int) -> bool:
    match frame:
        case f.Accepted(number=accepted):
            return accepted >= number
        case f.Refused(reason=reason, code=code):
            raise Refused(reason, code)
        case f.Bye(reason=reason):
            raise ConnectionRefused(reason)
    return False
