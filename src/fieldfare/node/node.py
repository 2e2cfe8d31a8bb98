"""`Node`: a running core. A single task makes all changes to the core, in order.

Other tasks `submit` inputs for the core and get futures, or give a function that hears the answer, which is cheaper.
The writer task takes waiting inputs, gives them to the core, writes the resulting step at once (*group commit*), and
then gives the answers and wakes the connections with something to send. While the task writes, more inputs are
submitted: the higher the load, the larger the groups, up to a limit that keeps the waiting of the first event short.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from fieldfare.core.core import Core
from fieldfare.core.inputs import Input, Maintain, Tick
from fieldfare.core.pattern_inputs import SettlePatterns
from fieldfare.core.state import Publication
from fieldfare.core.step import Step
from fieldfare.node import startup
from fieldfare.node.acknowledgements import Acknowledgements
from fieldfare.node.config import Config
from fieldfare.node.config.patterns import placements_of, texts_of
from fieldfare.node.counters import Counters
from fieldfare.node.due_frames import DueFrames
from fieldfare.node.members import SharedSessions
from fieldfare.node.security import security_of
from fieldfare.node.storage.log import LogError
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.lineage import life_of

T = TypeVar("T")
Answered: TypeAlias = Callable[[Any], None]
"""Function that hears the answer to an input: the result, or the exception of an input without effect."""
Waiting: TypeAlias = "tuple[Input | Publication, Answered]"

GROUP: Final = 256
"""Largest number of events in one step: their receivers wait for the last of them, and larger groups save nothing."""
SYNC_GROUP: Final = 4000
"""The same for a log on a disk that must confirm each write: there a larger group saves much."""
BACKLOG: Final = 20_000
"""Number of events that may wait for a step; beyond that, publishers have to wait."""
CHECKPOINT: Final = 60.0
"""Seconds between checkpoints."""
PAUSE: Final = 0.25
"""Seconds between two looks at the time at which the broker wants its next tick."""

logger = logging.getLogger("fieldfare.node")


class Closer(Protocol):
    """A function to end the connection of a session."""

    def __call__(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        """End with a reason; `again`: the client may come back, `to` an address; `follow`: the session goes there."""


class NodeStopped(RuntimeError):
    """The node has stopped, so the job was not done, or the outcome is unknown."""


def _resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return  # cancelled: nobody waits for the answer any more
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _ignore(_: Any) -> None:
    pass


def _steady(begin: float, ticking: Callable[[], float]) -> Callable[[], float]:
    """Return a clock for durations, which starts with the time of the wall clock and never jumps."""
    offset = begin - ticking()
    return lambda: offset + ticking()


class Node:
    """A broker, the storage, and the task of the writer."""

    def __init__(
        self, config: Config, clock: Callable[[], float] = time.time, ticking: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the storage, and recover the broker.

        The wall `clock` may jump; durations are measured with the `ticking` clock, which does not.
        """
        self.config = config
        self.name = config.name
        self.clock, self.steady = clock, _steady(clock(), ticking)
        self.security = security_of(config)
        self.storage = Storage(Path(config.data) if config.data else None, config.log)
        stored, entries = self.storage.load()
        startup.check_owner(config, self.storage, stored)
        self.id = startup.folder_id(config, self.storage, stored)
        self.core = startup.recovered_core(config, self.storage, stored, entries, clock=clock, now=self.steady())
        self.lives = startup.lives_of_log(self.core, self.storage, stored)
        """Lives in which the positions of the log were given."""
        self.core.resume()
        self.counters = Counters(clock())
        self.wakers: dict[str, Callable[[], None]] = {}
        """By session: called when there are new deliveries."""
        self.link_wakers: dict[str, Callable[[], None]] = {}
        """By neighbour: called when there are new messages; apart from sessions, which may have the same names."""
        self.watchers: set[Callable[[Step], None]] = set()
        """Called after each step."""
        self.closers: dict[str, Closer] = {}
        """By session: called when its connection must end."""
        self.address: Callable[[str], str] = lambda _: ""
        """Returns the address at which clients reach another node, by its name."""
        self.acknowledgements = Acknowledgements(self.core.sessions, self.core.limit, self.submit_then)
        self.shared = SharedSessions(self)
        """Connections of the members of shared sessions."""
        self._waiting: deque[Waiting] = deque()
        self._backlog = 0
        self.due = DueFrames(lambda: self._backlog)
        self._work = asyncio.Event()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Holds the exception that ended the node, if a step could not be written."""
        self._capacity = asyncio.Event()
        self._capacity.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False
        self._writer = ThreadPoolExecutor(1, "fieldfare-writer")
        self.searches = asyncio.Semaphore(2)
        """Searches of the log at a time; more would only slow everything down."""
        self._spawned: set[asyncio.Task[Any]] = set()
        self.leaving = asyncio.Event()
        """Set when the node is about to stop: endless answers must end."""
        self.ready = False
        self.reports: dict[str, Callable[[], Any]] = {}
        """By name: returns the state of a part that runs beside the node, such as a bridge."""

    # Inputs

    def submit(self, what: Callable[[Core, float], T]) -> asyncio.Future[T]:
        """Give an input to the core; the future has the answer when the effects are on disk."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit_then(what, partial(_resolve, future))
        return future

    def submit_detached(self, what: Input) -> None:
        """Give an input to the core without waiting; a stopping node may skip the input."""
        self.submit_then(what, _ignore)

    def submit_then(self, what: Input | Publication, answered: Answered) -> None:
        """Give an input to the core; `answered` hears the answer when the effects are on disk, and must not fail."""
        if self.failure.done() or self._ending:
            answered(NodeStopped(f"{self.name} has stopped"))
            return
        self._waiting.append((what, answered))
        if isinstance(what, Publication):
            self._backlog += len(what.events)
            if self._backlog > BACKLOG:
                self._capacity.clear()
        self._work.set()

    def publish(self, publication: Publication) -> asyncio.Future[int]:
        """Publish events; the future has the sequence number of the last accepted event, or `RequestRefused`."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.submit_then(publication, partial(_resolve, future))
        return future

    @property
    def has_capacity(self) -> bool:
        """Tell whether the node can accept more events."""
        return self._capacity.is_set()

    async def wait_for_capacity(self) -> None:
        """Wait until the node can accept more events; a waiting reader slows the publisher down."""
        await self._capacity.wait()

    async def entries(self, positions: Sequence[int]) -> dict[int, JournalEntry]:
        """Return entries of the log by position; a thread reads from the disk if necessary."""
        if self.storage.are_at_hand(positions):
            return self.storage.entries(positions)
        return await asyncio.to_thread(self.storage.entries, positions)

    def fresh_name(self) -> str:
        """Return a random, unique name."""
        return startup.fresh_name()

    def event_id(self, position: int) -> str:
        """Return an id for an event: a position alone may stand for two events, in two lives of the log."""
        return f"{position}-{life_of(self.lives, position)}"

    def use_session(self, name: str, close: Closer, wake: Callable[[], None]) -> None:
        """Let a connection serve an attached session; an earlier connection ends.

        The session repeats all unacknowledged deliveries: deliveries of the earlier connection during the
        attachment may not arrive.
        """
        former = self.closers.get(name)
        if former is not None:
            former("the session is used by another connection now")
        self.closers[name], self.wakers[name] = close, wake
        if name in self.core.sessions:
            self.core.sessions[name].connected = True  # the other connection may have detached just now
            self.core.members.restart(name)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine beside the node's work, until the node stops at the latest."""
        task = asyncio.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    # Start and stop

    async def start(self) -> None:
        """Write the changes of the recovery, and begin to work."""
        await self._step([(SettlePatterns(texts_of(self.config), placements_of(self.config)), _ignore)])
        jobs = (self._run(), self._maintain(), self._tick())
        self._tasks = [asyncio.create_task(job) for job in jobs]
        self.ready = True

    async def stop(self) -> None:
        """Do all submitted jobs, write a checkpoint, and close the files."""
        self.leaving.set()
        spawned = tuple(self._spawned)
        for task in spawned:
            task.cancel()
        await asyncio.gather(*spawned, return_exceptions=True)
        self.ready = False
        self._ending = True
        self._work.set()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks and not self.failure.done():
            self.core.checkpoint()
            await self._step([])
        self._writer.shutdown()
        self.storage.close()

    # Steps

    async def _run(self) -> None:
        while not self._ending and not self.failure.done():
            await self._work.wait()
            self._work.clear()
            while self._waiting and not self.failure.done():
                await self._step(self._next_group())
                await asyncio.sleep(0)  # let other tasks have a turn

    def _next_group(self) -> list[Waiting]:
        group, waiting = [], self._waiting
        most = SYNC_GROUP if self.storage.sync else GROUP
        events = others = 0
        while waiting and events + others < most:
            group.append(waiting.popleft())
            what = group[-1][0]
            if isinstance(what, Publication):
                events += len(what.events)
            else:
                others += 1
        self.counters.events_in += events
        self._backlog -= events
        if self._backlog <= BACKLOG // 2:
            self._capacity.set()
        return group

    async def _step(self, group: list[Waiting]) -> None:
        """Do a group of jobs, write the step, then resolve the futures."""
        try:
            step = self._do(group)
            if self.storage.sync:
                await asyncio.get_running_loop().run_in_executor(self._writer, self.storage.write, step)
            else:
                self.storage.write(step)
        except Exception as error:  # noqa: BLE001 - whatever it is, what is not written cannot be promised
            self._fail(error, group)
            return
        self.core.release(step)
        for (_, answered), answer in zip(group, step.answers, strict=True):
            try:
                answered(answer)
            except Exception:
                logger.exception("an answer could not be given")
        self._notify(step)

    def _notify(self, step: Step) -> None:
        """Wake and close connections according to a step."""
        for names, wakers in ((step.sessions, self.wakers), (step.neighbours, self.link_wakers)):
            for name in names:
                wake = wakers.get(name)
                if wake is not None:
                    wake()
        for name in step.overflowing:
            if name in self.closers:
                self.closers[name]("you are too slow: more waits for you than this node keeps for anybody")
        for name, target in step.closing.items():
            if name in self.closers:
                reason = f"your session goes on at {target}" if target else "your session stays after all"
                self.closers[name](reason, again=True, to=self.address(target) if target else "", follow=True)
        for watch in tuple(self.watchers):
            watch(step)

    def _fail(self, error: Exception, group: list[Waiting]) -> None:
        """End the node: an unwritten step cannot be promised. A restart has all earlier steps."""
        logger.critical("%s cannot write, and stops: %s", self.name, error, exc_info=error)
        self.ready = False
        self._capacity.set()
        for _, answered in (*group, *self._waiting):
            answered(NodeStopped(f"{self.name} cannot write: {error}"))
        if not self.failure.done():
            self.failure.set_exception(error)

    def _do(self, group: list[Waiting]) -> Step:
        now = self.steady()
        began = time.perf_counter()
        step = self.core.step([what for what, _ in group], now, self.clock() - now)
        self.counters.busy += time.perf_counter() - began
        return step

    # Time

    async def _tick(self) -> None:
        """Wake the broker at the requested times; some strategies never ask."""
        while True:
            wakes = self.core.wakes
            await asyncio.sleep(PAUSE if wakes is None else min(PAUSE, max(0.0, wakes - self.steady())))
            if wakes is not None and self.steady() >= wakes:
                await self.submit(Tick())

    async def _maintain(self) -> None:
        """Every minute: end old sessions, write a checkpoint, and compact the log."""
        while True:
            await asyncio.sleep(CHECKPOINT)
            keep_from = await self.submit(Maintain(self.config.sessions.life_seconds))
            try:
                await asyncio.to_thread(self.storage.tidy, self.clock(), keep_from)
            except (OSError, LogError):
                logger.exception("the log could not be tidied up")
