"""The MQTT bridge, with Mosquitto on the other side."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import signal
import socket
import subprocess
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiomqtt
import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests import needs
from tests.certificates import self_signed
from tests.node.talking import settings, talking, until
from tools.waiting import PATIENCE

from fieldfare.events.event import Event
from fieldfare.node.bridges import IncomingEvent, OutgoingEvent, Rejection, Status, make_all, mqtt, runner
from fieldfare.node.bridges.content import ID
from fieldfare.node.bridges.mqtt_messages import IncomingRule, Message, OutgoingRule, event_of, message_of
from fieldfare.node.config import ConfigError
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.retry import Backoff

PROGRAM = needs.program("mosquitto")
needs_mosquitto = pytest.mark.needs("mosquitto")


class Mosquitto:
    """A broker on a port of its own, that can be killed and come back."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.stored = folder / "mosquitto.db"
        lines = (f"listener {self.port} 127.0.0.1", *more, "persistence true", f"persistence_location {folder}/")
        rest = ("max_queued_messages 0", "autosave_interval 0", "user root", f"log_dest file {folder / 'log'}")
        users = () if any(line.startswith("password_file") for line in more) else ("allow_anonymous true",)
        (folder / "conf").write_text("\n".join((*lines, *rest, *users, "")))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert PROGRAM is not None
        self.process = subprocess.Popen([PROGRAM, "-c", str(self.folder / "conf")], stderr=subprocess.DEVNULL)
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            signal.sigtimedwait((), 0.01)
        raise AssertionError("mosquitto does not answer")

    def kill(self) -> None:
        """At once, as a loss of power would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def save(self) -> None:
        """Mosquitto writes only now and then; what it has acknowledged since the last time does not survive a kill."""
        assert self.process is not None
        self.stored.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        await until(self.stored.exists)
        await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def client(self, identifier: str | None = None, **more: Any) -> AsyncIterator[aiomqtt.Client]:
        keeping: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        keeping.SessionExpiryInterval = 1000
        async with aiomqtt.Client(
            "127.0.0.1",
            self.port,
            identifier=identifier,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=identifier is None,
            properties=keeping,
            **more,
        ) as client:
            yield client


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    mosquitto = Mosquitto(folder)
    mosquitto.start()
    yield mosquitto
    mosquitto.kill()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKOFF", Backoff(0.05, 0.2))


@contextlib.asynccontextmanager
async def bridged(
    broker: Mosquitto, table: Mapping[str, Any], name: str = "a", folder: Path | None = None, up: bool = True
) -> AsyncIterator[tuple[Context, Callable[[], Status]]]:
    """A node with a bridge called plant."""
    given = {"kind": "mqtt", "name": "plant", "url": broker.url, **table}
    async with running(msgspec.structs.replace(settings(name, folder), bridge=(given,))) as node:
        status = node.node.reports["bridge:plant"]
        if up:
            await until(lambda: status().up)
        yield node, status


def said(**more: Any) -> Properties:
    properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in more.items():
        setattr(properties, name, value)
    return properties  # type: ignore[no-any-return]


async def hear(client: aiomqtt.Client, count: int) -> list[aiomqtt.Message]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(client.messages) for _ in range(count)]


def run(test: Any) -> None:
    asyncio.run(test)


@needs_mosquitto
def test_topics_come_in(broker: Mosquitto) -> None:
    async def test() -> None:
        rules = [
            {"topic": "sensors/+/temperature", "fields": {"room": 1}, "type": "temperature"},
            {"topic": "sensors/#", "fields": {"where": "topic", "third": 2}},
        ]
        async with bridged(broker, {"in": rules}) as (node, status), broker.client() as client, talking(node) as ana:
            await ana.subscribe("s", "TRUE")
            await client.publish(
                "sensors/kitchen/temperature", "21.5", 1, properties=said(UserProperty=[("unit", "C")])
            )
            await client.publish("sensors/hall/temperature", '{"value": 19, "at": {"x": 1}}', 2)
            await client.publish("elsewhere/hall/temperature", "1", 1)
            await client.publish("sensors/hall/smoke", "yes", 1)
            await client.publish("sensors/hall", b"\xff\x00", 0)
            assert await ana.events(4) == [
                {"unit": "C", "value": 21.5, "room": "kitchen", "type": "temperature"},
                {"value": 19, "at": {"x": 1}, "room": "hall", "type": "temperature"},
                {"value": "yes", "where": "sensors/hall/smoke", "third": "smoke"},
                {"data": b"\xff\x00", "where": "sensors/hall"},
            ]
            assert await ana.silence()  # topics that overlap bring a message once
            assert (status().incoming, status().bad) == (4, 0)

    run(test())


@needs_mosquitto
def test_events_go_out_by_their_content(broker: Mosquitto) -> None:
    async def test() -> None:
        rules = [
            {"filter": "type = 'alarm' AND level > 3", "topic": "alarms/{room}", "retain": True},
            {"filter": "level > 8", "topic": "siren", "qos": 0, "properties": False},
        ]
        async with bridged(broker, {"out": rules}) as (node, status), broker.client() as client, talking(node) as bob:
            await client.subscribe("#", 1)
            alarm = {
                "type": "alarm",
                "level": 5,
                "room": "hall",
                "at": {"x": 1.5},
                "time": datetime(2026, 1, 1, tzinfo=UTC),
            }
            await bob.publish(1, alarm, {**alarm, "level": 1}, {**alarm, "level": 9}, ttl=100.0)
            messages = await hear(client, 3)
            assert [(str(one.topic), one.qos) for one in messages] == [
                ("alarms/hall", 1),
                ("alarms/hall", 1),
                ("siren", 0),
            ]
            first: Any = messages[0]
            assert msgspec.json.decode(first.payload) == {**alarm, "time": "2026-01-01T00:00:00Z"}
            properties = dict(first.properties.UserProperty)
            id = properties.pop(ID)
            assert properties == {
                "type": "alarm", "level": "5", "room": "hall", "at.x": "1.5", "time": "2026-01-01T00:00:00Z",
            }  # fmt: skip
            assert first.properties.ContentType == "application/json"
            assert 98 <= first.properties.MessageExpiryInterval <= 100
            assert [key for key, _ in messages[2].properties.UserProperty] == [ID]  # type: ignore[union-attr]
            assert id != dict(messages[1].properties.UserProperty)[ID]  # type: ignore[union-attr]
            await until(lambda: status().outgoing == 2)
            async with broker.client() as late:
                await late.subscribe("alarms/#")
                assert (await hear(late, 1))[0].retain

    run(test())


@needs_mosquitto
def test_two_nodes_through_one_broker_and_no_loop(broker: Mosquitto) -> None:
    async def test() -> None:
        rules: dict[str, Any] = {
            "in": [{"topic": "shared/#"}],
            "out": [{"filter": "x > 0", "topic": "shared/{x}"}],
        }
        async with (
            bridged(broker, rules, "a") as (a, at_a),
            bridged(broker, rules, "b") as (b, at_b),
            talking(a) as ana,
            talking(b) as bob,
        ):
            await ana.subscribe("s", "TRUE")
            await bob.subscribe("s", "TRUE")
            moment = datetime(2026, 5, 4, tzinfo=UTC)
            await ana.publish(1, {"x": 1, "data": b"\x01", "when": moment, "deep": {"y": 2}})
            await bob.publish(1, {"x": 2, "list": [1, "two"]})
            both = [
                {"x": 1, "data": b"\x01", "when": moment, "deep": {"y": 2}},
                {"x": 2, "list": (1, "two")},
            ]
            for talker in (ana, bob):
                got = await talker.events(2)
                assert sorted(got, key=lambda event: str(event["x"])) == both
                assert await talker.silence()
            assert (at_a().incoming, at_a().outgoing) == (1, 1)
            assert (at_b().incoming, at_b().outgoing) == (1, 1)

    run(test())


@needs_mosquitto
def test_bad_payloads_do_not_stop_it(broker: Mosquitto) -> None:
    async def test() -> None:
        table: dict[str, Any] = {"in": [{"topic": "t/+"}], "out": [{"filter": "y > 0", "topic": "out/{room}"}]}
        async with bridged(broker, table) as (node, status), broker.client() as client, talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            await client.subscribe("out/#", 1)
            await client.publish("t/1", "{no json", 1, properties=said(ContentType="application/json"))
            await client.publish("t/1", '{"x": 1, "x": 2}', 1)
            await client.publish("t/1", "1" * 300, 1)
            await client.publish("t/1", b"\xff", 1, properties=said(ContentType="text/plain"))
            await client.publish("t/1", '{"x": 3}', 1)
            assert await ana.events(1) == [{"x": 3}]
            assert (status().bad, status().incoming) == (4, 1)
            assert "not in UTF-8" in status().problem
            for number, room in enumerate((None, "a/b", "+", "\x01", "ok"), 1):
                await ana.publish(number, {"y": 1, **({"room": room} if room else {})})
            assert str((await hear(client, 1))[0].topic) == "out/ok"
            await until(lambda: status().outgoing == 1)
            assert status().bad == 8
            assert status().up

    run(test())


@needs_mosquitto
def test_the_broker_keeps_what_comes_while_the_node_is_away(broker: Mosquitto, tmp_path: Path) -> None:
    async def test() -> None:
        rules: dict[str, Any] = {"in": [{"topic": "t"}], "out": [{"filter": "y > 0", "topic": "out"}]}
        async with broker.client("listener") as client:
            await client.subscribe("out", 1)
        async with bridged(broker, rules, folder=tmp_path / "a") as (node, _), talking(node, "ana") as ana:
            await ana.subscribe("s", "x > 0")
        async with broker.client() as client:
            for number in range(1, 51):
                await client.publish("t", msgspec.json.encode({"x": number}), 1)
        async with bridged(broker, rules, folder=tmp_path / "a") as (node, status), talking(node, "ana") as ana:
            assert [event["x"] for event in await ana.events(50)] == list(range(1, 51))
            assert status().incoming == 50

    run(test())


@needs_mosquitto
def test_nothing_is_lost_when_the_broker_is_killed(broker: Mosquitto, tmp_path: Path) -> None:
    async def test() -> None:
        rules: dict[str, Any] = {
            "in": [{"topic": "in/+", "id": "x"}],
            "out": [{"filter": "y > 0", "topic": "out/{y}"}],
        }
        async with broker.client("listener") as client:
            await client.subscribe("out/#", 1)
        folder = tmp_path / "a"
        async with bridged(broker, rules, folder=folder) as (node, status), talking(node, "ana") as ana:
            await ana.subscribe("s", "x > 0")
            async with broker.client() as client:
                for number in range(1, 101):
                    await client.publish("in/1", msgspec.json.encode({"x": number}), 1)
            for number in range(1, 101):
                await ana.publish(number, {"y": number})
            await until(lambda: status().outgoing > 0 and status().incoming > 0)
            taken = status().outgoing
            await broker.save()
            for number in range(101, 151):
                await ana.publish(number, {"y": number})
            broker.kill()
            await until(lambda: not status().up)
            assert "127.0.0.1" in status().error
            assert taken <= status().outgoing
            for number in range(151, 201):
                await ana.publish(number, {"y": number})
            survived = status().outgoing
        # The node is away, too; then both come back.
        broker.start()
        async with bridged(broker, rules, folder=folder) as (node, status), talking(node, "ana") as ana:
            await until(lambda: status().waiting == 0)
            assert status().outgoing >= 200 - survived
            got: set[object] = set()
            while len(got) < 100:  # some may come twice: Mosquitto forgot what we acknowledged
                got |= {event["x"] for event in await ana.events(1)}
            assert got == set(range(1, 101))
            async with broker.client("listener") as client:
                heard: set[int] = set()
                # What Mosquitto acknowledged and had not written yet is lost by Mosquitto, not by the bridge.
                wanted = set(range(1, taken + 1)) | set(range(survived + 1, 201))
                async with asyncio.timeout(PATIENCE):
                    while not wanted <= heard:
                        heard.add(msgspec.json.decode((await anext(client.messages)).payload)["y"])

    run(test())


@needs_mosquitto
def test_it_comes_back_when_the_broker_does(broker: Mosquitto) -> None:
    async def test() -> None:
        rules: dict[str, Any] = {"in": [{"topic": "in"}], "out": [{"filter": "y > 0", "topic": "out"}]}
        async with bridged(broker, rules) as (node, status), talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            for turn in range(1, 4):
                broker.kill()
                await until(lambda: not status().up)
                await ana.publish(turn, {"y": turn})
                broker.start()
                await until(lambda: status().up)
                await until(lambda turn=turn: status().outgoing == turn)
                async with broker.client() as client:  # the subscription was status anew: nothing of it was saved
                    await client.publish("in", msgspec.json.encode({"x": turn}), 1)
                assert await ana.events(1) == [{"x": turn}]

    run(test())


@needs_mosquitto
def test_a_message_is_acknowledged_when_its_event_is_safe(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.node.bridges.runner.MOMENT", 0.05)

    async def test() -> None:
        async with bridged(broker, {"in": [{"topic": "t"}]}) as (node, status), broker.client() as client:
            publish, dead = node.node.publish, asyncio.Event()

            def never(_: object) -> asyncio.Future[int]:
                dead.set()
                return asyncio.get_running_loop().create_future()

            monkeypatch.setattr(node.node, "publish", never)
            await client.publish("t", "1", 1)
            await asyncio.wait_for(dead.wait(), PATIENCE)
            assert status().incoming == 0
            monkeypatch.setattr(node.node, "publish", publish)
        # The node ended before the event was safe. So the broker still has it.
        async with bridged(broker, {"in": [{"topic": "t"}]}) as (node, status):
            await until(lambda: status().incoming == 1)

    run(test())


@needs_mosquitto
def test_what_a_bridge_sends_twice_comes_in_once(broker: Mosquitto) -> None:
    async def test() -> None:
        async with bridged(broker, {"in": [{"topic": "t"}]}) as (_, status), broker.client() as client:
            for id in ("n/1", "n/1", "n/2"):
                await client.publish("t", "1", 1, properties=said(UserProperty=[(ID, id)]))
            await until(lambda: status().incoming == 2 and status().duplicates == 1)

    run(test())


@needs_mosquitto
def test_shared_and_retained_topics(broker: Mosquitto) -> None:
    async def test() -> None:
        rules = [
            {"topic": "$share/nodes/jobs/+", "fields": {"job": 1}},
            {"topic": "state"},
            {"topic": "old", "retained": False},
        ]
        async with broker.client() as client:
            await client.publish("state", '"on"', 1, retain=True)
            await client.publish("old", '"on"', 1, retain=True)
            async with bridged(broker, {"in": rules}) as (_, status):
                await client.publish("jobs/7", "1", 1)
                await until(lambda: status().incoming == 2)
                assert (status().bad, status().error) == (0, "")

    run(test())


@needs_mosquitto
def test_what_an_earlier_configuration_subscribed_to_is_counted(broker: Mosquitto) -> None:
    async def test() -> None:
        async with bridged(broker, {"in": [{"topic": "old"}]}):
            pass
        async with bridged(broker, {"in": [{"topic": "new"}]}) as (_, status), broker.client() as client:
            await client.publish("old", "1", 1)
            await client.publish("new", "1", 1)
            await until(lambda: status().incoming == 1 and status().bad == 1)
            assert "another client_id" in status().problem

    run(test())


@needs_mosquitto
def test_passwords_and_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = needs.program("mosquitto_passwd")
    assert program is not None
    users, rights = tmp_path / "users", tmp_path / "rights"
    subprocess.run([program, "-c", "-b", str(users), "plant", "secret"], check=True)
    rights.write_text("user plant\ntopic readwrite allowed/#\n")
    broker = Mosquitto(tmp_path, f"password_file {users}", f"acl_file {rights}")
    broker.start()

    async def test() -> None:
        monkeypatch.setenv("PLANT_PASSWORD", "wrong")
        table: dict[str, Any] = {"username": "plant", "password_variable": "PLANT_PASSWORD"}
        async with bridged(broker, {**table, "out": [{"filter": "y > 0", "topic": "allowed/y"}]}, up=False) as (
            _,
            status,
        ):
            await until(lambda: "Not authorized" in status().error)
            assert "wrong" not in repr(status.__self__._bridge.settings)  # type: ignore[attr-defined]
        monkeypatch.setenv("PLANT_PASSWORD", "secret")
        out = [{"filter": "y > 0", "topic": "{topic}"}]
        async with bridged(broker, {**table, "out": out}) as (node, status), talking(node) as bob:
            await bob.publish(1, {"y": 1, "topic": "allowed/y"})
            await until(lambda: status().outgoing == 1)
            # What it may not publish is not lost: somebody may change that.
            await bob.publish(2, {"y": 1, "topic": "forbidden"})
            await until(lambda: "refuses a message to forbidden: Not authorized" in status().error)
            assert status().waiting == 1

    try:
        run(test())
    finally:
        broker.kill()


@needs_mosquitto
def test_a_packet_that_is_too_large_is_a_problem(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, "max_packet_size 2000")
    broker.start()

    async def test() -> None:
        async with (
            bridged(broker, {"out": [{"filter": "y > 0", "topic": "t"}]}) as (node, status),
            talking(node) as bob,
        ):
            await bob.publish(1, {"y": 1, "text": "x" * 3000}, {"y": 2})
            await until(lambda: status().outgoing == 1 and status().bad == 1)
            assert "larger than 2000 bytes" in status().problem

    try:
        run(test())
    finally:
        broker.kill()


@needs_mosquitto
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")  # paho, when it trusts no certificate
def test_tls(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    self_signed(certificate, key)
    broker = Mosquitto(tmp_path, f"certfile {certificate}", f"keyfile {key}")
    broker.url = broker.url.replace("mqtt:", "mqtts:")
    broker.start()

    async def test() -> None:
        rule = [{"filter": "y > 0", "topic": "t"}]
        async with (
            bridged(broker, {"out": rule, "authorities": str(certificate)}) as (node, status),
            talking(node) as bob,
        ):
            await bob.publish(1, {"y": 1})
            await until(lambda: status().outgoing == 1)
        async with bridged(broker, {"out": rule}, up=False) as (_, status):
            await until(lambda: "CERTIFICATE_VERIFY_FAILED" in status().error)

    try:
        run(test())
    finally:
        gc.collect()
        broker.kill()


# What a message means


def event(rule: IncomingRule, **message: Any) -> Mapping[str, object]:
    got = event_of(rule, Message("a/b", **message))
    assert isinstance(got, IncomingEvent), got
    return got.event.tree


@pytest.mark.parametrize(
    ("payload", "content_type", "tree"),
    [
        (b"", "", {}),
        (b"1.5", "", {"value": 1.5}),
        (b"true", "", {"value": True}),
        (b"null", "", {"value": None}),
        (b"[1, 2]", "", {"value": (1, 2)}),
        (b'"on"', "", {"value": "on"}),
        (b"on", "", {"value": "on"}),
        (b' {"x": 1}', "", {"x": 1}),
        (b"{x}", "", {"value": "{x}"}),
        (b"\xfe", "", {"data": b"\xfe"}),
        (b"1", "text/plain", {"value": "1", "datacontenttype": "text/plain"}),
        (b"1", "application/json; charset=utf-8", {"value": 1}),
        (b"1", "image/png", {"data": b"1", "datacontenttype": "image/png"}),
        (b"\x81\xa1x\x01", "application/msgpack", {"x": 1}),
        (
            b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"x":1}}',
            "application/cloudevents+json",
            {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": {"x": 1}},
        ),
    ],
)
def test_payloads(payload: bytes, content_type: str, tree: dict[str, object]) -> None:
    assert event(IncomingRule("a/b"), payload=payload, content_type=content_type) == tree


@pytest.mark.parametrize("payload", [b"1, 2", b'1, "x": 2', b"", b"nope"])
def test_what_says_json_and_is_not_is_refused(payload: bytes) -> None:
    got = event_of(IncomingRule("a/b"), Message("a/b", payload, "application/json"))
    assert isinstance(got, Rejection)
    assert got.reason.startswith("a message to a/b: ")


def test_fields_in_the_order_of_their_weight() -> None:
    rule = IncomingRule("+/+", {"room": 1, "far": 5, "all": "topic"}, "t")
    properties = (
        ("x", "text"),
        ("room", "?"),
        ("type", "?"),
        ("tag", "1"),
        ("tag", "2"),
        ("tag", "3"),
        ("fieldfare-z", "?"),
    )
    assert event(rule, payload=b'{"x": 1, "type": "p"}', properties=properties) == {
        "room": "b", "type": "t", "tag": ("1", "2", "3"), "x": 1, "all": "a/b",
    }  # fmt: skip
    assert event(IncomingRule("+/+"), reply_to="r/1", correlation=b"c") == {"reply_to": "r/1", "correlation_data": b"c"}
    assert event(IncomingRule("+/+"), properties=(("time", "2026-01-01T00:00:00Z"),)) == {
        "time": datetime(2026, 1, 1, tzinfo=UTC)
    }


def test_the_id_of_a_message_is_what_the_rule_says() -> None:
    def id(rule: IncomingRule, payload: bytes, *properties: tuple[str, str]) -> str:
        got = event_of(rule, Message("a/b", payload, properties=properties))
        assert isinstance(got, IncomingEvent)
        return got.id

    plain, named = IncomingRule("a/b"), IncomingRule("a/b", id="n")
    assert id(plain, b'{"id": 1}') == id(named, b'{"id": 1}') == ""
    assert id(named, b'{"n": 1}') == id(named, b'{"n": 1}') != id(named, b'{"n": 2}')
    assert id(named, b'{"n": 1}') != id(named, b'{"n": "1"}')
    assert id(named, b"", ("n", "1")) != ""
    assert id(plain, b"", (ID, "q")) == id(named, b"", (ID, "q")) != ""


texts = st.text(max_size=8)
trees = st.dictionaries(
    st.text("abc.", min_size=1, max_size=3).filter(lambda name: "." not in name),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | texts | st.binary(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=4,
    ),
    max_size=4,
)


@hypothesis_settings(deadline=None)
@given(trees)
def test_an_event_comes_through_as_it_was(tree: dict[str, object]) -> None:
    sent = Event(tree)
    message = message_of(OutgoingRule("TRUE", "t"), OutgoingEvent(sent, "i/1"), 0)
    assert isinstance(message, Message)
    got = event_of(IncomingRule("t"), message)
    assert isinstance(got, IncomingEvent)
    assert repr(got.event) == repr(sent)  # NaN is not equal to itself


def test_topics_out_of_fields() -> None:
    def topic(template: str, **fields: object) -> str:
        message = message_of(OutgoingRule("TRUE", template), OutgoingEvent(Event(fields), "i/1"), 0)
        return message.topic if isinstance(message, Message) else message.reason

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert topic("a/{x}/{y.z}/{t}", x=True, y={"z": 1.5}, t=moment) == "a/true/1.5/2026-01-01T00:00:00Z"
    assert topic("{reply_to}", reply_to="r/1") == "r/1"
    assert "is missing" in topic("a/{x}")
    for value in ("a/b", [1], None, b"x"):
        assert "cannot be a level of a topic" in topic("a/{x}", x=value)
    for value in ("#", "+", "a\x00", "\x7f", "x" * 70_000):
        assert "not a topic that messages can be published to" in topic("a/{x}", x=value)
    for value in ("", "$SYS/x"):
        assert "not a topic that messages can be published to" in topic("{x}", x=value)


def test_requests_and_answers() -> None:
    one = OutgoingEvent(Event(reply_to="r/1", correlation_data=b"c"), "i/1")
    message = message_of(OutgoingRule("TRUE", "t"), one, 0)
    assert isinstance(message, Message)
    assert (message.reply_to, message.correlation) == ("r/1", b"c")
    answer = message_of(OutgoingRule("TRUE", "{reply_to}"), one, 0)
    assert isinstance(answer, Message)
    assert (answer.topic, answer.reply_to) == ("r/1", "")


# The settings

GOOD: dict[str, Any] = {"url": "mqtt://h:1", "in": [{"topic": "a/+"}]}


@pytest.mark.parametrize(
    ("table", "key", "says"),
    [
        ({"url": "http://h"}, "url", "write mqtt://HOST:PORT"),
        ({"url": "mqtt://h:x"}, "url", "this is not a URL"),
        ({"url": "mqtt://h/topic"}, "url", "write mqtt://HOST:PORT"),
        ({"url": "mqtt://ana:secret@h"}, "url", "must not contain a name or password"),
        ({"in": []}, "", "no events come in or go out"),
        ({"in": [{"topic": "a/#/b"}]}, "in[0].topic", "is not a topic"),
        ({"in": [{"topic": "a"}, {"topic": "b+"}]}, "in[1].topic", "is not a topic"),
        ({"in": [{"topic": "$share/g"}]}, "in[0].topic", "is not a topic"),
        ({"in": [{"topic": "a"}, {"topic": "a"}]}, "in", "two rules have the same topic"),
        ({"in": [{"topic": "a/+", "fields": {"x": 2}}]}, "in[0].fields", "a/+ has levels 0 to 1"),
        ({"in": [{"topic": "a/+", "fields": {"x": -1}}]}, "in[0].fields.x", ">= 0"),
        ({"in": [{"topic": "a", "qos": 2}]}, "in[0].qos", "2 is not valid (choices: 0, 1)"),
        ({"in": [{"topik": "a"}]}, "in[0]", "there is no setting 'topik'; did you mean 'topic'?"),
        ({"out": [{"filter": "x <", "topic": "a"}]}, "out[0].filter", "line 1"),
        ({"out": [{"filter": "x > 1", "topic": "a/{x"}]}, "out[0].topic", "is not a topic with fields"),
        ({"out": [{"filter": "x > 1", "topic": "a/+"}]}, "out[0].topic", "is not a topic with fields"),
        ({"out": [{"filter": "x > 1"}]}, "out[0]", "the setting 'topic' is missing"),
        ({"outt": []}, "", "there is no setting 'outt'; did you mean 'out'?"),
        ({"password": "secret"}, "username", "is missing"),
        ({"password": 17}, "password", "expected a string"),
        ({"password_variable": "NO_SUCH_VARIABLE"}, "password_variable", "the environment has no variable"),
        ({"authorities": "/no/such/file"}, "authorities", "there is no file"),
        ({"certificate": "/no/such/file"}, "certificate", "go together"),
    ],
)
def test_mistakes(table: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        mqtt.make("id", {**GOOD, **table})
    assert error.value.key == key
    assert says in str(error.value)
    assert "secret" not in str(error.value)


def test_the_settings_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "bridge.md").read_text("utf-8")
    tables = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    [first] = tables[0]["bridge"]
    status = mqtt.make("id", {key: value for key, value in first.items() if key not in ("kind", "name")})
    assert len(status.settings.incoming) == len(status.settings.outgoing) == 2
    mqtt.make("id", {"url": "mqtt://h", **tables[1]})
    given = [table["bridge"][0] for table in tables if "bridge" in table]
    assert [one["kind"] for one in given] == ["mqtt", "kafka", "nats", "our_bridges.lists:make"]
    assert [one.kind for one in make_all(msgspec.structs.replace(settings(), bridge=tuple(given[:3])))] == [
        "mqtt",
        "kafka",
        "nats",
    ]


def test_what_it_wants_and_promises() -> None:
    out = [{"filter": "x > 1", "topic": "a"}, {"filter": "y = 2", "topic": "b"}]
    status = mqtt.make("id", {**GOOD, "in": [{"topic": "a", "type": "t"}, {"topic": "b", "type": "u"}], "out": out})
    assert status.subscription is not None
    assert status.advertisement is not None
    assert [status.subscription.matches(event) for event in ({"x": 2}, {"y": 2}, {"x": 1})] == [True, True, False]
    assert [status.advertisement.matches(event) for event in ({"type": "t"}, {"type": "u"}, {"x": 1})] == [
        True,
        True,
        False,
    ]
    loose = mqtt.make("id", {**GOOD, "in": [{"topic": "a", "type": "t"}, {"topic": "b"}]})
    assert loose.advertisement is not None
    assert loose.advertisement.matches({})
    assert loose.subscription is None
    assert status.settings.client_id == "id"
