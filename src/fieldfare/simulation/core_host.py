"""`CoreHost`: a process of a node in virtual time, from a start to a stop or kill; the disk survives.

The host does the work of `node.node`: all waiting inputs go to the core, the step is written, and only then the effects
are released, answers given, and connections woken. A kill may come at any point between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fieldfare.core.core import Core
from fieldfare.core.inputs import FreezeSession, Maintain, SendDeliveries, SendReplicaPart, Tick
from fieldfare.core.recovery import life_rows
from fieldfare.core.replica_state import ReplicaPart
from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.core.step import Step
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.events import msgpack
from fieldfare.protocol.journal import details_of, is_handed_over
from fieldfare.routing.broker import Broker
from fieldfare.simulation.checker.pattern_checks import Standing
from fieldfare.simulation.detections import traced_name
from fieldfare.simulation.disk import Disk, Stage
from fieldfare.simulation.node_clock import EPOCH
from fieldfare.simulation.processes import Process, Work
from fieldfare.simulation.trace import Advertised, Published

if TYPE_CHECKING:
    from fieldfare.simulation.core_connections import ClientConnection
    from fieldfare.simulation.core_links import LinkEnd
    from fieldfare.simulation.core_network import CoreNetwork
    from fieldfare.simulation.member_connections import MemberConnection

CHUNK = 2
"""deliveries in a handover message; small, so that small runs have handovers in several parts"""
LIFE = 1e9
"""seconds without use after which a session ends: never"""


class CoreHost:
    """A running core with a disk, a queue of inputs, and connections."""

    def __init__(self, network: CoreNetwork, name: str, disk: Disk) -> None:
        """Recover from the disk, and begin to work."""
        self.network, self.name, self.disk = network, name, disk
        self.clock = network.clock
        self.up = True
        self.links: dict[str, LinkEnd] = {}
        """ends of links by neighbour, from the greeting on"""
        self.behind: dict[str, tuple[str, ...]] = {}
        """by neighbour: the nodes that it reaches without this node, itself included"""
        self.connections: dict[str, ClientConnection] = {}
        """by session: the connection that uses it"""
        self.members: dict[str, dict[str, MemberConnection]] = {}
        """by session and member: the connections that share it"""
        self.watchers: set[Callable[[], None]] = set()
        """called after each step"""
        self.kill_after: tuple[int, bool, Callable[[], None]] | None = None
        """steps until a kill, whether only steps with entries count, and the kill"""
        self._waiting: list[tuple[Any, Callable[[Any], None] | None]] = []
        self._writing: Step | None = None
        self._planned = False
        self._alarm = float("inf")
        self._busy: set[str | tuple[str, str]] = set()
        self._began, self._wall = network.clocks[name].ticks(), network.wall(name)
        self.core = self._recovered()
        self.core.resume()
        self._plan()

    def _recovered(self) -> Core:
        stored, entries = self.disk.load()
        # As `node.startup` does: a row may go back with the disk, and a clock alone may, too.
        life = max(int(stored.get("life", {}).get((), 0)) + 1, int(1000 * (self._wall - EPOCH)))
        for row in life_rows(life):
            self.disk.remember(row)
        options = self.network.options
        broker = Broker(
            self.name,
            options.strategy,
            life=life,
            remember=options.remember,
            separate_names=True,
            index=options.shared,
        )
        core = self.network.make_core(
            broker,
            stored,
            entries,
            replicas=options.replicas,
            channels=options.domains.channels(self.name, options.channels),
            federation=options.domains.federation(self.name, self.network.edges),
            publishers=options.publishers,
            proxies=options.proxies,
            places=options.places,
            life=self.network.fresh(f"{self.name}.life"),
            doubtful=self.disk.copied,
            speaks=self.network.speaks[self.name],
            now=self.steady(),
        )
        self.disk.copied = False
        if core.position > self.disk.last:  # the end of the log is lost, and rows know of it
            core.rewind(self.disk.last)
            core.checkpoint()
        return core

    def steady(self) -> float:
        """Return a time that begins with the wall clock and never jumps."""
        return self._wall + (self.network.clocks[self.name].ticks() - self._began)

    # Steps

    def submit(self, what: Any, then: Callable[[Any], None] | None = None) -> None:
        """Give an input to the core; `then` gets the answer after the write."""
        if self.up:
            self._waiting.append((what, then))
            self._plan()

    def spawn(self, work: Work) -> Process:
        """Run a process beside the steps, until the host is down."""
        return Process(work, self.submit, self._pause)

    def _pause(self, seconds: float, then: Callable[[Any], None]) -> None:
        self.clock.schedule_background(self.clock.now + seconds, self._resume, then)

    def _resume(self, then: Callable[[Any], None]) -> None:
        if self.up:
            then(None)

    def _plan(self) -> None:
        if not self._planned and self._writing is None:
            self._planned = True
            self.clock.schedule(self.clock.now, self._step)

    def _step(self) -> None:
        self._planned = False
        if not self.up:
            return
        group, self._waiting = self._waiting, []
        now = self.steady()
        step = self.core.step([what for what, _ in group], now, self.network.wall(self.name) - now)
        self.network.steps += 1
        self._writing = step
        if self.kill_after is not None:
            steps, logging, kill = self.kill_after
            if step.entries or not logging:
                self.kill_after = steps - 1, logging, kill
                if steps <= 0:
                    kill()
                    return
        if self.disk.full and (step.entries or step.rows):
            self.network.fail(self.name, "the disk is full")
            return
        if self.disk.seconds:
            seconds = self.disk.seconds * self.network.random_of(self.name).random()
            self.clock.schedule(self.clock.now + seconds, self._written, step, group)
        else:
            self._written(step, group)

    def _written(self, step: Step, group: list[tuple[Any, Callable[[Any], None] | None]]) -> None:
        if not self.up:
            return
        self._write(step)
        self._writing = None
        self.core.release(step)
        for (what, then), answer in zip(group, step.answers, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, ValueError):
                self.network.problem(f"{self.name}: {type(what).__name__} failed: {answer!r}")
            if then is not None and self.up:
                then(answer)
        if self.up:
            self._notify(step)
        if self._waiting:
            self._plan()

    def _notify(self, step: Step) -> None:
        for name in step.neighbours:
            if name in self.links:
                self.links[name].pump()
        for name in step.sessions:
            for connection in self._connections_of(name):
                connection.pump()
        for name, target in step.closing.items():
            for connection in self._connections_of(name):
                connection.close("the session moves", target)
        for watch in tuple(self.watchers):
            watch()
        self._send_handovers()
        self._set_alarm()

    def _connections_of(self, name: str) -> list[ClientConnection]:
        own = [self.connections[name]] if name in self.connections else []
        return [*own, *self.members.get(name, {}).values()]

    def stop(self, stage: Stage, kept: int) -> None:
        """Stop at once; of an unfinished write the part up to the stage survives."""
        self.up = False
        if self._writing is not None:
            self._write(self._writing, stage, kept)

    def _write(self, step: Step, stage: Stage = Stage.ALL, kept: int = 0) -> None:
        """Write a step up to a stage, and record what is written of patterns: their advertisements and detections."""
        before = self.disk.last
        self.disk.write(step, stage, kept)
        for row in step.rows if stage is Stage.ALL else ():
            if row.kind == "pattern":
                self._note_pattern(str(row.key[0]), row.value, before)
        for entry in step.entries:
            if not entry.publisher.startswith(PUBLISHER) or is_handed_over(entry):
                continue
            details = details_of(entry)
            if details.source == self.name and before < entry.position <= self.disk.last:
                name, event = traced_name(entry.publisher, details.by), msgpack.decode(entry.event)
                self.network.record(Published, self.name, name, entry.sequence, event, 0.0)

    def _note_pattern(self, key: str, value: Any, before: int) -> None:
        """Note that a pattern stands here, or that the events up to a position were the last for it."""
        stood, one = self.network.stood[self.name], self.core.patterns.known.get(key)
        present = next((n for n, other in enumerate(stood) if other.key == key and other.ended is None), None)
        if value is None:
            if present is not None:
                stood[present] = stood[present]._replace(ended=before)
        elif one is not None:
            if present is None:
                stood.append(Standing(key, one.text, one.born, hosts=one.hosts))
            name, filter = traced_name(one.publisher, one.by), self.core.patterns.users.filter_of(one)
            self.network.record(Advertised, self.name, name, key, filter)

    @property
    def idle(self) -> bool:
        """Whether no input waits and nothing is written."""
        return not self._waiting and self._writing is None

    # Time

    def _set_alarm(self) -> None:
        wakes = self.core.wakes
        if wakes is not None:
            ticks = wakes - self._wall + self._began
            time = max(self.clock.now, self.network.clocks[self.name].until(ticks))
            if time < self._alarm:
                self._alarm = time
                self.clock.schedule_background(time, self._tick, time)

    def _tick(self, due: float) -> None:
        if self.up and due == self._alarm:
            self._alarm = float("inf")
            wakes = self.core.wakes
            if wakes is not None and self.steady() >= wakes - 1e-6:  # rounding, of a number as large as a time
                self.submit(Tick())
            else:
                self._set_alarm()

    def maintain(self) -> None:
        """Write a checkpoint, and delete unneeded entries."""
        self.submit(Maintain(LIFE), self.disk.retain)

    # Handovers

    def _send_handovers(self) -> None:
        """Send the deliveries of departing sessions and of replicas, as `node.handover_sender` does."""
        for name, departure in self.core.handovers.departures.items():
            if departure.ready and name not in self._busy:
                self._busy.add(name)
                self.spawn(self._send_session(name))
        for pair in self.core.replicas.due():
            if pair not in self._busy:
                self._busy.add(pair)
                self.spawn(self._send_replica(*pair))

    def _send_session(self, name: str) -> Work:
        try:
            yield FreezeSession(name)
            gone = False
            while not gone:
                waiting = self.core.handovers.departures.next_deliveries(name, CHUNK)
                gone = yield SendDeliveries(name, waiting, self.disk.entries(one.position for _, one in waiting))
        finally:
            self._busy.discard(name)

    def _send_replica(self, name: str, holder: str) -> Work:
        try:
            while (name, holder) in self.core.replicas.due():
                ticket, waiting = self.core.replicas.next_deliveries(name, holder, CHUNK)
                entries = self.disk.entries(one.position for _, one in waiting)
                upto = waiting[-1][0] if len(waiting) == CHUNK else None
                yield SendReplicaPart(ReplicaPart(name, holder, ticket, stored_deliveries(waiting, entries), upto))
        finally:
            self._busy.discard((name, holder))
