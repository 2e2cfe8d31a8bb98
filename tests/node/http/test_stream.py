from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st
from tests.node.http.helpers import SECRET, Api, api, bearer, is_problem, until
from tools.waiting import PATIENCE

from fieldfare.events.event import Event
from fieldfare.node.http import stream
from fieldfare.node.internal_session import Delivered


class Message(NamedTuple):
    id: str
    event: str
    data: dict[str, Any]


async def messages(response: httpx.Response) -> AsyncIterator[Message]:
    """The messages of a stream, read as the HTML standard says."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if "data" in fields:
                yield Message(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")


async def take(found: Api, count: int, last: str = "", **query: Any) -> list[Message]:
    headers = {"Last-Event-ID": last} if last else {}
    async with found.client.stream("GET", "/stream", params=query, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        taken: list[Message] = []
        async with asyncio.timeout(PATIENCE):
            async for message in messages(response):
                taken.append(message)
                if len(taken) == count:
                    break
    return taken


async def publish(found: Api, *numbers: int) -> None:
    assert (await found.client.post("/events", json=[{"n": n, "type": "t"} for n in numbers])).status_code == 202


def numbers(taken: list[Message]) -> list[int]:
    return [message.data["n"] for message in taken]


async def nobody_is_there(found: Api) -> None:
    await until(lambda: not found.service.node.closers)


def test_a_stream_of_what_matches() -> None:
    async def main() -> None:
        async with api() as found:
            reading = asyncio.create_task(take(found, 3, filter=["n > 5", "n = 2"], filters='{"exact": {"n": "4"}}'))
            await until(lambda: found.service.node.core.changes)
            await publish(found, *range(1, 8))
            two, four, six = await reading
            event = JSONFormat().read(None, json.dumps(two.data).encode())
            id = f"2-{found.service.node.core.life}"
            assert (event.get_type(), event.get_id(), event.get_source()) == ("t", id, "/fieldfare/a")
            assert [one.data["data"] for one in (two, four, six)] == [{"n": 2}, {"n": 4}, {"n": 6}]
            life = found.service.node.core.life
            assert [one.id for one in (two, four, six)] == [f"2:1:{life}", f"4:2:{life}", f"6:3:{life}"]
            assert two.event == "t"
            await nobody_is_there(found)

    asyncio.run(main())


def test_since_and_last_event_id_without_a_session() -> None:
    async def main() -> None:
        async with api() as found:
            await publish(found, 1, 2, 3, 4)
            taken = await take(found, 2, since=2, format="plain")
            assert numbers(taken) == [2, 3]
            await publish(found, 5)
            again = await take(found, 2, last=taken[-1].id, since=2, format="plain")
            assert numbers(again) == [4, 5]
            assert numbers(await take(found, 1, since="2020-01-01T00:00:00Z", format="plain")) == [1]
            is_problem(await found.client.get("/stream", params={"since": "yesterday"}), 400)
            is_problem(await found.client.get("/stream", headers={"Last-Event-ID": "x"}), 400)
            await nobody_is_there(found)

    asyncio.run(main())


def test_a_session_waits_and_goes_on_behind_the_last_id(tmp_path: Path) -> None:
    async def main() -> None:
        query = {"session": "ana", "filter": "n > 0", "format": "plain"}
        async with api(tmp_path) as found:
            await publish(found, 1)
            assert numbers(await take(found, 1, since=1, **query)) == [1]
            await nobody_is_there(found)
            await publish(found, 2, 3, 4)
        async with api(tmp_path) as found:
            taken = await take(found, 3, since=1, **query)
            assert numbers(taken) == [1, 2, 3]  # nothing was acknowledged, and nothing is replayed twice
            await nobody_is_there(found)
            await publish(found, 5)
            taken = await take(found, 2, last=taken[-1].id, since=1, **query)
            assert numbers(taken) == [4, 5]
            session = found.service.node.core.sessions["ana"]
            assert session.acknowledged == 3

    asyncio.run(main())


def test_the_last_id_of_a_session_that_is_another_one_now_acknowledges_nothing() -> None:
    async def main() -> None:
        query = {"session": "ana", "format": "plain"}
        async with api() as found:
            await publish(found, 1, 2, 3)
            taken = await take(found, 3, since=1, **query)
            await nobody_is_there(found)
            assert (await found.client.delete("/admin/sessions/ana")).status_code == 204
            await publish(found, 4)
            async with found.client.stream("GET", "/stream", params=query, headers={"Last-Event-ID": taken[-1].id}):
                await publish(found, 5, 6, 7)
            await nobody_is_there(found)
            assert numbers(await take(found, 3, last=taken[-1].id, **query)) == [5, 6, 7]

    asyncio.run(main())


def test_a_stream_with_a_session_ends_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "TURN", 50)

    async def main() -> None:
        async with api() as found:
            await publish(found, *range(1, 251))
            got: list[int] = []
            last = ""
            for _ in range(3):  # as EventSource does
                taken = await take(found, 100, last=last, session="ana", since=1, format="plain")
                got += numbers(taken)
                if taken:
                    last = taken[-1].id
            assert got == list(range(1, 251))

    asyncio.run(main())


def test_comments_keep_it_alive_and_the_session_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE", 0.05)

    async def main() -> None:
        async with api() as found:
            async with found.client.stream("GET", "/stream", params={"session": "ana"}) as response:
                lines = response.aiter_lines()
                seen = [await anext(lines) for _ in range(9)]
                assert seen[:3] == [": a", "retry: 1000", ""]
                assert seen[3:] == [":", ""] * 3
                assert found.service.node.core.sessions["ana"].connected
            await until(lambda: not found.service.node.core.sessions["ana"].connected)

    asyncio.run(main())


def test_streams_end_when_the_node_is_about_to_stop() -> None:
    async def main() -> None:
        async with api() as found, found.client.stream("GET", "/stream") as response:
            found.service.node.leaving.set()
            assert "stops" in (await response.aread()).decode()

    asyncio.run(main())


def test_another_connection_takes_over_and_ending_a_session_ends_its_stream() -> None:
    async def main() -> None:
        async with api() as found:
            query = {"session": "ana"}
            async with (
                found.client.stream("GET", "/stream", params=query) as first,
                found.client.stream("GET", "/stream", params=query) as second,
            ):
                assert "another connection" in (await first.aread()).decode()
                assert (await found.client.delete("/admin/sessions/ana")).status_code == 204
                assert "administrator" in (await second.aread()).decode()
            assert "ana" not in found.service.node.core.sessions

    asyncio.run(main())


def test_tokens() -> None:
    async def main() -> None:
        async with api(security__secret=SECRET) as found:
            service, client = found
            is_problem(await client.get("/stream"), 401)
            ana, bob = bearer(service, "ana", "client"), bearer(service, "bob", "client")
            assert "URL" in is_problem(await client.get("/stream?access_token=x", headers=ana), 400)["detail"]
            is_problem(await client.get("/stream", headers=bearer(service, "n", "node")), 403)
            async with client.stream("GET", "/stream?session=s", headers=ana) as response:
                assert response.status_code == 200
            is_problem(await client.get("/stream?session=s", headers=bob), 403)

    asyncio.run(main())


def test_the_stream_ends_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE", 0.02)

    async def main() -> None:
        async with api(security__secret=SECRET) as (service, client):
            token = bearer(service, "ana", "client")
            async with client.stream("GET", "/stream", headers=token) as response:
                clock = service.node.clock
                service.node.clock = lambda: clock() + 1000
                assert "expired" in (await response.aread()).decode()
                service.node.clock = clock

    asyncio.run(main())


def test_a_parameter_that_is_misspelt_does_not_ask_for_everything() -> None:
    async def main() -> None:
        async with api() as found:
            problem = is_problem(await found.client.get("/stream?filtre=x"), 400)
            assert problem["detail"].startswith("there is no parameter 'filtre'; there are filter, filters")

    asyncio.run(main())


def test_types_cannot_forge_messages() -> None:
    event = Event({"type": "a\nid: 99\ndata: forged\n\n", "x": "line\nbreak"})
    text = stream.message(Delivered(1, 2, 0.0, "p", event, ()), "2-c0", "/n", "c0", plain=False).decode()
    assert text.count("\n") == 3
    assert text.startswith("id: 2:1:c0\ndata: {")


@pytest.mark.needs("curl")
def test_curl() -> None:
    async def main() -> None:
        async with api() as found:
            await publish(found, 1, 2)
            url = f"{found.url}/stream?since=1&format=plain&filter={quote('n < 2')}"
            command = ["curl", "-sSN", "--noproxy", "*", "--max-time", "1", url]
            done = await asyncio.to_thread(lambda: subprocess.run(command, capture_output=True, text=True, check=False))
            life = found.service.node.core.life
            assert f'id: 1:1:{life}\nevent: t\ndata: {{"n":1,"type":"t"}}\n\n' in done.stdout
            assert "id: 2" not in done.stdout

    asyncio.run(main())


@given(
    st.dictionaries(
        st.sampled_from(["filter", "filters", "since", "session", "format"]),
        st.text(max_size=15)
        | st.sampled_from(
            ["x <", "x < 1", "[]", '{"exact": {}}', "[[[[", "-1", "1e999", "nan", "99999999999999999999"]
        ),
        min_size=1,
    ),
    st.sampled_from(["", "1:1", "0:0", "x", "9" * 15 + ":" + "9" * 15, "1:", ":1"]),
)
def test_whatever_is_asked_there_is_a_clear_answer(client: httpx.Client, query: dict[str, str], last: str) -> None:
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", "/stream", params=query, headers=headers) as response:
        if response.status_code != 200:
            response.read()
            is_problem(response, (400, 409))
    assert client.get("/ready").status_code == 200


@pytest.mark.parametrize("session", [{}, {"session": "ana"}])
@pytest.mark.parametrize("later", [2, 3, 5])
def test_a_client_goes_on_with_a_node_that_went_back(tmp_path: Path, session: dict[str, str], later: int) -> None:
    """Positions and numbers are given again, to other events: none of those is taken for one that the client has had."""
    folder, copy = tmp_path / "node", tmp_path / "copy"
    query = {"format": "plain", **session}

    async def main() -> None:
        async with api(folder) as found:
            await publish(found, 1)
            assert numbers(await take(found, 1, since=1, **query)) == [1]
            await nobody_is_there(found)
        shutil.copytree(folder, copy)
        async with api(folder) as found:
            await publish(found, 2, 3, 4)
            before = await take(found, 4, since=1, **query)
            assert numbers(before) == [1, 2, 3, 4]
            await nobody_is_there(found)
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        async with api(folder) as found:
            new = list(range(5, 5 + later))
            await publish(found, *new)
            # That life is unknown to the copy: so all comes again, and without a session a word about that before it.
            again = await take(found, later + (1 if session else 2), last=before[-1].id, **query)
            got = [message.data["n"] for message in again if "n" in message.data]
            assert got[-later:] == new
            assert session or again[0].event == "fieldfare.dropped"

    asyncio.run(main())


def test_ids_of_earlier_versions_are_taken() -> None:
    async def main() -> None:
        async with api() as found:
            await publish(found, 1, 2, 3)
            assert numbers(await take(found, 2, last="1:1", format="plain")) == [2, 3]
            taken = await take(found, 3, since=1, format="plain", session="ana")
            await nobody_is_there(found)
            old = taken[0].id.rpartition(":")[0]
            assert numbers(await take(found, 2, last=old, format="plain", session="ana")) == [2, 3]

    asyncio.run(main())
