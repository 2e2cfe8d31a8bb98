"""`Requests`: the unanswered requests of a client. No I/O here, and no clock."""

from __future__ import annotations

from collections.abc import Callable

from fieldfare.client.registrations import Answer
from fieldfare.protocol import frames as f


class Requests:
    """Numbers requests and finds the function to call with each answer."""

    def __init__(self) -> None:
        self._count = 0
        self._pending: dict[int, tuple[Callable[[int], f.Frame] | None, Answer]] = {}
        """what makes the frame to repeat after a broken connection, if any, and the function to call, by number"""

    def add(self, make: Callable[[int], f.Frame], answer: Answer, *, repeat: bool) -> f.Frame:
        """Return the frame of a new request; with `repeat`, the frame is made again after a broken connection."""
        self._count += 1
        self._pending[self._count] = make if repeat else None, answer
        return make(self._count)

    def resolve(self, number: int, error: Exception | None) -> None:
        """Answer a request. A number without a pending request is of an earlier connection, and has no effect."""
        _, answer = self._pending.pop(number, (None, None))
        if answer is not None:
            answer(error)

    def resume(self) -> list[f.Frame]:
        """Return the frames to repeat on a new connection, and forget all other requests."""
        self._pending = {number: (make, answer) for number, (make, answer) in self._pending.items() if make}
        return [make(number) for number, (make, _) in self._pending.items() if make is not None]

    def fail(self, error: Exception) -> None:
        """Answer all requests with an error."""
        pending, self._pending = self._pending, {}
        for _, answer in pending.values():
            answer(error)
