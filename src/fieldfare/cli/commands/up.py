"""`fieldfare up`: start a node in this process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldfare.cli.errors import DAMAGED, InputError, fail, reported

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from fieldfare.node.config import Config
    from fieldfare.node.context import Context


@reported("node")
def command(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="File of settings, in TOML.", show_default=False),
    ] = None,
    *,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the node in the overlay. [default: the name in its folder, or host, port and machine]",
            show_default=False,
        ),
    ] = "",
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address on which the node listens. [default: 127.0.0.1]", show_default=False
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="Port on which the node listens. [default: 7400]", show_default=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the node. [default: none, all is lost when the process ends]",
            show_default=False,
        ),
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Address of a node to link to; may be repeated.", show_default=False),
    ] = None,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help="Routing strategy. [default: covering]", show_default=False)
    ] = "",
    channel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=NODE",
            help="Type of events with one order everywhere, and the node that numbers them; may be repeated.",
            show_default=False,
        ),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="Origin of web pages that may use the node; may be repeated.", show_default=False
        ),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print an example of settings, and exit.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more, such as links that come and go.")] = False,
) -> None:
    """Start a node: a broker with a port, a dashboard and a folder.

    Settings come from a file (--config), from the environment (FIELDFARE_PORT and so on), and from these options; an
    option counts more than the environment, and the environment more than the file. Without --data nothing survives
    the process. Nodes that --join each other form one overlay: an event published at any node is delivered at all
    nodes. The links must not form a cycle.

    Examples:
        fieldfare up
        fieldfare up --data here
        fieldfare up --port 7401 --join ws://127.0.0.1:7400
        fieldfare up --example
    """
    if example:
        from importlib.resources import files

        typer.echo((files("fieldfare.node.config") / "example.toml").read_text(), nl=False)
        return
    from fieldfare.node.config import ConfigError, load
    from fieldfare.node.storage.log import LogError
    from fieldfare.node.storage.rows import StoreDamaged, StoreError

    flags: dict[str, Any] = {
        "name": name or None,
        "host": host or None,
        "port": port,
        "data": str(data) if data is not None else None,
        "join": tuple(join or ()) or None,
        "strategy": strategy or None,
        "channels.types": tuple(channel or ()) or None,
        "http.origins": tuple(origin or ()) or None,
    }
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        settings = load(config, os.environ, flags)
        with asyncio.Runner(loop_factory=_loop) as runner:
            runner.run(_run(settings))
    except (StoreDamaged, LogError) as error:
        fail(str(error), DAMAGED)
    except (ConfigError, StoreError) as error:
        raise InputError("", error) from None


def _loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop, which is quicker, or else of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _run(config: Config) -> None:
    from fieldfare.node.server import running

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(config, _routes) as service:
        typer.echo(_greeting(service))
        collecting = asyncio.create_task(_collect_seldom())
        ends: list[asyncio.Future[Any]] = [asyncio.create_task(stop.wait()), service.node.failure]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        ends[0].cancel()
        collecting.cancel()
        if service.node.failure.done():
            raise OSError(f"{config.name} cannot write: {service.node.failure.exception()}")
        typer.echo("stopping", err=True)


def _routes(service: Context) -> list[BaseRoute]:
    """Return the HTTP routes of a node: the interface and, if the settings say so, the dashboard."""
    from fieldfare.node import dashboard, http

    return [*http.routes(service), *(dashboard.routes(service) if service.node.config.dashboard else [])]


async def _collect_seldom(every: float = 600.0) -> None:
    """Let Python's garbage collector look through all objects every ten minutes, not whenever many were made.

    With 10,000 filters each full collection is a pause of a sixth of a second, and under load one followed the other.
    Young objects are still collected often; only cycles that closed connections leave behind wait. Few of them at a
    time: a look at 20,000 was a pause of 8 ms on a busy machine, for which a quarter of the events of a group waited.
    """
    gc.collect()
    gc.freeze()  # what is there now stays
    gc.set_threshold(5_000, 80, 1000)
    while True:
        await asyncio.sleep(every)
        gc.collect()


def _greeting(service: Context) -> str:
    config, node = service.node.config, service.node
    web = service.hood.url.replace("ws", "http", 1)
    kept = f"in {config.data}, {node.storage.log.last:,} events so far" if config.data else "nowhere: give --data DIR"
    lines = {
        "node": f"{node.name} ({config.strategy})",
        "clients": service.hood.url,
        "HTTP": f"{web}/openapi.json",
        **({"dashboard": f"{web}/dashboard"} if config.dashboard else {}),
        "kept": kept,
        **({"joins": ", ".join(config.join)} if config.join else {}),
    }
    return "\n".join(f"{title:<10} {text}" for title, text in lines.items())
