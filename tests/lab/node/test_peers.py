"""Other servers: the cheap clients read what a server sends wherever it is cut, and servers deliver what they should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare_lab.node import contest, mosquitto, mqtt_client, nats, nats_client, peers, rabbitmq
from fieldfare_lab.node import load as loads
from fieldfare_lab.node.client_processes import Contender

payloads = st.lists(st.binary(max_size=20) | st.integers(100, 200).map(bytes) | st.just(bytes(17_000)), max_size=5)
cuts = st.lists(st.integers(0, 20_000), max_size=5)


class Sent(asyncio.Transport):
    """A transport that remembers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.data += data


def feed(protocol: asyncio.Protocol, data: bytes, places: list[int]) -> None:
    """Give data to a protocol, cut at some places."""
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    for start, end in pairwise(ends):
        protocol.data_received(data[start:end])


@given(payloads, cuts)
def test_messages_of_nats_are_read_wherever_they_are_cut(payloads: list[bytes], places: list[int]) -> None:
    async def go() -> None:
        got: list[nats_client.Message] = []
        connection = nats_client.NatsConnection(got.append)
        connection.connection_made(transport := Sent())
        done = connection.ping()
        replies = [b"" if number % 2 else b"r%d" % number for number in range(len(payloads))]
        messages = [
            b"MSG s.x 7 %b%d\r\n%b\r\n" % (reply + b" " if reply else b"", len(payload), payload)
            for reply, payload in zip(replies, payloads, strict=True)
        ]
        feed(connection, b'INFO {"a":1}\r\nPING\r\n' + b"".join(messages) + b"PONG\r\n", places)
        assert connection.opened.done()
        assert done.done()
        assert transport.data.endswith(b"PING\r\nPONG\r\n")
        assert got == [nats_client.Message(b"7", reply, one) for reply, one in zip(replies, payloads, strict=True)]

    asyncio.run(go())


@given(payloads, cuts)
def test_messages_of_mqtt_are_read_wherever_they_are_cut(payloads: list[bytes], places: list[int]) -> None:
    async def go() -> None:
        got: list[bytes] = []
        connection = mqtt_client.MqttConnection("ana", got.append, clean=False)
        connection.connection_made(transport := Sent())
        hello, transport.data = transport.data, b""
        assert hello == bytes.fromhex("10 0f 0004 4d515454 04 00 0000 0003 616e61")
        packets = [mqtt_client.publish(b"a/b", number, one) for number, one in enumerate(payloads, 1)]
        feed(connection, b"\x20\x02\0\0" + b"".join(packets) + b"\x40\x02\0\x09" + b"\x90\x03\0\1\1", places)
        assert connection.opened.done()
        assert connection.subscribed.done()
        assert connection.confirmed == 1
        assert got == payloads
        assert transport.data == b"".join(b"\x40\x02\0%c" % number for number in range(1, len(payloads) + 1))

    asyncio.run(go())


def test_a_lost_server_is_an_error() -> None:
    async def go() -> None:
        there = nats_client.NatsConnection(lambda _: None)
        there.connection_made(Sent())
        done = there.ping()
        there.data_received(b"-ERR 'Slow Consumer'\r\n")
        with pytest.raises(RuntimeError, match="Slow Consumer"):
            there.write(b"PUB a 0\r\n\r\n")
        there.connection_lost(None)
        with pytest.raises(ConnectionError, match="Slow Consumer"):
            await done
        other = mqtt_client.MqttConnection("ana", lambda _: None, clean=True)
        other.connection_made(Sent())
        with pytest.raises(RuntimeError, match="refuses"):
            other.data_received(b"\x20\x02\0\5")
        other.connection_lost(None)
        with pytest.raises(ConnectionError):
            other.write(b"")

    asyncio.run(go())


def test_only_installed_servers_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (nats, mosquitto, rabbitmq):
        monkeypatch.setattr(module, "missing", lambda: "it is not here")
    assert peers.peers(quick=False) == peers.Peers([], ["it is not here"] * 3)
    monkeypatch.setattr(nats, "missing", lambda: None)
    found = peers.peers(quick=True)
    assert [one.name for one in found.contenders] == [variant.name for variant in nats.VARIANTS]
    assert len(found.missing) == 2


@pytest.mark.parametrize(("run", "name"), [(lambda: nats.running(nats.VARIANTS[0]), "NATS"), (mosquitto.running, "M")])
def test_an_absent_server_is_named(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object], name: str) -> None:
    for module in (nats, mosquitto):
        monkeypatch.setattr(module, "program", lambda _: None)
    with pytest.raises(RuntimeError, match=f"{name}.*not installed"), run():  # type: ignore[attr-defined]
        pass


@pytest.mark.usefixtures("swift")
@pytest.mark.parametrize(
    ("contender", "shape"),
    [
        *(
            pytest.param(nats.contender(variant), shape, marks=pytest.mark.needs("nats-server on PATH"))
            for variant, shape in zip(nats.VARIANTS, ("filters", "one"), strict=True)
        ),
        pytest.param(mosquitto.contender(), "filters", marks=pytest.mark.needs("mosquitto")),
    ],
)
def test_a_server_delivers_what_it_should(contender: Contender, shape: loads.Shape) -> None:
    load = loads.make(1, filters=100, subscribers=10) if shape == "filters" else loads.topics(1, shape, 10)
    (result,) = contest.contend(load, [contender], contest.Effort(events=200, seconds=1.0, rounds=1))
    assert result.correct
    assert result.events == 200
    assert result.deliveries == (2000 if shape == "filters" else 200)
