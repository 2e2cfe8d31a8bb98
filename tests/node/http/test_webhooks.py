from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from cloudevents.core.bindings import http as foreign
from tests.node.http.helpers import SECRET, Answer, Api, Sink, api, bearer, is_problem, listening, sink, until

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.consumer import Delivered
from fieldfare.node.http import sinks, webhooks

FAST = {"backoff": 0.01, "timeout": 2}


async def subscribed(found: Api, to: Sink, **more: Any) -> str:
    config = {**FAST, **more.pop("config", {})}
    response = await found.client.post(
        "/subscriptions", json={"sink": to.url, "protocol": "HTTP", "config": config, **more}
    )
    assert response.status_code == 201, response.text
    body = response.json()
    assert response.headers["location"] == f"/subscriptions/{body['id']}"
    return str(body["id"])


async def publish(found: Api, *numbers: int, type: str = "sale") -> None:
    events = [
        {"specversion": "1.0", "id": str(n), "source": "/tills/7", "type": type, "data": {"n": n}} for n in numbers
    ]
    response = await found.client.post(
        "/events", json=events, headers={"content-type": "application/cloudevents-batch+json"}
    )
    assert response.status_code == 202, response.text


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
            await until(lambda: not found.service.node.broker.sessions[name].pending)

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
            await until(lambda: not found.service.node.broker.sessions[f"webhook:{id}"].pending)
            status = (await found.client.get(f"/subscriptions/{id}")).json()["status"]
            assert (status["delivered"], status["retries"], status["deadletters"]) == (3, 3, 0)
            assert b"fieldfare_webhook_retries_total 3.0" in (await found.client.get("/metrics")).content

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
        assert webhooks.pause_before(3, 1.0, None) == pytest.approx(4, rel=0.26)
        assert webhooks.pause_before(1000, 1.0, None) <= 75

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
    async def main() -> None:
        async with api() as (service, _):
            hooks = webhooks.Webhooks(service)
            wanted = webhooks.Wanted(sink="http://s/", protocol="HTTP")
            hook = webhooks.Webhook(id="1", owner="", wanted=wanted, active=True)
            deep: dict[str, object] = {"x": 1}
            for _ in range(30):
                deep = {"x": deep}
            large = {f"f{n}": "x" * 209_690 for n in range(5)}
            for tree in (deep, large):
                event = Event(tree)
                letter = hooks.letter(hook, Delivered(1, 7, 0.0, "p", event, ("s",)), "why", 2)
                assert letter["data.position"] == 7
                assert "data.event" not in letter
            letter = hooks.letter(hook, Delivered(1, 7, 0.0, "p", Event({"x": 1}), ("s",)), "why", 2)
            assert letter["data.event.x"] == 1

    asyncio.run(main())


def test_gone_ends_the_subscription() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.answers = lambda headers, _: 410 if headers["ce-id"] == "2" else 204
            id = await subscribed(found, to)
            await publish(found, 1, 2, 3)
            await until(lambda: f"webhook:{id}" not in found.service.node.broker.sessions)
            assert to.ids() == ["1", "2"]
            assert (await found.client.get("/subscriptions")).json() == []
            assert not found.service.node.kept("webhook")

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
                assert f"webhook:{id}" not in found.service.node.broker.sessions

    asyncio.run(main())


def test_a_session_without_its_webhook_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with api(tmp_path) as (service, _):
            await service.node.submit(lambda broker, now: broker.attach("webhook:lost", "i", now))
        async with api(tmp_path) as (service, _):
            await until(lambda: "webhook:lost" not in service.node.broker.sessions)

    asyncio.run(main())


def test_a_sink_that_does_not_agree_is_refused() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            for agreement in ({}, {"WebHook-Allowed-Origin": "elsewhere.example"}):
                to.agreement = agreement
                response = await found.client.post("/subscriptions", json={"sink": to.url, "protocol": "HTTP"})
                assert "WebHook-Allowed-Origin" in is_problem(response, 422)["detail"]
            for url in ("http://127.0.0.1:9/", "http://no-such-host.invalid/"):
                response = await found.client.post("/subscriptions", json={"sink": url, "protocol": "HTTP"})
                assert "cannot be asked" in is_problem(response, 422)["detail"]
            assert not found.service.node.kept("webhook")
            assert not [name for name in found.service.node.broker.sessions if name.startswith("webhook:")]

    asyncio.run(main())


def test_a_sink_can_agree_later_by_callback() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            to.agreement = {}
            id = await subscribed(found, to, config={"validation": "callback"})
            assert (await found.client.get(f"/subscriptions/{id}")).json()["status"]["state"] == "pending"
            await publish(found, 1)
            await asyncio.sleep(0.1)
            assert not to.got
            callback = to.asked[0]["webhook-request-callback"]
            is_problem(await found.client.get(callback.partition("?")[0]), 404)
            is_problem(await found.client.get(callback + "x"), 404)
            assert (await found.client.get(callback)).status_code == 200
            await to.wait(1)
            assert (await found.client.get(f"/subscriptions/{id}")).json()["status"]["state"] == "active"

    asyncio.run(main())


