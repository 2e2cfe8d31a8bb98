"""Folders of two nodes with some of everything, and what must come out of them: data for a test of later versions.

    git archive REVISION src | tar x -C OLD
    PYTHONPATH=OLD/src python tools/nodes/stored_folder.py FOLDER

`fieldfare` is that of the environment, so only names are used here that it has long had. At the end the process ends
without a word, as in a kill: the log has a sealed segment, a closed one and an open one, and `node.sqlite` a log of its
own.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import os
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

from fieldfare.client.client import Client, connect
from fieldfare.node.config import load
from fieldfare.node.http import routes
from fieldfare.node.server import running

FILTERS = {"cheap": "price < 10", "all": "price >= 0"}
COPIES = {"sessions.replicas": 1, "log.segment_bytes": 4096}


def settings(folder: Path, name: str, **flags: Any) -> Any:
    """Settings of a node with a folder, at any free port."""
    return load(None, {}, {"name": name, "port": 0, "data": str(folder / name), **COPIES, **flags})


async def until(true: Any) -> None:
    """Wait until something holds."""
    while not true():
        await asyncio.sleep(0.01)


async def publish(client: Client, numbers: range, **more: Any) -> None:
    """Publish numbered events, long enough that a segment is soon full."""
    for number in numbers:
        await client.publish({"n": number, "price": number % 20, "text": "naïve " * 20, "by": "bob"}, **more)


async def subscribe(url: str, session: str, take: int, **filters: str) -> None:
    """Make a session with subscriptions, acknowledge some deliveries, and leave the rest."""
    async with connect(url, session=session) as client, contextlib.AsyncExitStack() as stack:
        all_ = [
            await stack.enter_async_context(client.subscribe(text, id=id, keep=True)) for id, text in filters.items()
        ]
        for _ in range(take):
            for events in all_:  # an event of both is acknowledged when both have taken it
                await anext(events)


def core_of(service: Any) -> Any:
    """Return the core of a node, whose name has changed."""
    return getattr(service.node, "core", None) or service.node.broker


class Sink(http.server.BaseHTTPRequestHandler):
    """A receiver that allows a webhook, and is gone afterwards."""

    def do_OPTIONS(self) -> None:
        self.send_response(200)
        self.send_header("WebHook-Allowed-Origin", "*")
        self.end_headers()


def hook(url: str) -> None:
    """Register a webhook whose receiver will not be there any more."""
    with http.server.HTTPServer(("127.0.0.1", 0), Sink) as sink:
        threading.Thread(target=sink.handle_request).start()
        body = json.dumps({"sink": f"http://127.0.0.1:{sink.server_port}/", "protocol": "HTTP", "types": ["nothing"]})
        to, headers = url.replace("ws:", "http:") + "/subscriptions", {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(to, body.encode(), headers)).close()


async def first(folder: Path) -> None:
    """Two nodes that are stopped: sessions, filters, a sealed segment, a moved session, copies."""
    async with (
        running(settings(folder, "a"), routes) as a,
        running(settings(folder, "b", join=(a.hood.url,)), routes) as b,
    ):
        await until(lambda: a.hood.up and b.hood.up)
        await asyncio.to_thread(hook, a.hood.url)
        await subscribe(a.hood.url, "ana", 0, **FILTERS)
        await subscribe(b.hood.url, "eve", 0, cheap=FILTERS["cheap"])
        await until(lambda: {str(one) for one in core_of(b).interest()} >= {"price >= 0"})
        async with connect(a.hood.url, session="bob") as bob, bob.advertise("price >= 0", id="mine"):
            await publish(bob, range(1, 31))
        await subscribe(a.hood.url, "ana", 5, **FILTERS)
        async with connect(a.hood.url, session="fay") as fay, fay.subscribe("n = 0", id="s", keep=True):
            await fay.move(b.hood.url)
        await until(lambda: not core_of(a).links["b"].outbox and not core_of(b).links["a"].outbox)
        a.node.storage.tidy(a.node.clock(), 1)


async def second(folder: Path) -> None:
    """Only the first node: events for its own sessions and for its neighbour, which is away; then a kill."""
    async with running(settings(folder, "a"), routes) as a:
        async with connect(a.hood.url, session="bob") as bob:
            await publish(bob, range(31, 41))
            await publish(bob, range(41, 43), replaces="last")
            await publish(bob, range(43, 44), ttl=1e9)
        core = core_of(a)
        expected = {
            "publishers": {"bob": core.sessions["bob"].sequence},
            "sessions": {
                name: {
                    "identity": session.identity,
                    "acknowledged": session.acknowledged,
                    "count": session.count,
                    "pending": {n: list(one.subscriptions) for n, one in session.pending.items()},
                }
                for name, session in core.sessions.items()
                if session.durable
            },
            "filters": {
                name: {id: str(filter) for id, filter in client.subscriptions.items()}
                for name, client in core.broker.clients.all.items()
            },
            "interest": sorted(map(str, core.interest())),
            "for b": len(core.links["b"].outbox),
            "log": core.position,
        }
        lines = ",\n".join(f" {json.dumps(what)}: {json.dumps(value)}" for what, value in expected.items())
        (folder / "expected.json").write_text(f"{{\n{lines}\n}}\n")
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(first(Path(sys.argv[1])))
    asyncio.run(second(Path(sys.argv[1])))
