"""`Acknowledgements`: acknowledgements on the way to the core, which wait a moment for a later one of the same client.

An acknowledgement counts for all deliveries before it, nobody hears an answer, and each costs as much as an event. So
only the last one of a moment becomes an input. A client cannot tell the moment from a slow network; the inputs of a
client keep their order. An acknowledgement of many deliveries does not wait, as they would count as waiting for a slow
client, nor one of a session without a name, of which nothing is written and little may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from fieldfare.core.inputs import Acknowledge
from fieldfare.core.state import Session

MOMENT: Final = 0.1
"""Seconds for which an acknowledgement may wait."""
MANY: Final = 50
"""Number of deliveries from which on an acknowledgement does not wait."""
SHARE: Final = 100
"""The same as a share of the deliveries that may wait for a session: one of so many."""

Submit = Callable[[Acknowledge, Callable[[object], None]], None]


class Acknowledgements:
    """The last acknowledgement of each client, as far as the core has not got it."""

    def __init__(self, sessions: Mapping[str, Session], limit: int, submit: Submit) -> None:
        """Give acknowledgements to `submit`, each with the function that hears the answer.

        At most `limit` deliveries wait for a session.
        """
        self._sessions = sessions
        self._many = min(MANY, limit // SHARE)
        self._submit = submit
        self._waiting: dict[str, tuple[Acknowledge, Callable[[object], None]]] = {}
        self._planned = False
        """Whether a timer runs that will submit all."""

    def add(self, one: Acknowledge, answered: Callable[[object], None]) -> None:
        """Let an acknowledgement wait, or submit it if it is about many deliveries."""
        name, session = one.session, self._sessions.get(one.session)
        if session is None or not session.durable:
            self._submit(one, answered)
            return
        earlier = self._waiting.get(name)
        if earlier is not None and (earlier[0].identity != one.identity or earlier[0].number > one.number):
            self.flush(name)
        if one.number - session.acknowledged >= self._many:
            self._waiting.pop(name, None)
            self._submit(one, answered)
            return
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_later(MOMENT, self._flush_all)
        self._waiting[name] = one, answered

    def flush(self, name: str) -> None:
        """Submit the acknowledgement of a session that waits, if there is one: another input will follow."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            self._submit(*waiting)

    def _flush_all(self) -> None:
        self._planned = False
        for name in list(self._waiting):
            self.flush(name)
