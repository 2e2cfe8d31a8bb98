"""Clients that speak the protocol by hand, in both codecs, from `docs/reference/protocol.md` and none of our code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import websockets

Frame = dict[str, Any]
Ledger = Callable[[Frame], None]
"""takes the events that came, one after the other"""


class Raw:
    """A session, over as many connections as it takes."""

    def __init__(self, session: str, url: str, codec: str) -> None:
        self.session, self.url, self.codec = session, url, codec
        self.identity = ""
        self.problems: list[str] = []
        self._socket: websockets.ClientConnection | None = None

    async def live(self) -> None:
        """Come back whenever the connection breaks."""
        while True:
            with contextlib.suppress(OSError, websockets.WebSocketException, TimeoutError):
                protocol = websockets.Subprotocol(f"fieldfare.v2.{self.codec}")
                async with websockets.connect(
                    self.url, subprotocols=[protocol], compression=None, max_size=None, ping_interval=5, ping_timeout=15
                ) as socket:
                    self._socket = socket
                    await self.say({"is": "Hello", "session": self.session, "credit": 50})
                    await self._welcomed(await self.hear())
                    await self.talk()
            await asyncio.sleep(0.1)

    async def _welcomed(self, welcome: Frame) -> None:
        while welcome["is"] == "Waiting":
            welcome = await self.hear()
        if welcome["is"] != "Welcome":
            raise ConnectionError(str(welcome))
        if self.identity and welcome["identity"] != self.identity:
            self.problems.append(f"{self.session} was forgotten")
        self.identity = welcome["identity"]
        await self.back(welcome.get("accepted", 0), welcome.get("acknowledged", 0))

    async def say(self, frame: Frame) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(frame) if self.codec == "json" else msgspec.msgpack.encode(frame))

    async def hear(self) -> Frame:
        assert self._socket is not None
        data = await self._socket.recv()
        found: Frame = json.loads(data) if isinstance(data, str) else msgspec.msgpack.decode(data)
        if found["is"] == "Refused":
            self.problems.append(f"{self.session} was refused: {found}")
        if found["is"] == "Bye":
            raise ConnectionError(found["reason"])
        return found

    async def drop(self) -> None:
        """Break the connection without a word."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def back(self, accepted: int, acknowledged: int) -> None:
        """What the node knows of us."""

    async def talk(self) -> None:
        """As long as the connection lasts."""


class RawPublisher(Raw):
    """Publishes numbered events; says again what was not accepted."""

    def __init__(
        self, session: str, url: str, codec: str, make: Callable[[str, int], Frame], chance: random.Random
    ) -> None:
        super().__init__(session, url, codec)
        self.published = self.accepted = 0
        self.end = False
        self._make, self._chance = make, chance

    async def back(self, accepted: int, acknowledged: int) -> None:
        if accepted < self.accepted:
            self.problems.append(f"{self.session}: {self.accepted} were accepted, and now {accepted}")
        self.accepted = max(accepted, self.accepted)
        for number in range(accepted + 1, self.published + 1):
            await self._publish(number, 1)

    async def talk(self) -> None:
        hearing = asyncio.create_task(self._listen())
        try:
            while not hearing.done():
                await asyncio.sleep(self._chance.uniform(0, 0.1))
                if not self.end and self.published - self.accepted < 300:
                    count = self._chance.randrange(1, 5)
                    self.published += count
                    await self._publish(self.published - count + 1, count)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _publish(self, first: int, count: int) -> None:
        events = [self._make(self.session, number) for number in range(first, first + count)]
        await self.say({"is": "Publish", "number": first, "events": events})

    async def _listen(self) -> None:
        while True:
            frame = await self.hear()
            if frame["is"] == "Accepted":
                self.accepted = max(self.accepted, frame["number"])


class RawSubscriber(Raw):
    """Is done with each delivery once, whatever comes again, and acknowledges when it likes."""

    def __init__(self, session: str, url: str, codec: str, wish: tuple[str, Ledger], chance: random.Random) -> None:
        super().__init__(session, url, codec)
        self.again = self.done = 0
        self.asked = False
        (self._filter, self._ledger), self._chance = wish, chance

    async def back(self, accepted: int, acknowledged: int) -> None:
        if not self.asked:
            await self.say({"is": "Subscribe", "request": 1, "id": "s", "filter": self._filter})
        if acknowledged > self.done:
            self.problems.append(f"{self.session} has done {self.done}, and the node thinks {acknowledged}")

    async def talk(self) -> None:
        while True:
            frame = await self.hear()
            if frame["is"] == "Done":
                self.asked = True
            if frame["is"] != "Deliveries":
                continue
            for number, _position, _time, _publisher, event, *_ in frame["items"]:
                if number > self.done:
                    self.done = number
                    self._ledger(event)
                else:
                    self.again += 1
            if self._chance.random() < 0.8:
                await self.say({"is": "Acknowledge", "number": self.done})
            await self.say({"is": "Credit", "more": len(frame["items"])})
