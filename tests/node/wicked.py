"""A neighbour that says whatever a test wants: what a broken or wicked node with the permission `join` could say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import websockets
from tests.node.talking import until

from fieldfare.node.context import Context
from fieldfare.protocol import handover as h
from fieldfare.protocol import link_frames, wire
from fieldfare.protocol import messages as m


class Wicked:
    """A link to a node, by hand."""

    def __init__(self, socket: websockets.ClientConnection, name: str, to: str) -> None:
        self._socket, self.name, self._to = socket, name, to
        self.said = 0
        self.greet = link_frames.LinkResume("", "", 0)

    async def send(self, frame: object) -> None:
        await self._socket.send(msgspec.msgpack.encode(frame))

    async def hear(self) -> Any:
        return msgspec.msgpack.decode(await self._socket.recv(decode=False), type=link_frames.AnyLinkFrame)

    async def say(self, *messages: m.Message) -> None:
        first, self.said = self.said + 1, self.said + len(messages)
        await self.send(link_frames.Messages(first, [wire.encode(message) for message in messages]))

    async def word(self, *words: h.HandoverMessage, origin: str = "", to: str = "") -> None:
        await self.say(*(m.Envelope(to or self._to, origin or self.name, h.encode(word)) for word in words))


@contextlib.asynccontextmanager
async def wicked(
    to: Context, name: str = "mallory", greet: link_frames.LinkResume | None = None, strategy: str = "covering"
) -> AsyncIterator[Wicked]:
    """Meet a node; with a `greet`, as one that knows the link from before."""
    url, link = f"{to.hood.url}/link", websockets.Subprotocol(link_frames.SUBPROTOCOL)
    async with websockets.connect(url, subprotocols=[link], compression=None, max_size=None) as socket:
        one = Wicked(socket, name, to.node.name)
        await one.send(link_frames.LinkHello(name, "ws://127.0.0.1:1", strategy, life="1"))
        assert isinstance(await one.hear(), link_frames.LinkHello)
        one.greet = await one.hear()
        assert isinstance(one.greet, link_frames.LinkResume)
        await one.send(greet or link_frames.LinkResume("mine", "", 0, lives=(("1", 1),)))
        reading = asyncio.create_task(_ignore(one))
        await until(lambda: name in to.node.link_wakers or reading.done())
        try:
            yield one
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _ignore(one: Wicked) -> None:
    while True:
        await one.hear()
