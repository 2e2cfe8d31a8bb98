"""`Overviews`: the state of other nodes of the overlay, requested over the links.

An administrator asks a node, with a token for the eyes of the node only; the node asks the others, from link to link.
The announced addresses are never called: any node can announce any address, and a token sent there would be given away.
A request or reply may get lost: the dashboard asks again in a moment.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from fieldfare.protocol.link_frames import OverviewReply, OverviewRequest

if TYPE_CHECKING:
    from fieldfare.node.neighbourhood import Neighbourhood

PATIENCE: Final = 2.0
"""Seconds in which another node must reply."""
FRESH: Final = 0.3
"""Seconds for which an overview is reused, so that many requests cost no more than one."""
MOST_HOPS: Final = 100
"""Links that a request may cross: the nodes' knowledge of each other may be wrong for a moment."""
LARGEST: Final = 1 << 20
"""Largest size of an overview in bytes."""


class Overviews:
    """The open requests of a node; requests and replies of other nodes are passed on."""

    def __init__(self, hood: Neighbourhood) -> None:
        """Begin without open requests, for a neighbourhood."""
        self._hood = hood
        self._numbers = itertools.count(1)
        self._waiting: dict[tuple[str, int], asyncio.Future[bytes]] = {}
        self.describe: Callable[[], bytes] | None = None
        """Returns the overview of this node; None: the node does not reply."""
        self._last = 0.0, b""

    async def ask(self, name: str) -> bytes:
        """Return the overview of another node; TimeoutError if there is no reply."""
        me, number = self._hood.node.name, next(self._numbers)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[name, number] = future
        try:
            async with asyncio.timeout(PATIENCE):
                self._send(OverviewRequest(name, me, number))
                return await future
        finally:
            del self._waiting[name, number]

    def receive(self, frame: OverviewRequest | OverviewReply) -> None:
        """Reply to a request for this node, resolve an open request, or pass the frame on."""
        if (
            len(frame.overview if isinstance(frame, OverviewReply) else b"") > LARGEST
            or not 0 <= frame.hops < MOST_HOPS
        ):
            return
        if frame.to != self._hood.node.name:
            self._send(msgspec.structs.replace(frame, hops=frame.hops + 1))
        elif isinstance(frame, OverviewReply):
            waiting = self._waiting.get((frame.origin, frame.number))
            if waiting is not None and not waiting.done():
                waiting.set_result(frame.overview)
        elif self.describe is not None:
            self._send(OverviewReply(frame.origin, frame.to, frame.number, self._mine()))

    def _mine(self) -> bytes:
        now = asyncio.get_running_loop().time()
        if self.describe is not None and (not self._last[1] or now - self._last[0] > FRESH):
            self._last = now, self.describe()
        return self._last[1]

    def _send(self, frame: OverviewRequest | OverviewReply) -> None:
        hood = self._hood
        link = hood.up.get(frame.to)
        if link is None:
            link = next((one for name, one in hood.up.items() if frame.to in hood.behind.get(name, ())), None)
        if link is not None:
            link.send_overview(frame)
