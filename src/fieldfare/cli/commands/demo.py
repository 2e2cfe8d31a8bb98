"""`fieldfare demo`: three nodes, a publisher of quotes and four subscribers, in processes on this machine."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import subprocess
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, TypeAlias

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.formats.values import printable, shown
from fieldfare.cli.http import run, web_address
from fieldfare.cli.ports import need
from fieldfare.extras import check_node

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Check: TypeAlias = Callable[[], None]
"""a function that raises InputError if a process of the demo has ended"""

NODES: Final = ("oslo", "rome", "lima")
WATCHERS: Final = (
    ("ana", "oslo", "symbol = 'IBM' AND price < 120"),
    ("bob", "rome", "change > 1.5 OR change < -1.5"),
    ("eve", "lima", "volume > 9000 AND symbol IN ('SAP', 'ASML')"),
    ("max", "lima", "symbol STARTS WITH 'A'"),
)
USUAL: Final = ("symbol", "price", "change", "volume")
"""the fields of a quote that are printed"""
PRICES: Final = {"IBM": 120.0, "SAP": 180.0, "ASML": 650.0, "AAPL": 190.0, "AMZN": 140.0, "TSLA": 240.0}


@reported("node")
def command(
    *,
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65000, help="Port of the first node; the others have the next two.")
    ] = 7400,
    rate: Annotated[float, typer.Option(metavar="N", min=0.1, help="Quotes published a second.")] = 50.0,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the folders of the nodes. [default: a temporary one]", show_default=False
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="N", min=0.1, help="Seconds after which to end.", show_default=False)
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the dashboard in a browser.")] = True,
    pipeline: Annotated[
        bool | None,
        typer.Option(help="Run a Spark pipeline, too. [default: if Spark is installed]", show_default=False),
    ] = None,
) -> None:
    """Start three nodes, a publisher of quotes and four subscribers, and show the dashboard. Ctrl-C ends the demo.

    The nodes are linked in a line, oslo - rome - lima. Quotes are published at oslo, and delivered to
    the sessions whose filters match. A Spark pipeline reads the log of oslo and matches its events with the
    subscriptions of all three nodes: see the tab Pipelines of the dashboard. While the demo runs, try the other
    commands: fieldfare sub "price > 600", fieldfare top.

    Examples:
        fieldfare demo
        fieldfare demo --seconds 5 --no-browser --no-pipeline
    """
    check_node()
    need(
        range(port, port + len(NODES)), f"End it, or start another demo beside it: fieldfare demo --port {_other(port)}"
    )
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(TemporaryDirectory(prefix="fieldfare-")))
        stack.enter_context(_alone(folder))
        urls = {name: f"ws://127.0.0.1:{port + place}" for place, name in enumerate(NODES)}
        check: list[Check] = []
        for place, name in enumerate(NODES):
            join = urls[NODES[place - 1]] if place else ""
            check.append(stack.enter_context(_node(name, port + place, folder, join)))
        if pipeline if pipeline is not None else importlib.util.find_spec("pyspark") is not None:
            (folder / "pipeline.toml").write_text(_declared([web_address(url) for url in urls.values()]))
            command = ["pipeline", "run", str(folder / "pipeline.toml")]
            stack.enter_context(_process("pipeline", command, folder))
            typer.echo(f"pipeline   {folder / 'pipeline.toml'}, on the dashboard in a while")
        run(_play(urls, check, rate, seconds, browser=browser))


def _other(port: int) -> int:
    """Return a port for a second demo beside the first."""
    return port + 10 if port + 10 + len(NODES) <= 65536 else port - 10


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder, so that a second demo does not write into the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "demo.lock").open("a") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(str(folder), "another demo runs in this folder: give another --data") from None
        yield


@contextmanager
def _node(name: str, port: int, folder: Path, join: str) -> Iterator[Check]:
    """Run a node in a process of its own."""
    command = ["up", "--name", name, "--port", str(port), "--data", str(folder / name)]
    with _process(name, [*command, *(["--join", join] if join else [])], folder) as check:
        yield check


def _declared(nodes: list[str]) -> str:
    """Return the TOML of a pipeline over the log of the first node, with the subscriptions of all nodes."""
    return f"""\
