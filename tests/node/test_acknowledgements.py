"""Acknowledgements that wait: the last one of a session comes through, none comes after another input."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.node.talking import settings, talking, until

from fieldfare.core.inputs import Acknowledge
from fieldfare.core.state import Session
from fieldfare.node import acknowledgements
from fieldfare.node.acknowledgements import MANY, Acknowledgements
from fieldfare.node.server import running
from fieldfare.protocol import frames as f


def ignore(_: object) -> None:
    pass


def submitted(*numbers: int, durable: bool = True, limit: int = 100_000) -> list[int]:
    """What is submitted at once, of acknowledgements of a session."""

    async def test() -> list[int]:
        got: list[int] = []
        sessions = {"ana": Session("i", durable)}
        waiting = Acknowledgements(sessions, limit, lambda one, _: got.append(one.number))
        for number in numbers:
            waiting.add(Acknowledge("ana", number, "i"), ignore)
        at_once = list(got)
        await until(lambda: got and got[-1] == numbers[-1])
        assert sorted(got) == got, "a later acknowledgement was overtaken"
        return at_once

    return asyncio.run(test())


def test_only_the_last_of_a_moment_is_submitted() -> None:
    assert submitted(1, 2, 3) == []


def test_many_deliveries_do_not_wait() -> None:
    assert submitted(1, MANY, MANY + 1) == [MANY, MANY + 1]
    assert submitted(1, 2, limit=200) == [2]


def test_a_session_without_a_name_does_not_wait() -> None:
    assert submitted(1, 2, durable=False) == [1, 2]


def test_the_acknowledgement_of_an_earlier_session_is_not_lost() -> None:
    async def test() -> None:
        got: list[Acknowledge] = []
        waiting = Acknowledgements({"ana": Session("new", durable=True)}, 100_000, lambda one, _: got.append(one))
        waiting.add(Acknowledge("ana", 7, "old"), ignore)
        waiting.add(Acknowledge("ana", 1, "new"), ignore)
        assert [one.identity for one in got] == ["old"]
        waiting.flush("ana")
        assert [one.identity for one in got] == ["old", "new"]

    asyncio.run(test())


def test_an_acknowledgement_is_there_before_the_next_input_and_before_the_end(tmp_path: Path) -> None:
    patience = acknowledgements.MOMENT
    acknowledgements.MOMENT = 1e6  # type: ignore[misc]

    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node, talking(node, "bob") as bob:
            async with talking(node, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                await bob.publish(1, {"x": 1}, {"x": 2}, {"x": 3})
                session = node.node.core.sessions["ana"]
                assert len(await ana.deliveries(3)) == 3
                await ana.say(f.Acknowledge(1))
                await ana.publish(1, {"y": 1})
                assert session.acknowledged == 1
                await ana.say(f.Acknowledge(2))
                await ana.ask(f.Unsubscribe, "s")
                assert session.acknowledged == 2
                await ana.say(f.Acknowledge(3))
            await until(lambda: session.acknowledged == 3)

    try:
        asyncio.run(test())
    finally:
        acknowledgements.MOMENT = patience  # type: ignore[misc]
