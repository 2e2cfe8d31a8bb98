"""Which web pages may speak to a node: `Host` and `Origin`, over HTTP and WebSockets alike."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
import websockets
from starlette.responses import Response
from tests.node.http.helpers import SECRET, Api, api, api_in_background, bearer, is_problem

from fieldfare.node import dashboard
from fieldfare.node.config import Config, ConfigError, load
from fieldfare.node.counters import Counters
from fieldfare.node.http import routes
from fieldfare.node.http.origins import Origins
from fieldfare.node.server import running

EVIL = "https://evil.example"
APP = "https://app.example"
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/", {}),
    ("GET", "/health", {}),
    ("GET", "/metrics", {}),
    ("GET", "/openapi.json", {}),
    ("GET", "/admin/overview", {}),
    ("GET", "/admin/sessions", {}),
    ("DELETE", "/admin/sessions/ana", {}),
    ("POST", "/admin/explain", {"json": {"filter": "price < 10"}}),
    ("GET", "/stream?session=mine", {}),
    ("POST", "/events", {"json": {"price": 1}}),
    ("POST", "/events", {"content": b"{}", "headers": {"content-type": "text/plain"}}),
    ("GET", "/subscriptions", {}),
    ("POST", "/subscriptions", {"json": {"sink": "http://127.0.0.1:1/", "protocol": "HTTP"}}),
    ("OPTIONS", "/admin/overview", {"headers": {"access-control-request-method": "GET"}}),
    ("GET", "/no-such-page", {}),
]


def ask(client: httpx.Client, method: str, path: str, more: dict[str, Any], **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.request(method, path, **{**more, "headers": {**more.get("headers", {}), **given}})


@pytest.mark.parametrize(("method", "path", "more"), REQUESTS)
@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1", "https://127.0.0.1", "not an origin"])
def test_a_page_from_elsewhere_is_refused_everywhere(
    client: httpx.Client, method: str, path: str, more: dict[str, Any], origin: str
) -> None:
    response = ask(client, method, path, more, origin=origin)
    problem = is_problem(response, 403)
    assert problem["setting"] == "http.origins"
    assert "FIELDFARE_HTTP_ORIGINS" in problem["detail"]
    assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize(("method", "path", "more"), REQUESTS)
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:7400", "2130706433", "a@localhost", "", "x y", "[::1].evil.example"],
)
def test_a_name_that_is_not_the_nodes_is_refused_everywhere(
    client: httpx.Client, method: str, path: str, more: dict[str, Any], host: str
) -> None:
    response = ask(client, method, path, more, host=host)
    if response.status_code == 400 and not response.headers["content-type"].startswith("application"):
        return  # uvicorn has not even read it
    assert is_problem(response, 403)["setting"] == "http.hosts"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7400", "a.localhost", "127.0.0.1", "[::1]:7400", "10.1.2.3"])
def test_addresses_and_localhost_are_names_of_every_node(client: httpx.Client, host: str) -> None:
    assert ask(client, "GET", "/health", {}, host=host).status_code == 200
    assert ask(client, "GET", "/health", {}, host=host, origin=f"http://{host}".lower()).status_code == 200
    assert ask(client, "GET", "/health", {}, host=host, origin=f"https://{host}".lower()).status_code == 403


def test_two_origins_or_hosts_are_none() -> None:
    assert status(load(None, {}, {}), ("host", "localhost")) == 200
    assert status(load(None, {}, {})) == 403
    assert status(load(None, {}, {}), ("host", "localhost"), ("host", "evil.example")) == 403
    own = ("origin", "http://localhost")
    assert status(load(None, {}, {}), ("host", "localhost"), own) == 200
    assert status(load(None, {}, {}), ("host", "localhost"), own, ("origin", EVIL)) == 403


def status(config: Config, *headers: tuple[str, str]) -> int:
    """What is answered to a request with these headers and no others."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "GET", "path": "/", "scheme": "http", "headers": raw}
    asyncio.run(Origins(Response(None, 200), config, Counters(0.0))(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_from_elsewhere_without_an_origin_is_refused_but_for_links_to_the_dashboard(site: str) -> None:
    visit = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    with api_in_background() as client:
        is_problem(ask(client, "GET", "/admin/overview", {}, sec_fetch_site=site), 403)
        is_problem(ask(client, "GET", "/stream?session=a", {}, **visit), 403)
        is_problem(ask(client, "GET", "/", {}, **(visit | {"sec_fetch_dest": "iframe"})), 403)
        assert ask(client, "GET", "/", {}, **visit).status_code == 200
        assert ask(client, "GET", "/admin/overview", {}, sec_fetch_site="same-origin").status_code == 200
        assert ask(client, "GET", "/admin/overview", {}, sec_fetch_site="none").status_code == 200


def test_pages_that_are_named_may_and_are_told_so() -> None:
    with api_in_background(http__origins=(APP,)) as client:
        response = ask(client, "GET", "/admin/overview", {}, origin=APP, sec_fetch_site="cross-site")
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == APP
        assert response.headers["vary"] == "Origin"
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,ce-type"}
        preflight = client.options("/events", headers={"origin": APP, **asked})
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == APP
        assert preflight.headers["access-control-allow-headers"] == "authorization,ce-type"
        is_problem(client.options("/events", headers={"origin": EVIL, **asked}), 403)
        is_problem(ask(client, "GET", "/health", {}, origin=EVIL), 403)
        plain = client.get("/health")
        assert "access-control-allow-origin" not in plain.headers
        assert plain.headers["vary"] == "Origin"


def test_names_that_are_given_count() -> None:
    config = load(None, {}, {"http.hosts": ("node.example",), "public_url": "wss://public.example"})
    assert status(config, ("host", "node.example:7400")) == 200
    assert status(config, ("host", "public.example")) == 200
    # behind a proxy that does TLS
    assert status(config, ("host", "public.example"), ("origin", "https://public.example")) == 200
    assert status(config, ("host", "node.example"), ("origin", "https://node.example")) == 403


async def talk(found: Api, path: str, protocol: str, **more: Any) -> None:
    url = found.service.hood.url + path
    async with websockets.connect(url, subprotocols=[websockets.Subprotocol(protocol)], proxy=None, **more):
        pass


@pytest.mark.parametrize(("path", "protocol"), [("/", "fieldfare.v2.json"), ("/link", "fieldfare.v2.link")])
def test_websockets_of_pages_from_elsewhere_are_refused(
    path: str, protocol: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with api(http__origins=(APP,)) as found:
            for origin in (EVIL, "null", "http://localhost:1"):
                with pytest.raises(websockets.InvalidStatus) as refused:
                    await talk(found, path, protocol, origin=origin)
                assert refused.value.response.status_code == 403
                assert b"http.origins" in (refused.value.response.body or b"")
            with pytest.raises(websockets.InvalidStatus):  # a name that leads here, and a page of the same name
                await talk(found, path, protocol, origin=EVIL, additional_headers={"Host": "evil.example"})
            await talk(found, path, protocol, origin=found.url)
            await talk(found, path, protocol, origin=APP)
            await talk(found, path, protocol)

    asyncio.run(main())
    assert "ERROR" not in capfd.readouterr().err  # a page cannot fill the log


def test_a_token_does_not_open_the_door_to_a_page() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as found:
            headers = bearer(found.service, "ana", "admin")
            assert (await found.client.get("/admin/overview", headers=headers)).status_code == 200
            is_problem(await found.client.get("/admin/overview", headers={**headers, "origin": EVIL}), 403)

    asyncio.run(main())


def test_the_dashboard_is_behind_the_same_door() -> None:
    async def main() -> None:
        config = load(None, {}, {"port": 0, "name": "a"})
        async with running(config, lambda service: [*routes(service), *dashboard.routes(service)]) as service:
            base = "http" + service.hood.url.removeprefix("ws")
            async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
                assert (await client.get("/dashboard/")).status_code == 200
                is_problem(await client.get("/dashboard/", headers={"host": "evil.example"}), 403)
                is_problem(await client.get("/dashboard/", headers={"origin": EVIL}), 403)

    asyncio.run(main())


@pytest.mark.parametrize(
    "flags",
    [
        {"http.origins": ("*",)},
        {"http.origins": ("https://*.example",)},
        {"http.origins": ("app.example",)},
        {"http.origins": ("https://app.example/",)},
        {"http.origins": ("null",)},
        {"http.hosts": ("https://node.example",)},
        {"http.hosts": ("node.example:7400",)},
        {"http.hosts": ("*",)},
    ],
)
def test_settings_name_each_page_and_each_name(flags: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"http\.(origins|hosts)"):
        load(None, {}, flags)
