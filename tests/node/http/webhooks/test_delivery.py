from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest
from cloudevents.core.bindings import http as foreign
from tests.node.http.helpers import (
    Answer,
    api,
    listening,
    publish,
    sink,
    subscribed,
    until,
)

from fieldfare.events.event import Event
from fieldfare.node.http.webhooks import Description, Webhook, sinks
from fieldfare.node.http.webhooks.dead_letters import dead_letter
from fieldfare.node.internal_session import Delivered


def test_events_come_in_order_as_cloud_events_after_the_handshake() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.agreement = {"WebHook-Allowed-Origin": "127.0.0.1", "WebHook-Allowed-Rate": "60000"}
            id = await subscribed(
                found,
                to,
                source="/tills/7",
                types=["sale", "return"],
                filters=[{"not": {"exact": {"id": "3"}}}],
                protocolsettings={"headers": {"X-Key": "k"}, "method": "PUT"},
                sinkcredential={"credentialtype": "PLAIN", "identifier": "ana", "secret": "pw"},
                config={"rate": 60000},
            )
            [asked] = to.asked
            assert asked["webhook-request-origin"] == "127.0.0.1"
            assert asked["webhook-request-rate"] == "60000"
            await publish(found, *range(1, 40))
            await publish(found, 100, type="refund")
            await publish(found, 101, type="return")
            await to.wait(39)
            assert to.ids() == [str(n) for n in range(1, 40) if n != 3] + ["101"]
            headers, body = to.got[0]
            event = foreign.from_http_event(foreign.HTTPMessage(headers, body))
            assert (event.get_id(), event.get_type(), event.get_data()) == ("1", "sale", {"n": 1})
            assert headers["webhook-request-origin"] == "127.0.0.1"
            assert headers["x-key"] == "k"
            assert headers["authorization"] == "Basic YW5hOnB3"
            shown = (await found.client.get(f"/subscriptions/{id}")).json()
            assert shown["types"] == ["sale", "return"]
            assert shown["status"]["state"] == "active"
            assert "pw" not in str(shown)
            assert "sinkcredential" not in shown
            name = f"webhook:{id}"
            await until(lambda: not found.service.node.core.sessions[name].pending)

    asyncio.run(main())


def test_events_of_any_form_are_brought() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            await subscribed(found, to)
            await found.client.post("/events", json=[{"x": 1}, {"specversion": 3, "y": 2}])
            await to.wait(2)
            for (headers, body), data in zip(to.got, (b'{"x":1}', b'{"specversion":3,"y":2}'), strict=True):
                assert headers["ce-type"] == "fieldfare.event"
                assert headers["ce-source"] == "/fieldfare/a"
                assert body == data
            assert to.ids() == ["1", "2"]

    asyncio.run(main())


def test_what_fails_is_tried_again_and_nothing_overtakes_it() -> None:
    async def main() -> None:
        def answers(headers: dict[str, str], tries: int) -> Answer:
            if headers["ce-id"] == "2" and tries < 4:
                return [0, 500, 503, (429, {"Retry-After": "0"})][tries]  # type: ignore[return-value]
            return 200

        async with api() as found, sink() as to:
            to.answers = answers
            id = await subscribed(found, to)
            await publish(found, 1, 2, 3)
            await to.wait(6)
            assert to.ids() == ["1", "2", "2", "2", "2", "3"]
            await until(lambda: not found.service.node.core.sessions[f"webhook:{id}"].pending)
            status = (await found.client.get(f"/subscriptions/{id}")).json()["status"]
            assert (status["delivered"], status["retries"], status["deadletters"]) == (3, 3, 0)
            assert b"fieldfare_webhook_retries_total 3.0" in (await found.client.get("/metrics")).content

    asyncio.run(main())


