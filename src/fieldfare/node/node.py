"""`Node`: a running broker. All that happens to the broker happens here, one thing after the other.

Whoever has something for the broker `submit`s it and gets a future. A single task takes all that has been submitted,
lets the broker do it, writes what follows in one go (*group commit*), and then answers everybody and wakes those who
have something to take. While it writes, more is submitted: the more there is to do, the larger the groups.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from fieldfare.node import machine
from fieldfare.node.config import NAME_FILE, Config, strategy_of
from fieldfare.node.counters import Counters
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.security import security_of
from fieldfare.node.state import Publication, RequestRefused, Step
from fieldfare.node.storage import private
from fieldfare.node.storage.log import LogError
from fieldfare.node.storage.rows import StoreError
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol.journal import JournalEntry, Row, RowKey, StoredRows
from fieldfare.protocol.lineage import Lineage, as_lineage, extend, life_of
from fieldfare.routing.broker import Broker

T = TypeVar("T")
Job = Callable[[DurableBroker, float], Any]

GROUP: Final = 4000
"""events that are taken in one go, at most"""
BACKLOG: Final = 20_000
"""events that may wait; then publishers have to"""
CHECKPOINT: Final = 60.0
"""seconds between checkpoints"""
PAUSE: Final = 0.25
"""seconds after which it is asked again when the broker wants to be woken"""
CENTURY: Final = 946_684_800.0
"""when this one began: who remembers nothing counts lives by the seconds since then"""

OTHERS: Final = ("webhook",)
"""kinds of rows that are not the broker's"""

logger = logging.getLogger("fieldfare.node")


