"""A neighbour that is broken or wicked breaks nothing but itself."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import websockets
from tests.node.talking import line, settings, talking, until
from tests.node.wicked import wicked

from fieldfare.core.core import Core
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import handover as h
from fieldfare.protocol import link_frames, wire
from fieldfare.protocol import messages as m
from fieldfare.protocol.codec import JSON_CODEC, MSGPACK_CODEC, Codec
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker


async def works(service: Context) -> None:
    """A node takes and delivers events, and can write."""
    async with talking(service) as client:
        await client.subscribe("s", "kind = 'test'")
        await client.publish(1, {"kind": "test"})
        assert await client.events(1) == [{"kind": "test"}]
    assert not service.node.failure.done()


@pytest.mark.parametrize("message", [m.Subscribe("x", parse("TRUE")), m.Leave(), m.Unsubscribe("s")])
def test_a_neighbour_does_not_speak_for_the_client_of_its_name(message: m.Message) -> None:
    """A subscription without a session ended the node with the next event."""

    async def test() -> None:
        async with running(settings()) as a, talking(a, "mallory") as client:
            await client.subscribe("s", "x > 0")
            async with wicked(a) as one:
                await one.say(message)
                await until(lambda: a.node.core.links["mallory"].written == one.said)
                assert list(a.node.core.broker.clients.all["mallory"].subscriptions) == ["s"]
                await works(a)

    asyncio.run(test())


BEYOND = 2**64 - 1
EVENT = msgpack.encode(Event({"x": 1}))


def carried(number: int, sequence: int = 1, event: bytes = EVENT) -> h.StoredDelivery:
    return h.StoredDelivery(number, ("s",), 0.0, "p", sequence, "by", "source", "", event)


@pytest.mark.parametrize(
    "words",
    [
        [
            h.SessionDescription("s", "t", "i", "", replica=True),
            h.ReplicaProgress("s", "t", 1, BEYOND, 0, 0, []),
            h.SessionRequest("s", "u", "", True),
        ],
        [
            h.SessionOffer("s", "t", ""),
            h.SessionDescription("s", "t", "i", ""),
            h.StoredDeliveries("s", "t", [carried(1, BEYOND)]),
        ],
        [
            h.SessionOffer("s", "t", ""),
            h.SessionDescription("s", "t", "i", ""),
            h.SessionTransferred("s", "t", 1, BEYOND, 1, 0, [], BEYOND, BEYOND),
        ],
    ],
)
def test_numbers_that_cannot_be_written_are_not_taken(tmp_path: Path, words: list[h.HandoverMessage]) -> None:
    """The node ended when it wrote them, and again whenever the neighbour came back."""

    async def test() -> None:
        async with running(settings("a", tmp_path)) as a, wicked(a) as one:
            await one.word(*words)
            await until(lambda: a.node.core.links["mallory"].written == one.said)
            await works(a)

    asyncio.run(test())


def test_a_neighbour_that_leaves_out_all_numbers_that_there_are_cannot_go_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings("a", tmp_path)) as a:
            async with wicked(a) as one:
                pass
            await until(lambda: not a.hood.up)
            greet = link_frames.LinkResume("mine", one.greet.local_name, 0, lives=(("1", 1),), first=BEYOND)
            async with wicked(a, greet=greet) as one:
                one.said = BEYOND - 1
                with contextlib.suppress(websockets.ConnectionClosed):
                    await one.say(m.FilterUpdate(), m.FilterUpdate(), m.FilterUpdate())
                await works(a)

    asyncio.run(test())


def test_a_session_that_comes_may_have_any_gap_in_its_numbers() -> None:
    """The node looked at each number between two, and did nothing else meanwhile."""
    core = Core(Broker("a", separate_names=True))
    core.links.connect("mallory", Role.PEER, 0.0)
    count, moved = 2**50, h.SessionTransferred("s", "t", 0, 2**50, 0, 0, [])
    for word in (
        h.SessionOffer("s", "t", ""), h.SessionDescription("s", "t", "i", ""), h.StoredDeliveries("s", "t", [carried(1), carried(count)]), moved,
    ):  # fmt: skip
        core.handovers.receive(m.Envelope("a", "mallory", h.encode(word)), 0.0)
    core.release(core.drain())
    core.presence.attach("s", "j", 0.0)
    assert [number for number, _ in core.deliveries.next("s", 10, 1.0)] == [1, count]
    core.deliveries.acknowledge("s", 1)
    core.checkpoint()
    core.deliveries.acknowledge("s", count)
    assert not core.sessions["s"].pending


WANTS = {"s": "budgeted > 1 AND name LIKE '%a%b%'"}


@pytest.mark.parametrize(
    "words",
    [
        [h.SessionDescription("s", "t", "i", "", WANTS, replica=True)],
        [h.SessionOffer("s", "t", ""), h.SessionDescription("s", "t", "i", "", WANTS)],
    ],
)
def test_filters_of_sessions_that_come_are_read_within_a_budget(
    words: list[h.HandoverMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fieldfare.protocol.wire.STEPS", 1)
    core = Core(Broker("a", separate_names=True))
    core.links.connect("mallory", Role.PEER, 0.0)
    for word in words:
        core.handovers.receive(m.Envelope("a", "mallory", h.encode(word)), 0.0)
    assert "s" not in core.sessions


@pytest.mark.parametrize("codec", [MSGPACK_CODEC, JSON_CODEC])
def test_what_comes_with_a_session_and_is_no_event_is_left_out(codec: Codec[Any]) -> None:
    """The client could not read the frame that it stood in, and came back for it again and again."""

    async def test() -> None:
        async with running(settings()) as a, wicked(a) as one:
            carry = h.StoredDeliveries("s", "t", [carried(1, event=b"\xc1"), carried(2)])
            words = (
                h.SessionOffer("s", "t", ""),
                h.SessionDescription("s", "t", "i", ""),
                carry,
                h.SessionTransferred("s", "t", 0, 2, 0, 0, []),
            )
            await one.word(*words)
            await until(lambda: a.node.core.handovers.status("s") == "here")
            async with talking(a, "s", codec) as client:
                assert [delivery.number for delivery in await client.deliveries(1)] == [2]

    asyncio.run(test())


def test_a_neighbour_that_claims_to_reach_others_does_not_let_letters_go_round_for_ever() -> None:
    """Two nodes sent a letter to each other, thousands of times a second; and clients followed to its address."""

    async def test() -> None:
        names = [settings(name) for name in ("a", "b", "c", "d")]
        async with line(*names) as (a, b, c, d):
            await until(lambda: "d" in a.hood.reachable() and "a" in d.hood.reachable())
            async with wicked(a) as one:
                await one.send(link_frames.ReachableNodes(dict.fromkeys(("mallory", "b", "d"), "ws://127.0.0.1:2")))
                await until(lambda: a.hood.behind["mallory"].get("d"))
                await until(lambda: b.hood.behind["a"].get("mallory"))
                assert (a.node.address("b"), a.node.address("d")) == (b.hood.url, d.hood.url)
                letter = h.SessionOffer("s", "t", "")
                await a.node.submit(lambda core, _: core.envelopes.send("d", letter))
                await until(lambda: "s" in d.node.core.sessions)  # it has asked a, and nobody had it
                assert b.node.core.links["a"].last < 20
            assert c.node.ready

    asyncio.run(test())


def test_the_count_of_a_publisher_is_its_own_after_a_restart() -> None:
    """A neighbour said an event of ana's with a number that she had not reached: all of hers were duplicates then."""
    core = Core(Broker("a", separate_names=True))
    core.links.connect("mallory", Role.PEER, 0.0)
    core.presence.attach("ana", "i", 0.0)
    before = core.drain()
    forged = wire.encode(m.Forward(Event({"x": 1}), "ana", 2**60, "i", "mallory"))
    core.receive("mallory", core.links["mallory"].received + 1, [forged], 0.0)
    step = core.drain()
    rows: dict[str, dict[Any, Any]] = {}
    for kind, key, value in [*before.rows, *step.rows]:
        rows.setdefault(kind, {})[key] = value
    again = Core(Broker("a", separate_names=True, life=1), rows, step.entries)
    assert again.sessions["ana"].sequence == 0


def test_a_client_that_names_keepers_nobody_knows_leaves_no_letters() -> None:
    core = Core(Broker("a", separate_names=True))
    core.links.connect("b", Role.PEER, 0.0)
    assert core.handovers.claim("s", "t", 0.0, at="b", identity="i") is None
    for number in range(10):
        core.handovers.take_over("s", f"nobody{number}", 0.0)
    assert not [row for row in core.drain().rows if row.kind == "parked"]
    assert core.handovers.source_of("s") == "b"