def test_a_subscription_can_be_changed() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            credential = {"credentialtype": "ACCESSTOKEN", "accesstoken": "t", "accesstokentype": "Bearer"}
            id = await subscribed(found, to, types=["sale"], sinkcredential=credential)
            shown = (await found.client.get(f"/subscriptions/{id}")).json()
            response = await found.client.put(f"/subscriptions/{id}", json={**shown, "types": ["return"]})
            assert response.status_code == 200, response.text
            assert response.json()["types"] == ["return"]
            await publish(found, 1)
            await publish(found, 2, type="return")
            await to.wait(1)
            assert to.ids() == ["2"]
            assert to.got[0][0]["authorization"] == "Bearer t"  # kept, though it was not shown
            elsewhere = to.url.replace("/hook", "/other")
            response = await found.client.put(f"/subscriptions/{id}", json={"sink": elsewhere, "protocol": "HTTP"})
            assert response.status_code == 200
            await publish(found, 3)
            await to.wait(2)
            assert "authorization" not in to.got[1][0]  # what one sink may see, another may not
            is_problem(await found.client.put("/subscriptions/other", json={"sink": to.url, "protocol": "HTTP"}), 404)

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


def test_events_that_happened_before() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            await publish(found, 1, 2, 3)
            await subscribed(found, to, config={"since": 2})
            await publish(found, 4)
            await to.wait(3)
            assert to.ids() == ["2", "3", "4"]

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


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"sink": "ftp://x/"}, "http"),
        ({"sink": "http://"}, "http"),
        ({"sink": "http://a:b@host/"}, "sinkcredential"),
        ({"sink": "http://[::1/"}, "URL"),
        ({"protocol": "MQTT5"}, "protocol"),
        ({"protocol": "http"}, "protocol"),
        ({"filters": [{"prefix": {"type": ""}}]}, "/0/prefix/type"),
        ({"filters": [{"nope": {}}]}, "dialect"),
        ({"filters": [{"sql": "type ="}]}, "/0/sql"),
        ({"filters": [{"exact": {"type": "a"}}], "types": ["b"]}, "contradict"),
        ({"types": [""]}, "empty"),
        ({"source": ""}, "empty"),
        ({"config": {"maxatempts": 3}}, "maxatempts"),
        ({"config": {"maxattempts": 0}}, "maxattempts"),
        ({"config": {"deadlettersink": "ftp://x/"}}, "http"),
        ({"protocolsettings": {"headers": {"Host": "x"}}}, "Host"),
        ({"protocolsettings": {"headers": {"X": "a\r\nb"}}}, "header"),
        ({"protocolsettings": {"method": "GET"}}, "method"),
        ({"sinkcredential": {"credentialtype": "REFRESHTOKEN"}}, "credentialtype"),
        ({"sinkcredential": {"credentialtype": "PLAIN"}}, "identifier"),
        ({"wat": 1}, "wat"),
    ],
)
def test_what_makes_no_sense_is_refused(client: httpx.Client, more: dict[str, Any], word: str) -> None:
    response = client.post("/subscriptions", json={"sink": "http://127.0.0.1:9/", "protocol": "HTTP", **more})
    assert word in is_problem(response, 400)["detail"]


def test_whose_subscriptions_are_whose_and_where_sinks_may_be() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as (service, client), sink() as to:
            ana, bob, admin = (
                bearer(service, name, role) for name, role in (("ana", "client"), ("bob", "client"), ("root", "admin"))
            )
            wanted = {"sink": to.url, "protocol": "HTTP"}
            is_problem(await client.post("/subscriptions", json=wanted), 401)
            assert (
                "not public" in is_problem(await client.post("/subscriptions", json=wanted, headers=ana), 400)["detail"]
            )
            response = await client.post("/subscriptions", json=wanted, headers=admin)
            assert response.status_code == 201
            id = response.json()["id"]
            assert (await client.get("/subscriptions", headers=bob)).json() == []
            is_problem(await client.get(f"/subscriptions/{id}", headers=bob), 404)
            is_problem(await client.delete(f"/subscriptions/{id}", headers=bob), 404)
            is_problem(await client.post("/subscriptions", json=wanted, headers=bearer(service, "n", "node")), 403)
            await client.post("/events", json={"x": 1}, headers=ana)
            await to.wait(1)

    asyncio.run(main())


def test_a_permission_for_a_type_is_enough_for_a_subscription_to_it() -> None:
    wanted = webhooks.Wanted(sink="http://s/", protocol="HTTP", types=["sale"], source="/tills/7")
    assert parse("type = 'sale'").covers(webhooks.filter_of(wanted))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.1.2.3", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "0.0.0.0", "2130706433"],
)
def test_addresses_that_are_not_public(host: str) -> None:
    with pytest.raises(sinks.SinkError):
        asyncio.run(sinks.check_public(f"http://{host}:80/"))


def test_addresses_that_are() -> None:
    asyncio.run(sinks.check_public("https://8.8.8.8/x"))
