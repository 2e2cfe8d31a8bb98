"""Domains of running nodes: one order across a border, and nothing else crosses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.node.talking import linked, settings, talking, until

from fieldfare.node.config import Config
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import frames as f

BIDS = "type = 'bid'"


def south(name: str, more: Mapping[str, object] | None = None, folder: Path | None = None) -> Config:
    """Settings of a node in the domain with the home of the channel, which is oslo."""
    return settings(name, folder, {"channels.types": ("bid=oslo",), **(more or {})})


def north(name: str, more: Mapping[str, object] | None = None, folder: Path | None = None) -> Config:
    """Settings of a node in the other domain, which also has a node called oslo."""
    return settings(name, folder, {"channels.types": ("bid=@south",), **(more or {})})


def border(own: str, other: str, url: str = "", share: object = BIDS) -> dict[str, object]:
    """Settings of a border."""
    return {"federation.domain": own, "federation.borders": {other: {"url": url, "share": share}}}


async def opened(*services: Context) -> None:
    """Wait until all nodes may send events to the home."""
    await until(lambda: not any(one.node.core.channels.homes.waiting for one in services))


def test_one_order_in_two_domains_and_nothing_private_crosses() -> None:
    async def test() -> None:
        async with (
            running(south("oslo")) as home,
            running(south("rome", {"join": (home.hood.url,), **border("south", "north")})) as rome,
            running(north("bern", border("north", "south", rome.hood.url))) as bern,
            running(north("oslo", {"join": (bern.hood.url,)})) as other,
            talking(home, "ana") as ana,
            talking(other, "bob") as bob,
        ):
            await opened(home, rome, bern, other)
            assert set(other.hood.reachable()) == {"oslo", "bern", "@south"}
            assert set(rome.hood.reachable()) == {"oslo", "rome", "@north"}
            assert set(rome.node.core.links) == {"oslo", "bern@north"}
            for talker in (ana, bob):
                await talker.subscribe("s", "TRUE")
            await until(lambda: home.node.core.links["rome"].filters)
            await until(lambda: other.node.core.links["bern"].filters)
            for number in range(1, 11):
                await asyncio.gather(*(one.publish(number, {"type": "bid", "n": number}) for one in (ana, bob)))
            here, there = await ana.deliveries(20), await bob.deliveries(20)
            names = [[(one.publisher, one.channel_number) for one in some] for some in (here, there)]
            assert names[0] == names[1]
            assert [one.channel_number for one in there] == list(range(1, 21))
            await ana.publish(11, {"type": "note"})
            await ana.publish(12, {"type": "bid", "n": 12})
            assert [event["type"] for event in await ana.events(2)] == ["note", "bid"]
            assert [event["type"] for event in await bob.events(1)] == ["bid"]  # and no note before

    asyncio.run(test())


def test_a_border_node_that_comes_back_has_lost_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(south("oslo", border("south", "north"), tmp_path / "oslo")) as home, talking(home) as ana:
            await ana.subscribe("s", "TRUE")
            inner = north("rome", {}, tmp_path / "rome")
            async with running(inner) as rome, talking(rome, "bob") as bob:
                bern = north(
                    "bern", {"join": (rome.hood.url,), **border("north", "south", home.hood.url)}, tmp_path / "bern"
                )
                async with running(bern) as between:
                    await linked(between, rome)
                    await opened(rome)
                assert isinstance(await bob.publish(1, {"type": "bid", "n": 1}), f.Accepted)  # waits for the border
                async with running(bern):
                    assert await ana.events(1) == [{"type": "bid", "n": 1}]

    asyncio.run(test())


def test_a_channel_is_closed_to_a_domain_without_a_share(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with (
            running(south("oslo", border("south", "north", share="type = 'bid' AND euros < 9"))) as home,
            running(north("bern", border("north", "south", home.hood.url))) as bern,
            talking(bern) as bob,
        ):
            await until(lambda: bern.node.core.channels.homes.closed)
            refused = await bob.publish(1, {"type": "bid"})
            assert isinstance(refused, f.Refused)
            assert refused.reason == (
                "events of the type bid are numbered at @south: the domains south and north do not share all events"
                " of this type"
            )

    with caplog.at_level(logging.CRITICAL):
        asyncio.run(test())


@pytest.mark.parametrize(
    ("mine", "theirs", "problem"),
    [
        (border("north", "west"), border("south", "north"), "oslo is of the domain south, not of west"),
        (border("north", "south"), {}, "oslo is of no domain, not of south"),
        (border("north", "south"), border("south", "west"), "oslo has no border to the domain north"),
        (
            {"federation.domain": "north", "join": ()},
            border("south", "north"),
            "oslo is of the domain south: join it by [federation.borders.south]",
        ),
    ],
)
def test_a_border_that_both_sides_do_not_want_is_none(
    mine: dict[str, object], theirs: dict[str, object], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with running(south("oslo", theirs)) as home:
            wanted = dict(mine)
            if "join" in wanted:
                wanted["join"] = (home.hood.url,)
            else:
                wanted["federation.borders"] = {
                    name: {**one, "url": home.hood.url}
                    for name, one in wanted["federation.borders"].items()  # type: ignore[attr-defined]
                }
            async with running(north("bern", wanted)) as bern:
                await until(lambda: problem in caplog.text)
                assert not bern.node.core.links

    with caplog.at_level(logging.INFO):
        asyncio.run(test())


def test_a_second_border_to_a_domain_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with (
            running(south("oslo", border("south", "north"))) as home,
            running(south("rome", {"join": (home.hood.url,), **border("south", "north")})) as rome,
            running(north("bern", border("north", "south", home.hood.url))) as bern,
        ):
            await opened(bern, rome)
            await until(lambda: "@north" in rome.hood.reachable())
            again = {"join": (bern.hood.url,), **border("north", "south", rome.hood.url)}
            async with running(north("bonn", again)):
                await until(lambda: "a further border would close a cycle" in caplog.text)
                assert set(rome.node.core.links) == {"oslo"}

    with caplog.at_level(logging.INFO):
        asyncio.run(test())
