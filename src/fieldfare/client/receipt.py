"""`Receipt`: the answer of the node to published events, before the answer is there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator

Outcome = bool | Exception
"""True: the events are safe; False: no subscription matches, so the events were not sent; an error: refused, or lost"""


class Receipt:
    """The later answer to published events: await a receipt, or leave all receipts to `Client.drain`.

    Awaiting gives True when the events are safe at the node, False if the events were not sent because no subscription
    matches (`quench`), and raises `Refused` if the node did not accept the events.
    """

    __slots__ = ("_callbacks", "_outcome", "_refusals", "observed")

    def __init__(self, refusals: deque[Receipt] | None = None) -> None:
        """Wait for an outcome; an error adds the receipt to `refusals`.

        Most programs never await a receipt, so the future is made only for an awaiting program.
        """
        self._outcome: Outcome | None = None
        self._callbacks: list[Callable[[Outcome], None]] = []
        self._refusals = refusals
        self.observed = False
        """whether the program has asked for the outcome; `drain` raises only errors that no program has seen"""

    @property
    def done(self) -> bool:
        """Tell whether the outcome is known."""
        return self._outcome is not None

    @property
    def error(self) -> Exception | None:
        """The error, if the outcome is an error."""
        return self._outcome if isinstance(self._outcome, Exception) else None

    def resolve(self, outcome: Outcome) -> None:
        """Set the outcome and call the callbacks. A second outcome has no effect."""
        if self._outcome is not None:
            return
        self._outcome = outcome
        if self._refusals is not None and isinstance(outcome, Exception):
            self._refusals.append(self)
        for call in self._callbacks:
            call(outcome)
        self._callbacks = []

    def add_callback(self, call: Callable[[Outcome], None]) -> None:
        """Call a function with the outcome: at once if the outcome is known."""
        self.observed = True
        if self._outcome is None:
            self._callbacks.append(call)
        else:
            call(self._outcome)

    def __await__(self) -> Generator[object, None, bool]:
        return self._wait().__await__()

    async def _wait(self) -> bool:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.add_callback(lambda outcome: None if future.done() else future.set_result(outcome))
        outcome = await future
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
