"""Pictures of the dashboard for the documentation: an overlay of six nodes with some life in it, light and dark.

    python -m tools.dashboard_screenshots [FOLDER] [SECONDS]

Needs chromium, and writes `dashboard-*.png` to docs/img unless told otherwise, after letting it run for some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal

import httpx
import msgspec
from playwright.sync_api import Page, sync_playwright

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node import dashboard, http
from fieldfare.node.config import load
from fieldfare.node.config.settings import PatternSettings
from fieldfare.node.context import Context
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.pipeline_reports import Busy, FieldReport, PipelineReport
from fieldfare.node.server import running

JOINS = {
    "oslo": (),
    "bergen": ("oslo",),
    "berlin": ("oslo",),
    "vienna": ("berlin",),
    "rome": ("vienna",),
    "paris": ("berlin",),
}
RATES = {"oslo": 60, "bergen": 4, "berlin": 350, "vienna": 25, "rome": 12, "paris": 120}
SYMBOLS = {"IBM": 119.0, "KO": 61.5, "SAP": 187.0, "EQNR": 24.8, "OMV": 41.2, "ENI": 14.1, "MC": 702.0, "AIR": 148.0}
WANTED = {
    "oslo": {
        "energy-desk": ["symbol IN ('EQNR', 'OMV', 'ENI')", "symbol = 'EQNR' AND price < 24.5", "symbol = 'EQNR'"],
        "alerts": ["price > 700", "price > 100 AND quantity > 900", "quantity > 950"],
        "night-batch": ["price > 0", "symbol = 'IBM' AND price < 120"],
    },
    "berlin": {"risk": ["price > 100", "symbol = 'SAP'", "symbol = 'SAP' AND price > 186"], "tape": ["price > 0"]},
    "rome": {"eni-watch": ["symbol = 'ENI'", "symbol IN ('ENI', 'OMV') AND price < 42"]},
    "paris": {"luxury": ["symbol = 'MC' AND price > 695", "symbol STARTS WITH 'M'"], "planes": ["symbol = 'AIR'"]},
    "vienna": {"omv-watch": ["symbol = 'OMV' AND price BETWEEN 40 AND 42"]},
    "bergen": {"fish": ["symbol = 'KO' AND price < 61"]},
}  # fmt: skip

BLOCK = """
big: [quantity > 900]
small: [quantity < 50]
(at least 3 big followed by small) within 20 s
for each symbol
select symbol as symbol, count(big) as blocks, last(big.price) as price
"""


def quote(chance: random.Random, place: str) -> Event:
    """Something that happens at an exchange."""
    symbol = chance.choice(list(SYMBOLS))
    price = round(SYMBOLS[symbol] * chance.gauss(1, 0.01), 2)
    return Event({"symbol": symbol, "price": price, "quantity": chance.randint(1, 100) * 10, "exchange": place})


async def publish(service: Context, rate: float) -> None:
    """Publish, now more and now less."""
    chance = random.Random(service.node.name)
    level = 1.0
    while True:
        await asyncio.sleep(0.1)
        level = min(1.6, max(0.5, level + chance.gauss(0, 0.08)))
        number = int(rate * level / 10 + chance.random())
        if number:
            await service.publish([quote(chance, service.node.name) for _ in range(number)])


async def consume(service: Context, name: str, filters: list[str], *, away: bool) -> None:
    """A subscriber that takes all it gets, or goes and lets it wait."""
    async with InternalSession(service.node, name) as consumer:
        for number, filter in enumerate(filters):
            await consumer.subscribe(f"w{number}", parse(filter))
        if away:
            return
        async for some in consumer.deliveries():
            await consumer.acknowledge(some[-1].number)


async def change_mind(service: Context) -> None:
    """A subscriber that wants something else all the time."""
    chance = random.Random(1)
    async with InternalSession(service.node) as consumer:
        while True:
            await consumer.subscribe(
                "now", parse(f"symbol = '{chance.choice(list(SYMBOLS))}' AND quantity > {chance.randint(1, 990)}")
            )
            await asyncio.sleep(0.4 + chance.random())


@contextlib.asynccontextmanager
async def overlay(folder: Path) -> AsyncIterator[dict[str, Context]]:
    """Six nodes, linked."""
    async with contextlib.AsyncExitStack() as stack:
        services: dict[str, Context] = {}
        for name, joins in JOINS.items():
            join = tuple(services[other].hood.url for other in joins)
            config = load(None, {}, {"port": 0, "data": str(folder / name), "name": name, "join": join})
            if name == "oslo":
                config = msgspec.structs.replace(config, patterns={"blocks": PatternSettings(text=BLOCK)})
            node = running(config, lambda service: [*http.routes(service), *dashboard.routes(service)])
            services[name] = await stack.enter_async_context(node)
        yield services


async def live(folder: Path, ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Let it all run until it is to stop."""
    async with overlay(folder) as services:
        work = [publish(services[name], rate) for name, rate in RATES.items()]
        for name, sessions in WANTED.items():
            work += [consume(services[name], one, some, away=one == "night-batch") for one, some in sessions.items()]
        work += [change_mind(services["rome"]), change_mind(services["bergen"])]
        tasks = [asyncio.create_task(one) for one in work]
        await asyncio.sleep(2)
        ready(services["oslo"].hood.url.replace("ws", "http", 1))
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pictures(page: Page, address: str, folder: Path, suffix: str, patience: float) -> None:
    """One of each view."""
    page.goto(f"{address}/dashboard/")
    page.locator("#map .node").nth(len(JOINS) - 1).wait_for()
    page.wait_for_timeout(patience * 1000)
    page.locator('#map [data-node="berlin"]').click()
    page.wait_for_timeout(1500)
    page.screenshot(path=folder / f"dashboard-overlay{suffix}.png")
    page.click("#to-sessions")
    page.click('[data-session="energy-desk"]')
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"dashboard-sessions{suffix}.png")
    page.click("#to-workbench")
    page.fill("#filter", "(symbol = 'EQNR' OR symbol = 'OMV') AND NOT price >= 42 AND price > 20")
    page.wait_for_timeout(3500)
    page.click("#publish .main")
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"dashboard-workbench{suffix}.png")
    page.click("#to-table")
    page.wait_for_timeout(800)
    page.fill("#find", "symbol = 'EQNR' AND price < 30")
    page.locator("[data-filter=\"symbol = 'EQNR'\"]").focus()
    page.wait_for_timeout(800)
    page.screenshot(path=folder / f"dashboard-filters{suffix}.png")
    page.click("#to-patterns")
    page.locator("[data-pattern] details").first.click()
    page.wait_for_timeout(800)
    page.screenshot(path=folder / f"dashboard-patterns{suffix}.png")


