from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest
from cloudevents.core.bindings import http as foreign
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import periods, trees
from tests.events.strategies import values as event_values
from tests.node.http.helpers import SECRET, Api, api, bearer, is_problem, listening
from tools.waiting import PATIENCE

from fieldfare.events import binary_mode
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.node.http import binding, stream
from fieldfare.node.internal_session import Delivered


def foreign_event(number: int, data: object = None) -> CloudEvent:
    return CloudEvent(
        {
            "id": str(number),
            "source": "/tills/7",
            "type": "sale of a “book”",
            "time": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "subject": "100% more",
            "region": "eu",
        },
        data,  # type: ignore[arg-type]
    )


def test_foreign_sdk_in_all_modes() -> None:
    async def main() -> None:
        async with api() as (service, client), listening(service) as wait:
            binary = foreign.to_binary_event(foreign_event(1, {"sum": 5}))
            structured = foreign.to_structured_event(foreign_event(2, {"sum": 6}))
            batch = b"[" + b",".join(JSONFormat().write(foreign_event(n, {"sum": n})) for n in (3, 4)) + b"]"
            for content, headers in (
                (binary.body, binary.headers),
                (structured.body, structured.headers),
                (batch, {"content-type": binding.BATCH}),
            ):
                response = await client.post("/events", content=content, headers=headers)
                assert response.status_code == 202, response.text
            assert service.node.storage.log.last == 4
            events = await wait(4)
            assert [event.id for event in events] == ["1", "2", "3", "4"]
            assert [event["data.sum"] for event in events] == [5, 6, 3, 4]
            for event in events:
                assert event.type == "sale of a “book”"
                assert event["subject"] == "100% more"
                assert event["region"] == "eu"
                assert event.time == datetime(2026, 1, 31, 12, tzinfo=UTC)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        ("application/json", b'{"a": [1, "x"]}', {"a": [1, "x"]}),
        ("application/json; charset=utf-8", b"5", 5),
        ("application/vnd.x+json", b'"text"', "text"),
        ("text/plain", "grüße".encode(), "grüße"),
        ("text/plain; charset=latin-1", b"gr\xfc\xdfe", b"gr\xfc\xdfe"),
        ("application/octet-stream", b"\0\xff", b"\0\xff"),
        ("", b"\0\xff", b"\0\xff"),
    ],
)
def test_data_of_binary_mode(content_type: str, body: bytes, data: object) -> None:
    headers = [(b"ce-specversion", b"1.0"), (b"ce-id", b"1"), (b"ce-source", b"/s"), (b"ce-type", b"t")]
    event = binding.read_binary(headers, content_type, body)
    assert event == Event(
        {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": data}
        | ({"datacontenttype": content_type} if content_type else {})
    )


def test_attributes_in_headers_are_unquoted_and_decoded() -> None:
    headers = [
        (b"ce-specversion", b"1.0"),
        (b"ce-id", b'"a \\"b\\" %E2%82%AC"'),
        (b"ce-source", b"/s"),
        (b"ce-type", b"t"),
    ]
    assert binding.read_binary(headers, "", b"").id == 'a "b" €'


names = st.from_regex(r"[a-z0-9]{1,10}", fullmatch=True).filter(
    lambda name: (
        name
        not in {
            "id",
            "source",
            "type",
            "time",
            "data",
            "specversion",
            "datacontenttype",
            "subject",
            "dataschema",
            "validity",
        }
    )
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)
attributes = st.dictionaries(names, st.booleans() | st.integers(-(2**31), 2**31 - 1) | texts, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(attributes, texts, texts, values)
def test_what_is_written_in_binary_mode_is_read_back(more: dict[str, object], id: str, type: str, data: object) -> None:
    tree = {"specversion": "1.0", "id": id, "source": "/s", "type": type, **more, "data": data}
    event = Event(tree)
    message = binding.binary(event, "", "")
    headers = [(name.encode(), value.encode()) for name, value in message.headers.items()]
    read = binding.read_binary(headers, message.headers.get("content-type", ""), message.body)
    assert read["data"] == event["data"]
    assert read.id == id
    assert read.type == type
    for name, value in more.items():  # all attributes are texts in headers
        assert read[name] == (str(value).lower() if isinstance(value, bool) else str(value))
    if id.strip() and type.strip():
        assert foreign.from_binary_event(foreign.HTTPMessage(dict(message.headers), message.body)).get_id() == id


@pytest.mark.parametrize(
    "tree",
    [
        {"specversion": 5, "x": 1},
        {"specversion": "1.0", "Bad Name": 1},
        {"id": 5, "type": "t", "specversion": "1.0"},
        {},
    ],
)
def test_any_event_can_be_written_as_a_cloud_event(tree: dict[str, object]) -> None:
    read = json.loads(binary_mode.structured(Event(tree), "7", "/n"))
    assert (read["id"], read["source"], read["type"]) == ("7", "/n", "fieldfare.event")
    assert read["data"] == tree


def test_plain_json_lists_and_lines() -> None:
    async def main() -> None:
        async with api() as (service, client), listening(service) as wait:
            assert (await client.post("/events", json={"x": 1})).status_code == 202
            assert (await client.post("/events", json=[{"x": 2}, {"x": 3}])).json()["accepted"] == 2
            lines = await client.post(
                "/events", content=b'{"x": 4}\n\r\n{"x": 5}', headers={"content-type": "application/x-ndjson"}
            )
            assert lines.json() == {"accepted": 2, "position": 5}
            assert (await client.post("/events", json=[])).json() == {"accepted": 0, "position": 5}
            assert [event["x"] for event in await wait(5)] == [1, 2, 3, 4, 5]

    asyncio.run(main())


def test_all_or_none_and_the_error_names_the_place() -> None:
    async def main() -> None:
        async with api() as (service, client):
            found = is_problem(await client.post("/events", json=[{"x": 1}, {"x": {"$time": "no"}}]), 400)
            assert found["event"] == 2
            assert found["field"] == "x"
            assert "event 2" in found["detail"]
            json_type = {"content-type": "application/json"}
            bad = await client.post("/events", content=b'[{"x": 1}, {"y": NaN}]', headers=json_type)
            assert is_problem(bad, 400)["event"] == 2
            for content in (b"", b"[", b"5", b'{"x": 1', b'{"x": 1, "x": 2}', b"\xff"):
                is_problem(await client.post("/events", content=content, headers=json_type), 400)
            missing = await client.post("/events", content=b"1", headers={"ce-type": "t", **json_type})
            assert is_problem(missing, 400)["field"] == "specversion"
            batch = await client.post(
                "/events", content=b'[{"specversion": "1.0", "id": "1"}]', headers={"content-type": binding.BATCH}
            )
            found = is_problem(batch, 400)
            assert (found["event"], found["field"]) == (1, "source")
            injected = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/", "ce-type": "t", **json_type}
            is_problem(await client.post("/events", content=b'1, "admin": true', headers=injected), 400)
            assert service.node.storage.log.last == 0

    asyncio.run(main())


def test_limits_and_types() -> None:
    async def main() -> None:
        async with api(limits__body_bytes=1000, limits__batch=3) as (service, client):
            is_problem(await client.post("/events", json={"x": "y" * 1000}), 413)
            assert "batch" in is_problem(await client.post("/events", json=[{}] * 4), 413)["detail"]
            form = is_problem(await client.post("/events", data={"a": "b"}), 415)
            assert "application/json" in form["detail"]
            is_problem(await client.post("/events", content=b"{}"), 415)
            zipped = {"content-type": "application/json", "content-encoding": "gzip"}
            is_problem(await client.post("/events", content=b"{}", headers=zipped), 415)
            response = await client.get("/events")
            assert is_problem(response, 405)
            assert "POST" in response.headers["allow"]
            assert service.node.storage.log.last == 0
            service.node.ready = False
            response = await client.post("/events", json={})
            assert is_problem(response, 503)
            assert "retry-after" in response.headers
            service.node.ready = True

    asyncio.run(main())


def test_of_a_body_without_end_little_is_read() -> None:
    async def main() -> None:
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            for _ in range(4000):
                sent += 1
                yield b" " * 65536

        async with api(limits__body_bytes=1000) as (_, client):
            try:
                response = await client.post("/events", content=endless(), headers={"content-type": "application/json"})
            except httpx.WriteError:
                return  # the node hung up before all was sent
            is_problem(response, 413)

    asyncio.run(main())


def test_an_event_that_is_small_as_json_and_large_as_msgpack_is_refused() -> None:
    row = b"[" + b",".join([b"0.5"] * 4000) + b"]"
    text = b'{"x": [' + b",".join([row] * 55) + b"]}"
    with pytest.raises(EventError, match="MessagePack"):
        binding.read_events("application/json", text)


def test_ttl_and_replaces() -> None:
    async def main() -> None:
        async with api() as (service, client):
            now = service.node.clock()
            async with listening(service) as wait:
                assert (await client.post("/events?ttl=60", json={"x": 1})).status_code == 202
                [session] = [one for name, one in service.node.core.sessions.items() if name != "~http"]
                assert 50 < session.pending[1].expires - now < 60 + PATIENCE
                await client.post("/events?ttl=0.001", json={"x": 2})
                await asyncio.sleep(0.01)
                await client.post("/events", json={"x": 3}, headers={"Replaces": "k"})
                await client.post("/events?replaces=k", json={"x": 4})
                assert [event["x"] for event in await wait(2)] == [1, 4]
            for bad in ("0", "-1", "nan", "inf", "soon"):
                assert is_problem(await client.post(f"/events?ttl={bad}", json={}), 400)["parameter"] == "ttl"
            problem = is_problem(await client.post("/events?tll=60", json={}), 400)
            assert problem["detail"] == "there is no parameter 'tll'; there are ttl, replaces"

    asyncio.run(main())


def test_where_events_must_be_advertised_http_cannot_publish() -> None:
    async def main() -> None:
        async with api(strategy="covering+ads") as (_, client):
            assert "WebSocket" in is_problem(await client.post("/events", json={"x": 1}), 409)["detail"]

    asyncio.run(main())


def test_security() -> None:
    async def main() -> None:
        flags = {"security__secret": SECRET}
        async with api(**flags) as (service, client):
            response = await client.post("/events", json={})
            is_problem(response, 401)
            assert response.headers["www-authenticate"].startswith("Bearer")
            nobody = await client.post("/events", json={"x": 1}, headers=bearer(service, "n", "node"))
            assert is_problem(nobody, 403)["event"] == 1
            good = await client.post("/events", json={"x": 1}, headers=bearer(service, "ana", "client"))
            assert good.status_code == 202
            assert service.node.storage.log.last == 1

    asyncio.run(main())


@pytest.mark.needs("curl")
def test_curl() -> None:
    async def main() -> None:
        async with api() as found:
            done = await asyncio.to_thread(_curl, found, "-d", '{"x": 1}', "-H", "Content-Type: application/json")
            assert done == '{"accepted":1,"position":1}'
            attributes = ("specversion: 1.0", "id: 1", "source: /s", "type: t")
            headers = [part for one in attributes for part in ("-H", f"ce-{one}")]
            done = await asyncio.to_thread(_curl, found, "-d", "hello", "-H", "Content-Type: text/plain", *headers)
            assert done == '{"accepted":1,"position":2}'

    def _curl(found: Api, *arguments: str) -> str:
        command = ["curl", "-sS", "--noproxy", "*", *arguments, f"{found.url}/events"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    asyncio.run(main())


content_types = st.sampled_from(
    ["application/json", "application/x-ndjson", binary_mode.STRUCTURED, binding.BATCH, "text/plain"]
)
jsonish = values.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60)
header_names = st.from_regex(r"(ce-[a-z0-9!_.-]{1,12}|ttl|replaces|content-type)", fullmatch=True)
header_values = st.binary(max_size=20).map(
    lambda raw: bytes(c for c in raw if c not in b"\r\n\0" and (c >= 32 or c == 9) and c != 127)
)
cloud_heads = st.sampled_from(
    [[], [(b"ce-specversion", b"1.0"), (b"ce-id", b"1"), (b"ce-source", b"/"), (b"ce-type", b"t")]]
)


@given(content_types, cloud_heads, st.lists(st.tuples(header_names, header_values), max_size=3), jsonish)
def test_whatever_comes_there_is_a_clear_answer(
    client: httpx.Client, kind: str, head: list[tuple[bytes, bytes]], more: list[tuple[str, bytes]], content: bytes
) -> None:
    headers = [(b"content-type", kind.encode()), *head, *((name.encode(), value.strip()) for name, value in more)]
    response = client.post("/events", content=content, headers=headers)
    if response.status_code != 202:
        is_problem(response, (400, 413, 415))
    assert client.get("/ready").status_code == 200


cloud_names = st.sampled_from(
    ["specversion", "id", "source", "type", "time", "data", "datacontenttype", "subject", "validity", "x"]
)
cloudy = st.builds(
    lambda tree, more, valid: Event({**tree, **more}, valid=valid),
    trees,
    st.dictionaries(
        cloud_names, st.sampled_from(["1.0", "text/plain", "a b\r\nc: d", "grüße"]) | event_values, max_size=8
    ),
    periods,
)


@given(cloudy)
def test_no_event_is_impossible_to_send(event: Event) -> None:
    assert json.loads(binary_mode.structured(event, "7", "/n"))["specversion"] == "1.0"
    assert b"\n" not in binary_mode.structured(event, "7", "/n") + binding.plain(event)
    message = binding.binary(event, "7", "/n")
    assert {"ce-specversion", "ce-id", "ce-source", "ce-type"} <= message.headers.keys()
    for name, value in message.headers.items():
        assert name.isascii()
        assert value.isascii()
        assert value.isprintable()
    lines = stream.message(Delivered(1, 2, 0.0, "p", event, ()), "2-c0", "/n", "c0", plain=False).split(b"\n")
    assert [line.partition(b":")[0] for line in lines if line] in ([b"id", b"data"], [b"id", b"event", b"data"])
