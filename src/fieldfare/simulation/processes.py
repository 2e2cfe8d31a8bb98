"""Processes in virtual time: generators waiting for answers of a core, for frames, or for a time.

A process yields the thing to wait for: an input for the core (the answer comes after the write), an `Inbox` (the next
frame comes), or a number of seconds. So the simulated connections read like the connections of a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

Work: TypeAlias = Generator[Any, Any, None]


class Inbox:
    """Received frames, for a single reading process."""

    __slots__ = ("_reader", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[object] = deque()
        self._reader: Process | None = None

    def put(self, frame: object) -> None:
        """Give a frame to the waiting process, or keep the frame."""
        reader, self._reader = self._reader, None
        if reader is None:
            self.waiting.append(frame)
        else:
            reader.resume(frame)

    def read(self, reader: Process) -> None:
        """Let a process wait for the next frame."""
        self._reader = reader


class Process:
    """A generator with access to a core; an exception as an answer is raised in the generator."""

    __slots__ = ("_pause", "_submit", "_work", "ended")

    def __init__(
        self,
        work: Work,
        submit: Callable[[Any, Callable[[Any], None]], None],
        pause: Callable[[float, Callable[[Any], None]], None],
    ) -> None:
        """Begin to run at once."""
        self._work = work
        self._submit = submit
        self._pause = pause
        self.ended = False
        self.resume(None)

    def end(self) -> None:
        """Stop for good, without a word to the generator."""
        self.ended = True

    def resume(self, value: Any) -> None:
        """Go on with an answer, until the process waits again."""
        while not self.ended:
            try:
                wanted = self._work.throw(value) if isinstance(value, Exception) else self._work.send(value)
            except StopIteration:
                self.ended = True
                return
            if isinstance(wanted, Inbox):
                if not wanted.waiting:
                    wanted.read(self)
                    return
                value = wanted.waiting.popleft()
            elif isinstance(wanted, float):
                self._pause(wanted, self.resume)
                return
            else:
                self._submit(wanted, self.resume)
                return