def report(chance: random.Random) -> PipelineReport:
    """What a pipeline over the log of these nodes would tell."""
    now, count = time.time(), 1_284_000
    prices = [SYMBOLS[chance.choice(list(SYMBOLS))] * chance.gauss(1, 0.01) for _ in range(2000)]
    edges = [720 * n / 40 for n in range(41)]
    level = [2600 + 500 * math.sin(n / 7) + chance.gauss(0, 120) for n in range(60)]
    symbols = [(name, int(count / 8 * chance.gauss(1, 0.15))) for name in SYMBOLS]
    wanted = [
        (f"w{n}", owner) for some in WANTED.values() for owner, texts in some.items() for n, _ in enumerate(texts)
    ]
    fields = (
        FieldReport(
            "price", {"number": count}, 1.0, 48_211, round(min(prices), 2), round(max(prices), 2),
            histogram=tuple((a, b, 640 * sum(a <= one < b for one in prices)) for a, b in pairwise(edges)),
        ),
        FieldReport(
            "quantity", {"number": count}, 1.0, 100, 10, 1000,
            histogram=tuple((n * 50, n * 50 + 50, int(64000 * chance.gauss(1, 0.05))) for n in range(20)),
        ),
        FieldReport(
            "symbol", {"text": count}, 1.0, 8, "AIR", "SAP", tuple(sorted(symbols, key=lambda one: -one[1])[:5])
        ),
        FieldReport(
            "exchange", {"text": count - 64_000, "number": 64_000}, 0.974, 7, None, None,
            tuple((name, int(count * rate / 571)) for name, rate in sorted(RATES.items(), key=lambda one: -one[1])[:5]),
        ),
    )  # fmt: skip
    return PipelineReport(
        "market", "running", 412, now, count, 3_911_204, 17, 230, level[-1], 0.84, 9, 100_000,
        tuple(Busy(name, owner, int(90_000 / (n + 1) ** 0.7)) for n, (name, owner) in enumerate(wanted[:10])),
        fields,
        tuple((now - 2 * (60 - n), one, one * 3.05) for n, one in enumerate(level)),
    )  # fmt: skip


def pipelines(page: Page, address: str, folder: Path, suffix: str) -> None:
    """Two pipelines that report."""
    quotes = report(random.Random(1))
    nightly = PipelineReport(
        "nightly-replay", "failed", 3, quotes.time, 840_000, 61_300, took=12.4, snapshot=8, subscriptions=99_870,
        error="the source has no column event; it has id, body and time",
    )  # fmt: skip
    for one in (quotes, nightly):
        body = msgspec.json.encode(one)
        told = httpx.put(
            f"{address}/admin/pipelines/{one.name}", content=body, headers={"Content-Type": "application/json"}
        )
        told.raise_for_status()
    page.goto(f"{address}/dashboard/#pipelines")
    page.locator("[data-pipeline] .histogram").first.wait_for()
    page.screenshot(path=folder / f"dashboard-pipelines{suffix}.png")


def main() -> None:
    """Run the overlay in a thread and look at it."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/img")
    patience = float(sys.argv[2]) if len(sys.argv) > 2 else 40
    folder.mkdir(parents=True, exist_ok=True)
    address: list[str] = []
    ready = threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def tell(url: str) -> None:
        address.append(url)
        ready.set()

    with tempfile.TemporaryDirectory() as data, sync_playwright() as play:
        thread = threading.Thread(target=lambda: loop.run_until_complete(live(Path(data), tell, stop)))
        thread.start()
        try:
            ready.wait(30)
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            schemes: dict[Literal["light", "dark"], str] = {"light": "", "dark": "-dark"}
            for scheme, suffix in schemes.items():
                page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
                pictures(page, address[0], folder, suffix, patience)
                pipelines(page, address[0], folder, suffix)
                page.close()
            browser.close()
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()


if __name__ == "__main__":
    main()