class Closer(Protocol):
    """Ends a connection."""

    def __call__(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        """Say why, whether to come back, and to which address; whether the session goes there."""


class NodeStopped(RuntimeError):
    """Nothing more is done."""


def _steady(begin: float, ticking: Callable[[], float]) -> Callable[[], float]:
    """The time by which durations are measured: that of the clock when the node began, and no jump since."""
    offset = begin - ticking()
    return lambda: offset + ticking()


class Node:
    """A broker, its storage, and a task that brings them together."""

    def __init__(
        self, config: Config, clock: Callable[[], float] = time.time, ticking: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the storage and let the broker have what is in it.

        The `clock` on the wall may jump; how long something lasts is measured by what is always `ticking`.
        """
        self.config = config
        self.name = config.name
        self.clock, self.steady = clock, _steady(clock(), ticking)
        self.security = security_of(config)
        self.storage = Storage(Path(config.data) if config.data else None, config.log)
        stored, entries = self.storage.load()
        owner = stored.get("name", {}).get((), self.name)
        if owner != self.name:
            self.storage.close()
            raise StoreError(f"{config.data} belongs to the node {owner}, not to {self.name}: say --name {owner}")
        self.storage.remember(Row("name", (), self.name))
        self._others = {kind: dict(stored.get(kind, {})) for kind in OTHERS}
        self._to_keep: list[Row] = []
        self.id = self._identity(stored)
        self.broker = self._broker(stored, entries)
        self.lives = self._lives(stored)
        """in which lives of the log its positions were given"""
        self.broker.introduce()
        self.traffic = Counters(clock())
        self.wakers: dict[str, Callable[[], None]] = {}
        """what to call when a session has something to take"""
        self.link_wakers: dict[str, Callable[[], None]] = {}
        """the same of neighbours: a session may have the name of one"""
        self.watchers: set[Callable[[Step], None]] = set()
        """what to call after each step"""
        self.closers: dict[str, Closer] = {}
        """what to call when a session must go"""
        self.address: Callable[[str], str] = lambda _: ""
        """where another node is reached, by its name"""
        self._waiting: deque[tuple[Job | Publication, asyncio.Future[Any]]] = deque()
        self._backlog = 0
        self._work = asyncio.Event()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """holds what ended the node, if it could not write"""
        self._room = asyncio.Event()
        self._room.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False
        self._writer = ThreadPoolExecutor(1, "fieldfare-writer")
        self.searches = asyncio.Semaphore(2)
        """of the log: more at a time would only slow everybody down"""
        self._beside: set[asyncio.Task[Any]] = set()
        self.leaving = asyncio.Event()
        """the node is about to stop: answers that never end are to end"""
        self.ready = False
        self.reports: dict[str, Callable[[], Any]] = {}
        """how those do that work beside the node, such as bridges, by name"""

    def _broker(self, stored: StoredRows, entries: Iterable[JournalEntry]) -> DurableBroker:
        config, clock = self.config, self.clock
        # A clock alone could go back, and so could a row, with an earlier copy of the folder.
        life = max(int(stored.get("life", {}).get((), 0)) + 1, int(clock() - CENTURY))
        self.storage.remember(Row("life", (), life))
        broker = DurableBroker(
            Broker(self.name, strategy_of(config), life=life, separate_names=True),
            stored,
            entries,
            limit=config.sessions.limit,
            queue=config.sessions.queue,
            policy=config.sessions.policy,
            keepers=config.sessions.replicas,
            secure=self.security is not None,
            life=secrets.token_hex(6),
            doubtful=self._is_elsewhere(stored),
            now=self.steady(),
        )
        lost = broker.position - self.storage.log.last
        if lost > 0:
            logger.error("the log of %s lacks its last %d events: was there a power failure?", self.name, lost)
            broker.rewind(self.storage.log.last)
            broker.checkpoint()
        return broker

    def _is_elsewhere(self, stored: StoredRows) -> bool:
        """Whether the folder may be a copy, or may have lost its end: another file, or a machine started anew."""
        if not self.config.data:
            return False
        status = (Path(self.config.data) / "node.sqlite").stat()
        place = [status.st_dev, status.st_ino, machine.boot()]
        self.storage.remember(Row("place", (), place))
        return list(stored.get("place", {}).get((), place)) != place

    def _lives(self, stored: StoredRows) -> Lineage:
        lives = as_lineage(stored.get("lives", {}).get((), ()))
        lives = extend(lives, self.broker.life, self.broker.position + 1)
        self.storage.remember(Row("lives", (), lives))
        return lives

    def _identity(self, stored: StoredRows) -> str:
        """What tells this folder from that of another node of the same name; a node without one has none."""
        if not self.config.data:
            return ""
        id = str(stored.get("id", {}).get((), "")) or self.fresh()
        self.storage.remember(Row("id", (), id))
        name = Path(self.config.data) / NAME_FILE
        if not name.exists():
            private.create(name, f"{self.name}\n".encode())
        return id

    # For whoever has something to do

    def submit(self, job: Callable[[DurableBroker, float], T]) -> asyncio.Future[T]:
        """Let something be done by the broker; the future is done when it is written."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self.failure.done() or self._ending:
            future.set_exception(NodeStopped(f"{self.name} has stopped"))
            return future
        self._waiting.append((job, future))
        self._work.set()
        return future

    def soon(self, job: Callable[[DurableBroker, float], object]) -> None:
        """Let something be done by the broker, and nobody waits for it. A node that stops need not do it."""
        self.submit(job).add_done_callback(lambda future: future.cancelled() or future.exception())

    def publish(self, publication: Publication) -> asyncio.Future[int]:
        """Let events be taken; the future says up to which number all is safe, or holds a Refusal."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.failure.done() or self._ending:
            future.set_exception(NodeStopped(f"{self.name} has stopped"))
            return future
        self._waiting.append((publication, future))
        self._backlog += len(publication.events)
        if self._backlog > BACKLOG:
            self._room.clear()
        self._work.set()
        return future

    async def room(self) -> None:
        """Wait until more events can be taken. Whoever reads from a publisher waits here, and so the publisher does."""
        await self._room.wait()

    async def entries(self, positions: Sequence[int]) -> dict[int, JournalEntry]:
        """Entries of the log, by position; from disk in a thread, so that nobody else waits."""
        if self.storage.are_at_hand(positions):
            return self.storage.entries(positions)
        return await asyncio.to_thread(self.storage.entries, positions)

    def fresh(self) -> str:
        """A name that nothing else has."""
        return secrets.token_hex(8)

    def event_id(self, position: int) -> str:
        """An id for an event that has none of its own: a position alone may stand for two, in two lives of the log."""
        return f"{position}-{life_of(self.lives, position)}"

    def keep(self, row: Row) -> None:
        """Called from a job: let a row that is not the broker's be written with all that the job does."""
        self._to_keep.append(row)
        if row.value is None:
            self._others[row.kind].pop(row.key, None)
        else:
            self._others[row.kind][row.key] = row.value

    def kept(self, kind: str) -> Mapping[RowKey, Any]:
        """Such rows, by key."""
        return self._others[kind]

    def occupy(self, name: str, close: Closer, wake: Callable[[], None]) -> None:
        """Let a connection use a session that was attached for it; the one that used it before ends.

        It gets all that is not acknowledged: what the other took while the session was being attached may not arrive.
        """
        former = self.closers.get(name)
        if former is not None:
            former("the session is used by another connection now")
        self.closers[name], self.wakers[name] = close, wake
        if name in self.broker.sessions:
            self.broker.sessions[name].here = True  # the other one may have gone just now
            self.broker.begin(self.broker.sessions[name])

    def beside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let something run beside the node's work; it is cancelled when the node stops."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    # Life

    async def start(self) -> None:
        """Begin to work."""
        await self._step([])
        jobs = (self._run(), self._look_after(), self._pass_time())
        self._tasks = [asyncio.create_task(job) for job in jobs]
        self.ready = True

    async def stop(self) -> None:
        """Do what was submitted, write a checkpoint, and close the files."""
        self.leaving.set()
        beside = tuple(self._beside)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        self.ready = False
        self._ending = True
        self._work.set()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks and not self.failure.done():
            self.broker.checkpoint()
            await self._step([])
        self._writer.shutdown()
        self.storage.close()

    async def _run(self) -> None:
        while not self._ending and not self.failure.done():
            await self._work.wait()
            self._work.clear()
            while self._waiting and not self.failure.done():
                await self._step(self._next_group())
                await asyncio.sleep(0)  # let others have a turn

    def _next_group(self) -> list[tuple[Job | Publication, asyncio.Future[Any]]]:
        group = []
        events = 0
        while self._waiting and events < GROUP:
            group.append(self._waiting.popleft())
            what = group[-1][0]
            events += len(what.events) if isinstance(what, Publication) else 1
        self._backlog -= sum(len(what.events) for what, _ in group if isinstance(what, Publication))
        if self._backlog <= BACKLOG // 2:
            self._room.set()
        return group

    async def _step(self, group: list[tuple[Job | Publication, asyncio.Future[Any]]]) -> None:
        """Do a group of things, write what follows, then answer."""
        try:
            answers = self._do(group)
            step = self.broker.drain()
            step.rows.extend(self._to_keep)
            self._to_keep = []
            if self.storage.sync:
                await asyncio.get_running_loop().run_in_executor(self._writer, self.storage.write, step)
            else:
                self.storage.write(step)
        except Exception as error:  # noqa: BLE001 - whatever it is, what is not written cannot be promised
            self._fail(error, group)
            return
        self.broker.release(step)
        for (_, future), answer in zip(group, answers, strict=True):
            if future.done():
                continue  # whoever wanted to know is gone
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
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

    def _fail(self, error: Exception, group: list[tuple[Job | Publication, asyncio.Future[Any]]]) -> None:
        """What cannot be written cannot be promised: the node ends, and comes back with what it has written before."""
        logger.critical("%s cannot write, and stops: %s", self.name, error, exc_info=error)
        self.ready = False
        self._room.set()
        for _, future in (*group, *self._waiting):
            if not future.done():
                future.set_exception(NodeStopped(f"{self.name} cannot write: {error}"))
        if not self.failure.done():
            self.failure.set_exception(error)

    def _do(self, group: list[tuple[Job | Publication, asyncio.Future[Any]]]) -> list[Any]:
        """Things in their order; publications that follow each other at once."""
        now = self.steady()
        self.broker.ahead = self.clock() - now
        began = time.perf_counter()
        answers: list[Any] = []
        publications: list[Publication] = []
        for what, _ in group:
            if isinstance(what, Publication):
                publications.append(what)
                continue
            answers += self._take(publications, now)
            publications = []
            try:
                answers.append(what(self.broker, now))
            except ValueError as error:
                answers.append(error)
            except Exception as error:  # one bad job must not end the node
                logger.exception("a job failed")
                answers.append(error)
        answers += self._take(publications, now)
        self.traffic.busy += time.perf_counter() - began
        return answers

    def _take(self, publications: list[Publication], now: float) -> list[int | RequestRefused]:
        if not publications:
            return []
        self.traffic.events_in += sum(len(one.events) for one in publications)
        return self.broker.publish(publications, now)

    async def _pass_time(self) -> None:
        """Wake the broker when it wants that; some strategies never do."""
        while True:
            wakes = self.broker.broker.wakes
            await asyncio.sleep(PAUSE if wakes is None else min(PAUSE, max(0.0, wakes - self.steady())))
            if wakes is not None and self.steady() >= wakes:
                await self.submit(lambda broker, now: broker.tick(now))

    async def _look_after(self) -> None:
        """Now and then: what is too old goes, and the log is kept in order."""
        while True:
            await asyncio.sleep(CHECKPOINT)
            life = self.config.sessions.life_seconds

            def job(broker: DurableBroker, now: float, life: float = life) -> int:
                broker.expire(now, life)
                broker.checkpoint()
                return broker.low_water()

            keep_from = await self.submit(job)
            try:
                await asyncio.to_thread(self.storage.tidy, self.clock(), keep_from)
            except (OSError, LogError):
                logger.exception("the log could not be tidied up")
