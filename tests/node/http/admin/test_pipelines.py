from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.node.http.helpers import SECRET, api, bearer, is_problem

from fieldfare.node.http.openapi import REPORT
from fieldfare.node.pipeline_reports import (
    KEPT,
    LONGEST_ERROR,
    LONGEST_TEXT,
    MOST_BINS,
    MOST_BUSY,
    MOST_FIELDS,
    MOST_HISTORY,
    MOST_KINDS,
    MOST_PIPELINES,
    MOST_TOP,
    PipelineReport,
    Reports,
)

LEAST = {"name": "p", "state": "waiting", "batch": 0, "time": 0}
FIELD = {"name": "x", "kinds": {}, "present": 0, "distinct": 0}
BUSY = {"subscription": "s", "owner": None, "count": 1}


def path(name: str) -> str:
    return f"/admin/pipelines/{quote(name, safe='')}"


def latest(told: list[tuple[float, PipelineReport]], now: float) -> list[tuple[float, PipelineReport]]:
    """The last one of each name, of those that are fresh; the oldest first."""
    last = {report.name: (at, report) for at, report in told if now - at <= KEPT}
    return sorted(last.values(), key=lambda item: item[0])[-MOST_PIPELINES:]


def test_the_last_reports_are_kept_for_an_hour_and_not_too_many() -> None:
    chance = random.Random(7)
    reports, now = Reports(), 1e9
    told: list[tuple[float, PipelineReport]] = []
    most = 0
    for step in range(3000):
        now += chance.choice([0.5, 1, 60, 90])
        report = PipelineReport(f"p{chance.randrange(60)}", "running", step, now)
        told = latest([*told, (now, report)], now)
        reports.keep(report, now)
        if chance.random() < 0.1:
            _, gone = chance.choice(told)
            told = [(at, one) for at, one in told if one.name != gone.name]
            assert reports.forget(gone.name)
            assert not reports.forget(gone.name)
        now += chance.choice([0.5, 0.5, 0.5, 300])
        wanted = sorted(latest(told, now), key=lambda item: item[1].name)
        assert [(one.age, one.report) for one in reports.shown(now)] == [(now - at, one) for at, one in wanted]
        most = max(most, len(wanted))
    assert most == MOST_PIPELINES


def test_a_pipeline_reports_and_is_forgotten() -> None:
    async def main() -> None:
        async with api() as (service, client):
            real, later = service.node.clock, 0.0
            service.node.clock = lambda: real() + later
            assert (await client.get("/admin/pipelines")).json() == []
            assert (await client.put(path("trades"), json=REPORT)).status_code == 204
            other = {**LEAST, "name": "a/b c"}
            assert (await client.put(path("a/b c"), json=other)).status_code == 204
            later = 10
            first, second = (await client.get("/admin/pipelines")).json()
            assert {name: first["report"][name] for name in other} == other
            assert second["report"] == {"quarantined": 0, "late": 0, "error": None} | REPORT
            assert 10 <= second["age"] < 20
            assert (await client.put(path("trades"), json={**REPORT, "batch": 8})).status_code == 204
            _, second = (await client.get("/admin/pipelines")).json()
            assert second["report"]["batch"] == 8
            assert second["age"] < 10
            assert (await client.delete(path("a/b c"))).status_code == 204
            assert "a/b c" in is_problem(await client.delete(path("a/b c")), 404)["detail"]
            assert [one["report"]["name"] for one in (await client.get("/admin/pipelines")).json()] == ["trades"]
            later += KEPT + 10
            assert (await client.get("/admin/pipelines")).json() == []

    asyncio.run(main())


def test_only_who_administers_may_report() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as (service, client):
            admin, ana = bearer(service, "root", "admin"), bearer(service, "ana", "client")
            for method, where in (("PUT", path("p")), ("GET", "/admin/pipelines"), ("DELETE", path("p"))):
                body = LEAST if method == "PUT" else None
                is_problem(await client.request(method, where, json=body), 401)
                is_problem(await client.request(method, where, headers=ana, json=body), 403)
                assert (await client.request(method, where, headers=admin, json=body)).status_code in (200, 204)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"name": "q"}, "is of q, and the path names p"),
        ({"name": ""}, "$.name"),
        ({"state": "dancing"}, "$.state"),
        ({"batch": -1}, "$.batch"),
        ({"events": (1 << 53) + 1}, "$.events"),
        ({"time": -1}, "$.time"),
        ({"rate": None}, "$.rate"),
        ({"colour": "red"}, "colour"),
        ({"error": "x" * (LONGEST_ERROR + 1)}, "$.error"),
        ({"busiest": [BUSY] * (MOST_BUSY + 1)}, "$.busiest"),
        ({"fields": [FIELD] * (MOST_FIELDS + 1)}, "$.fields"),
        ({"fields": [FIELD | {"present": 1.01}]}, "$.fields[0].present"),
        ({"fields": [FIELD | {"low": {"a": 1}}]}, "$.fields[0].low"),
        ({"fields": [FIELD | {"high": "x" * (LONGEST_TEXT + 1)}]}, "$.fields[0].high"),
        ({"fields": [FIELD | {"kinds": {str(n): 1 for n in range(MOST_KINDS + 1)}}]}, "$.fields[0].kinds"),
        ({"fields": [FIELD | {"top": [[1, 1]] * (MOST_TOP + 1)}]}, "$.fields[0].top"),
        ({"fields": [FIELD | {"histogram": [[0, 1, 1]] * (MOST_BINS + 1)}]}, "$.fields[0].histogram"),
        ({"history": [[0, 0, 0]] * (MOST_HISTORY + 1)}, "$.history"),
    ],
)
def test_what_is_wrong_with_a_report_is_named(client: httpx.Client, changed: dict[str, Any], place: str) -> None:
    assert place in is_problem(client.put(path("p"), json=LEAST | changed), 400)["detail"]
    assert client.get("/admin/pipelines").json() == []


@example("\n0", b"")  # a line break: no route matches it
@example(LEAST["name"], msgspec.json.encode(LEAST))  # this is a report
@given(st.text(max_size=20) | st.just("x" * 201), st.binary(max_size=20) | st.just(msgspec.json.encode(LEAST)))
def test_whatever_is_sent_there_is_a_clear_answer(client: httpx.Client, name: str, content: bytes) -> None:
    """Also to a name that a path can hardly hold: a report under it is either shown and forgotten, or refused."""
    where = path(name)
    sent = client.put(where, content=content, headers={"content-type": "application/json"})
    if sent.status_code != 204 or content != msgspec.json.encode(LEAST | {"name": name}):
        is_problem(sent, (400, 404, 405))
    kept = client.put(where, json=LEAST | {"name": name})
    if kept.status_code == 204:
        assert name in [one["report"]["name"] for one in client.get("/admin/pipelines").json()]
        assert client.delete(where).status_code == 204
    else:
        is_problem(kept, (400, 404, 405))
