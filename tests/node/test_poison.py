"""What cannot be read, in a stored row or from a neighbour, is set aside, loudly, and stops nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.node.talking import line, linked, settings, talking, until

from fieldfare.core import incoming
from fieldfare.core.core import Core
from fieldfare.core.state import Publication
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, parse
from fieldfare.node.server import running
from fieldfare.node.storage.rows import Store
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import Row
from fieldfare.routing.broker import Broker

BAD = "x + + ("


def _tell(**fields: object) -> bytes:
    return msgspec.msgpack.encode({"is": "FilterUpdate", **fields})


def test_a_node_starts_without_a_subscription_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = settings("a", tmp_path)

    async def test() -> None:
        async with running(config) as node, talking(node, "ana") as ana:
            await ana.subscribe("good", "x > 0")
            await ana.subscribe("bad", "x < 0")
        store = Store(tmp_path / "node.sqlite")
        store.commit([Row("subscriptions", ("ana", "bad"), BAD), Row("subscriptions", ("nobody", "s"), "x = 1")])
        store.close()
        async with running(config) as node, talking(node, "ana") as ana:
            await ana.publish(1, {"x": 1})
            assert await ana.events(1) == [{"x": 1}]

    asyncio.run(test())
    assert "of the session ana (bad)" in caplog.text
    assert "nobody" in caplog.text


def test_a_neighbour_whose_stored_filter_cannot_be_read_gets_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = settings("a", tmp_path / "a")

    async def test() -> None:
        async with running(first) as a, running(settings("b", tmp_path / "b", {"join": (a.hood.url,)})) as b:
            await linked(a, b)
            async with talking(b, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                await until(a.node.core.interest)
        store = Store(tmp_path / "a" / "node.sqlite")
        store.commit([Row("told", ("b", "subscriptions", "x > 0")), Row("told", ("b", "subscriptions", BAD), 1)])
        store.close()
        async with running(first) as a, talking(a, "bob") as bob:
            await bob.publish(1, {"x": 5})
            assert a.node.core.links["b"].outbox

    asyncio.run(test())
    assert "of the node b, which gets everything" in caplog.text


def test_a_filter_of_a_neighbour_that_cannot_be_read_stands_for_everything(caplog: pytest.LogCaptureFixture) -> None:
    broker = Core(Broker("a"))
    broker.links.connect("b", m.Role.PEER, 0.0)
    broker.presence.attach("bob", "1", 0.0)
    assert broker.receive("b", 1, [_tell(added=["x > 5", BAD]), _tell(removed=[BAD, "x > 5"])], 1.0) == 0
    assert broker.links["b"].received == 2
    assert broker.publish([Publication("bob", 1, [Event({"y": 1})])], 2.0) == [1]
    assert [what for what in broker.links["b"].outbox.values() if isinstance(what, int)] == [1]
    assert BAD in caplog.text


def test_a_message_that_cannot_be_read_is_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    broker = Core(Broker("a"))
    broker.links.connect("b", m.Role.PEER, 0.0)
    broker.receive("b", 1, [b"\xc1 nonsense", _tell(added=["x > 5"])], 1.0)
    assert broker.links["b"].received == 2
    assert broker.interest() == {parse("x > 5")}
    assert Row("unreadable", ("b", 1), b"\xc1 nonsense") in broker.drain().rows
    assert "message 1 of b cannot be read" in caplog.text


def test_unreadable_filters_in_every_message() -> None:
    tell = {"is": "FilterUpdate", "added": [BAD, "x = 1"], "removed": [BAD]}
    message, unreadable = wire.decode_leniently(msgspec.msgpack.encode(tell))
    assert message == m.FilterUpdate((EVERYTHING, parse("x = 1")))
    assert unreadable == [BAD, BAD]
    message, unreadable = wire.decode_leniently(msgspec.msgpack.encode({"is": "ControlMessage", "content": tell}))
    assert EVERYTHING in message.content.added  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="cannot be read"):
        wire.decode_leniently(msgspec.msgpack.encode({"is": "Subscribe", "id": "s", "filter": BAD}))


@pytest.mark.parametrize(
    "said",
    [
        {"is": "Subscribe", "id": "s", "filter": "TRUE"},
        {"is": "Leave"},
        {"is": "Unsubscribe", "id": "s"},
        {"is": "Publish", "event": msgpack.encode(Event({"x": 1}))},
        {"is": "TableCopy", "neighbour": "c", "update": {"is": "FilterUpdate"}},
        {"is": "TopicCheck", "topic": "t"},
        {"is": "FilterUpdate", "added": ["x > 1", "x < 1 AND x > 1"]},
    ],
)
def test_what_no_node_may_say_changes_nothing_and_stops_nothing(said: object) -> None:
    """A neighbour may have the name of a session: it must not be taken for it."""
    broker = Core(Broker("a", separate_names=True))
    broker.links.connect("ana", m.Role.PEER, 0.0)
    for name in ("ana", "bob"):
        broker.presence.attach(name, name, 0.0)
    broker.presence.change_filters(m.Subscribe("s", parse("x > 0")), "ana", 0.0)
    broker.links.connect("eve", m.Role.PEER, 0.0)
    for neighbour in ("ana", "eve"):
        broker.receive(neighbour, 1, [msgspec.msgpack.encode(said), _tell(added=["y > 0"])], 1.0)
        assert broker.links[neighbour].received == 2
    assert broker.publish([Publication("bob", 1, [Event({"x": 1, "y": 1})])], 2.0) == [1]
    assert list(broker.sessions["ana"].pending) == [1]
    assert all(1 in broker.links[neighbour].outbox.values() for neighbour in ("ana", "eve"))


def test_a_filter_that_matches_nothing_stands_for_everything() -> None:
    broker = Core(Broker("a"))
    broker.links.connect("b", m.Role.PEER, 0.0)
    broker.receive("b", 1, [_tell(added=["x > 5", "x < 1 AND x > 1"])], 1.0)
    assert broker.interest() == {EVERYTHING}


def test_what_is_said_aside_and_cannot_be_taken_is_only_noted(caplog: pytest.LogCaptureFixture) -> None:
    broker = Core(Broker("a"))
    broker.links.connect("b", m.Role.PEER, 0.0)
    for data in (
        b"",
        b"\xc1",
        _tell(),
        msgspec.msgpack.encode({"is": "ControlMessage", "said": {"is": "FilterUpdate"}}),
    ):
        incoming.receive_unnumbered(broker, "b", data, 1.0)
    assert caplog.text.count("b sends an unnumbered message that cannot be used") == 4


def test_a_long_prefix_of_one_client_does_not_keep_others_from_patterns(tmp_path: Path) -> None:
    """Every pattern on the same field was refused, at all nodes; and what was refused was delivered all the same."""

    async def test() -> None:
        async with (
            line(settings("a", tmp_path / "a"), settings("b", tmp_path / "b")) as (one, other),
            talking(one, "eve") as eve,
            talking(one, "ana") as ana,
            talking(other, "bob") as bob,
        ):
            await eve.subscribe("1", f"x STARTS WITH '{'ab' * 600}'")
            await ana.subscribe("1", "x LIKE '%q%r%'")
            await bob.subscribe("1", "x ENDS WITH 'r'")
            await until(lambda: len(other.node.core.interest()) == 3)
            await bob.publish(1, {"x": "qr"})
            assert await ana.events(1) == await bob.events(1) == [{"x": "qr"}]

    asyncio.run(test())


def test_a_neighbour_cannot_name_a_session_that_is_the_nodes_own(caplog: pytest.LogCaptureFixture) -> None:
    broker = Core(Broker("a"))
    broker.links.connect("b", m.Role.PEER, 0.0)
    for word in (h.SessionOffer("bridge:plant", "t", ""), h.SessionDescription("~http", "t", "i", "", replica=True)):
        parcel = wire.encode(m.Envelope("a", "b", h.encode(word)))
        broker.receive("b", broker.links["b"].received + 1, [parcel], 1.0)
    assert not broker.sessions
    assert not broker.handovers.arrivals
    assert caplog.text.count("could not be opened") == 2
