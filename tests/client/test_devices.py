"""Several devices of one user on a session, at running nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.client.nodes import node, run, until
from tests.node.talking import line, settings
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.client import Client
from fieldfare.client.errors import ConnectionRefused
from fieldfare.client.subscription import Subscription
from fieldfare.core.inputs import OfferSession
from fieldfare.core.member_inputs import RemoveDevice
from fieldfare.node.context import Context


def device(url: str, name: str, **options: Any) -> Client:
    return ff.connect(url, session="anna", device=name, **options)


async def publish(url: str, *numbers: int, **fields: object) -> None:
    async with ff.connect(url) as client:
        await client.publish_batch([{"n": n, **fields} for n in numbers])


async def take(events: Subscription[Any], count: int) -> list[int]:
    """Take and acknowledge events."""
    found = []
    for _ in range(count):
        delivery = await asyncio.wait_for(events.next_delivery(), PATIENCE)
        found.append(delivery.event["n"])
        await delivery.acknowledge()
    return found


def places(service: Context) -> dict[str, int]:
    return {name: one.acknowledged for name, one in service.node.core.devices.of("anna").items()}


def is_at(service: Context, name: str, number: int) -> bool:
    return places(service)[name] == number


def test_each_event_goes_to_every_device_and_waits_for_the_one_that_is_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with node(folder=tmp_path) as service:
            url = service.hood.url
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(url, "laptop") as laptop, laptop.subscribe("EXISTS n", id="all") as on_laptop:
                    await publish(url, 1, 2, 3)
                    assert await take(on_phone, 3) == [1, 2, 3]
                    assert await take(on_laptop, 2) == [1, 2]
                await publish(url, 4, 5)
                assert await take(on_phone, 2) == [4, 5]
                await until(lambda: places(service) == {"phone": 5, "laptop": 2})
                assert list(service.node.core.sessions["anna"].pending) == [3, 4, 5]
        async with node(folder=tmp_path) as service:
            url = service.hood.url
            assert places(service) == {"phone": 5, "laptop": 2}
            async with device(url, "laptop") as laptop, laptop.subscribe("EXISTS n", id="all") as on_laptop:
                await publish(url, 6)
                assert await take(on_laptop, 4) == [3, 4, 5, 6]
                async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                    assert await take(on_phone, 1) == [6]
                await until(lambda: not service.node.core.sessions["anna"].pending)

    run(main())


def test_a_new_device_begins_now_or_with_the_oldest_waiting_event() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                await publish(url, 1, 2, 3)
                assert await take(on_phone, 1) == [1]
                await until(lambda: places(service) == {"phone": 1})
                async with device(url, "tablet", oldest=True) as tablet, device(url, "laptop") as laptop:
                    assert places(service) == {"phone": 1, "tablet": 1, "laptop": 3}
                    await publish(url, 4)
                    async with tablet.subscribe("EXISTS n", id="all") as on_tablet:
                        assert await take(on_tablet, 3) == [2, 3, 4]
                    async with laptop.subscribe("EXISTS n", id="all") as on_laptop:
                        assert await take(on_laptop, 1) == [4]

    run(main())


def test_a_session_moves_with_all_devices_when_none_is_connected() -> None:
    async def main() -> None:
        async with line(settings("a"), settings("b")) as (a, b):
            async with device(a.hood.url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(b.hood.url, "laptop", at="a") as laptop:
                    assert laptop.node == "a"  # b knows the way
                await publish(a.hood.url, 1, 2, 3)
                assert await take(on_phone, 2) == [1, 2]
                await until(lambda: places(a)["phone"] == 2)
            await until(lambda: not a.node.core.devices.is_open("anna"))
            async with device(b.hood.url, "laptop", at="a") as laptop:
                assert laptop.node == "b"
                assert places(b) == {"phone": 2, "laptop": 0}
                assert not places(a)
                async with laptop.subscribe("EXISTS n", id="all") as on_laptop:
                    await publish(a.hood.url, 4)
                    assert await take(on_laptop, 4) == [1, 2, 3, 4]
                async with (
                    device(b.hood.url, "phone", at="a") as phone,
                    phone.subscribe("EXISTS n", id="all") as on_phone,
                ):
                    assert await take(on_phone, 2) == [3, 4]

    run(main())


def test_an_administrator_moves_a_session_with_all_connected_devices() -> None:
    async def main() -> None:
        async with line(settings("a"), settings("b")) as (a, b):
            url = a.hood.url
            async with (
                device(url, "phone") as phone,
                device(url, "laptop") as laptop,
                phone.subscribe("EXISTS n", id="all") as on_phone,
                laptop.subscribe("EXISTS n", id="all") as on_laptop,
            ):
                await publish(url, 1, 2)
                assert await take(on_phone, 1) == [1]
                await a.node.submit(OfferSession("anna", "b", a.node.fresh_name()))
                await until(lambda: phone.node == laptop.node == "b")
                await publish(b.hood.url, 3)
                assert await take(on_phone, 2) == [2, 3]
                assert await take(on_laptop, 3) == [1, 2, 3]

    run(main())


def test_a_device_that_leaves_is_forgotten_and_the_last_one_ends_the_session() -> None:
    async def main() -> None:
        async with node() as service:
            url, core = service.hood.url, service.node.core
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(url, "laptop") as laptop:
                    await publish(url, 1)
                    assert await take(on_phone, 1) == [1]
                    await laptop.leave()
                await until(lambda: places(service) == {"phone": 1})
                assert not core.sessions["anna"].pending
                await phone.leave()
            await until(lambda: "anna" not in core.sessions)

    run(main())


def test_a_removed_device_does_not_hold_events_any_more() -> None:
    async def main() -> None:
        async with node() as service:
            url, core = service.hood.url, service.node.core
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(url, "laptop"):
                    pass
                await publish(url, 1, 2)
                await take(on_phone, 2)
                await until(lambda: places(service).get("phone") == 2)
                assert len(core.sessions["anna"].pending) == 2
                assert await service.node.submit(RemoveDevice("anna", "laptop")) is False
                assert not core.sessions["anna"].pending

    run(main())


def test_a_device_is_removed_after_the_life_of_a_session_unless_it_is_the_last() -> None:
    async def main() -> None:
        async with node() as service:
            url, core = service.hood.url, service.node.core
            async with device(url, "phone"), device(url, "laptop"):
                pass
            await until(lambda: not core.devices.is_open("anna"))
            async with device(url, "phone"):
                now = core.devices.of("anna")["laptop"].last_seen
                core.expire(now + 10, 100)
                assert set(places(service)) == {"phone", "laptop"}
                core.expire(now + 1000, 100)
                assert set(places(service)) == {"phone"}
                assert "anna" in core.sessions

    run(main())


def test_each_device_hears_of_its_own_losses() -> None:
    async def main() -> None:
        lost: list[int] = []
        async with node() as service:
            url, core = service.hood.url, service.node.core
            core.deliveries.most[True] = 3
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(url, "laptop"):
                    pass
                for n in range(1, 6):
                    await publish(url, n)
                    assert await take(on_phone, 1) == [n]
                    await until(partial(is_at, service, "phone", n))
                assert phone.dropped == 0
                assert core.sessions["anna"].dropped == 2
                async with (
                    device(url, "laptop", on_dropped=lambda count, _: lost.append(count)) as laptop,
                    laptop.subscribe("EXISTS n", id="all") as on_laptop,
                ):
                    assert await take(on_laptop, 3) == [3, 4, 5]
                    assert lost == [2]

    run(main())


def test_a_second_connection_of_a_device_takes_the_place_of_the_first() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with device(url, "phone", reconnect=False) as one, one.subscribe("EXISTS n", id="all") as first:
                await publish(url, 1, 2)
                assert await take(first, 1) == [1]
                await until(lambda: places(service) == {"phone": 1})
                async with device(url, "phone") as two, two.subscribe("EXISTS n", id="all") as second:
                    await until(lambda: one.closed)
                    assert await take(second, 1) == [2]

    run(main())


def test_devices_and_workers_and_plain_clients_do_not_mix() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with device(url, "phone"):
                with pytest.raises(ConnectionRefused, match="has the devices phone at a: attach as a device, too"):
                    async with ff.connect(url, session="anna"):
                        pass
                with pytest.raises(ConnectionRefused, match="has the devices phone at a, and a worker cannot join"):
                    async with ff.connect(url, session="anna", shared=True):
                        pass
            async with ff.connect(url, session="work", shared=True):
                with pytest.raises(ConnectionRefused, match="a device cannot join workers"):
                    async with ff.connect(url, session="work", device="phone"):
                        pass

    run(main())


def test_what_waited_for_a_session_goes_to_its_first_device() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with ff.connect(url, session="anna") as plain, plain.subscribe("EXISTS n", id="all", keep=True):
                pass
            await publish(url, 1, 2)
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                assert await take(on_phone, 2) == [1, 2]

    run(main())


def test_of_replacing_events_a_device_gets_the_last_although_another_has_had_all() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with device(url, "phone") as phone, phone.subscribe("EXISTS n", id="all") as on_phone:
                async with device(url, "laptop") as laptop:
                    pass
                async with ff.connect(url, session="meter") as meter:
                    for n in (1, 2, 3):
                        await meter.publish({"n": n}, replaces="reading")
                        assert await take(on_phone, 1) == [n]
                        await until(partial(is_at, service, "phone", n))
                async with device(url, "laptop") as laptop, laptop.subscribe("EXISTS n", id="all") as on_laptop:
                    assert await take(on_laptop, 1) == [3]

    run(main())


@pytest.mark.parametrize("options", [{"device": "phone"}, {"session": "a", "oldest": True}, {"shared": True}])
def test_a_device_has_a_name_and_a_session(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"needs its name|has a name"):
        ff.connect("ws://127.0.0.1:1", **options)