def test_what_has_outlived_its_time_to_live_is_not_tried_again() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            node = found.service.node
            real, later = node.clock, 0.0
            node.clock = lambda: real() + later
            to.answers = lambda headers, tries: 500 if headers["ce-id"].startswith("1-") else 200
            await subscribed(found, to)
            await found.client.post("/events?ttl=100", json=[{"x": 1}, {"x": 2}])
            await to.wait(2)
            later = 1000.0
            await publish(found, 3)
            await until(lambda: to.ids()[-1] == "3")
            assert set(to.ids()) == {"1", "3"}

    asyncio.run(main())


def test_retry_after_is_kept_and_timeouts_count() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.answers = lambda _, tries: (429, {"Retry-After": "1"}) if tries == 1 else 204
            await subscribed(found, to)
            before = asyncio.get_running_loop().time()
            await publish(found, 1)
            await to.wait(2)
            assert asyncio.get_running_loop().time() - before >= 1
        assert sinks.backoff_of(1.0).delay(3) == pytest.approx(4, rel=0.26)
        assert sinks.backoff_of(1.0).delay(1000) <= 75

    asyncio.run(main())


def test_what_a_sink_refuses_is_a_dead_letter() -> None:
    async def main() -> None:
        def answers(headers: dict[str, str], tries: int) -> Answer:
            return {"2": 400, "3": 500, "4": 302}.get(headers["ce-id"], 204)

        async with (
            api() as found,
            sink() as to,
            sink() as letters,
            listening(found.service, "type = 'fieldfare.deadletter'") as wait,
        ):
            to.answers = answers
            id = await subscribed(found, to, types=["sale"], config={"maxattempts": 3, "deadlettersink": letters.url})
            assert len(letters.asked) == 1
            await publish(found, 1, 2, 3, 4, 5)
            await to.wait(7)
            assert to.ids() == ["1", "2", "3", "3", "3", "4", "5"]
            two, three, four = await wait(3)
            assert two["data.reason"] == "400 Bad Request"
            assert two["data.event.id"] == "2"
            assert two["data.event.data.n"] == 2
            assert two["data.subscription"] == two["subject"] == id
            assert three["data.attempts"] == 3
            assert four["data.reason"] == "302 Found"
            await letters.wait(3)
            event = foreign.from_http_event(foreign.HTTPMessage(*letters.got[0]))
            assert event.get_type() == "fieldfare.deadletter"
            assert event.get_data()["event"]["id"] == "2"  # type: ignore[index, call-overload]
            status = (await found.client.get(f"/subscriptions/{id}")).json()["status"]
            assert (status["delivered"], status["deadletters"], status["waiting"]) == (2, 3, 0)

    asyncio.run(main())


def test_a_dead_letter_that_fails_makes_no_other() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.answers = lambda _, __: 400
            await subscribed(found, to)  # everything, dead letters too
            await publish(found, 1)
            await to.wait(2)
            await asyncio.sleep(0.2)
            assert len(to.got) == 2
            assert found.service.node.storage.log.last == 2

    asyncio.run(main())


def test_a_dead_letter_of_a_large_event_has_its_position() -> None:
    description = Description(sink="http://s/", protocol="HTTP")
    hook = Webhook(id="1", owner="", description=description, active=True)

    def letter_of(tree: dict[str, object]) -> Event:
        delivered = Delivered(1, 7, 0.0, "p", Event(tree), ("s",))
        return dead_letter(hook, delivered, "why", 2, id="l1", source="/fieldfare/a")

    deep: dict[str, object] = {"x": 1}
    for _ in range(30):
        deep = {"x": deep}
    large: dict[str, object] = {f"f{n}": "x" * 209_690 for n in range(5)}
    for tree in (deep, large):
        letter = letter_of(tree)
        assert letter["data.position"] == 7
        assert "data.event" not in letter
    assert letter_of({"x": 1})["data.event.x"] == 1


def test_a_stored_row_has_the_names_of_earlier_versions() -> None:
    description = Description(sink="http://s/", protocol="HTTP")
    row = msgspec.to_builtins(Webhook(id="1", owner="", description=description, active=True))
    assert row["wanted"] == {"sink": "http://s/", "protocol": "HTTP"}
    assert msgspec.convert(row, Webhook).description == description


