"""Two nodes that have one name: the second is refused with a word that says so, and nothing that waits is lost."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
from pathlib import Path

import pytest
from tests.node.talking import linked, settings, talking, until

from fieldfare.node.config import load, names
from fieldfare.node.server import running


def test_the_second_of_two_nodes_with_one_name_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fieldfare.node")

    async def test() -> None:
        async with running(settings("hub", tmp_path / "hub")) as hub, talking(hub, "bob") as bob:
            join = {"join": (hub.hood.url,)}
            async with running(settings("b", tmp_path / "b", join)) as b, talking(b, "ana") as ana:
                await linked(hub, b)
                await ana.subscribe("s", "x > 0")
                await until(hub.node.core.interest)
                shutil.copytree(tmp_path / "b", tmp_path / "clone", ignore=shutil.ignore_patterns("lock"))
                for folder in ("other", "clone"):
                    caplog.clear()
                    async with running(settings("b", tmp_path / folder, join)) as second:
                        await until(lambda: "a node called b is linked to hub already" in caplog.text)
                        for _ in range(20):
                            await bob.publish(len(accepted) + 1, {"x": len(accepted) + 1})
                            accepted.append(len(accepted) + 1)
                        assert not second.hood.up
                assert [event["x"] for event in await ana.events(40)] == accepted

    accepted: list[int] = []
    asyncio.run(test())


def test_what_waits_for_a_node_is_not_dropped_for_another_of_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fieldfare.node")

    async def test() -> None:
        async with running(settings("hub", tmp_path / "hub")) as hub, talking(hub, "bob") as bob:
            join = {"join": (hub.hood.url,)}
            async with running(settings("b", tmp_path / "b", join)) as b, talking(b, "ana") as ana:
                await linked(hub, b)
                await ana.subscribe("s", "x > 0")
                await until(hub.node.core.interest)
            await bob.publish(1, {"x": 1})
            async with running(settings("b", tmp_path / "b2", join)):
                await until(lambda: "1 events wait at hub for another node called b" in caplog.text)
            async with running(settings("b", tmp_path / "b", join)) as b, talking(b, "ana") as ana:
                assert await ana.events(1) == [{"x": 1}]

    asyncio.run(test())


def test_a_session_may_have_the_name_of_a_node() -> None:
    async def test() -> None:
        async with running(settings("hub")) as hub, talking(hub, "b") as b_client, talking(hub, "bob") as bob:
            await b_client.subscribe("s", "x > 0")
            async with running(settings("b", flags={"join": (hub.hood.url,)})) as b, talking(b) as ana:
                await linked(hub, b)
                await ana.subscribe("s", "x > 1")
                await until(lambda: len(hub.node.core.interest()) == 2)
                await bob.publish(1, {"x": 1}, {"x": 2})
                assert await b_client.events(2) == [{"x": 1}, {"x": 2}]
                assert await ana.events(1) == [{"x": 2}]
                async with talking(hub, "b") as again:
                    assert await again.events(2) == [{"x": 1}, {"x": 2}]

    asyncio.run(test())


def test_names_that_are_made_differ_on_cloned_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "clone")
    made = []
    for machine in ("111111", "222222"):
        monkeypatch.setattr(names, "_machine", lambda machine=machine: machine)
        made.append(load(None, {}, {}).name)
    assert made == ["clone-7400-111111", "clone-7400-222222"]
    (tmp_path / "name").write_text("clone-7400-111111\n")
    assert load(None, {}, {"data": str(tmp_path)}).name == "clone-7400-111111"  # it stays, wherever the folder goes
