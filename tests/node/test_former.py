"""A connection whose session has ended does nothing to one of the same name that somebody else has by now."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from tests.node.security.test_tickets import SETTINGS, token
from tests.node.talking import settings, talking, until

from fieldfare.core.core import Core
from fieldfare.events.event import Event
from fieldfare.node.config import load
from fieldfare.node.server import running
from fieldfare.protocol import frames as f


def test_whoever_had_a_session_of_that_name_cannot_touch_it(tmp_path: Path) -> None:
    """One that did not read its farewell could unsubscribe, acknowledge and publish as the next owner."""
    file = tmp_path / "a.toml"
    file.write_text(SETTINGS)

    async def test() -> None:
        async with (
            running(load(file, {}, {})) as a,
            talking(a, "s", token=token("eve"), credit=100_000) as eve,
            talking(a, token=token("bob")) as bob,
        ):
            await eve.subscribe("all", "large = TRUE")
            eve.socket.transport.pause_reading()
            for number in range(1, 301):
                await bob.publish(number, {"large": True, "text": "x" * 60_000})
            await eve.say(f.Leave(100))
            await until(lambda: "s" not in a.node.core.sessions)
            async with talking(a, "s", token=token("ana")) as ana:
                await ana.subscribe("mine", "x > 0")
                before = a.node.counters.frames_in
                raw = msgspec.Raw(eve.codec.raw(Event({"x": -1})))
                said = [f.Unsubscribe(101, "mine"), f.Publish(1, [raw]), f.Subscribe(102, "other", "TRUE")]
                for frame in [*said, f.Subscribe(103, "since", "TRUE", since=1), f.Leave(104)]:
                    await eve.say(frame)
                await until(lambda: a.node.counters.frames_in == before + 5)
                assert list(a.node.core.broker.clients.all["s"].subscriptions) == ["mine"]
                await ana.publish(1, {"x": 5})
                assert await ana.events(1) == [{"x": 5}]
            eve.socket.transport.abort()  # a farewell that is not read would be waited for

    asyncio.run(test())


def test_a_session_is_in_use_though_the_former_connection_ends_while_the_next_begins() -> None:
    """It would have been ended one day, as one that nobody had used for so long."""

    async def test() -> None:
        async with running(settings()) as a, talking(a, "s"):
            closer = a.node.closers["s"]
            attached = a.node.submit(lambda core, now: core.presence.attach("s", "j", now))
            del a.node.closers["s"], a.node.wakers["s"]  # as the former one does at its end
            former = closer.__self__._socket._listener  # type: ignore[attr-defined]
            ended = a.node.submit(former._detach)
            await attached
            a.node.use_session("s", closer, lambda: None)
            await ended
            assert await a.node.submit(_is_here)

    asyncio.run(test())


def _is_here(core: Core, _: float) -> bool:
    return core.sessions["s"].connected
