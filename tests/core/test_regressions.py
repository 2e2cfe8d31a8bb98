"""Mistakes that the core once made, each as small as it can be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from fieldfare.core.core import Core
from fieldfare.core.state import NEVER, Pending, Publication
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry, Row
from fieldfare.protocol.link_frames import LinkResume
from fieldfare.protocol.numbers import NUMBER_LIMIT
from fieldfare.routing.broker import Broker
from tools import effort

DAY = 86_400.0


def make(stored: Any = None, entries: Iterable[JournalEntry] = (), *, clients: bool = True, **more: Any) -> Core:
    """A broker, restored or new; a new one has a client ana who wants everything, and a publisher bob."""
    core = Core(Broker("b", life=2 if stored else 1), stored, entries, **more)
    if clients and stored is None:
        for name in ("ana", "bob"):
            core.presence.attach(name, name, 0.0)
        core.presence.change_filters(m.Subscribe("s", parse("TRUE")), "ana", 0.0)
    return core


def stored(*steps: Step) -> dict[str, dict[Any, Any]]:
    """Rows, as they would be on disk."""
    rows: dict[str, dict[Any, Any]] = {}
    for kind, key, value in (row for step in steps for row in step.rows):
        table = rows.setdefault(kind, {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return rows


def publish(core: Core, first: int, count: int, now: float = 0.0, replaces: str = "") -> None:
    events = [Event({"x": x}) for x in range(first, first + count)]
    (answer,) = core.publish([Publication("bob", first, events, replaces=replaces)], now)
    assert answer == first + count - 1


def release(core: Core) -> Step:
    step = core.drain()
    core.release(step)
    return step


def old(id: str, *positions: int) -> list[Pending]:
    return [Pending(position, (id,), NEVER) for position in positions]


def forward(number: int) -> bytes:
    return wire.encode(m.Forward(Event({"x": number}), "eve", number, "e", "a"))


def test_numbers_of_an_earlier_link_are_not_those_of_a_new_one() -> None:
    """The log is still needed from before the link was begun anew; what it says of the old one counts no more."""
    core = make()
    core.links.connect("a", m.Role.PEER, 0.0, local_name="1", remote_name="1")
    core.receive("a", 1, [*(forward(n) for n in range(1, 101)), wire.encode(m.FilterUpdate((parse("TRUE"),)))], 1.0)
    publish(core, 1, 50)
    steps = [release(core)]
    assert (core.links["a"].written, len(steps[0].entries)) == (101, 150)
    core.links.connect("a", m.Role.PEER, 2.0, local_name="2", remote_name="2")
    core.checkpoint()
    steps.append(release(core))
    said = core.links["a"].last
    assert said < 10
    core = make(stored(*steps), steps[0].entries, now=3.0)
    link = core.links["a"]
    assert (link.written, link.last) == (0, said)
    assert all(isinstance(what, bytes) for what in link.outbox.values())
    assert len(core.sessions["ana"].pending) == 150
    assert core.receive("a", 1, [forward(101)], 4.0) == 1


@pytest.mark.parametrize(
    "unreadable",
    [b"\xc1 from a newer version", wire.encode(m.Forward(Event({"x": 2}), "eve", NUMBER_LIMIT, "e", "a"))],
    ids=["no message", "a number that is too large"],
)
def test_what_a_neighbour_said_around_nonsense_is_not_lost(unreadable: bytes, caplog: pytest.LogCaptureFixture) -> None:
    core = make()
    core.links.connect("a", m.Role.PEER, 0.0)
    release(core)
    assert core.receive("a", 1, [forward(1), unreadable, forward(3)], 1.0) == 2
    step = release(core)
    assert (core.links["a"].written, len(step.entries)) == (3, 2)
    assert len(core.sessions["ana"].pending) == 2
    assert "message 2 of a cannot be read" in caplog.text
    assert Row("unreadable", ("a", 2), unreadable) in step.rows


def test_a_node_whose_rows_may_be_lost_asks_for_the_filters_of_its_neighbours() -> None:
    """It asks until all are there, also after another start: without them, events do not go that way."""
    core, update = make(), m.FilterUpdate((parse("x = 1"), parse("x = 2")), all=True)
    core.links.connect("a", m.Role.PEER, 0.0, local_name="1", remote_name="2")
    core.receive("a", 1, [wire.encode(update)], 0.0)
    rows = stored(release(core))
    del rows["told"]["a", "subscriptions", "x = 2"]
    core = make(rows, doubtful=True)
    assert core.links["a"].incomplete
    rows |= stored(core.drain())
    core = make(rows)
    assert [link.incomplete for link in core.links.values()] == [True]
    core.receive("a", 2, [wire.encode(replace(update, about="advertisements")), wire.encode(update)], 0.0)
    assert [link.incomplete for link in core.links.values()] == [False]
    assert {str(one) for one in core.interest()} >= {"x = 1", "x = 2"}
    assert Row("incomplete", ("a",)) in release(core).rows


def test_numbers_in_the_log_are_void_after_the_neighbour_went_back_in_time() -> None:
    """Rows and neighbour had lost the same messages, the log had not: new messages under the numbers were dropped."""
    core = make()
    core.links.connect("a", m.Role.PEER, 0.0, local_name="1", remote_name="2", remote_lives=(("first", 1),))
    core.receive("a", 1, [wire.encode(m.FilterUpdate((parse("x = 1"),))), forward(1)], 0.0)
    before = stored(release(core))
    core.receive("a", 3, [wire.encode(m.FilterUpdate((parse("x = 2"),))), forward(2), forward(3)], 0.0)
    entries = [*release(core).entries]
    core = make(before, entries)
    assert core.links["a"].already.keys() == {4, 5}
    core.links.resume("a", LinkResume("2", "1", 0, lives=(("first", 1), ("second", 3)), last=4), "")
    assert not core.links["a"].already
    assert core.receive("a", 3, [forward(4), forward(5), forward(6)], 1.0) == 3
    assert len(core.sessions["ana"].pending) == 5


def test_a_neighbour_that_may_have_lost_filters_hears_all_of_them() -> None:
    core = make()
    core.links.connect("a", m.Role.PEER, 0.0, local_name="1", remote_name="2")
    release(core)
    core.links.acknowledge("a", core.links["a"].last)
    for incomplete, count in ((False, 0), (True, 1)):
        theirs = LinkResume("2", "1", core.links["a"].last, core.links["a"].lives, incomplete=incomplete)
        core.links.resume("a", theirs, "")
        messages = map(wire.decode, core.links["a"].outbox.values())  # type: ignore[arg-type]
        assert sum(isinstance(one, m.FilterUpdate) and one.all for one in messages) == count


@pytest.mark.parametrize("here", [True, False], ids=["client connected for long", "node off for long"])
def test_a_session_lives_on_after_a_restart(here: bool) -> None:
    core = make()
    if not here:
        core.presence.detach("ana", 1.0)
    steps = [core.drain()]
    publish(core, 1, 1, 8 * DAY if here else 2.0)
    core.checkpoint()
    steps.append(core.drain())
    core = make(stored(*steps), steps[-1].entries, now=8 * DAY)
    assert core.expire(8 * DAY + 60, 7 * DAY) == []
    assert len(core.sessions["ana"].pending) == 1
    assert "ana" in core.expire(16 * DAY, 7 * DAY)


def test_replayed_events_that_were_dropped_leave_no_rows() -> None:
    """They were pending again after a restart, below what was acknowledged, and `attach` looked for the first for ever."""
    core = make(limit=5, clients=False)
    core.presence.attach("ana", "ana", 0.0)
    core.presence.attach("bob", "bob", 0.0)
    publish(core, 1, 10)
    core.deliveries.replay("ana", old("s", *range(1, 11)))
    steps = [release(core)]
    rows = stored(*steps)
    core.deliveries.next("ana", 100, 0.0)
    core.deliveries.acknowledge("ana", 10)
    core.checkpoint()
    steps.append(release(core))
    assert not stored(*steps).get("replayed")
    torn = stored(*steps) | {"replayed": rows["replayed"]}  # as an earlier version left it
    core = make(torn, limit=5, now=1.0)
    assert not core.sessions["ana"].pending
    assert core.presence.attach("ana", "", 2.0).acknowledged == 10


def test_old_events_behind_newer_ones_keep_the_log() -> None:
    core = make()
    publish(core, 1, 100)
    release(core)
    core.deliveries.next("ana", 1000, 0.0)
    core.deliveries.acknowledge("ana", 100)
    publish(core, 101, 1)
    core.deliveries.replay("ana", old("s", *range(20, 30)))
    assert core.low_water() == 20
    release(core)
    core.deliveries.next("ana", 1000, 0.0)
    core.deliveries.acknowledge("ana", 111)
    assert core.low_water() == 102


def test_an_event_in_the_log_is_not_taken_again_however_late_its_neighbour_returns() -> None:
    """The log was written, the rows were not: the neighbour says both again, long after events are forgotten."""
    core = make()
    core.links.connect("a", m.Role.PEER, 0.0)
    before = release(core)
    said = [wire.encode(m.FilterUpdate((parse("y = 1"),))), forward(1)]
    core.receive("a", 1, said, 1.0)
    entries = core.drain().entries
    core = make(stored(before), entries, now=2.0)
    assert len(core.sessions["ana"].pending) == 1
    assert core.receive("a", 1, [*said, forward(2)], 1000.0) == 1
    assert [pending.position for pending in core.sessions["ana"].pending.values()] == [1, 2]
    assert core.links["a"].received == 3
    assert parse("y = 1") in core.interest()


def test_what_replaces_something_is_forgotten_with_it() -> None:
    core = make()
    for number in range(1, 501):
        publish(core, number, 1, replaces=f"key {number}")
        release(core)
        core.deliveries.next("ana", 10, 0.0)
        core.deliveries.acknowledge("ana", number)
    assert len(core.sessions["ana"].replaceable) < 200


class Counting(dict[int, Pending]):
    """Counts how often something is looked for."""

    looks = 0

    def get(self, key: int, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)


def test_nobody_walks_over_what_was_dropped() -> None:
    core = make(limit=10)
    core.presence.detach("ana", 0.0)
    for number in range(1, 2001, 100):
        publish(core, number, 100)
    release(core)
    session = core.presence.attach("ana", "", 1.0)
    pending = session.pending = Counting(session.pending)
    assert [number for number, _ in core.deliveries.next("ana", 100, 1.0)] == [*range(1991, 2001)]
    assert pending.looks < 50


def test_a_restart_with_more_than_the_limit_takes_no_longer() -> None:
    limit, more = 10_000, 5_000
    core = make()
    rows = stored(release(core))
    publish(core, 1, limit + more)
    entries = release(core).entries

    def restored(limit: int) -> Core:
        return make(rows, entries, limit=limit, now=DAY)

    assert effort.steps(lambda: restored(limit)) < 2 * effort.steps(lambda: restored(limit + more))
    assert list(restored(limit).sessions["ana"].pending) == [*range(more + 1, limit + more + 1)]


def test_a_log_that_lost_its_end_brings_nothing_wrong() -> None:
    """Other events will stand at the same positions: nobody is given those instead, and a link knows them for new."""
    core = Core(Broker("b"))
    core.presence.attach("ana", "ana@1", 0.0)
    core.deliveries.replay("ana", old("old", 1, 40))
    core.journal.position = 50
    core.links.connect("c", m.Role.PEER, 0.0)
    core.rewind(10)
    assert core.position == 10
    assert [pending.position for pending in core.sessions["ana"].pending.values()] == [1]
    assert core.sessions["ana"].dropped == 1
    assert core.links["c"].born <= 10
    assert core.low_water() == 1


def test_the_first_event_in_a_life_of_the_log_is_for_a_session_that_is_away() -> None:
    """Its row was written with the event, and said that the log has nothing for it up to there."""
    first = make(life="one")
    before = release(first)
    second = make(stored(before), life="two")  # nobody comes back, and so nothing has begun in this life
    second.presence.attach("bob", "bob", 0.0, known="bob")
    publish(second, 1, 1)
    step = release(second)
    third = make(stored(before, step), step.entries, life="three")
    assert list(third.sessions["ana"].pending) == [1]


def test_a_client_acknowledges_what_an_earlier_connection_has_had() -> None:
    """Before the node has sent it again: the client hears of no error, and does not get it again."""
    core = make()
    publish(core, 1, 3)
    release(core)
    assert len(core.deliveries.next("ana", 3, 0.0)) == 3
    core.deliveries.restart(core.sessions["ana"])
    assert [number for number, _ in core.deliveries.next("ana", 1, 0.0)] == [1]
    core.deliveries.acknowledge("ana", 2)
    assert [number for number, _ in core.deliveries.next("ana", 3, 0.0)] == [3]


def test_a_key_is_free_when_the_acknowledgement_is_written() -> None:
    """While a slow disk wrote the acknowledgement of a member, another member got an event of the same key."""
    core = make()
    core.members.attach("ana", "one", "", "k")
    core.members.attach("ana", "two", "", "k")
    core.members.grant("ana", "one", 1)
    core.members.grant("ana", "two", 1)
    publish(core, 1, 2)
    release(core)
    assert [number for number, _ in core.members.without_key("ana", 0.0)] == [1, 2]
    assert core.members.give("ana", 0.0, {1: "red", 2: "red"}) == {"one"}
    core.members.take("ana", "one", 10)
    core.members.acknowledge("ana", "one", [1])
    written = core.drain()
    assert core.members.give("ana", 0.0) == set()
    core.release(written)
    assert core.members.give("ana", 0.0) == {"two"}
