"""Which addresses sinks may have, what is connected to, and that nobody sees what is secret about a sink."""

from __future__ import annotations

import asyncio
import logging
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx
import pytest
from tests.node.http.helpers import SECRET, Api, api, bearer, is_problem, listening, publish, sink, subscribed

from fieldfare.node.http.binding import Message
from fieldfare.node.http.webhooks import Settings, addresses, sinks

PRIVATE = [
    "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.0.0.8", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1",
    "5f00::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1", "100::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700:4700::1111", "2a00:1450:4001::1"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_found_in_whatever_it_is_wrapped(address: str) -> None:
    assert not addresses.is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert addresses.is_public(ip_address(address))


class Names:
    """A resolver whose answers change, and a network that nobody is reached in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
        self.answers = list(answers)
        self.connected: list[str] = []
        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", self._resolve)
        monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", self._connect)

    async def _resolve(self, host: str, port: int, **_: Any) -> list[Any]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(2, 1, 6, "", (address, port)) for address in answer.split()]

    async def _connect(self, host: str, *_: Any) -> None:
        self.connected.append(host)
        raise httpcore.ConnectError("nobody there")


def test_a_name_that_leads_elsewhere_later_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        names = Names(monkeypatch, "8.8.8.8", "127.0.0.1")
        await sinks.check_public("http://rebound.example/hook")
        async with sinks.make_client(public=True, connections=10) as client:
            message = Message({}, b"")
            outcome = await sinks.send(client, "http://rebound.example/hook", message, {}, seconds=10)
            assert "not public (127.0.0.1)" in outcome.problem
            assert names.connected == []
            names.answers = ["8.8.8.8 10.0.0.1"]  # one of them is enough
            outcome = await sinks.send(client, "https://rebound.example/hook", message, {}, seconds=10)
            assert "not public (10.0.0.1)" in outcome.problem
            assert names.connected == []
            names.answers = ["8.8.8.8 1.1.1.1"]
            await sinks.send(client, "https://rebound.example/hook", message, {}, seconds=10)
            assert names.connected == ["8.8.8.8", "1.1.1.1"]  # the address that was checked, not the name

    asyncio.run(main())


def test_a_sink_may_take_as_long_as_its_subscription_says() -> None:
    longest = 300  # of `Settings.timeout`
    Settings(timeout=longest)
    timeout = sinks.make_client(public=False, connections=1).timeout
    assert all(one is None or one > longest for one in (timeout.connect, timeout.read, timeout.write, timeout.pool))


def test_requests_are_not_logged_with_their_urls(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with api() as found, sink() as to:
            await subscribed(found, to, sink=f"{to.url}?token=top-secret")
            await publish(found, 1)
            await to.wait(1)

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    assert "top-secret" not in caplog.text


async def secretive(found: Api, url: str, headers: dict[str, str], **config: Any) -> dict[str, Any]:
    wanted = {
        "sink": f"{url}?token=top-secret",
        "protocol": "HTTP",
        "protocolsettings": {"headers": {"Authorization": "Bearer top-secret", "X-Team": "blue"}},
        "config": {"maxattempts": 1, **config},
    }
    response = await found.client.post("/subscriptions", json=wanted, headers=headers)
    assert response.status_code == 201, response.text
    return dict(response.json())


def test_dead_letters_and_the_log_have_no_secrets_of_a_sink(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with api() as found, sink() as to, listening(found.service, "type = 'fieldfare.deadletter'") as wait:
            to.answers = lambda _, __: 400
            await secretive(found, to.url, {})
            await publish(found, 1)
            [letter] = await wait(1)
            assert letter["data.sink"] == to.url.removesuffix("hook") + "***"
            assert "top-secret" not in repr(letter)

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    assert "top-secret" not in caplog.text


def test_who_sees_what_of_a_sink() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as found, sink() as to, sink() as other:
            owner, root = bearer(found.service, "ana", "admin"), bearer(found.service, "root", "admin")
            made = await secretive(found, to.url, owner, deadlettersink=f"{to.url}?letters=top-secret")
            assert made["sink"] == f"{to.url}?token=top-secret"  # it is hers
            assert made["protocolsettings"]["headers"] == {"Authorization": "***", "X-Team": "blue"}
            path = f"/subscriptions/{made['id']}"
            for url in ("/subscriptions", path):
                assert "top-secret" not in (await found.client.get(url, headers=root)).text
            seen = (await found.client.get(path, headers=root)).json()
            assert seen["protocolsettings"]["headers"] == {"Authorization": "***", "X-Team": "***"}

            # what was shown can be sent back, and means what it was
            changed = await found.client.put(path, json={**seen, "types": ["sale"]}, headers=root)
            assert changed.status_code == 200, changed.text
            await publish_as(found, owner)
            await to.wait(1)
            headers, _ = to.got[0]
            assert headers["authorization"] == "Bearer top-secret"
            assert headers["x-team"] == "blue"

            # but not to another sink
            elsewhere = {**seen, "sink": other.url}
            is_problem(await found.client.put(path, json=elsewhere, headers=root), 400)
            assert other.asked == []

    async def publish_as(found: Api, who: dict[str, str]) -> None:
        event = {"type": "sale", "x": 1}
        assert (await found.client.post("/events", json=event, headers=who)).status_code == 202

    asyncio.run(main())


def test_an_error_does_not_show_the_whole_url(client: httpx.Client) -> None:
    wanted = {"sink": "http://127.0.0.1:1/hook?token=top-secret", "protocol": "HTTP"}
    assert "top-secret" not in is_problem(client.post("/subscriptions", json=wanted), 422)["detail"]
    wanted["sink"] = "http://[top-secret/"
    assert "top-secret" not in is_problem(client.post("/subscriptions", json=wanted), 400)["detail"]


def test_a_native_filter_compares_numbers_of_all_kinds_and_cesql_says_that_it_does_not() -> None:
    async def main() -> None:
        async with api() as found, sink() as native, sink() as cesql:
            await subscribed(found, native, filters=[{"fieldfare": "price < 119.75 AND place.floor = 2"}])
            wanted = {"sink": cesql.url, "protocol": "HTTP", "filters": [{"sql": "price < 120"}]}
            response = await found.client.post("/subscriptions", json=wanted)
            assert '{"fieldfare": "price < 120"}' in response.json()["hint"]
            again = await found.client.put(f"/subscriptions/{response.json()['id']}", json=response.json())
            assert again.status_code == 200
            for price in (119.5, 119):
                await found.client.post("/events", json={"price": price, "place": {"floor": 2}})
            await asyncio.gather(native.wait(2), cesql.wait(1))
            assert len(cesql.got) == 1  # 119.5 is no number to it
            wrong = {**wanted, "filters": [{"any": [{"fieldfare": "price <"}]}]}
            assert (
                is_problem(await found.client.post("/subscriptions", json=wrong), 400)["path"] == "/0/any/0/fieldfare"
            )

    asyncio.run(main())


@pytest.mark.parametrize("name", ["~http", "~x", "webhook:1", "bridge:plant", "a\nb", "x" * 201])
def test_names_of_the_nodes_own_sessions_are_nobodys(client: httpx.Client, name: str) -> None:
    assert is_problem(client.get("/stream", params={"session": name}), 400)["parameter"] == "session"
