"""`Overviews`: how other nodes of the overlay are doing, asked over the links.

Whoever looks after a network asks one node, with a token that only this node sees; it asks the others, from link to
link. Addresses that nodes name are never called: any node can name any address, and a token shown there would be
given away. A question may get lost, and so may its answer: whoever asks does so again in a moment.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from fieldfare.protocol.link_frames import OverviewReply, OverviewRequest

if TYPE_CHECKING:
    from fieldfare.node.links import Neighbourhood

PATIENCE: Final = 2.0
"""seconds in which another node must answer"""
FRESH: Final = 0.3
"""seconds in which whoever asks again gets the same answer: asking must not be work"""
MOST_HOPS: Final = 100
"""links that a question may cross: what nodes know of each other may be wrong for a moment"""
LARGEST: Final = 1 << 20
"""bytes of an answer"""


class Overviews:
    """The questions of a node that wait for an answer, and the way of those of others."""

    def __init__(self, hood: Neighbourhood) -> None:
        """Nobody has asked yet."""
        self._hood = hood
        self._numbers = itertools.count(1)
        self._waiting: dict[tuple[str, int], asyncio.Future[bytes]] = {}
        self.describe: Callable[[], bytes] | None = None
        """makes the overview of this node; None: nobody does"""
        self._last = 0.0, b""

    async def ask(self, name: str) -> bytes:
        """The overview of another node; TimeoutError if it does not answer."""
        me, number = self._hood.node.name, next(self._numbers)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[name, number] = future
        try:
            async with asyncio.timeout(PATIENCE):
                self._send(OverviewRequest(name, me, number))
                return await future
        finally:
            del self._waiting[name, number]

    def hear(self, frame: OverviewRequest | OverviewReply) -> None:
        """A neighbour asks, answers, or passes on what others do."""
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
            link.pass_on(frame)
