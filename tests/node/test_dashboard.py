from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from tools.waiting import PATIENCE
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare.core.core import Core
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node import dashboard, http
from fieldfare.node.config import Config, Secret, SecuritySettings, load
from fieldfare.node.config.settings import PatternSettings
from fieldfare.node.context import Context
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.security import make_token
from fieldfare.node.server import running

T = TypeVar("T")
CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.needs("chromium")
HASTE = """
for (const name of ["setTimeout", "setInterval"]) {
  const real = window[name];
  window[name] = (work, milliseconds, ...values) => real(work, milliseconds / 10, ...values);
}
"""
"""the page asks its nodes every second or so; a test need not wait for that"""
FILTERS = {"cheap": "price < 10", "cheaper": "price < 5", "ibm": "symbol = 'IBM'"}


class Nodes:
    """Nodes that run beside the test, in a thread with a loop."""

    def __init__(self) -> None:
        self.services: dict[str, Context] = {}
        self._contexts: dict[str, contextlib.AbstractAsyncContextManager[Context]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._beside: list[Any] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def start(self, name: str, *joins: str, config: Config | None = None) -> str:
        join = tuple(self.services[other].hood.url for other in joins)
        settings = config or load(None, {}, {"port": 0, "name": name, "join": join})
        context = running(settings, lambda service: [*http.routes(service), *dashboard.routes(service)])
        self.services[name] = self.do(context.__aenter__())
        self._contexts[name] = context
        until(lambda: all(other in self.services[name].hood.up for other in joins))
        return self.address(name)

    def stop(self, name: str) -> None:
        self.do(self._contexts.pop(name).__aexit__(None, None, None))

    def address(self, name: str) -> str:
        return self.services[name].hood.url.replace("ws", "http", 1)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        self._beside.append(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        for future in self._beside:
            future.cancel()
        for name in reversed(list(self._contexts)):
            self.stop(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def until(true: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


@contextlib.contextmanager
def nodes() -> Iterator[Nodes]:
    some = Nodes()
    try:
        yield some
    finally:
        some.close()


async def publish(service: Context) -> None:
    number = 0
    while True:
        number += 1
        await service.publish([Event({"symbol": "KO", "price": number % 20, "number": number}) for _ in range(3)])
        await asyncio.sleep(0.05)


async def subscribe(service: Context, name: str, filters: dict[str, str], *, stay: bool) -> None:
    async with InternalSession(service.node, name) as consumer:
        for id, filter in filters.items():
            await consumer.subscribe(id, parse(filter))
        if stay:
            async for some in consumer.deliveries():
                await consumer.acknowledge(some[-1].number)


@pytest.fixture(scope="module")
def overlay() -> Iterator[Nodes]:
    """Three in a row: events from c go to a."""
    with nodes() as some:
        some.start("a")
        some.start("b", "a")
        some.start("c", "b")
        some.do(subscribe(some.services["a"], "gone", {"all": "price >= 0"}, stay=False))
        some.beside(subscribe(some.services["a"], "ana", FILTERS, stay=True))
        some.beside(publish(some.services["c"]))
        yield some


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def looking(browser: Browser, address: str, *nodes: str, may_fail: str = "(?!)") -> Iterator[Page]:
    """A page that is closed afterwards; nothing went wrong then, and nobody but the nodes was asked anything."""
    said: list[str] = []
    asked: set[str] = set()
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(1000 * PATIENCE)
    page.add_init_script(HASTE)
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page.on("websocket", lambda socket: asked.add(urlsplit(socket.url).netloc))
    try:
        page.goto(address)
        yield page
    finally:
        page.close()
    assert [text for text in said if not re.search(may_fail, text)] == []
    assert asked <= {urlsplit(node).netloc for node in (address, *nodes)}


# The files


def test_files_are_served_under_a_strict_policy(overlay: Nodes) -> None:
    with httpx.Client(base_url=overlay.address("a")) as client:
        assert client.get("/dashboard").headers["location"] == "dashboard/"
        page = client.get("/dashboard/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        policies = page.headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in policies
        assert "script-src 'self'" in policies
        assert "frame-ancestors 'none'" in policies
        connect = next(part for part in policies if part.startswith("connect-src")).split()
        here = overlay.address("a")
        assert connect == [
            "connect-src",
            "'self'",
            here,
            here.replace("http", "ws", 1),
        ]  # a token goes to no other node
        again = client.get("/dashboard/", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/dashboard/__init__.py").status_code == 404
        assert client.get("/dashboard/..%2fnode.py").status_code == 404


def test_every_file_that_is_named_is_there() -> None:
    files = dashboard.assets()
    named = set(re.findall(r'(?:src|href)="([\w.]+)"', files["index.html"].content.decode()))
    for file in files.values():
        if "javascript" in file.kind:
            named |= set(re.findall(r'from "\./([\w.]+)"', file.content.decode()))
    assert named == set(files) - {"index.html"}


@pytest.mark.parametrize(
    "address", ["", "ws://a b", "ws://a;script-src *", "ws://a'none'", "javascript://x", "ws://ü", "ws://a,b"]
)
def test_what_a_node_calls_itself_does_not_get_into_the_policy(address: str) -> None:
    assert "connect-src 'self'" in dashboard.policy(address).split("; ")


def test_a_node_asks_the_others(overlay: Nodes) -> None:
    """So that a token of an administrator goes to one node only."""
    with httpx.Client(base_url=overlay.address("a")) as client:
        for name in ("b", "c"):
            found = client.get(f"/admin/nodes/{name}").json()
            assert found["name"] == name
            assert found["traffic"].keys() == client.get("/admin/overview").json()["traffic"].keys()
            assert found["overlay"].keys() == {"a", "b", "c"}
        for name in ("a", "d", "%3Cimg%3E"):
            assert client.get(f"/admin/nodes/{name}").status_code == 404


def test_a_token_does_not_go_to_an_address_that_a_node_has_named() -> None:
    """Whoever may join could else become an administrator of the whole network."""
    secret = Secret("a secret of the tests, long enough to be one")
    token = make_token(secret, "root", ["admin"], 600, time.time())
    heard: list[bytes] = []

    async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.close()

    with nodes() as some:
        server = some.do(asyncio.start_server(trap, "127.0.0.1", 0))
        named = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        safe = Config(name="safe", port=0, security=SecuritySettings(secret=secret))
        some.start("safe", config=safe)
        join = some.services["safe"].hood.url
        evil = msgspec.structs.replace(safe, name="evil", public_url=named, join=(join,))
        some.start("evil", "safe", config=evil)
        until(lambda: "evil" in some.services["safe"].hood.up)
        with httpx.Client(base_url=some.address("safe"), headers={"Authorization": f"Bearer {token}"}) as client:
            assert client.get("/admin/overview").json()["overlay"]["evil"] == named
            assert client.get("/admin/nodes/evil").json()["name"] == "evil"
            top = ["top", "--node", some.address("safe"), "--token", token, "--count", "1"]
            shown = CliRunner().invoke(app, top)
            assert "evil" in shown.output
            assert "does not answer" not in shown.output
        some.do(asyncio.sleep(0.1))
        assert heard == []
        server.close()


# What a person sees


@needs_browser
def test_the_map_shows_all_nodes_and_what_flows(overlay: Nodes, browser: Browser) -> None:
    with looking(browser, overlay.address("a") + "/dashboard") as page:  # which asks no other node
        expect(page.locator("#map .node.up")).to_have_count(3)
        expect(page.locator("#map .link:not(.down)")).to_have_count(2)
        expect(page.locator("#total-nodes")).to_have_text("3")
        expect(page.locator("#node-name")).to_have_text("a")
        expect(page.locator('#map [data-node="c"] .value')).to_have_text(re.compile("^[1-9]"))
        expect(page.locator("#map .labels text").first).to_have_text(re.compile(r"[1-9]\d* events/s"))
        expect(page.locator("#map .dots circle.events").nth(3)).to_be_attached()
        assert not page.evaluate("document.querySelector('.spark .line').getAttribute('d').includes('NaN')")
        page.locator('#map [data-node="c"]').focus()
        page.keyboard.press("Enter")
        expect(page.locator("#node-name")).to_have_text("c")
        expect(page.locator('[data-figure="published"] b')).to_have_text(re.compile("^[1-9]"))
        expect(page.locator('[data-figure="cost"] b')).to_have_text(re.compile("[µm]s$"))
        expect(page.locator("#node-links tr")).to_have_count(1)
        expect(page.locator("#node-url")).to_have_attribute("href", overlay.address("c") + "/dashboard/")


@needs_browser
def test_sessions_are_listed_with_their_filters(overlay: Nodes, browser: Browser) -> None:
    with looking(browser, overlay.address("a") + "/dashboard/#sessions", *map(overlay.address, "bc")) as page:
        ana = page.locator("#session-rows tr", has_text="ana")
        expect(ana).to_contain_text("here")
        expect(ana).to_contain_text("durable")
        gone = page.locator("#session-rows tr", has_text="gone")
        expect(gone).to_contain_text("away")
        assert int(gone.locator(".number").first.inner_text().replace("\u2009", "")) > 0
        page.click('[data-session="ana"]')
        for filter in FILTERS.values():
            expect(page.locator("#session-detail")).to_contain_text(filter)


@needs_browser
def test_many_sessions_come_in_pages(overlay: Nodes, browser: Browser) -> None:
    async def attach(service: Context) -> None:
        def job(core: Core, now: float) -> None:
            for number in range(60):
                core.presence.attach(f"s{number:02}", f"s{number:02}", now, durable=True)

        await service.node.submit(job)

    overlay.do(attach(overlay.services["b"]))
    with looking(browser, overlay.address("b") + "/dashboard/#sessions", *map(overlay.address, "ac")) as page:
        expect(page.locator("#page")).to_have_text("1 to 50 of 61")
        page.click("#later")
        expect(page.locator("#page")).to_have_text("51 to 61 of 61")
        expect(page.locator("#later")).to_be_disabled()
        expect(page.locator("#session-rows")).to_contain_text("s55")


@needs_browser
def test_the_workbench_explains_a_filter_and_shows_what_matches(overlay: Nodes, browser: Browser) -> None:
    with looking(
        browser, overlay.address("a") + "/dashboard/#workbench", *map(overlay.address, "bc"), may_fail="status of 400"
    ) as page:
        page.fill("#filter", "NOT price >= 7 AND price >= 2")
        expect(page.locator("#normal")).to_have_text("price >= 2 AND price < 7")
        expect(page.locator('[data-relation="Covered by"]')).to_contain_text("price < 10")
        expect(page.locator('[data-relation="Overlaps"]')).to_contain_text("price < 5")
        expect(page.locator("#live-state")).to_have_text("listening")
        expect(page.locator("#events tr").nth(5)).to_be_visible()
        prices = [int(re.findall(r"price: (\d+)", text)[0]) for text in page.locator("#events tr").all_inner_texts()]
        assert set(prices) <= set(range(2, 7))
        page.click("#pause")
        before = page.locator("#events tr").count()
        expect(page.locator("#pause")).to_have_text(re.compile(r"Go on \(\d+\+? new\)"))
        assert page.locator("#events tr").count() == before
        page.click("#pause")

        page.fill("#filter", "number = 9007199254740993")
        expect(page.locator("#normal")).to_have_text("number = 9007199254740993")
        expect(page.locator("#no-events")).to_be_visible()
        expect(page.locator("#live-state")).to_have_text("listening")
        page.fill("#event", '{"number": 9007199254740993, "text": "<b>bold</b>"}')
        page.keyboard.press("Control+Enter")
        expect(page.locator("#published")).to_contain_text("Safe")
        expect(page.locator("#events tr")).to_contain_text('{number: 9007199254740993, text: "<b>bold</b>"}')

        page.fill("#filter", "price < AND symbol = 'x'")
        trouble = page.locator("#filter-trouble")
        expect(trouble).to_contain_text("column 9")
        assert trouble.locator("pre").inner_text().split("\n")[1] == " " * 8 + "^"
        expect(page.locator("#live-state")).to_have_text("not listening")
        page.fill("#event", '{"number": ')
        page.click("#publish .main")
        expect(page.locator("#published")).to_contain_text("no JSON")


@needs_browser
def test_the_poset_is_drawn_and_searched(overlay: Nodes, browser: Browser) -> None:
    with looking(
        browser, overlay.address("a") + "/dashboard/#table", *map(overlay.address, "bc"), may_fail="status of 400"
    ) as page:
        box = page.locator('#poset [data-filter="price < 10"]')
        expect(page.locator("#poset .box")).to_have_count(4)
        expect(page.locator("#poset .edge")).to_have_count(1)
        lower = page.locator('#poset [data-filter="price < 5"]')
        assert _top(lower) > _top(box)
        box.focus()
        expect(page.locator("#filter-detail")).to_contain_text("clients of this node")
        page.keyboard.press("ArrowDown")
        expect(lower).to_have_class(re.compile("chosen"))
        page.fill("#find", "price < 7")
        expect(box).to_have_class(re.compile("coveredBy"))
        expect(lower).to_have_class(re.compile("covers"))
        page.fill("#find", '{"price": 3, "symbol": "KO"}')
        expect(page.locator("#found")).to_have_text("3 of 4 filters match this event")
        expect(page.locator("#poset .matches")).to_have_count(3)
        page.fill("#find", "price <")
        expect(page.locator("#found")).to_have_class("bad")


def _top(box: Any) -> float:
    bounds = box.bounding_box()
    assert bounds is not None
    return float(bounds["y"])


REPORT: dict[str, Any] = {
    "name": "trades",
    "state": "running",
    "batch": 7,
    "time": 1000.0,
    "events": 1_250_000,
    "deliveries": 3_000,
    "rate": 2430,
    "took": 0.5,
    "snapshot": 3,
    "subscriptions": 500,
    "busiest": [{"subscription": "ibm", "owner": "ana", "count": 400}, {"subscription": "ko", "owner": None, "count": 100}],
    "fields": [
        {
            "name": "price",
            "kinds": {"number": 90, "text": 10},
            "present": 0.5,
            "distinct": 84,
            "low": -1.5,
            "high": 9007199254740993,
            "top": [[119, 60], [True, 30]],
            "histogram": [[0, 10, 50], [10, 20, 100], [20, 40, 100]],
        },
    ],
    "history": [[980, 2000, 5], [990, 1000, 9], [1000, 2430, 7]],
}  # fmt: skip


def report(address: str, **changed: Any) -> None:
    told = REPORT | changed
    where = f"{address}/admin/pipelines/{quote(str(told['name']), safe='')}"
    assert httpx.put(where, json=told).status_code == 204


def look_again(page: Page) -> None:
    """Without waiting until it looks by itself."""
    page.click("#to-workbench")
    page.click("#to-pipelines")


def figures(pipeline: Locator) -> dict[str, str]:
    tiles = pipeline.locator("[data-figure]").all()
    return {tile.locator("span").inner_text(): tile.locator("b").inner_text() for tile in tiles}


@needs_browser
def test_a_pipeline_that_reports_is_shown_until_it_is_forgotten(browser: Browser) -> None:
    with nodes() as some:
        address, later = some.start("first"), 0.0
        some.services["first"].node.clock = lambda: time.time() + later
        with looking(browser, address + "/dashboard/") as page:
            page.locator("#to-overlay").focus()
            page.keyboard.press("ArrowLeft")
            expect(page.locator("#to-pipelines")).to_be_focused()
            expect(page.locator("#no-pipelines")).to_contain_text("fieldfare pipeline run pipeline.toml")

            report(address)
            pipeline = page.locator('[data-pipeline="trades"]')
            expect(pipeline.locator(".row").first).to_have_text(
                re.compile(r"^tradesrunningbatch 7 · reported \d\Ws ago$")
            )
            expect(page.locator("#no-pipelines")).to_be_hidden()
            assert {name: text.replace("\u2009", " ") for name, text in figures(pipeline).items()} == {
                "Events": "1.25 M",
                "Deliveries": "3 k",
                "Quarantined": "0",
                "Late": "0",
                "Events/s": "2.43 k",
                "Last batch": "500 ms",
                "Snapshot": "v3",
                "Subscriptions": "500",
            }
            line = pipeline.locator('[data-curve="events"] .line').get_attribute("d")
            assert re.findall(r"[ML](\S+)", str(line)) == ["0.00", "50.00", "100.00"]
            busiest = pipeline.locator(".bars").first
            assert busiest.locator("li").all_inner_texts() == ["ibm ana\n400", "ko\n100"]
            assert [bar.get_attribute("width") for bar in busiest.locator("rect").all()] == ["100.0%", "25.0%"]
            field = pipeline.locator('[data-field="price"]')
            assert field.locator("p").all_inner_texts() == [
                "number 90\u2009% · text 10\u2009%",
                "in 50\u2009% of events · 84 distinct",
                "-1.5 to 9007199254740993",
            ]
            assert field.locator("li").all_inner_texts() == ["119\n60", "true\n30"]
            boxes = field.locator(".histogram rect").all()
            assert [float(str(box.get_attribute("height"))) for box in boxes] == [20, 40, 20]  # areas, not heights
            assert [float(str(box.get_attribute("x"))) for box in boxes] == [0, 25, 50]

            heading = pipeline.locator("h2").element_handle()
            report(address, batch=8, quarantined=2, state="failed", error="no column 'price'")
            look_again(page)
            expect(pipeline.locator(".badge")).to_have_text("failed")
            expect(pipeline.locator('[data-figure="quarantined"] b')).to_have_class("bad")
            expect(pipeline.locator(".trouble")).to_have_text("no column 'price'")
            assert heading is not None
            assert heading.evaluate("one => one.isConnected"), "a pipeline changes in its place"

            report(address, batch=9)
            look_again(page)
            expect(pipeline.locator(".trouble")).to_be_hidden()
            report(address, name="done", state="ended", fields=[], busiest=[], history=[], snapshot=None)
            later = 125
            look_again(page)
            expect(pipeline).to_have_class("pipeline stale")
            expect(pipeline).to_contain_text("was running, but nothing came for 2\u2009min")
            done = page.locator('[data-pipeline="done"]')
            expect(done.locator(".badge")).to_have_text("ended")
            expect(done).to_contain_text("No statistics yet.")
            assert page.locator("[data-pipeline] h2").all_inner_texts() == ["done", "trades"]
            later = 4000
            look_again(page)
            expect(page.locator("#no-pipelines")).to_be_visible()
            expect(pipeline).to_have_count(0)


@needs_browser
def test_a_pipeline_with_odd_names_and_values_does_no_harm(browser: Browser) -> None:
    odd = "<img src=x onerror=alert(1)>"
    field = REPORT["fields"][0] | {"name": odd, "kinds": {odd: 1, "__proto__": 1}, "low": odd, "high": None}
    huge = {"name": "huge", "histogram": [[-1e308, 1e308, 1]], "top": [[odd, 0], [1e308, 0]], "low": False}
    odd_report = {
        "name": odd,
        "error": odd,
        "events": 1 << 53,
        "rate": 1e308,
        "busiest": [{"subscription": odd, "owner": odd, "count": 0}],
        "fields": [
            field,
            field | huge,
            field | {"histogram": [[1, 1, 5]]},
            field | {"histogram": [[0, 0, 0], [0, 1, 0]]},
        ],
        "history": [[1000, 1e308, 0], [10, 0, 1e308]],
    }
    with nodes() as some:
        address = some.start("first")
        report(address, **odd_report)
        report(address, name='"] *, \x00\u202e')
        with looking(browser, address + "/dashboard/#pipelines") as page:
            expect(page.locator("[data-pipeline]")).to_have_count(2)
            pipeline = page.locator("[data-pipeline]", has=page.locator(".trouble", has_text=odd))
            expect(pipeline.locator("h2")).to_have_text(odd)
            expect(pipeline.locator(".bars").first).to_have_text(f"{odd} {odd}0")
            expect(pipeline.locator("h4").first).to_have_text(odd)
            expect(pipeline.locator(".field").first).to_contain_text(f'"{odd}" to null')
            assert page.locator("main img").count() == 0
            assert "NaN" not in page.locator("#pipelines").inner_html()


FRAUD = """
small: [type = 'payment' AND amount < 10] large: [type = 'payment' AND amount > 500]
(at least 2 small followed by large) within 1 hour for each card select card as card, count(small) as tries
"""
PAYMENTS = [("a7", 5), ("a7", 6), ("b2", 7), ("b2", 8), ("a7", 900), ("c9", 1)]


async def pay(service: Context) -> None:
    for card, amount in PAYMENTS:
        await service.publish([Event({"type": "payment", "card": card, "amount": amount})])


@needs_browser
def test_a_pattern_is_drawn_with_its_open_instances_and_its_detections(browser: Browser) -> None:
    with nodes() as some:
        config = msgspec.structs.replace(
            load(None, {}, {"port": 0, "name": "a"}), patterns={"fraud": PatternSettings(text=FRAUD)}
        )
        address = some.start("a", config=config)
        some.do(pay(some.services["a"]))
        with looking(browser, f"{address}/dashboard/#patterns") as page:
            fraud = page.get_by_role("article", name="Pattern fraud")
            expect(fraud.locator(".detections > li")).to_have_count(1)
            expect(fraud.locator(".detections > li")).to_contain_text('{card: "a7", tries: 2}')
            expect(fraud.locator(".detections details li")).to_have_count(3)
            assert figures(fraud) == {
                "Open instances": "2", "Detections": "1", "In the last minute": "1", "Dropped": "0", "Late": "0",
            }  # fmt: skip
            waiting = {
                state.locator(".waits").text_content(): state.locator(".runs").text_content()
                for state in fraud.locator(".state.open").all()
            }
            assert waiting == {"small": "1", "large": "1"}, "c9 has paid once, b2 twice"
            expect(fraud.get_by_role("img")).to_have_accessible_name(re.compile("waits for large: 1 open"))
            page.set_viewport_size({"width": 390, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") == 390


@needs_browser
def test_nodes_that_come_and_go_are_shown(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.node.overviews.PATIENCE", 0.5)
    with nodes() as some:
        address = some.start("first")
        with looking(browser, address + "/dashboard/", may_fail="connect|Refused|Failed to load") as page:
            expect(page.locator("#map .node.up")).to_have_count(1)
            expect(page.locator("#no-links")).to_be_visible()
            some.start("second", "first")
            second = page.locator('#map [data-node="second"]')
            expect(second).to_have_class(re.compile("up"))
            expect(page.locator("#map .node.up")).to_have_count(2)
            some.stop("second")
            expect(second).to_have_class(re.compile("unreachable"))
            expect(second).to_contain_text("unreachable")
            expect(page.locator("#map .link.down")).to_have_count(1)
            second.click()
            expect(page.locator("#node-trouble")).to_contain_text("does not answer")


@needs_browser
def test_a_node_with_an_odd_name_or_address_does_no_harm(overlay: Nodes, browser: Browser) -> None:
    overview = httpx.get(overlay.address("a") + "/admin/overview").json()
    odd = {"<img src=x onerror=alert(1)>": "javascript:alert(1)", "empty": "", "broken": "ws://["}
    with looking(browser, "about:blank", overlay.address("a"), may_fail="status of 404") as page:
        page.route("**/admin/overview", lambda route: route.fulfill(json=overview | {"overlay": odd, "links": []}))
        page.goto(overlay.address("a") + "/dashboard/")
        expect(page.locator("#map .node")).to_have_count(4)
        node = page.locator("#map .node", has_text="<img src=x")
        expect(node).to_contain_text("unreachable")
        node.click()
        expect(page.locator("#node-name")).to_have_text("<img src=x onerror=alert(1)>")
        expect(page.locator("#node-trouble")).to_contain_text("there is no other node")
        assert page.locator("#node-url").get_attribute("href") is None


@needs_browser
def test_a_node_with_security_wants_a_token(browser: Browser) -> None:
    secret = Secret("a secret of the tests, long enough to be one")
    config = Config(name="safe", port=0, security=SecuritySettings(secret=secret))
    with nodes() as some:
        address = some.start("safe", config=config)
        with looking(browser, address + "/dashboard/#workbench", may_fail="status of 401") as page:
            expect(page.locator("#alert-text")).to_have_text("This node wants a token.")
            page.click("#alert-token")
            page.fill("#token", make_token(secret, "ana", ["admin"], 600, time.time()))
            page.keyboard.press("Enter")
            expect(page.locator("#own-name")).to_have_text("safe")
            expect(page.locator("#alert")).to_be_hidden()
            page.fill("#filter", "x = 1")
            expect(page.locator("#live-state")).to_have_text("listening")
            page.click("#to-token")
            page.fill("#token", "nonsense")
            page.keyboard.press("Enter")
            expect(page.locator("#alert-token")).to_be_visible()


@needs_browser
def test_a_phone_shows_all_tabs_and_does_not_scroll_sideways(overlay: Nodes, browser: Browser) -> None:
    with looking(browser, overlay.address("a")) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.get_by_role("tab", name="Pipelines")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
