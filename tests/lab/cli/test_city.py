"""`fieldfare lab city`: what it prints, and that the page shows what happened, in a browser, too."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from playwright.sync_api import expect, sync_playwright
from tools.waiting import PATIENCE
from typer.testing import CliRunner, Result

from fieldfare.simulation import trace as records
from fieldfare.simulation.checker import Violation
from fieldfare_lab.cli import city_page
from fieldfare_lab.cli.city import city
from fieldfare_lab.cli.city_page import facts, page, totals
from fieldfare_lab.mobility import film as films
from fieldfare_lab.mobility.film import Film, record

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.needs("chromium")
app = typer.Typer()
app.command()(city)


@pytest.fixture(scope="module")
def film() -> Film:
    return record(6, 30, 1)


def run(film: Film, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Result:
    asked: list[tuple[object, ...]] = []

    def recorded(*given: object) -> Film:
        asked.append(given)
        return film

    monkeypatch.setattr(films, "record", recorded)
    result = CliRunner().invoke(app, [*map(str, arguments), "--taxis", "6", "--seconds", "30", "--seed", "1"])
    assert asked == [(6, 30, 1)]
    return result


def test_a_summary_and_a_page(film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "city.html"
    result = run(film, monkeypatch, "--html", file)
    assert result.exit_code == 0, result.output
    published = sum(isinstance(record, records.Published) for record in film.trace)
    assert re.search(rf"^published +{published:,}$", result.stdout, re.MULTILINE)
    assert re.search(r"^lost +0$", result.stdout, re.MULTILINE)
    assert "checker: 0 violations" in result.stdout
    assert file.read_text("utf-8") == page(film, "Taxis in a city")


def test_violations_are_shown_and_end_with_1(film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = film._replace(violations=[Violation("liveness", len(film.trace) - 1, "to office: it is missing")])
    result = run(bad, monkeypatch)
    assert result.exit_code == 1
    assert re.search(r"^lost +1$", result.stdout, re.MULTILINE)
    assert "liveness: to office: it is missing" in result.stdout


def test_the_page_needs_nothing_from_elsewhere_and_is_small(film: Film) -> None:
    text = page(film, "<City>")
    assert "<City>" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src &#x27;none&#x27;" in text
    assert len(text) < 300_000


def test_the_page_holds_the_run(film: Film) -> None:
    known = json.loads(json.dumps(facts(film)))
    kinds = (records.Published, records.Forwarded, records.Delivered)
    assert len(known["messages"]) == sum(isinstance(record, kinds) for record in film.trace)
    assert [message[0] for message in known["messages"]] == sorted(message[0] for message in known["messages"])
    assert {name: sum(counts) for name, counts in known["counts"].items()} == dict(totals(film))
    assert len(known["handovers"]) == len(film.handovers)
    assert len(known["movers"]) == 7
    links = {frozenset(link) for link in known["links"]}
    brokers = len(known["names"])
    for _, step, sender, receiver, _ in known["messages"]:
        assert step == 0 or sender < brokers
        assert max(sender, receiver) >= brokers or {sender, receiver} in links


def test_the_steps_of_an_event_follow_each_other(film: Film) -> None:
    nodes = [*film.topology.brokers, *film.drives, *(set(film.places) - set(film.topology.brokers))]
    for event in city_page._steps(film, {name: number for number, name in enumerate(nodes)}):
        first, *rest = event
        on_its_way, late = [one for one in rest if one[1]], [one for one in rest if not one[1]]
        reached = {(1, first[3]), *((step + 1, to) for _, step, _, to, _ in on_its_way)}
        assert all((step, sender) in reached for _, step, sender, _, _ in on_its_way)
        assert all(time > first[0] for time, *_ in late)


def test_of_many_events_some_are_shown_and_all_counted(film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = facts(film)
    monkeypatch.setattr(city_page, "MOST_MESSAGES", 300)
    some = facts(film)
    assert some["every"] == -(-len(whole["messages"]) // 300) > 1
    assert 0 < len(some["messages"]) < len(whole["messages"]) / 2
    assert some["counts"] == whole["counts"]
    assert f"One of {some['every']} events is shown" in page(film, "city")


@needs_browser
def test_it_plays(film: Film, tmp_path: Path) -> None:
    file = tmp_path / "city.html"
    file.write_text(page(film, "City"), "utf-8")
    said: list[str] = []
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        look: dict[str, Any] = {"reduced_motion": "reduce", "color_scheme": "dark"}
        tab = browser.new_page(viewport={"width": 900, "height": 700}, **look)
        tab.set_default_timeout(1000 * PATIENCE)
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        taxi = tab.locator("#movers .mover").first
        before = taxi.get_attribute("transform")
        expect(tab.locator("#play")).to_have_text("Play")
        tab.locator("#speed").select_option("8")
        tab.locator("#play").click()
        expect(tab.locator("#published")).not_to_have_text(re.compile(r"^\d?$"))
        assert tab.locator('#messages circle[visibility="visible"]').count() > 0
        assert taxi.get_attribute("transform") != before
        tab.locator("#play").click()
        stopped = tab.locator("#time").text_content()
        tab.locator("#play").evaluate("button => button.blur()")
        tab.keyboard.press("ArrowRight")
        expect(tab.locator("#time")).not_to_have_text(str(stopped))
        tab.locator("#taxis button").first.focus()
        tab.keyboard.press("Enter")
        expect(tab.locator("#chosen .filter")).to_have_count(2)
        assert tab.locator(".cell.wanted").count() >= 4
        tab.locator("#scrub").evaluate("slider => { slider.value = 30; slider.dispatchEvent(new Event('input')); }")
        for id, name in (("published", "published"), ("delivered", "delivered"), ("handed", "handovers")):
            expect(tab.locator(f"#{id}")).to_have_text(f"{dict(totals(film))[name]:,}")
        expect(tab.locator("#lost")).to_have_text("0")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 900
        browser.close()
    assert said == []
    assert asked == [file.as_uri()]
