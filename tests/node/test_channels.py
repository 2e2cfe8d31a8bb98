"""Channels of running nodes: one order at all nodes, numbers for clients, and a restart of the home."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from tests.node.talking import line, linked, settings, talking, until

from fieldfare.node import replay
from fieldfare.node.server import running
from fieldfare.protocol import frames as f

CHANNELS: Mapping[str, object] = {"channels.types": ("quote=a",)}


def test_all_nodes_deliver_in_the_order_of_the_home() -> None:
    async def test() -> None:
        configs = [settings(name, flags=CHANNELS) for name in "abc"]
        async with line(*configs) as services, talking(services[0], "ana") as ana, talking(services[2], "bob") as bob:
            await until(lambda: not any(one.node.core.channels.homes.waiting for one in services))
            for talker in (ana, bob):
                await talker.subscribe("s", "TRUE")
            await until(lambda: services[0].node.core.links["b"].filters)  # the home knows of bob's subscription
            for number in range(1, 11):
                await asyncio.gather(*(one.publish(number, {"type": "quote", "n": number}) for one in (ana, bob)))
            here, there = await ana.deliveries(20), await bob.deliveries(20)
            assert [(one.publisher, one.channel_number) for one in here] == [
                (one.publisher, one.channel_number) for one in there
            ]
            assert [one.channel_number for one in here] == list(range(1, 21))

    asyncio.run(test())


def test_the_past_of_a_channel_is_replayed_from_a_number_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(settings("a", flags=CHANNELS)) as home, talking(home, "bob") as bob:
            for number in range(1, 7):
                await bob.publish(number, {"type": "quote" if number % 2 else "other"})
            for few in (replay.FEW, 0):
                monkeypatch.setattr(replay, "FEW", few)
                await bob.subscribe(f"s{few}", "TRUE", since="#2")
                assert [one.channel_number for one in await bob.deliveries(2)] == [2, 3]
            refused = await bob.ask(f.Subscribe, "t", "TRUE", "#0")
            assert refused == f.Refused("'#0' is no number in a channel: write #1, or a higher number", 3)

    asyncio.run(test())


def test_a_home_that_comes_back_numbers_on(tmp_path: Path) -> None:
    async def test() -> None:
        home = settings("a", tmp_path / "a", flags=CHANNELS)
        async with running(settings("b", tmp_path / "b", flags=CHANNELS)) as there:
            config = msgspec.structs.replace(home, join=(there.hood.url,))
            async with talking(there, "bob") as bob:
                await bob.subscribe("s", "TRUE")
                refused = await bob.publish(1, {"type": "quote"})
                assert isinstance(refused, f.Refused)
                assert refused.reason == "events of the type quote are numbered at a: the node a has not answered yet"
                for number in (2, 4):
                    async with running(config) as here:
                        await linked(here, there)
                        await until(lambda: not there.node.core.channels.homes.waiting)
                        await bob.publish(number, {"type": "quote"})
                    accepted = await bob.publish(number + 1, {"type": "quote"})  # waits for the home
                    assert isinstance(accepted, f.Accepted)
                async with running(config):
                    assert [one.channel_number for one in await bob.deliveries(4)] == [1, 2, 3, 4]

    asyncio.run(test())
