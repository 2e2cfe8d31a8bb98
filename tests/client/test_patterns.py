"""Patterns at real nodes: subscriptions of clients, settings, rights, moves, and a beginning in the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.client.nodes import cut, node, run, until
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.errors import Refused
from fieldfare.patterns import event, parse_pattern, pattern

FRAUD = """
    small: [type = 'payment' AND amount < 10]
    large: [type = 'payment' AND amount > 500]
    (at least 3 small followed by large) within 1 hour
    for each card
    select card as card, count(small) as tries, large.amount as amount
"""


def payment(card: str, amount: float) -> dict[str, Any]:
    return {"type": "payment", "card": card, "amount": amount}


STORY = [payment("a", 1), payment("b", 1), payment("a", 2), payment("a", 3), payment("b", 900), payment("a", 900)]


def test_a_client_gets_composite_events_with_their_constituents(tmp_path: Path) -> None:
    async def work() -> None:
        async with node(tmp_path) as service, ff.connect(service.hood.url, session="watch") as client:
            async with client.subscribe(parse_pattern(FRAUD)) as events:
                await client.publish_batch(STORY)
                found = await events.next(PATIENCE)
                assert (found["card"], found["tries"], found["amount"]) == ("a", 3, 900)
                assert found["constituents.event.amount"] == (1, 2, 3, 900)
                cut(client)
                await client.publish_batch(STORY)
                assert str((await events.next(PATIENCE))["ts_lo"]) > str(found["ts_hi"])
            await until(lambda: not service.node.core.patterns.known)

    run(work())


def test_a_pattern_of_python_survives_a_restart_of_the_node(tmp_path: Path) -> None:
    first, second = event("first", ff.field.x == 1), event("second", ff.field.x == 2)
    pair = pattern(first.followed_by(second, within="1h"), limit=5)

    async def work() -> None:
        async with (
            node(tmp_path) as service,
            ff.connect(service.hood.url, session="watch") as client,
            client.subscribe(pair, id="pair", keep=True),
        ):
            await client.publish({"x": 1})
        async with (
            node(tmp_path) as service,
            ff.connect(service.hood.url, session="watch") as client,
            client.subscribe(pair, id="pair", keep=True) as events,
        ):
            await client.publish({"x": 2})
            assert (await events.next(PATIENCE))["constituents.event.x"] == (1, 2)
            assert service.node.core.patterns.shared.open == 0

    run(work())


def test_a_pattern_begins_in_the_past(tmp_path: Path) -> None:
    async def work() -> None:
        async with node(tmp_path) as service, ff.connect(service.hood.url) as client:
            await client.publish_batch(STORY)
            await client.drain()
            async with client.subscribe(parse_pattern(FRAUD), since=1) as events:
                assert (await events.next(PATIENCE))["card"] == "a"
                await client.publish_batch([payment("b", 2), payment("b", 3), payment("b", 700)])
                found = await events.next(PATIENCE)  # with the first small one of b, which was in the past
                assert (found["card"], found["tries"]) == ("b", 3)

    run(work())


def test_a_pattern_of_the_settings_is_for_everybody(tmp_path: Path) -> None:
    settings = {"patterns": {"fraud": {"text": FRAUD}}}

    async def work() -> None:
        async with settled(tmp_path, settings) as service, ff.connect(service.hood.url) as client:
            async with client.subscribe("pattern = 'fraud' AND amount > 800") as events:
                await client.publish_batch(STORY)
                assert (await events.next(PATIENCE))["tries"] == 3
            async with httpx.AsyncClient(base_url=service.hood.url.replace("ws", "http", 1)) as http:
                (shown,) = (await http.get("/admin/patterns")).json()
                assert (shown["name"], shown["detections"], shown["instances"]) == ("fraud", 1, 1)
                assert shown["latest"][0]["event"]["card"] == "a"
                assert shown["keys"] == [{"values": ["b"], "instances": 1}]
                assert (await http.delete("/admin/patterns/fraud")).status_code == 409

    run(work())


def settled(folder: Path, settings: dict[str, Any]) -> Any:
    """Return a node with tables in its settings, which no flag can give."""
    lines = [f"[patterns.{name}]\ntext = '''{one['text']}'''" for name, one in settings["patterns"].items()]
    file = folder / "node.toml"
    file.write_text("\n".join(lines), "utf-8")
    return node(folder / "data", file=file)


def test_a_mistake_in_a_pattern_is_refused_with_its_place() -> None:
    async def work() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            with pytest.raises(Refused, match="may wait for b for ever"):
                async with client.subscribe(parse_pattern("a: [x = 1] b: [x = 2] a followed by b for each card")):
                    pass

    run(work())


def test_a_stream_of_http_has_a_pattern() -> None:
    async def work() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            base = service.hood.url.replace("ws", "http", 1)
            async with httpx.AsyncClient(base_url=base, timeout=PATIENCE) as http:
                query = {"pattern": FRAUD, "format": "plain"}
                async with http.stream("GET", "/stream", params=query) as answer:
                    assert answer.status_code == 200
                    await client.publish_batch(STORY)
                    async for line in answer.aiter_lines():
                        if line.startswith("data:"):
                            assert '"tries":3' in line.replace(" ", "")
                            break
                bad = await http.get("/stream", params={"pattern": "a: [x = 1] a followed by b"})
                assert bad.status_code == 400
                assert "no event is named b" in bad.text

    run(work())
