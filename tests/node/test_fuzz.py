"""Whatever comes in, the node answers or hangs up, and goes on; HTTP bodies are tried in `http/`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.node.talking import settings as node_settings
from tests.node.talking import talking
from tools.waiting import PATIENCE

from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import CODECS
from fieldfare.protocol.link_frames import (
    SUBPROTOCOL,
    LinkEnd,
    LinkHello,
    LinkResume,
    Messages,
    ReachableNodes,
    Received,
)

names = st.text(max_size=8)
numbers = st.integers(-(2**70), 2**70) | st.integers(-2, 5)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from([one.__name__ for one in f.FromClient.__args__])
filters = st.sampled_from(["x > 1", "TRUE", "x <", "x LIKE 'a%'", "", "((((", "x IN (1, 2"]) | names | anything
fields = {
    "request": numbers, "id": names | anything, "filter": filters, "number": numbers, "more": numbers,
    "events": st.lists(anything, max_size=3), "since": anything, "ttl": anything, "replaces": names,
    "session": names, "credit": numbers,
}  # fmt: skip
documents = st.builds(lambda kind, rest: {"is": kind, **rest}, kinds, st.fixed_dictionaries({}, optional=fields))
data = st.binary(max_size=60) | documents | anything


def written(what: Any, *, text: bool) -> bytes | str | None:
    if isinstance(what, bytes):
        return what
    try:
        return msgspec.json.encode(what).decode() if text else msgspec.msgpack.encode(what)
    except (OverflowError, ValueError, TypeError):
        return None


async def throw(node: Context, codec: str, said: Sequence[Any]) -> None:
    """Say something, as long as the node listens."""
    async with websockets.connect(node.hood.url, subprotocols=[websockets.Subprotocol(CODECS[codec].name)]) as socket:
        with contextlib.suppress(websockets.ConnectionClosed):
            await socket.send(CODECS[codec].encode(f.Hello(credit=10)))
            await socket.recv()
            for one in said:
                frame = written(one, text=codec.endswith("json"))
                if frame is not None:
                    await socket.send(frame)
            await socket.ping()


async def is_well(node: Context) -> None:
    async with talking(node) as ana:
        await ana.subscribe("s", "well = TRUE")
        assert await ana.publish(1, {"well": True}) == f.Accepted(1)
        assert len(await ana.deliveries(1)) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_any_frames(codec: str) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.lists(data, max_size=6), min_size=1, max_size=5))
    def any_frames(several: list[list[Any]]) -> None:
        async def test() -> None:
            for said in several:
                await asyncio.wait_for(throw(node, codec, said), PATIENCE)

        runner.run(test())

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        node = runner.run(stack.enter_async_context(running(node_settings())))
        any_frames()
        runner.run(is_well(node))
        assert len(node.node.core.sessions) <= 2
        runner.run(stack.aclose())


def test_any_bytes_as_the_first_frame() -> None:
    async def test() -> None:
        async with running(node_settings()) as node:
            for number in range(40):
                name = list(CODECS.values())[number % 2].name
                async with websockets.connect(node.hood.url, subprotocols=[websockets.Subprotocol(name)]) as socket:
                    with contextlib.suppress(websockets.ConnectionClosed):
                        await socket.send(os.urandom(number))
                        await asyncio.wait_for(socket.recv(), PATIENCE)
            await is_well(node)

    asyncio.run(test())


def test_a_frame_that_is_too_large() -> None:
    async def test() -> None:
        async with running(node_settings(flags={"limits.frame_bytes": 10_000})) as node, talking(node) as ana:
            with contextlib.suppress(websockets.ConnectionClosed):
                await ana.socket.send(b"x" * 20_000)
                await ana.socket.recv()
            await is_well(node)

    asyncio.run(test())


LINK_FRAMES = st.one_of(
    st.builds(LinkHello, names, names, names, st.integers(0, 3), st.sampled_from(["peer", "parent", "king"])),
    st.builds(LinkHello, st.just("b"), st.just("ws://b"), st.just("covering")),
    st.builds(LinkResume, names, names, st.integers(-2, 5)),
    st.builds(Messages, st.integers(-2, 3), st.lists(st.binary(max_size=20), max_size=3)),
    st.builds(Received, st.integers(-2, 2**62)),
    st.builds(ReachableNodes, st.dictionaries(names, names, max_size=2)),
    st.builds(LinkEnd, names, st.booleans()),
)


def test_any_neighbour() -> None:
    """What calls itself a node may say anything; the others go on."""

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(LINK_FRAMES | st.binary(max_size=30), max_size=6))
    def any_neighbour(said: list[Any]) -> None:
        async def test() -> None:
            address = node.hood.url + "/link"
            async with websockets.connect(address, subprotocols=[websockets.Subprotocol(SUBPROTOCOL)]) as socket:
                with contextlib.suppress(websockets.ConnectionClosed):
                    for one in said:
                        await socket.send(one if isinstance(one, bytes) else msgspec.msgpack.encode(one))
                    await socket.ping()

        runner.run(asyncio.wait_for(test(), PATIENCE))

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        node = runner.run(stack.enter_async_context(running(node_settings())))
        any_neighbour()
        runner.run(is_well(node))
        runner.run(stack.aclose())


def test_a_folder_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")

    async def test() -> None:
        with pytest.raises((OSError, ValueError)):
            async with running(node_settings("a", tmp_path / "file")):
                pass

    asyncio.run(test())