name = "market"
state = "pipeline"
every = "2 seconds"

[source]
kind = "log"
path = "{NODES[0]}"

[normalise]
fields = "type string, symbol string, price double, change double, volume long"

[match]
subscriptions = {json.dumps(nodes)}

[[sink]]
kind = "lake"
path = "deliveries"

[report]
node = "{nodes[0]}"
"""


@contextmanager
def _process(name: str, command: list[str], folder: Path) -> Iterator[Check]:
    """Run a command of `fieldfare` in a process, with its output in a file; yield a check that the process runs."""
    path = folder / f"{name}.log"
    with path.open("ab") as log:
        before = log.tell()
        process = subprocess.Popen([sys.executable, "-m", "fieldfare", *command], stdout=log, stderr=log)  # noqa: S603

    def check() -> None:
        if process.poll() is not None:
            said = path.read_bytes()[before:].decode(errors="replace").strip().splitlines()
            raise InputError(name, said[-1].removeprefix("error: ") if said else "ended at once")

    try:
        yield check
        check()
    finally:
        process.terminate()
        process.wait()


async def _play(
    urls: dict[str, str], checks: list[Check], rate: float, seconds: float | None, *, browser: bool
) -> None:
    for url in urls.values():
        await _answers(url, checks)
    dashboard = f"{web_address(urls['oslo'])}/dashboard"
    typer.echo(f"nodes      {', '.join(f'{name} {url}' for name, url in urls.items())}")
    typer.echo(f"dashboard  {dashboard}")
    for name, node, filter in WATCHERS:
        typer.echo(f"{name:<10} subscribes at {node} to {filter}")
    typer.secho("Ctrl-C ends the demo.\n", fg="bright_black")
    if browser:
        webbrowser.open(dashboard)
    jobs = [_watch(name, urls[node], filter) for name, node, filter in WATCHERS]
    tasks = [asyncio.create_task(job) for job in (*jobs, _publish(urls["oslo"], rate))]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answers(url: str, checks: list[Check]) -> None:
    """Wait until a node accepts connections; a check raises if a process has ended."""
    host, port = url.removeprefix("ws://").split(":")
    while True:
        for check in checks:
            check()
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            await writer.wait_closed()
            return


async def _watch(name: str, url: str, filter: str) -> None:
    from fieldfare.client.client import connect

    async with connect(url, session=name) as client, client.subscribe(filter, id="watch", keep=True) as events:
        async for event in events:
            typer.echo(f"{typer.style(f'{name:<4}', fg='cyan')} {line(event)}")


def line(event: Mapping[str, object]) -> str:
    """Return an event as a line: the usual fields of a quote, or all fields of another event.

    >>> line({"symbol": "IBM", "price": 119}), line({"change": [2], "note": "new"}), line({"note": "new"})
    ("symbol='IBM'  price=119", 'change=[2]', "note='new'")
    """
    known = [field for field in USUAL if field in event] or list(event)
    return "  ".join(f"{printable(field)}={shown(event[field])}" for field in known)


async def _publish(url: str, rate: float) -> None:
    from fieldfare.client.client import connect

    async with connect(url, session="exchange") as client:
        async for quote in _paced(quotes(random.Random()), rate):
            await client.wait_for_capacity()
            client.publish_soon(quote)


async def _paced(events: Iterator[dict[str, object]], rate: float) -> AsyncIterator[dict[str, object]]:
    loop = asyncio.get_running_loop()
    due = loop.time()
    for event in events:
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield event


def quotes(chance: random.Random) -> Iterator[dict[str, object]]:
    """Yield quotes without end; each price wanders around its first value."""
    prices = dict(PRICES)
    while True:
        symbol = chance.choice(list(prices))
        change = chance.gauss(0, 0.6)
        prices[symbol] *= 1 + change / 100
        prices[symbol] += (PRICES[symbol] - prices[symbol]) * 0.01
        yield {
            "type": "quote",
            "symbol": symbol,
            "price": round(prices[symbol], 2),
            "change": round(change, 2),
            "volume": chance.randrange(1, 10_000),
        }