def test_gone_ends_the_subscription() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.answers = lambda headers, _: 410 if headers["ce-id"] == "2" else 204
            id = await subscribed(found, to)
            await publish(found, 1, 2, 3)
            await until(lambda: f"webhook:{id}" not in found.service.node.core.sessions)
            assert to.ids() == ["1", "2"]
            assert (await found.client.get("/subscriptions")).json() == []
            assert not found.service.node.core.other_rows["webhook"]

    asyncio.run(main())


def test_subscriptions_survive_a_restart_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with sink() as to:
            down = True
            to.answers = lambda headers, _: 503 if down and headers["ce-id"] != "1" else 204
            async with api(tmp_path) as found:
                id = await subscribed(found, to, types=["sale"], config={"backoff": 0.05})
                await publish(found, 1, 2)
                await to.wait(3)  # 2 fails
            down = False
            before = len(to.got)
            async with api(tmp_path) as found:
                await publish(found, 3)
                await to.wait(before + 2)
                assert to.ids()[before:] == ["2", "3"]
                [shown] = (await found.client.get("/subscriptions")).json()
                assert shown["id"] == id
                assert shown["types"] == ["sale"]
                response = await found.client.delete(f"/subscriptions/{id}")
                assert response.status_code == 200
                assert response.json()["id"] == id
            async with api(tmp_path) as found:
                assert (await found.client.get("/subscriptions")).json() == []
                assert f"webhook:{id}" not in found.service.node.core.sessions

    asyncio.run(main())


def test_what_a_crash_leaves_is_enough(tmp_path: Path) -> None:
    async def main() -> None:
        async with sink() as to:
            to.answers = lambda headers, _: 503 if headers["ce-id"] == "2" else 204
            async with api(tmp_path / "a") as found:
                await subscribed(found, to, config={"backoff": 60})
                await publish(found, 1, 2, 3)
                await to.wait(2)
                await found.service.node.submit(lambda _, __: None)  # what was acknowledged is written
                shutil.copytree(tmp_path / "a", tmp_path / "b")  # as the disk is now, so it would be after a kill
            to.answers = lambda _, __: 204
            before = len(to.got)
            async with api(tmp_path / "b"):
                await to.wait(before + 2)
                assert to.ids()[before:] == ["2", "3"]

    asyncio.run(main())


def test_many_subscriptions_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        async with api() as found, sink() as slow, sink() as quick:
            slow.answers = lambda _, __: 503
            await subscribed(found, slow, config={"backoff": 60})
            await subscribed(found, quick)
            await publish(found, 1, 2, 3)
            await quick.wait(3)
            assert slow.ids() == ["1"]

    asyncio.run(main())


def test_a_session_without_its_webhook_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with api(tmp_path) as (service, _):
            await service.node.submit(lambda core, now: core.presence.attach("webhook:lost", "i", now))
        async with api(tmp_path) as (service, _):
            await until(lambda: "webhook:lost" not in service.node.core.sessions)

    asyncio.run(main())


def test_a_change_helps_a_delivery_that_fails() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.answers = lambda headers, _: 503
            id = await subscribed(found, to, config={"backoff": 60})
            await publish(found, 1)
            await to.wait(1)
            to.answers = lambda headers, _: 204
            wanted = {"sink": to.url.replace("/hook", "/other"), "protocol": "HTTP"}
            assert (await found.client.put(f"/subscriptions/{id}", json=wanted)).status_code == 200
            await to.wait(2)

    asyncio.run(main())


def test_the_rate_that_a_sink_allows_is_kept() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.agreement = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "300"}
            await subscribed(found, to)
            before = asyncio.get_running_loop().time()
            await publish(found, 1, 2, 3, 4)
            await to.wait(4)
            assert asyncio.get_running_loop().time() - before >= 0.55

    asyncio.run(main())
