"""Rights that shrink: what a session asked for earlier is asked about again, and tokens can be made void."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.node.http.helpers import sink
from tests.node.talking import linked, talking, until

from fieldfare.events.event import Event
from fieldfare.node.config import ConfigError, Secret, load
from fieldfare.node.context import Context
from fieldfare.node.http import routes
from fieldfare.node.security import make_token, revocations
from fieldfare.node.security.revocations import Credential, Revocations
from fieldfare.node.server import running
from fieldfare.protocol import frames as f

SECRET = "a secret that has more than thirty-two bytes"
SETTINGS = f"""
name = "a"
port = 0
[security]
secret = "{SECRET}"
"""
ROLES = """
[security.roles.doctor]
subscribe = true
publish = true
[security.roles.clerk]
subscribe = "kind = 'bill'"
[security.roles.boss]
subscribe = true
administer = true
[security.roles.node]
join = true
"""


def token(name: str, *roles: str, id: str = "", issued: float | None = None) -> str:
    return make_token(Secret(SECRET), name, list(roles), 600.0, issued or time.time(), id=id)


@contextlib.asynccontextmanager
async def guarded(folder: Path, roles: str = ROLES, more: str = "", data: str = "") -> AsyncIterator[Context]:
    file = folder / "a.toml"
    file.write_text((f'data = "{data}"\n' if data else "") + SETTINGS + more + roles)
    async with running(load(file, {}, {}), routes) as service:
        yield service


async def fill(node: Context) -> None:
    """Ana, a doctor, asks for much; it waits for her."""
    async with talking(node, "ana's", token=token("ana", "doctor")) as ana:
        await ana.subscribe("bills", "kind = 'bill' AND sum > 1")
        await ana.subscribe("all", "TRUE")
        assert isinstance(await ana.ask(f.Advertise, "promise", "kind = 'note'"), f.Done)
    await until(lambda: not node.node.core.sessions["ana's"].connected)
    await node.publish(
        [Event(one) for one in ({"kind": "bill", "sum": 5}, {"kind": "note"}, {"kind": "bill", "sum": 6})]
    )


async def check(node: Context, *roles: str) -> None:
    """As a clerk she gets no more than clerks may have, and is told so."""
    async with talking(node, "ana's", token=token("ana", *roles)) as ana:
        told = [await ana.hear(f.Refused) for _ in range(2)]
        assert all(one.code == "denied" for one in told)
        assert ["all" in one.reason or "promise" in one.reason for one in told] == [True, True]
        assert await ana.events(2) == [{"kind": "bill", "sum": 5}, {"kind": "bill", "sum": 6}]
        await node.publish([Event({"kind": "note"}), Event({"kind": "bill", "sum": 7})])
        assert await ana.events(1) == [{"kind": "bill", "sum": 7}]
        mine = node.node.core.broker.clients.all["ana's"]
        assert set(mine.subscriptions) == {"bills"}
        assert not mine.advertisements
        await until(lambda: len(node.node.core.sessions["ana's"].pending) == 3)


def test_a_session_that_comes_back_with_another_token_keeps_what_that_permits(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            await fill(node)
            await check(node, "clerk")

    asyncio.run(test())


def test_a_role_that_has_shrunk_counts_for_what_was_asked_before(tmp_path: Path) -> None:
    less = ROLES.replace(
        "[security.roles.doctor]\nsubscribe = true\npublish = true",
        "[security.roles.doctor]\nsubscribe = \"kind = 'bill'\"",
    )
    assert less != ROLES

    async def test() -> None:
        async with guarded(tmp_path, data="data") as node:
            await fill(node)
        async with guarded(tmp_path, less, data="data") as node:
            await check(node, "doctor")

    asyncio.run(test())


def test_a_stream_gives_no_more_than_the_token_permits(tmp_path: Path) -> None:
    """Its session may have been made by another way, and with another token."""

    async def test() -> None:
        async with guarded(tmp_path) as node:
            await fill(node)
            headers = {"Authorization": f"Bearer {token('ana', 'clerk')}"}
            query = {"session": "ana's", "filter": "kind = 'bill'", "format": "plain"}
            base = node.hood.url.replace("ws", "http", 1)
            got = ""
            async with (
                httpx.AsyncClient(base_url=base, headers=headers, trust_env=False) as client,
                client.stream("GET", "/stream", params=query) as stream,
            ):
                async for line in stream.aiter_lines():
                    got += line
                    if '"sum":6' in line:
                        break
            assert '"sum":5' in got
            assert "note" not in got

    asyncio.run(test())


def test_a_webhook_brings_no_more_than_its_owners_roles_permit(tmp_path: Path) -> None:
    less = ROLES.replace(
        "[security.roles.boss]\nsubscribe = true", "[security.roles.boss]\nsubscribe = \"kind = 'bill'\""
    )
    assert less != ROLES

    async def test() -> None:
        async with sink() as to:
            async with guarded(tmp_path, data="data") as node:
                base = node.hood.url.replace("ws", "http", 1)
                headers = {"Authorization": f"Bearer {token('eve', 'boss')}"}
                async with httpx.AsyncClient(base_url=base, headers=headers, trust_env=False) as client:
                    made = await client.post("/subscriptions", json={"sink": to.url, "protocol": "HTTP"})
                    assert made.status_code == 201, made.text
                await node.publish([Event({"kind": "note", "n": 1})])
                await to.wait(1)
            async with guarded(tmp_path, less, data="data") as node:
                await node.publish([Event({"kind": "note", "n": 2}), Event({"kind": "bill", "n": 3})])
                await to.wait(2)
                session = node.node.core.sessions[f"webhook:{made.json()['id']}"]
                await until(lambda: not session.pending)
            assert [msgspec.json.decode(body)["n"] for _, body in to.got] == [1, 3]

    asyncio.run(test())


def test_a_webhook_waits_while_its_token_is_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.node.http.webhooks.delivery._RETRY_SECONDS", 0.05)
    monkeypatch.setattr(revocations, "EVERY", 0.05)
    void = tmp_path / "void.toml"
    void.write_text("")

    async def test() -> None:
        async with sink() as to, guarded(tmp_path, more='void = "void.toml"\n') as node:
            base = node.hood.url.replace("ws", "http", 1)
            headers = {"Authorization": f"Bearer {token('eve', 'boss', id='e1')}"}
            async with httpx.AsyncClient(base_url=base, headers=headers, trust_env=False) as client:
                made = await client.post("/subscriptions", json={"sink": to.url, "protocol": "HTTP"})
                void.write_text('tokens = ["e1"]\n')
                await until(lambda: node.node.security.revocations.is_void(Credential("eve", "e1")))  # type: ignore[union-attr]
                assert (await client.get("/subscriptions")).status_code == 401
            await node.publish([Event({"kind": "note"})])
            session = node.node.core.sessions[f"webhook:{made.json()['id']}"]
            await asyncio.sleep(0.3)
            assert (len(session.pending), to.got) == (1, [])
            void.write_text("tokens = []\n")
            await to.wait(1)

    asyncio.run(test())


def test_a_void_token_ends_its_connections_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "EVERY", 0.05)
    void = tmp_path / "void.toml"
    void.write_text("# nothing yet\n")

    async def test() -> None:
        async with (
            guarded(tmp_path, more='void = "void.toml"\n') as node,
            talking(node, token=token("ana", "doctor", id="t1")) as first,
            talking(node, token=token("ana", "doctor", id="t2")) as second,
            talking(node, token=token("bob", "doctor", issued=time.time() - 100)) as bob,
            talking(node, token=token("eve", "doctor")) as eve,
        ):
            void.write_text('tokens = ["t1"]\n')
            assert "void" in (await first.hear(f.Bye)).reason
            await second.subscribe("s", "x = 1")
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 50))
            void.write_text("tokens = [\n'nonsense\n")  # what cannot be read changes nothing
            await asyncio.sleep(0.2)
            await bob.subscribe("s", "x = 1")
            void.write_text(f"tokens = ['t1']\n[names]\nana = true\nbob = {since}\n")
            assert "void" in (await second.hear(f.Bye)).reason
            assert "void" in (await bob.hear(f.Bye)).reason
            await eve.subscribe("s", "x = 1")
            async with talking(node, token=token("bob", "doctor")):  # a new one
                pass
            headers = {"Authorization": f"Bearer {token('ana', 'doctor')}"}
            async with httpx.AsyncClient(base_url=node.hood.url.replace("ws", "http", 1), trust_env=False) as client:
                refused = await client.post("/events", json={"x": 1}, headers=headers)
            assert (refused.status_code, "void" in refused.text) == (401, True)

    asyncio.run(test())


def test_a_void_token_ends_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "EVERY", 0.05)
    void = tmp_path / "void.toml"
    void.write_text("")

    async def test() -> None:
        async with guarded(tmp_path, more='void = "void.toml"\n') as a:
            other = msgspec.structs.replace(a.node.config, name="b", join=(a.hood.url,))
            async with running(other) as b:
                await linked(a, b)
                void.write_text("[names]\nb = true\n")
                await until(lambda: not a.hood.up)
                await asyncio.sleep(0.5)
                assert not a.hood.up

    asyncio.run(test())


@pytest.mark.parametrize("text", ["tokens = 1", "token = []", "names = 1", "[names]\nana = false", "what", None])
def test_a_list_that_makes_no_sense_is_said_at_the_start(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "void.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"security\.void"):
        Revocations(str(file))


def test_the_list_is_read_when_it_changes_only(tmp_path: Path) -> None:
    file = tmp_path / "void.toml"
    file.write_text('tokens = ["a"]')
    some = Revocations(str(file))
    ended: list[str] = []
    unwatch = some.watch(Credential("ana", "b"), lambda: ended.append("ana"))
    some.look()
    file.write_text('tokens = ["b"]')
    os.utime(file, ns=(1, 1))
    some.look()
    assert ended == ["ana"]
    assert not some.is_void(Credential("x", "a"))
    file.unlink()
    some.look()
    assert some.is_void(Credential("ana", "b"))  # and not because nobody can read any more what is void
    unwatch()
    some.watch(Credential("ana", "b"), lambda: ended.append("at once"))
    assert ended == ["ana", "at once"]


LETTERS = """
[security.roles.looker]
subscribe = "kind = 'bill' OR type = 'fieldfare.deadletter'"
"""


@pytest.mark.parametrize("session", ["", "s"])
def test_a_dead_letter_is_for_those_who_may_read_the_event_in_it(tmp_path: Path, session: str) -> None:
    """It showed the whole event to everybody who may read events of its type."""

    def letter(number: int, **event: object) -> dict[str, object]:
        head = {"specversion": "1.0", "id": f"{number}", "source": "/a", "type": "fieldfare.deadletter"}
        return {**head, "data": {"event": event} if event else {"position": number}}

    async def test() -> None:
        async with (
            guarded(tmp_path, ROLES + LETTERS) as a,
            talking(a, session, token=token("lou", "looker")) as lou,
            talking(a, token=token("dora", "doctor")) as dora,
            httpx.AsyncClient(base_url=a.hood.url.replace("ws", "http", 1)) as http,
        ):
            asked = "type = 'fieldfare.deadletter'"
            await lou.subscribe("letters", asked)
            await dora.subscribe("letters", asked)
            within = letter(5, specversion="1.0", id="6", source="/b", type="fieldfare.deadletter", data={"event": {}})
            letters = [letter(1, kind="finding"), letter(2, kind="bill"), letter(3), within, letter(4, kind="bill")]
            await dora.publish(1, *letters)
            assert [event["id"] for event in await dora.events(5)] == ["1", "2", "3", "5", "4"]
            assert [event["id"] for event in await lou.events(3)] == ["2", "3", "4"]
            assert not any(one.dropped for one in a.node.core.sessions.values())
            headers = {"Authorization": f"Bearer {token('lou', 'looker')}"}
            url = f"/stream?filter={asked.replace(' ', '+')}&since=1&format=plain"
            async with http.stream("GET", url, headers=headers) as stream:
                ids = []
                async for line in stream.aiter_lines():
                    ids += [msgspec.json.decode(line[5:])["id"]] if line.startswith("data:") else []
                    if len(ids) == 3:
                        break
            assert ids == ["2", "3", "4"]

    asyncio.run(test())
