"""The runner with a bridge in memory, and the tables of the configuration."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import types
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.node.talking import line, settings, talking, until

from fieldfare.events.event import Event
from fieldfare.filters import Filter, parse
from fieldfare.node import bridges
from fieldfare.node.bridges import Batch, BridgeError, IncomingEvent, OutgoingEvent, Rejection, Runner, runner
from fieldfare.node.config import Config, ConfigError, load
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.retry import Backoff


class Fake:
    """Another system, in memory. It keeps what is not acknowledged, and may fail where a test wants it to."""

    def __init__(
        self, wants: str = "", *, promises: str = "TRUE", fails: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.subscription: Filter | None = parse(wants) if wants else None
        self.advertisement: Filter | None = parse(promises) if promises else None
        self.to_come: list[IncomingEvent | Rejection] = []
        self.got: list[OutgoingEvent] = []
        self.hopeless: set[object] = set()
        self.connections = 0
        self._fails = fails
        self._more = asyncio.Event()

    def say(self, *messages: IncomingEvent | Rejection) -> None:
        self.to_come += messages
        self._more.set()

    def _perhaps_fail(self, where: str) -> None:
        if self._fails(where):
            raise BridgeError(f"failed: {where}")

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Fake]:
        self._perhaps_fail("connect")
        self.connections += 1
        self._more.set()
        yield self

    async def incoming(self) -> AsyncIterator[Batch]:
        while True:
            while self.to_come:
                self._perhaps_fail("before")
                batch = self.to_come[:2]

                async def done(count: int = len(batch)) -> None:
                    self._perhaps_fail("done")
                    del self.to_come[:count]

                yield Batch(batch, done)
            self._more.clear()
            await self._more.wait()

    async def outgoing(self, leaving: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        self._perhaps_fail("out")
        self.got += [one for one in leaving if one.event.get("x") not in self.hopeless]
        self._perhaps_fail("confirm")
        return [Rejection("hopeless") for one in leaving if one.event.get("x") in self.hopeless]


def x(*numbers: int, ids: bool = False) -> list[IncomingEvent]:
    return [IncomingEvent(Event(x=number), id=str(number) if ids else "") for number in numbers]


def begin(service: Context, fake: Fake, name: str = "fake") -> Runner:
    made = Runner(service.node, name, fake, "fake")
    service.node.spawn(made.run())
    return made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKOFF", Backoff(0.005, 0.02))


def run(test: Any) -> None:
    asyncio.run(test)


def test_what_comes_in_is_published_and_then_acknowledged() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as ana:
            await ana.subscribe("s", "x > 1")
            fake = Fake()
            made = begin(node, fake)
            fake.say(*x(1, 2, 3))
            assert await ana.events(2) == [{"x": 2}, {"x": 3}]
            await until(lambda: not fake.to_come)
            status = made.status()
            assert (status.up, status.incoming, status.outgoing, status.error) == (True, 3, 0, "")

    run(test())


def test_what_goes_out_is_acknowledged_when_it_is_there() -> None:
    async def test() -> None:
        failing = ["out", "confirm"]
        fake = Fake("x > 1", fails=lambda where: where in failing and not failing.remove(where))  # type: ignore[func-returns-value]
        async with running(settings()) as node, talking(node) as bob:
            made = begin(node, fake)
            await until(lambda: made.status().up)
            await bob.publish(1, {"x": 1}, {"x": 2}, {"x": 3})
            await until(lambda: made.status().outgoing == 2)
            assert fake.connections == 3
            first, again = fake.got[:2], fake.got[2:]  # `confirm` failed: they came twice, and can be told by their ids
            assert first == again
            assert [one.event for one in again] == [{"x": 2}, {"x": 3}]
            assert len({one.id for one in again}) == 2
            await until(lambda: made.status().waiting == 0)

    run(test())


def test_a_bridge_that_is_down_does_not_stop_the_node() -> None:
    async def test() -> None:
        down = [True]
        fake = Fake("x > 0", fails=lambda where: where == "connect" and down[0])
        async with running(settings()) as node, talking(node) as bob, talking(node) as ana:
            made = begin(node, fake)
            await until(lambda: made.status().error == "failed: connect")
            await ana.subscribe("s", "x > 0")
            await bob.publish(1, {"x": 1}, {"x": 2})
            assert await ana.events(2) == [{"x": 1}, {"x": 2}]
            assert (made.status().up, made.status().waiting) == (False, 2)
            down[0] = False
            await until(lambda: made.status().outgoing == 2)
            assert made.status().error == ""

    run(test())


def test_what_waits_survives_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node, talking(node) as bob:
            made = begin(node, Fake("x > 0", fails=lambda where: where == "connect"))
            await until(lambda: made.status().error)
            await bob.publish(1, {"x": 1}, {"x": 2})
        async with running(settings(folder=tmp_path)) as node:
            fake = Fake("x > 0")
            made = begin(node, fake)
            await until(lambda: made.status().outgoing == 2)
            assert [one.event for one in fake.got] == [{"x": 1}, {"x": 2}]

    run(test())


def test_what_comes_twice_under_an_id_is_published_once() -> None:
    async def test() -> None:
        failing = ["done"]
        fake = Fake(fails=lambda where: where in failing and not failing.remove(where))  # type: ignore[func-returns-value]
        async with running(settings()) as node, talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            made = begin(node, fake)
            fake.say(*x(1, 2, 3, 3, ids=True), *x(9, 9))
            assert [event["x"] for event in await ana.events(5)] == [1, 2, 3, 9, 9]
            await until(lambda: not fake.to_come)
            assert made.status().duplicates == 3
            assert await ana.silence()

    run(test())


def test_ids_are_remembered_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(runner, "WINDOW", 2)
        async with running(settings()) as node:
            fake = Fake()
            made = begin(node, fake)
            fake.say(*x(1, 2, 3, 4, 3, 1, ids=True))
            await until(lambda: not fake.to_come)
            assert (made.status().incoming, made.status().duplicates) == (5, 1)

    run(test())


def test_bad_messages_are_counted_and_do_not_stop_it() -> None:
    async def test() -> None:
        fake = Fake("x > 0")
        fake.hopeless = {5}
        async with running(settings()) as node, talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            made = begin(node, fake)
            fake.say(Rejection("unreadable"), *x(1), Rejection("unreadable too"))
            assert await ana.events(1) == [{"x": 1}]
            await until(lambda: not fake.to_come)
            assert (made.status().bad, made.status().problem) == (2, "unreadable too")
            await ana.publish(1, {"x": 5}, {"x": 6})
            await until(lambda: made.status().bad == 3)
            assert (made.status().outgoing, made.status().problem) == (1, "hopeless")
            assert fake.connections == 1

    run(test())


def test_a_mistake_in_a_bridge_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        fake = Fake()
        wrong = [True]

        def fails(where: str) -> bool:
            if where == "before" and wrong and wrong.pop():
                raise KeyError("oops")
            return False

        fake._fails = fails
        async with running(settings()) as node:
            made = begin(node, fake)
            fake.say(*x(1))
            await until(lambda: made.status().incoming == 1)

    run(test())
    assert "the bridge fake failed" in caplog.text


def test_what_came_in_does_not_go_out_by_the_same_bridge_on_any_node() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b), talking(b) as bob:
            here, there, other = Fake("x > 0"), Fake("x > 0"), Fake("x > 0")
            begin(a, here)
            same = begin(b, there)
            another = begin(b, other, "other")
            await until(lambda: same.status().up and another.status().up)
            await until(lambda: b.node.name in a.node.core.links and a.node.core.links["b"].written)  # what b wants
            here.say(*x(1))
            await until(lambda: other.got)
            await bob.publish(1, {"x": 2})
            await until(lambda: len(here.got) == 1 and len(there.got) == 1 and len(other.got) == 2)
            assert [one.event for one in here.got + there.got] == [{"x": 2}, {"x": 2}]

    run(test())


def test_time_to_live_goes_both_ways() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            fake = Fake("y > 0")
            made = begin(node, fake)
            fake.say(IncomingEvent(Event(x=1), 1000), IncomingEvent(Event(x=2), 0.000_001), IncomingEvent(Event(x=3)))
            assert await ana.events(2) == [{"x": 1}, {"x": 3}]
            await ana.publish(1, {"y": 1}, ttl=1000.0)
            await ana.publish(2, {"y": 2})
            await until(lambda: made.status().outgoing == 2)
            first, second = (one.expires for one in fake.got)
            assert first is not None
            assert 990 < first - node.node.clock() < 1001
            assert second is None

    run(test())


def test_what_it_wants_may_change(tmp_path: Path) -> None:
    async def test() -> None:
        for wants, promises, count in (("x > 0", "", 1), ("", "TRUE", 0), ("y > 0", "x > 0", 1)):
            config = settings(folder=tmp_path, flags={"strategy": "covering+ads"})
            async with running(config) as node:
                fake = Fake(wants, promises=promises)
                made = begin(node, fake)
                await until(lambda made=made: made.status().up)
                client = node.node.core.broker.clients.all.get("bridge:fake")
                assert len(client.subscriptions if client else ()) == count
                assert len(client.advertisements if client else ()) == bool(promises)
                if promises:
                    fake.say(*x(1))
                    await until(lambda made=made: made.status().incoming == 1)

    run(test())


def test_a_session_that_was_ended_begins_anew() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as bob:
            fake = Fake("x > 0")
            made = begin(node, fake)
            await until(lambda: made.status().up)
            await node.node.submit(lambda core, now: core.sessions.end("bridge:fake", now))
            fake.say(*x(1))
            await until(lambda: made.status().incoming == 1 and fake.connections == 2)
            await bob.publish(1, {"x": 7})
            await until(lambda: made.status().outgoing == 1)

    run(test())


@hypothesis_settings(max_examples=15, deadline=None)
@given(st.lists(st.booleans(), max_size=25), st.integers(1, 7))
def test_whatever_fails_nothing_is_lost(schedule: list[bool], count: int) -> None:
    async def test() -> None:
        rest = iter(schedule)
        fake = Fake("y > 0", fails=lambda _: next(rest, False))
        async with running(settings()) as node, talking(node) as ana:
            await ana.subscribe("s", "x > 0")
            made = begin(node, fake)
            fake.say(*x(*range(1, count + 1), ids=True))
            await until(lambda: "bridge:fake" in node.node.core.broker.clients.all)
            for number in range(1, count + 1):
                await ana.publish(number, {"y": number})
            assert [event["x"] for event in await ana.events(count)] == list(range(1, count + 1))
            await until(lambda: made.status().waiting == 0 and not fake.to_come)
            assert made.status().incoming == count
            assert list(dict.fromkeys(one.event["y"] for one in fake.got)) == list(range(1, count + 1))

    original = runner.BACKOFF
    runner.BACKOFF = Backoff(0.001, 0.002)  # type: ignore[misc]
    try:
        asyncio.run(test())
    finally:
        runner.BACKOFF = original  # type: ignore[misc]


# The tables


def with_bridges(*tables: dict[str, Any], **more: Any) -> Config:
    return msgspec.structs.replace(settings(), bridge=tables, **more)


def test_a_kind_of_your_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        given = []

        def make(identity: str, table: dict[str, Any]) -> Fake:
            given.append((identity, table))
            return Fake("x > 0")

        module = types.ModuleType("my_bridge")
        module.make = make  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "my_bridge", module)
        config = with_bridges({"kind": "my_bridge:make", "name": "mine", "colour": "red"})
        async with running(config) as node:
            status = node.node.reports["bridge:mine"]
            assert status().name == "mine"
            assert ("fieldfare-a-mine", {"colour": "red"}) in given
            await until(lambda: status().up)
        assert not status().up

    run(test())


@pytest.mark.parametrize(
    ("table", "key", "says"),
    [
        ({}, "bridge[0].kind", "the kind of the bridge is missing (choices: mqtt, kafka, nats)"),
        (
            {"kind": "mqqt"},
            "bridge[0].kind",
            "there is no kind 'mqqt'; did you mean 'mqtt'? (choices: mqtt, kafka, nats, or your own as package.module:make)",
        ),
        ({"kind": "no_such_module:make", "name": "n"}, "bridge[0].kind", "no module no_such_module"),
        ({"kind": "json:make", "name": "n"}, "bridge[0].kind", "json has no function make"),
        ({"kind": "json:make"}, "bridge[0].name", "needs a name"),
        ({"kind": "mqtt", "name": "a b"}, "bridge[0].name", "letters, digits"),
        ({"kind": "mqtt", "name": 3}, "bridge[0].name", "letters, digits"),
        ({"kind": "mqtt"}, "bridge[0]", "the setting 'url' is missing"),
    ],
)
def test_mistakes(table: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        bridges.make_all(with_bridges(table))
    assert error.value.key == key
    assert says in str(error.value)


def test_two_bridges_of_one_name() -> None:
    table = {"kind": "mqtt", "url": "mqtt://h", "in": [{"topic": "a"}]}
    with pytest.raises(ConfigError, match="there is a bridge mqtt already"):
        bridges.make_all(with_bridges(table, table))
    assert [made.name for made in bridges.make_all(with_bridges(table, {**table, "name": "b"}))] == ["mqtt", "b"]


def test_tables_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'name = "a"\n[[bridge]]\nkind = "mqtt"\nname = "plant"\nurl = "mqtt://127.0.0.1"\n'
        'in = [{ topic = "sensors/+/t", fields = { room = 1 }, type = "t" }]\n'
    )
    [made] = bridges.make_all(load(file, {}, {}))
    assert (made.name, made.kind) == ("plant", "mqtt")
    assert str(made.bridge.advertisement) == "type = 't'"
    assert made.bridge.subscription is None
