"""Events of several frames that become one input: as many as fit, in order, each frame with an answer of its own."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.node.talking import settings, talking, until

from fieldfare.core.inputs import ExpectMove
from fieldfare.core.open_publication import MOST, OpenPublication
from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC

frames = st.lists(
    st.tuples(
        st.integers(1, 40), st.sampled_from([0, 0, 0, 0, 1, 5]), st.booleans(), st.sampled_from([None] * 9 + [1.0])
    ),
    max_size=12,
)


@given(frames)
def test_publications_have_the_events_of_their_frames_and_nothing_is_left_out(
    given: list[tuple[int, int, bool, float | None]],
) -> None:
    number, said, closed = 1, [], []
    now: OpenPublication | None = None
    for size, gap, alone, ttl in given:
        number += gap
        frame = f.Publish(number, [], ttl=ttl, replaces="state" if ttl is None and gap == 5 else "")
        events = [Event(number=place) for place in range(number, number + size)]
        said += events
        if now is not None and not now.take(frame, list(events)):
            closed.append(now.closed())
            now = None
        if now is None:
            now = OpenPublication(frame, list(events), alone=alone)
        number += size
    if now is not None:
        closed.append(now.closed())
    assert [event for one in closed for event in one.events] == said
    for one in closed:
        first = one.frame.number
        assert [event["number"] for event in one.events] == list(range(first, first + len(one.events)))
        assert one.numbers[0] == first
        assert len(one.numbers) == 1 or (one.frame.ttl is None and not one.frame.replaces)
        assert len(one.events) < MOST + 40


def raw(**fields: object) -> msgspec.Raw:
    return msgspec.Raw(MSGPACK_CODEC.raw(Event(fields)))


def test_the_frames_of_a_read_become_one_input_and_a_bad_one_is_refused_alone() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as ana, talking(node, "bob") as bob:
            await ana.subscribe("s", "x > 0")
            given: list[object] = []
            submit = node.node.submit_then

            def noting(what: object, answered: object) -> None:
                given.append(what)
                submit(what, answered)  # type: ignore[arg-type]

            node.node.submit_then = noting  # type: ignore[method-assign]
            (connection,) = [one for one in node.node.closers if one == "bob"]
            sender = node.node.closers[connection].__self__  # type: ignore[attr-defined]
            listener = sender._socket._listener
            said = [f.Publish(n, [raw(x=n)]) for n in (1, 2, 3)]
            said += [f.Publish(4, [msgspec.Raw(b"\x81\x01\x01")]), f.Publish(5, [raw(x=5)]), f.Publish(6, [raw(x=6)])]
            data = [MSGPACK_CODEC.encode(frame) for frame in said]
            data.append(MSGPACK_CODEC.encode(f.LeaveFor(1, "nowhere")))
            data.append(MSGPACK_CODEC.encode(f.Publish(7, [raw(x=7)])))
            assert listener.receive(deque(data)) is None
            publications = [one for one in given if isinstance(one, Publication)]
            assert [(one.number, len(one.events)) for one in publications] == [(1, 3), (5, 2), (7, 1)]
            assert [type(one) for one in given] == [Publication, Publication, ExpectMove, Publication]
            refused = await bob.hear(f.Refused)
            assert (refused.number, refused.reason) == (4, "event 0: the field name 1 is not a string")
            await until(lambda: node.node.core.sessions["bob"].sequence == 7)
            assert [one["x"] for one in await ana.events(6)] == [1, 2, 3, 5, 6, 7]

    asyncio.run(test())


def test_each_frame_of_a_refused_input_is_refused() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, "bob") as bob:
            sender = node.node.closers["bob"].__self__  # type: ignore[attr-defined]
            node.node.core.sessions["bob"].identity = "another"  # as if the session had ended, and begun again
            data = [MSGPACK_CODEC.encode(f.Publish(n, [raw(x=n)])) for n in (1, 2, 3)]
            sender._socket._listener.receive(deque(data))
            assert [(await bob.hear(f.Refused)).number for _ in range(3)] == [1, 2, 3]

    asyncio.run(test())
