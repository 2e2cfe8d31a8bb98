"""Senders with due frames: all write in one call, at once without a backlog, later with one."""

from __future__ import annotations

import asyncio

from tests.node.talking import until

from fieldfare.node.due_frames import LONGEST, PAUSE_OF_EVENT, SHORTEST, DueFrames


def test_all_due_senders_write_together_at_the_end_of_the_turn() -> None:
    async def test() -> None:
        sent: list[int] = []
        due = DueFrames(lambda: int(SHORTEST / PAUSE_OF_EVENT) - 1)
        for number in range(3):
            due.add(lambda number=number: sent.append(number))  # type: ignore[misc]
        assert sent == []
        await asyncio.sleep(0)
        assert sent == [0, 1, 2]
        due.add(lambda: due.add(lambda: sent.append(4)))  # a sender with more to send than a turn takes
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sent[-1] == 4

    asyncio.run(test())


def test_a_backlog_lets_due_frames_wait_for_more() -> None:
    async def test() -> None:
        sent: list[float] = []
        due, loop = DueFrames(lambda: 10**9), asyncio.get_running_loop()
        began = loop.time()
        due.add(lambda: sent.append(loop.time()))
        await asyncio.sleep(0)
        assert sent == []
        due.add(lambda: sent.append(loop.time()))
        await until(lambda: len(sent) == 2)
        assert sent[0] - began > LONGEST / 2

    asyncio.run(test())
