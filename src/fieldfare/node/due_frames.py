"""`DueFrames`: the senders with something to send. All of them write in one call of the event loop.

A write of a socket costs as much as an event. So while the node has a backlog of events, due frames wait for more,
about as long as half of the backlog takes: a client then gets in one write what the events of the pause bring, and
the last events of the backlog wait longer than that in any case. Without a backlog all is sent at the end of the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

PAUSE_OF_EVENT: Final = 0.00002
"""Seconds of pause for each event of the backlog."""
LONGEST: Final = 0.02
"""Longest pause in seconds."""
SHORTEST: Final = 0.001
"""Shortest pause: the resolution of the event loop's timers."""


class DueFrames:
    """The senders that will write at the end of this turn, or of a later one."""

    def __init__(self, backlog: Callable[[], int]) -> None:
        """Choose pauses by the number of events that wait."""
        self._backlog = backlog
        self._loop = asyncio.get_running_loop()
        self._senders: list[Callable[[], None]] = []

    def add(self, send: Callable[[], None]) -> None:
        """Let a sender write soon; the sender must not be among those that will, and must not fail."""
        self._senders.append(send)
        if len(self._senders) > 1:
            return
        pause = min(LONGEST, self._backlog() * PAUSE_OF_EVENT)
        if pause < SHORTEST:
            self._loop.call_soon(self._send)
        else:
            self._loop.call_later(pause, self._send)

    def _send(self) -> None:
        senders, self._senders = self._senders, []
        for send in senders:
            send()
