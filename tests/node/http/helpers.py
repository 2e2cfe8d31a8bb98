"""A node with its HTTP API, and a sink for webhooks, for the tests here."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tools.waiting import PATIENCE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.config import load
from fieldfare.node.context import Context
from fieldfare.node.http import routes
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.security import make_token
from fieldfare.node.server import running
from fieldfare.node.web_server import Server

SECRET = "a secret that is long enough: 32 bytes"


class Api(NamedTuple):
    """A node and a client that speaks to it."""

    service: Context
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        return str(self.client.base_url).rstrip("/")


@contextlib.asynccontextmanager
async def api(data: object = "", **flags: object) -> AsyncIterator[Api]:
    flags = {name.replace("__", "."): value for name, value in flags.items()}
    config = load(None, {}, {"port": 0, "data": str(data), "name": "a", **flags})
    async with running(config, routes) as service:
        base = "http" + service.hood.url.removeprefix("ws")
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=PATIENCE) as client:
            yield Api(service, client)


@contextlib.contextmanager
def api_in_background(**flags: object) -> Iterator[httpx.Client]:
    """The same in a thread, for tests that ask very often."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()

    async def main() -> None:
        async with api(**flags) as found:
            done = asyncio.Event()
            started.set_result((asyncio.get_running_loop(), done, found.url))
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    loop, done, url = started.result(20)
    try:
        with httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE) as client:
            yield client
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(20)


def bearer(service: Context, name: str, *roles: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {make_token(SECRET, name, roles, 60, service.node.clock())}"}


@contextlib.asynccontextmanager
async def listening(service: Context, filter: str = "TRUE") -> AsyncIterator[Callable[[int], Awaitable[list[Event]]]]:
    """A subscriber: what it gives waits for so many events."""
    async with InternalSession(service.node) as consumer:
        await consumer.subscribe("s", parse(filter))
        deliveries = consumer.deliveries()

        async def wait(count: int) -> list[Event]:
            events: list[Event] = []
            while len(events) < count:
                events += [one.event for one in await asyncio.wait_for(anext(deliveries), PATIENCE)]
            return events

        yield wait


Answer = int | tuple[int, dict[str, str]]


class Sink:
    """A sink of webhooks that does as it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, str]] = []
        """headers of the requests for its agreement"""
        self.got: list[tuple[dict[str, str], bytes]] = []
        """all requests, whatever was answered"""
        self.agreement: dict[str, str] = {"WebHook-Allowed-Origin": "*"}
        self.answers: Callable[[dict[str, str], int], Answer] = lambda headers, tries: 204
        """what to answer to an event, by its headers and how often it came"""
        self._tries: dict[str, int] = {}

    async def handle(self, request: Request) -> Response:
        headers = dict(request.headers)
        if request.method == "OPTIONS":
            self.asked.append(headers)
            return Response(None, 200, self.agreement)
        self.got.append((headers, await request.body()))
        tries = self._tries[headers["ce-id"]] = self._tries.get(headers["ce-id"], 0) + 1
        found = self.answers(headers, tries)
        status, more = found if isinstance(found, tuple) else (found, {})
        return Response(None, status, more)

    def ids(self) -> list[str]:
        return [headers["ce-id"].partition("-")[0] for headers, _ in self.got]  # a made one has the life of the log

    async def wait(self, count: int, seconds: float = PATIENCE) -> None:
        await until(lambda: len(self.got) >= count, seconds)


@contextlib.asynccontextmanager
async def sink() -> AsyncIterator[Sink]:
    one = Sink()
    methods = ["OPTIONS", "POST", "PUT"]
    app = Starlette(routes=[Route(path, one.handle, methods=methods) for path in ("/hook", "/other")])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        one.url = f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        server = Server(uvicorn.Config(app, lifespan="off", log_level="error", ws="none"))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await until(lambda: server.started)
            yield one
        finally:
            server.end()
            await task


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def is_problem(response: httpx.Response, status: int | Sequence[int]) -> dict[str, Any]:
    assert response.status_code in ([status] if isinstance(status, int) else status), response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == response.status_code
    assert body["detail"]
    return body


FAST = {"backoff": 0.01, "timeout": 4}


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
