"""Server-sent events in a plain browser, by nothing but its own EventSource."""

from __future__ import annotations

from playwright.sync_api import sync_playwright
from tests.node.test_dashboard import CHROMIUM, needs_browser, nodes, until

from fieldfare.events.event import Event

LISTEN = """(filter) => {
    window.got = [];
    window.source = new EventSource('/stream?format=plain&session=browser&filter=' + encodeURIComponent(filter));
    window.source.onmessage = message => window.got.push([message.lastEventId, JSON.parse(message.data)]);
    return new Promise((done, fail) => { window.source.onopen = done; window.source.onerror = fail; });
}"""


@needs_browser
def test_a_plain_browser_listens_and_goes_on_where_it_was() -> None:
    with nodes() as some, sync_playwright() as playwright:
        address = some.start("a")
        service = some.services["a"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/dashboard")
        page.evaluate(LISTEN, "price < 10")
        for price in (5, 50, 6):
            some.do(service.publish([Event({"price": price})]))
        until(lambda: len(page.evaluate("window.got")) == 2)
        assert [event for _, event in page.evaluate("window.got")] == [{"price": 5}, {"price": 6}]
        page.evaluate("window.source.close()")
        until(lambda: not service.node.core.sessions["browser"].connected)
        some.do(service.publish([Event({"price": 7})]))
        page.evaluate(LISTEN, "price < 10")
        until(lambda: {"price": 7} in [event for _, event in page.evaluate("window.got")])
        browser.close()
