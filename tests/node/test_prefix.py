"""Nodes that forward by tags: the strategy `prefix` over real links."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.talking import line, linked, settings, talking, until

from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol.journal import details_of
from fieldfare.routing.prefix.routes import PrefixRoutes

FAST: dict[str, object] = {"strategy": "prefix", "prefix.beat_seconds": 0.1, "prefix.patience_seconds": 0.4,
                            "prefix.refresh_seconds": 0.2}  # fmt: skip


def routes(service: Context) -> PrefixRoutes:
    found = service.node.core.broker.routes
    assert isinstance(found, PrefixRoutes)
    return found


def agree(*services: Context) -> bool:
    """All have the same tree, made by somebody, and each filter has its nodes."""
    standings = [one for service in services for one in routes(service).status]
    return len({(one.part, one.version) for one in standings}) == len(routes(services[0]).status) and all(
        one.version.term.round > 0 and not one.loose for one in standings
    )


@pytest.mark.parametrize("more", [{}, {"prefix.parts": 3, "prefix.depth": 2, "prefix.layout": "selectivity"}])
def test_events_are_forwarded_by_tags(more: dict[str, object]) -> None:
    async def test() -> None:
        configs = [settings(name, flags={**FAST, **more}) for name in "abc"]
        async with line(*configs) as (a, b, c), talking(a) as ana, talking(c) as bob, talking(b) as eve:
            await ana.subscribe("s", "x > 1 AND y = 'on' OR z = 7")
            await eve.subscribe("s", "x = 0")
            await until(lambda: len(c.node.core.interest()) == 2)
            await until(lambda: agree(a, b, c))
            before = [routes(one).by_content for one in (a, b, c)]
            for number in range(1, 41):
                await bob.publish(number, {"x": number % 4, "y": "on" if number % 8 < 4 else "off"})
            assert [event["x"] for event in await ana.events(10)] == [2, 3] * 5
            assert [event["x"] for event in await eve.events(10)] == [0] * 10
            assert await ana.silence(0.05)
            assert [routes(one).by_content for one in (a, b, c)] == before
            assert routes(b).by_tag >= 20
            if not more:
                assert routes(a).by_tag == 10  # nothing that nobody wants there
            assert all(details_of(entry).tag for entry in b.node.storage.log.read(1))

    asyncio.run(test())


def test_another_takes_over() -> None:
    async def test() -> None:
        flags = {**FAST, "prefix.optimizers": ("c", "a")}
        async with line(settings("a", flags=flags), settings("b", flags=flags)) as (a, b), talking(a) as ana:
            await ana.subscribe("s", "x > 1")
            async with running(settings("c", flags={**flags, "join": (b.hood.url,)})) as c:
                await linked(b, c)
                await until(lambda: agree(a, b, c))
                first = routes(b).status[0].optimizer
            await ana.subscribe("t", "y > 1")
            await until(lambda: agree(a, b) and routes(b).status[0].optimizer.startswith("a/"))
            assert routes(a).status[0].nodes == 2
            async with talking(b) as bob:
                for number in range(1, 11):
                    await bob.publish(number, {"x": number % 4})
                assert [event["x"] for event in await ana.events(5)] == [2, 3, 2, 3, 2]
            assert first.startswith(("a/", "c/"))

    asyncio.run(test())


def test_a_node_on_the_way_comes_back(tmp_path: Path) -> None:
    async def test() -> None:
        first = settings("a", tmp_path / "a", FAST)
        async with running(first) as a, talking(a) as ana:
            inner = settings("b", tmp_path / "b", {**FAST, "join": (a.hood.url,)})
            await ana.subscribe("s", "x > 1")
            async with running(inner) as b:
                await linked(a, b)
                await until(b.node.core.interest)
                await until(lambda: agree(a, b))
                async with talking(b, "bob") as bob:
                    await bob.publish(1, {"x": 1}, {"x": 2})
                    assert await ana.events(1) == [{"x": 2}]
            async with running(inner) as b:
                async with talking(b, "bob") as bob:
                    await bob.publish(3, {"x": 3}, {"x": 0})  # before it has a tree
                assert await ana.events(1) == [{"x": 3}]
                await until(lambda: agree(a, b))
                async with talking(b, "bob") as bob:
                    await bob.publish(5, {"x": 4})
                assert await ana.events(1) == [{"x": 4}]

    asyncio.run(test())
