from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.node.http.helpers import SECRET, Api, api, bearer, is_problem, sink, until

from fieldfare.filters import parse
from fieldfare.node.internal_session import InternalSession


async def asked(found: Api, name: str, *filters: str) -> InternalSession:
    consumer = InternalSession(found.service.node, name)
    await consumer.__aenter__()
    for number, text in enumerate(filters):
        await consumer.subscribe(str(number), parse(text))
    return consumer


def test_health_ready_and_the_way_in() -> None:
    async def main() -> None:
        async with api() as (service, client):
            assert (await client.get("/health")).json() == {"status": "alive"}
            assert (await client.get("/ready")).json() == {"ready": True}
            about = (await client.get("/")).json()
            assert about["name"] == "a"
            for path in set(about["links"].values()) - {"/dashboard", "/stream"}:
                assert (await client.get(path)).status_code in (200, 405)
            html = await client.get("/", headers={"Accept": "text/html,*/*"})
            assert html.status_code == 307
            assert html.headers["location"] == "/dashboard"
            service.node.ready = False
            assert is_problem(await client.get("/ready"), 503)["reasons"]
            assert (await client.get("/health")).status_code == 200
            assert "fieldfare_ready 0.0" in (await client.get("/metrics")).text
            is_problem(await client.delete("/admin/sessions/ana"), 503)
            service.node.ready = True
        async with api(dashboard=False) as (_, client):
            html = await client.get("/", headers={"Accept": "text/html"})
            assert html.status_code == 200
            assert "dashboard" not in html.json()["links"]

    asyncio.run(main())


def test_overview_sessions_and_subscriptions(tmp_path: Path) -> None:
    async def main() -> None:
        async with api(tmp_path) as found:
            client = found.client
            await asked(found, "ana", "x < 5", "x < 10")
            await asked(found, "bob/1", "y = 'q'")
            await client.post("/events", json=[{"x": 1}, {"x": 7}])
            overview = (await client.get("/admin/overview")).json()
            assert (overview["name"], overview["url"]) == ("a", found.service.hood.url)
            assert overview["sessions"] == 3  # and that of HTTP
            assert overview["subscriptions"] == 3
            assert overview["pending"] == 2
            assert overview["traffic"]["events_in"] == 2
            assert overview["rates"]["events_in"] > 0
            assert overview["log"]["last"] == 2
            assert overview["log"]["bytes"] > 0
            assert overview["memory"] > 1 << 20
            assert overview["overlay"] == {"a": found.service.hood.url}
            page = (await client.get("/admin/sessions", params={"offset": 1, "limit": 1})).json()
            assert page["total"] == 3
            assert [item["name"] for item in page["items"]] == ["bob/1"]
            assert (await client.get("/admin/sessions?search=an")).json()["total"] == 1
            ana = (await client.get("/admin/sessions/ana")).json()
            assert ana["wanted"] == {"0": "x < 5", "1": "x < 10"}
            assert ana["pending"] == 2
            assert (await client.get("/admin/sessions/bob/1")).json()["wanted"] == {"0": "y = 'q'"}
            is_problem(await client.get("/admin/sessions/eve"), 404)
            found_ones = (await client.get("/admin/subscriptions?search=x <")).json()
            assert found_ones["total"] == 2
            assert found_ones["items"][0] == {"session": "ana", "id": "0", "filter": "x < 5"}
            for bad in ("limit=0", "limit=5000", "offset=-1", "offset=x"):
                is_problem(await client.get(f"/admin/sessions?{bad}"), 400)
            is_problem(await client.post("/admin/moves", json={"session": "eve", "to": "b"}), 404)
            is_problem(await client.post("/admin/moves", json={"session": "ana", "to": "b"}), 404)
            is_problem(await client.post("/admin/moves", json={"session": "ana"}), 400)
            assert (await client.delete("/admin/sessions/ana")).status_code == 204
            assert "ana" not in found.service.node.core.sessions
            is_problem(await client.delete("/admin/sessions/ana"), 404)
            is_problem(await client.delete("/admin/sessions/~http"), 409)
            async with sink() as to:
                made = (await client.post("/subscriptions", json={"sink": to.url, "protocol": "HTTP"})).json()
                is_problem(await client.delete(f"/admin/sessions/webhook:{made['id']}"), 409)

    asyncio.run(main())


def test_the_table_is_the_order_of_covering() -> None:
    async def main() -> None:
        async with api() as found:
            await asked(found, "ana", "x < 9", "x < 5", "y = 1")
            await asked(found, "bob", "x < 7", "x < 5")
            table = (await found.client.get("/admin/table")).json()
            texts = [node["filter"] for node in table["nodes"]]
            assert sorted(texts) == ["x < 5", "x < 7", "x < 9", "y = 1"]
            edges = {(texts[a], texts[b]) for a, b in table["edges"]}
            assert edges == {("x < 9", "x < 7"), ("x < 7", "x < 5")}
            assert table["nodes"][0]["interfaces"] == ["(clients)"]
            assert table["truncated"] is False
            few = (await found.client.get("/admin/table?limit=2")).json()
            assert (len(few["nodes"]), few["total"], few["truncated"]) == (2, 4, True)

    asyncio.run(main())


