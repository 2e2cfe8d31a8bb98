"""`Receipt`: the promise that something will be published. Await it, or leave it to `drain`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator


class Receipt:
    """Awaiting it gives True when what was published is safe, and False if nobody wanted it; or raises `Refused`."""

    __slots__ = ("_answer", "_then", "heard")

    def __init__(self) -> None:
        """Nothing is known yet. Whoever only posts never awaits it, so there is no future before somebody does."""
        self._answer: bool | Exception | None = None
        self._then: list[Callable[[bool | Exception], None]] = []
        self.heard = False
        """whether somebody has asked for the answer"""

    @property
    def done(self) -> bool:
        """Is the answer known?"""
        return self._answer is not None

    def answer(self, answer: bool | Exception) -> None:
        """Let it be known."""
        if self._answer is None:
            self._answer = answer
            for call in self._then:
                call(answer)
            self._then = []

    def then(self, call: Callable[[bool | Exception], None]) -> None:
        """Call somebody with the answer, at once if it is known."""
        self.heard = True
        if self._answer is None:
            self._then.append(call)
        else:
            call(self._answer)

    def __await__(self) -> Generator[object, None, bool]:
        return self._wait().__await__()

    async def _wait(self) -> bool:
        future: asyncio.Future[bool | Exception] = asyncio.get_running_loop().create_future()
        self.then(lambda answer: None if future.done() else future.set_result(answer))
        answer = await future
        if isinstance(answer, Exception):
            raise answer
        return answer
