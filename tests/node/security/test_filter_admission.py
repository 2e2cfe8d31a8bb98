"""Filters from outside: permission before reading, off the event loop, within bounds."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.node.http.helpers import SECRET, api, bearer, is_problem

from fieldfare.filters import parse
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.node.config import Limits
from fieldfare.node.security import AccessDenied, Principal, Role
from fieldfare.node.security.filter_admission import TooMuch, admitted, permitted


def test_a_filter_in_either_form_or_why_not() -> None:
    limits = Limits(filter_chars=40)
    assert asyncio.run(admitted("price < 10", limits)) == parse("price < 10")
    assert asyncio.run(admitted([{"exact": {"type": "a"}}], limits)).matches({"type": "a"})
    with pytest.raises(FilterSyntaxError):
        asyncio.run(admitted("price <", limits))
    with pytest.raises(TooMuch, match="40"):
        asyncio.run(admitted("price < " + "1" * 100, limits))
    with pytest.raises(TooMuch, match="40"):
        asyncio.run(admitted([{"exact": {"type": "a" * 100}}], limits))


def test_reading_is_done_elsewhere_and_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    free = threading.Event()

    def slow(written: object, _: object) -> Any:
        threads.append(threading.current_thread().name)
        if written == "slow":
            free.wait(60)
        return parse("x = 1")

    async def main() -> None:
        limits = Limits(filter_seconds=0.05)
        with pytest.raises(TooMuch, match=r"limits\.filter_seconds"):
            await admitted("slow", limits)
        await admitted("quick", Limits(filter_seconds=60))  # others are not in its way

    monkeypatch.setattr("fieldfare.filters.admission.admit", slow)
    try:
        asyncio.run(main())
    finally:
        free.set()
    assert all(name.startswith("filters") for name in threads)


def test_a_turn_is_waited_for_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> Any:
        time.sleep(0.02)
        return parse("x = 1")

    async def main() -> None:
        await asyncio.gather(*(admitted("x = 1", Limits(filter_seconds=60)) for _ in range(50)))

    monkeypatch.setattr("fieldfare.filters.admission.admit", slow)
    asyncio.run(main())


def test_who_may_not_ask_at_all_is_told_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Principal("ana", ("writer",), Role(publish=True))
    for verb in ("subscribe", "advertise"):
        with pytest.raises(AccessDenied, match=f"permission to {verb}"):
            permitted(nobody, verb)
    permitted(Principal("ana", ("reader",), Role(subscribe=parse("x = 1"))), "subscribe")

    def read(*_: object) -> Any:
        raise AssertionError("it was read")

    async def main() -> None:
        async with api(security__secret=SECRET) as (service, client):
            node = bearer(service, "n", "node")  # may join, and nothing else
            wanted = {"sink": "http://127.0.0.1:1/", "protocol": "HTTP", "filters": [{"sql": "x < 1"}]}
            is_problem(await client.get("/stream", params={"filter": "x = 1"}, headers=node), 403)
            is_problem(await client.post("/subscriptions", json=wanted, headers=node), 403)
            is_problem(await client.post("/admin/explain", json={"filter": "x = 1"}, headers=node), 403)
            is_problem(await client.post("/admin/match", json={"filter": "x = 1", "event": {}}, headers=node), 403)

    monkeypatch.setattr("fieldfare.filters.admission.admit", read)
    monkeypatch.setattr("fieldfare.node.http.stream.parse", read)
    monkeypatch.setattr("fieldfare.filters.languages.subscriptions.documents.parse", read)
    asyncio.run(main())
