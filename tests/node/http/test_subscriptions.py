from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.node.http.helpers import (
    SECRET,
    api,
    bearer,
    is_problem,
    publish,
    sink,
    subscribed,
)

from fieldfare.filters import parse
from fieldfare.node.http import webhooks
from fieldfare.node.http.webhooks import addresses, sinks


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
            assert not found.service.node.core.other_rows["webhook"]
            assert not [name for name in found.service.node.core.sessions if name.startswith("webhook:")]

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


def test_events_that_happened_before() -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            await publish(found, 1, 2, 3)
            await subscribed(found, to, config={"since": 2})
            await publish(found, 4)
            await to.wait(3)
            assert to.ids() == ["2", "3", "4"]

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
    wanted = webhooks.Description(sink="http://s/", protocol="HTTP", types=["sale"], source="/tills/7")
    assert parse("type = 'sale'").covers(webhooks.filter_of(wanted))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "10.1.2.3", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "0.0.0.0", "2130706433"],
)
def test_addresses_that_are_not_public(host: str) -> None:
    with pytest.raises(addresses.SinkError):
        asyncio.run(sinks.check_public(f"http://{host}:80/"))


def test_addresses_that_are() -> None:
    asyncio.run(sinks.check_public("https://8.8.8.8/x"))
