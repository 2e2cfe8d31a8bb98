"""`/admin/channels`: a channel gets another home while clients publish, at nodes on disks, by HTTP and command."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.node.http.helpers import Api, api, is_problem
from tests.node.talking import talking, until
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed

from fieldfare.cli import app
from fieldfare.node.config import ConfigError, load
from fieldfare.node.startup import channel_map

CHANNEL = {"channels__types": ("quote=a",)}


def homes(*nodes: Api) -> set[str]:
    return {node.service.node.core.channels.homes.of("quote").node for node in nodes}


def test_a_channel_moves_and_comes_back_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with api(tmp_path / "a", **CHANNEL) as a:
            join = a.service.hood.url
            async with (
                api(tmp_path / "b", name="b", join=(join,), **CHANNEL) as b,
                talking(a.service, "ana") as ana,
                talking(b.service, "bob") as bob,
            ):
                core = b.service.node.core
                await until(lambda: not core.channels.homes.waiting)
                for talker in (ana, bob):
                    await talker.subscribe("s", "TRUE")
                await until(lambda: a.service.node.core.links["b"].filters and core.links["a"].filters)
                is_problem(await a.client.post("/admin/channels", json={"type": "trade", "to": "b"}), 404)
                is_problem(await a.client.post("/admin/channels", json={"type": "quote", "to": "c"}), 404)
                is_problem(await a.client.post("/admin/channels", json={"type": "quote"}), 400)
                for number in range(1, 41):
                    await asyncio.gather(*(one.publish(number, {"type": "quote", "n": number}) for one in (ana, bob)))
                    if number in (10, 30):
                        # Either node takes the request.
                        node, to = (b, "b") if number == 10 else (a, "a")
                        answered = await node.client.post("/admin/channels", json={"type": "quote", "to": to})
                        assert answered.status_code == 202
                    if number == 25:
                        await until(lambda: homes(a, b) == {"b"})
                here, there = await ana.deliveries(80), await bob.deliveries(80)
                assert [one.channel_number for one in here] == list(range(1, 81))
                assert [(one.publisher, one.event) for one in here] == [(one.publisher, one.event) for one in there]
                for name in ("ana", "bob"):
                    numbers = [ana.codec.event(bytes(one.event))["n"] for one in here if one.publisher == name]
                    assert numbers == list(range(1, 41))
                await until(lambda: homes(a, b) == {"a"})
                await a.client.post("/admin/channels", json={"type": "quote", "to": "b"})
                await until(lambda: not core.channels.homes.busy and homes(a, b) == {"b"})
                [view] = (await b.client.get("/admin/channels")).json()
                assert view == {"type": "quote", "home": "b", "count": 80, "open": True, "target": "", "held": 0}
        async with api(tmp_path / "b", name="b", **CHANNEL) as b, talking(b.service, "eve") as eve:
            await eve.subscribe("s", "TRUE")
            await eve.publish(1, {"type": "quote"})
            assert [one.channel_number for one in await eve.deliveries(1)] == [81]

    asyncio.run(main())


def test_the_command_asks_for_a_move() -> None:
    async def main() -> None:
        async with api(**CHANNEL) as a, api(name="b", join=(a.service.hood.url,), **CHANNEL) as b:
            await until(lambda: not b.service.node.core.channels.homes.waiting)

            def run(*arguments: str) -> str:
                done = CliRunner().invoke(app, ["admin", "channels", *arguments, "--node", b.service.hood.url])
                return done.output

            moved = await asyncio.to_thread(run, "--move", "quote=b")
            assert moved == "the channel of quote goes to b; write quote=b into the settings of all nodes, too\n"
            await until(lambda: homes(a, b) == {"b"})
            assert (await asyncio.to_thread(run)).split()[:8] == [
                *["type", "home", "is", "last", "number", "quote", "b", "open"]
            ]
            assert "'quote' is not TYPE=NODE" in await asyncio.to_thread(run, "--move", "quote")

    asyncio.run(main())


def test_a_home_without_a_folder_warns_that_it_will_forget(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    flags = {"name": "a", "channels.types": ("quote=a", "news=b")}
    with caplog.at_level(logging.WARNING):
        channel_map(load(None, {}, {**flags, "data": str(tmp_path)}))
        channel_map(load(None, {}, {**flags, "name": "c"}))
        assert caplog.text == ""
        channel_map(load(None, {}, flags))
    assert "a numbers the events of quote, and begins with 1 at each start: set data" in caplog.text


def test_the_version_before_does_not_start_with_channels() -> None:
    with pytest.raises(ConfigError, match="version 2 has no channels, and would leave events on their way to a home"):
        load(None, {}, {"channels.types": ("quote=a",), "speaks": 2})


def test_a_node_without_clients_hosts_a_channel_for_clients_elsewhere() -> None:
    async def main() -> None:
        async with api(clients=False, **CHANNEL) as a, api(name="b", join=(a.service.hood.url,), **CHANNEL) as b:
            await until(lambda: not b.service.node.core.channels.homes.waiting)
            reason = "a takes no clients, by its settings: use another node of the overlay"
            with pytest.raises(ConnectionClosed, match=reason):
                async with talking(a.service, "ana"):
                    pass
            for method, path in (("POST", "/events"), ("GET", "/stream"), ("POST", "/subscriptions")):
                refused = await a.client.request(method, path, json={})
                is_problem(refused, 403)
                assert refused.json()["detail"] == reason
            assert (await a.client.get("/admin/channels")).status_code == 200
            async with talking(b.service, "bob") as bob:
                await bob.subscribe("s", "TRUE")
                await until(lambda: a.service.node.core.links["b"].filters)
                await bob.publish(1, {"type": "quote"})
                assert [one.channel_number for one in await bob.deliveries(1)] == [1]

    asyncio.run(main())
