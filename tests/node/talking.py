"""A client that says exactly what a test wants, frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import websockets
from tools.waiting import PATIENCE

from fieldfare.events.event import Event
from fieldfare.node.config import Config, load
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC, Codec

F = TypeVar("F", bound=f.Frame)
SECONDS = PATIENCE


def settings(name: str = "a", folder: Path | None = None, flags: Mapping[str, object] | None = None) -> Config:
    return load(None, {}, {"name": name, "port": 0, "data": str(folder) if folder else None, **(flags or {})})


class Talker:
    """A WebSocket to a node."""

    def __init__(self, socket: websockets.ClientConnection, codec: Codec[Any]) -> None:
        self.socket, self.codec = socket, codec
        self.welcome = f.Welcome("", "", "")
        self.kept: list[f.FromNode] = []
        self.requests = 0

    async def say(self, frame: f.Frame) -> None:
        await self.socket.send(self.codec.encode(frame))

    async def hear(self, kind: type[F], seconds: float = SECONDS) -> F:
        """The next frame of a kind; others are kept."""
        for place, frame in enumerate(self.kept):
            if isinstance(frame, kind):
                del self.kept[place]
                return frame
        while True:
            frame = self.codec.from_node(await asyncio.wait_for(self.socket.recv(), seconds))
            if isinstance(frame, kind):
                return frame
            self.kept.append(frame)

    async def ask(self, frame: type[f.Frame], *arguments: object, **more: object) -> f.Done | f.Refused:
        self.requests += 1
        await self.say(frame(self.requests, *arguments, **more))
        answer: f.Done | f.Refused = await self.hear(f.Done | f.Refused)  # type: ignore[arg-type]
        assert answer.request == self.requests
        return answer

    async def subscribe(self, id: str, filter: object, since: object = None) -> None:
        answer = await self.ask(f.Subscribe, id, filter, since)
        assert isinstance(answer, f.Done), answer

    async def publish(self, number: int, *events: Mapping[str, object], **more: Any) -> f.Accepted | f.Refused:
        raws = [msgspec.Raw(self.codec.raw(Event(event))) for event in events]
        await self.say(f.Publish(number, raws, **more))
        return await self.hear(f.Accepted | f.Refused)  # type: ignore[arg-type]

    async def deliveries(self, count: int, seconds: float = SECONDS) -> list[f.Delivery]:
        got: list[f.Delivery] = []
        while len(got) < count:
            got += (await self.hear(f.Deliveries, seconds)).items
        return got

    async def events(self, count: int) -> list[dict[str, object]]:
        return [dict(self.codec.event(bytes(one.event)).tree) for one in await self.deliveries(count)]

    async def silence(self, seconds: float = 0.2) -> bool:
        """Whether nothing is delivered for a while."""
        with contextlib.suppress(TimeoutError):
            await self.deliveries(1, seconds)
            return False
        return True


@contextlib.asynccontextmanager
async def talking(
    to: Context | str, session: str = "", codec: Codec[Any] = MSGPACK_CODEC, credit: int = 1000, **hello: Any
) -> AsyncIterator[Talker]:
    url = to if isinstance(to, str) else to.hood.url
    async with websockets.connect(url, subprotocols=[websockets.Subprotocol(codec.name)], compression=None) as socket:
        talker = Talker(socket, codec)
        await talker.say(f.Hello(session=session, credit=credit, **hello))
        talker.welcome = await talker.hear(f.Welcome)
        yield talker


@contextlib.asynccontextmanager
async def line(*configs: Config) -> AsyncIterator[list[Context]]:
    """Nodes, each joined to the one before."""
    async with contextlib.AsyncExitStack() as stack:
        services: list[Context] = []
        for config in configs:
            join = (services[-1].hood.url,) if services else ()
            services.append(await stack.enter_async_context(running(msgspec.structs.replace(config, join=join))))
            if join:
                await linked(services[-1], services[-2])
        yield services


async def linked(one: Context, other: Context) -> None:
    await until(lambda: other.node.name in one.hood.up and one.node.name in other.hood.up)


async def until(holds: Any, seconds: float = SECONDS) -> None:
    for _ in range(int(seconds / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")