def test_explain_and_match() -> None:
    async def main() -> None:
        async with api() as found:
            client = found.client
            await asked(found, "ana", "x < 9", "x < 5", "x BETWEEN 6 AND 20", "y = 1 AND x > 50")
            told = (await client.post("/admin/explain", json={"filter": "x < 7 AND x < 8"})).json()
            assert told["normal"] == "x < 7"
            assert told["covers"] == ["x < 5"]
            assert told["covered_by"] == ["x < 9"]
            assert told["overlaps"] == ["x BETWEEN 6 AND 20"]
            assert told["wanted"] == 4
            await asked(found, "bob", "x < 1")
            told = (await client.post("/admin/explain", json={"filter": "x < 7"})).json()
            assert told["covers"] == ["x < 1", "x < 5"]
            wrong = is_problem(await client.post("/admin/explain", json={"filter": "x <\ny ="}), 400)
            assert (wrong["line"], wrong["position"]) == (2, 6)
            document = {"filter": [{"exact": {"x": "5"}}]}
            assert (await client.post("/admin/explain", json=document)).json()["normal"] == "x IN (5, '5')"
            wrong = is_problem(await client.post("/admin/explain", json={"filter": [{"prefix": 1}]}), 400)
            assert wrong["path"] == "/0/prefix"
            match = {"filter": "x < 7 AND y = 1", "event": {"x": 9, "y": 1}}
            told = (await client.post("/admin/match", json=match)).json()
            assert told["matches"] is False
            [branch] = told["branches"]
            assert [(one["field"], one["actual"], one["ok"]) for one in branch["findings"]] == [
                ("x", 9, False),
                ("y", 1, True),
            ]
            is_problem(await client.post("/admin/match", json={"filter": "x < 7", "event": 5}), 400)
            is_problem(await client.post("/admin/match", json={"filter": "x < 7"}), 400)
            is_problem(await client.post("/admin/match", content=b"{}"), 415)

    asyncio.run(main())


def test_links() -> None:
    async def main() -> None:
        async with api() as a, api(name="b", join=(a.service.hood.url,)) as b:
            await until(lambda: "b" in a.service.hood.up and "a" in b.service.hood.up)
            await asked(b, "ana", "x < 5")
            await until(lambda: a.service.node.core.broker.entries)
            [link] = (await a.client.get("/admin/links")).json()
            assert (link["name"], link["url"], link["up"], link["role"]) == ("b", b.service.hood.url, True, "peer")
            assert link["traffic"]["tells_in"] > 0
            table = (await a.client.get("/admin/table")).json()
            assert table["nodes"] == [{"filter": "x < 5", "interfaces": ["b"]}]
            overview = (await a.client.get("/admin/overview")).json()
            assert set(overview["overlay"]) == {"a", "b"}
            assert b'fieldfare_link_up{neighbour="b"} 1.0' in (await a.client.get("/metrics")).content
            is_problem(await a.client.delete("/admin/links/c"), 404)
            assert (await a.client.delete("/admin/links/b")).status_code == 204

    asyncio.run(main())


def test_metrics(tmp_path: Path) -> None:
    async def main() -> None:
        async with api(tmp_path) as found:
            await asked(found, "ana", "x > 1")
            await found.client.post("/events", json=[{"x": n} for n in range(5)])
            response = await found.client.get("/metrics")
            assert response.headers["content-type"].startswith("text/plain")
            values = {
                (sample.name, *sample.labels.values()): sample.value
                for family in text_string_to_metric_families(response.text)
                for sample in family.samples
            }
            assert values["fieldfare_events_published_total",] == 5
            assert values["fieldfare_pending",] == 3
            assert values["fieldfare_subscriptions",] == 1
            assert values["fieldfare_sessions", "here"] == 2
            assert values["fieldfare_log_last_position",] == 5
            assert values["fieldfare_log_bytes",] > 0
            assert values["fieldfare_matching_seconds_total",] > 0
            assert values["fieldfare_group_events_sum",] == 5
            assert values["fieldfare_ready",] == 1
            assert values["process_resident_memory_bytes",] > 0
            [about] = [key for key in values if key[0] == "fieldfare_node_info"]
            assert set(about) >= {"a", "covering"}

    asyncio.run(main())


def test_who_may_administer_and_nobody_looks_from_elsewhere() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as (service, client):
            admin, ana = bearer(service, "root", "admin"), bearer(service, "ana", "client")
            for path in ("/admin/overview", "/admin/sessions", "/metrics", "/admin/table", "/admin/links"):
                is_problem(await client.get(path), 401)
                is_problem(await client.get(path, headers=ana), 403)
                assert (await client.get(path, headers=admin)).status_code == 200
            is_problem(await client.delete("/admin/sessions/x", headers=ana), 403)
            is_problem(await client.post("/admin/explain", json={"filter": "x = 1"}, headers=ana), 403)
            for path in ("/health", "/ready", "/", "/openapi.json"):
                assert (await client.get(path)).status_code == 200
            is_problem(await client.options("/admin/overview", headers={"Origin": "http://elsewhere"}), 403)
        async with api() as (_, client):
            for path in ("/admin/overview", "/metrics", "/admin/sessions", "/subscriptions", "/health"):
                assert "access-control-allow-origin" not in (await client.get(path)).headers

    asyncio.run(main())
