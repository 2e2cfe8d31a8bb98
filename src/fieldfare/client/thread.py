"""`LoopThread`: an event loop in a separate thread, for the client without asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from fieldfare.client.errors import ConnectionLost, NotEntered

T = TypeVar("T")

LOOK_UP: Final = 0.5
"""seconds after which a call that waits looks whether Ctrl-C was pressed, if the signal did not wake the thread"""


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; a second start is an error."""
        if self._loop is not None:
            raise RuntimeError("a client is used once: make another one with connect_sync()")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fieldfare client", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for the end."""
        loop, thread = self._loop, self._thread
        assert loop is not None
        assert thread is not None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def running(self) -> asyncio.AbstractEventLoop:
        """Return the event loop; an error if the thread has not started or has ended."""
        if self._loop is None or self._thread is None:
            raise NotEntered("the client is not connected: use it inside `with ff.connect_sync(...) as client:`")
        if not self._thread.is_alive():
            raise ConnectionLost("the client is closed")
        return self._loop

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and wait for the result. Ctrl-C cancels the coroutine."""
        try:
            loop = self.running()
        except (NotEntered, ConnectionLost):
            work.close()
            raise
        tasks, answer = list[asyncio.Task[T]](), SimpleQueue[asyncio.Task[T]]()

        def begin() -> None:
            tasks.append(loop.create_task(work))
            tasks[0].add_done_callback(answer.put)

        # A queue without a lock that Ctrl-C might leave held: the client's thread would wait for the lock for ever.
        try:
            loop.call_soon_threadsafe(begin)
            done = _wait(answer)
        except BaseException:  # such as Ctrl-C, while the coroutine goes on
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        return done.result()

    def call_soon(self, work: Callable[..., object], *arguments: object) -> None:
        """Call a function in the thread, without waiting."""
        self.running().call_soon_threadsafe(work, *arguments)


def _wait(answer: SimpleQueue[T]) -> T:
    while True:  # now and then look up: a signal just before a thread falls asleep does not wake the thread
        with contextlib.suppress(Empty):
            return answer.get(timeout=LOOK_UP)
