"""Tokens, roles and TLS, with a real node and real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import websockets
from tests.certificates import self_signed
from tests.node.talking import linked, settings, talking
from tools.waiting import PATIENCE

from fieldfare.client.client import connect
from fieldfare.client.errors import ConnectionRefused, Refused
from fieldfare.filters import parse
from fieldfare.node.config import Secret, load
from fieldfare.node.context import Context
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.security import AccessDenied, make_token
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC
from fieldfare.protocol.link_frames import SUBPROTOCOL, LinkEnd, LinkHello

SECRET = "a secret that has more than thirty-two bytes"
SETTINGS = f"""
name = "a"
port = 0
[security]
secret = "{SECRET}"
anonymous = "guest"
[security.roles.guest]
subscribe = "public = TRUE"
[security.roles.trader]
publish = "kind = 'quote'"
subscribe = "kind = 'quote'"
[security.roles.reader]
subscribe = true
[security.roles.seller]
publish = "kind = 'quote'"
interest = true
[security.roles.node]
join = true
"""


OLD = make_token(Secret(SECRET), "ana", ["trader"], 60.0, time.time() - 1000)


def token(name: str, *roles: str, seconds: float = 60.0) -> str:
    return make_token(Secret(SECRET), name, list(roles), seconds, time.time())


@contextlib.asynccontextmanager
async def guarded(folder: Path, more: str = "") -> AsyncIterator[Context]:
    file = folder / "a.toml"
    file.write_text(SETTINGS + more)
    async with running(load(file, {}, {})) as service:
        yield service


def test_roles_say_who_may_do_what(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            url = node.hood.url
            async with connect(url, token=token("ana", "trader")) as ana, connect(url) as guest:
                async with ana.subscribe("kind = 'quote' AND price < 5") as cheap:
                    await ana.publish({"kind": "quote", "price": 3})
                    assert await cheap.next(PATIENCE) == {"kind": "quote", "price": 3}
                with pytest.raises(Refused, match="publish"):
                    await ana.publish({"kind": "order"})
                with pytest.raises(Refused, match="subscribe"):
                    async with ana.subscribe("price < 5"):
                        pass
                with pytest.raises(Refused) as refused:
                    await guest.publish({"public": True})
                assert refused.value.code == "denied"
                async with guest.subscribe("public = TRUE AND x > 1"):
                    pass

    asyncio.run(test())


def test_every_filled_in_filter_is_checked(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node, connect(node.hood.url, token=token("ana", "trader")) as ana:
            await ana.set(kind="quote")
            async with ana.subscribe("kind = :kind AND price < 5") as cheap, ana.subscribe("kind = :other") as others:
                with pytest.raises(Refused, match="may not subscribe") as refused:
                    await ana.set(kind="order")
                assert refused.value.code == "denied"
                with pytest.raises(Refused, match="may not subscribe"):
                    await ana.set(kind="quote", other="order")
                await ana.publish({"kind": "quote", "price": 3})
                assert await cheap.next(PATIENCE) == {"kind": "quote", "price": 3}
                await ana.set(other="quote")
                await ana.publish({"kind": "quote", "price": 9})
                assert await others.next(PATIENCE) == {"kind": "quote", "price": 9}
            with pytest.raises(Refused, match="may not subscribe"):
                await ana.subscribe("price < :kind OR kind = :kind").__aenter__()

    asyncio.run(test())


@pytest.mark.parametrize("wrong", ["nonsense", OLD, token("ana", "trader")[:-3] + "abc"])
def test_a_bad_token_is_refused_and_not_repeated(tmp_path: Path, wrong: str) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            with pytest.raises(ConnectionRefused) as refused:
                async with connect(node.hood.url, token=wrong):
                    pass
            assert wrong not in str(refused.value)

    asyncio.run(test())


def test_a_session_belongs_to_who_made_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            async with connect(node.hood.url, session="s", token=token("ana", "trader")):
                pass
            with pytest.raises(ConnectionRefused, match="somebody else"):
                async with connect(node.hood.url, session="s", token=token("bob", "trader")):
                    pass

    asyncio.run(test())


def test_one_owner_cannot_have_all_sessions(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path, "[limits]\nowner_sessions = 3\n") as node:
            for name in "abc":
                async with connect(node.hood.url, session=name, token=token("ana", "trader")):
                    pass
            for name in ("d", ""):
                with pytest.raises(ConnectionRefused, match="owner_sessions"):
                    async with connect(node.hood.url, session=name, token=token("ana", "trader")):
                        pass
            async with (
                connect(node.hood.url, session="a", token=token("ana", "trader")),
                connect(node.hood.url, session="e", token=token("bob", "trader")),
            ):
                pass
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(5):
                    await stack.enter_async_context(connect(node.hood.url))

    asyncio.run(test())


def test_a_connection_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.node.security.tokens.LEEWAY", 0.0)

    async def test() -> None:
        async with guarded(tmp_path) as service:
            nearly = time.time() + 599.9
            service.node.clock = lambda: nearly
            async with talking(service, token=token("ana", "trader", seconds=600)) as ana:
                assert "expired" in (await ana.hear(f.Bye)).reason

    asyncio.run(test())


def test_who_asks_needs_a_permission_and_hears_only_of_what_they_may_publish(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            guarded(tmp_path) as node,
            talking(node, token=token("ana", "trader", "reader")) as ana,
            talking(node, token=token("eve", "trader")) as eve,
            talking(node, token=token("sam", "seller")) as sam,
        ):
            for id, filter in enumerate(
                (
                    "kind = 'quote' AND price < 5",
                    "kind = 'secret' AND patient = 'bob'",
                    "patient = 'eve'",
                    "kind IN ('quote', 'diagnosis') AND n = 1",
                )
            ):
                await ana.subscribe(str(id), filter)
            refused = await eve.ask(f.WatchInterest)
            assert isinstance(refused, f.Refused)
            assert refused.code == "denied"
            assert isinstance(await sam.ask(f.WatchInterest), f.Done)
            told = {parse(text) for text in (await sam.hear(f.Interest)).filters}
            assert told == {
                parse("kind = 'quote' AND price < 5"),
                parse("kind = 'quote' AND patient = 'eve'"),
                parse("kind = 'quote' AND n = 1"),
            }
            await ana.subscribe("4", "kind = 'secret' AND patient = 'sam'")
            await ana.subscribe("5", "kind = 'quote' AND n = 2")
            assert not [text for text in (await sam.hear(f.Interest)).filters if "secret" in text or "diag" in text]

    asyncio.run(test())


def test_the_filter_of_somebody_who_may_not_subscribe_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    monkeypatch.setattr("fieldfare.node.security.filter_admission.taken", read.append)

    async def test() -> None:
        async with guarded(tmp_path) as node, talking(node, token=token("sam", "node")) as sam:
            for kind in (f.Subscribe, f.Advertise):
                refused = await sam.ask(kind, "id", "a filter that takes long to read")
                assert isinstance(refused, f.Refused)
                assert refused.code == "denied"
            assert not read

    asyncio.run(test())


def test_only_nodes_may_join(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as a:
            with pytest.raises(websockets.InvalidStatus):
                await websockets.connect(
                    a.hood.url + "/link",
                    subprotocols=[websockets.Subprotocol("fieldfare.v2.link")],
                    additional_headers={"Authorization": f"Bearer {token('eve', 'trader')}"},
                )
            other = msgspec.structs.replace(a.node.config, name="b", join=(a.hood.url,))
            async with running(other) as b:
                await linked(a, b)

    asyncio.run(test())


@pytest.mark.parametrize("name", ["oslo", "a", "b"])
def test_a_node_is_called_as_its_token_says(tmp_path: Path, name: str) -> None:
    """Who may join could else take the place of any other node, with all that waits for it."""

    async def test() -> None:
        async with guarded(tmp_path) as a:
            headers = {"Authorization": f"Bearer {token('eve', 'node')}"}
            async with websockets.connect(
                a.hood.url + "/link", subprotocols=[websockets.Subprotocol(SUBPROTOCOL)], additional_headers=headers
            ) as socket:
                await socket.recv()
                meet = LinkHello(name, "ws://127.0.0.1:1", a.node.config.strategy)
                await socket.send(msgspec.msgpack.encode(meet))
                part = msgspec.msgpack.decode(await socket.recv(decode=False), type=LinkEnd)
                assert "'eve'" in part.reason
                assert "its own name" in part.reason
            assert not a.node.core.links
            given = msgspec.structs.replace(
                a.node.config, name="eve", join=(a.hood.url,), join_token=Secret(token("eve", "node"))
            )
            async with running(given) as eve:
                await linked(a, eve)

    asyncio.run(test())


def test_nobody_listens_to_the_world_by_accident() -> None:
    with pytest.raises(ValueError, match="security"):
        settings("a", flags={"host": "0.0.0.0"})


def test_tls(tmp_path: Path) -> None:
    self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
    more = '[tls]\ncertificate = "cert.pem"\nkey = "key.pem"\nauthorities = "cert.pem"\n'

    async def test() -> None:
        async with guarded(tmp_path, more) as node:
            assert node.hood.url.startswith("wss://")
            trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
            async with connect(node.hood.url, token=token("ana", "trader"), ssl=trusting) as ana:
                await ana.publish({"kind": "quote"})
            with pytest.raises(OSError, match=r"(?i)certificate"):
                async with connect(node.hood.url, token=token("ana", "trader"), reconnect=False):
                    pass
            other = msgspec.structs.replace(node.node.config, name="b", join=(node.hood.url,))
            async with running(other) as b:
                await linked(node, b)

    asyncio.run(test())


def test_the_token_may_come_in_the_header(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            async with websockets.connect(
                node.hood.url,
                subprotocols=[websockets.Subprotocol(MSGPACK_CODEC.name)],
                additional_headers={"Authorization": f"Bearer {token('ana', 'trader')}"},
            ) as socket:
                await socket.send(MSGPACK_CODEC.encode(f.Hello(session="mine")))
                assert isinstance(MSGPACK_CODEC.from_node(await socket.recv()), f.Welcome)
            assert node.node.core.sessions["mine"].owner == "ana"

    asyncio.run(test())


def test_a_session_that_became_another_ones_is_not_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with guarded(tmp_path) as node:
            await node.node.submit(lambda core, now: core.presence.attach("s", "1", now, owner="ana"))
            with pytest.raises(AccessDenied):
                await InternalSession(node.node, "s", owner="eve").__aenter__()

    asyncio.run(test())
