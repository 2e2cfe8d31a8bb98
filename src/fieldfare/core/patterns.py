"""`Patterns`: detectors in a node, with a state that is a function of the log.

The filters of all patterns are subscriptions of an internal client of the broker: the broker's one index matches an
event once, for sessions, neighbours and patterns alike, and neighbours send the events for patterns. The journal entry
of an event names the matching filters. At the end of a step the events go to the detectors, in the order of the log;
each detection is published at once, under the next number of the pattern, before the detectors see the next event.

Entries are written before rows. After a kill between both the rows hold an earlier state, and the entries behind it
are fed again. The same detections come out under the same numbers, because nothing else has an influence: an event has
the time of its entry, made unique, and timers strike before an event of a later time, whether or not a tick came in
between. Numbers in the log are not published again. So a kill at any moment loses nothing and repeats nothing.

A pattern with `allow ... of disorder` goes by the times in the events instead, in a detector of its own, so that a
publisher with a wrong clock spoils no other pattern. In silence the time of the detector goes on with the clock of the
node.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fieldfare.core.base import Base
from fieldfare.core.pattern_atoms import PATTERNS, PatternAtoms, asks_for_composites
from fieldfare.core.pattern_parts import PatternParts
from fieldfare.core.pattern_users import PatternUsers
from fieldfare.core.presence import Presence
from fieldfare.core.sessions import SessionTable
from fieldfare.core.standing_pattern import (
    NOWHERE,
    PUBLISHER,
    StandingPattern,
    event_of,
    is_composite,
    is_of_pattern,
    stamped,
)
from fieldfare.core.state import Origin, RequestRefused, Route
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.patterns import Detection, Detector, Occurrence, occurrence, rows
from fieldfare.patterns.bounds import Bounds, check
from fieldfare.patterns.lanes import Place
from fieldfare.patterns.machine import Machine
from fieldfare.patterns.runs import NEVER
from fieldfare.patterns.stamps import microseconds
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Receiver, Row, StoredRows, is_handed_over
from fieldfare.protocol.messages import Send
from fieldfare.routing.clients import Recipients
from fieldfare.routing.routes import LOCAL

SHARED: Final = ""
"""name of the detector for all patterns that go by the time of the log"""
STATE_ROWS: Final = ("pattern-position", *rows.KINDS)
"""kinds of rows with state that is worthless after another version has used the folder"""

logger = logging.getLogger("fieldfare.node")


class Patterns:
    """The patterns of a node, and the events on the way to them."""

    def __init__(self, base: Base, sessions: SessionTable, presence: Presence, *, route: Route, bounds: Bounds) -> None:
        """Begin with no pattern but those in stored rows, which `restore` adds; `route` is the way of events."""
        self._base = base
        self._presence = presence
        self._route = route
        self.bounds = bounds
        self.known: dict[str, StandingPattern] = {}
        """By key: the type of the composite events, or the name of a pattern of the settings."""
        self.shared = Detector(matches=False, bounds=bounds)
        self.position = 0
        """Position of the last event that detectors have had."""
        self._stamp = 0
        """Time of that event for patterns, in microseconds."""
        self._queue: deque[tuple[int, float, Event, Sequence[str]]] = deque()
        """Events for detectors: position, time of the entry, event, and the matching filters."""
        self.atoms = PatternAtoms(base, sessions, self.known, depth=bounds.depth)
        self._own: dict[str, StandingPattern] = {}
        """The patterns with a detector of their own."""
        self._touched: set[str] = set()
        """Those of them with a new state."""
        self._by: dict[str, StandingPattern] = {}
        """Patterns by the identity under which detections are numbered."""
        self.users = PatternUsers(base, sessions, self.known)
        self.parts = PatternParts(base, self, lambda one: check(one.pattern, bounds))
        self._written: dict[str, dict[Place, Machine]] = {SHARED: {}}
        self._last_logged = 0.0
        """Recovery only: time of the last detection in the log."""
        self._doubtful = False

    # Patterns that come and go

    def subscribe(self, session: str, id: str, text: str, now: float, history: Iterable[JournalEntry] | None) -> str:
        """Subscribe a session to the detections of a pattern; return the key of the pattern.

        A session with such a subscription keeps the old one, wherever the detector stands. With a history the pattern
        begins in the past, in a detector for this subscriber alone.
        """
        one = self.beginning("", text)
        check(one.pattern, self.bounds)
        one.key = one.type if history is None else f"{one.type}@{one.born}:{session}/{id}"
        client = self._base.broker.clients.all.get(session)
        present = client.subscriptions.get(id) if client is not None else None
        if present is not None and is_of_pattern(present, one.type):
            return one.type
        one = self.known.get(one.key, one)
        if one.key not in self.known:
            self.begin(one, now)
        try:
            self._presence.change_filters(m.Subscribe(id, self.users.filter_of(one)), session, now)
        except ValueError:
            if not (one.users or one.named or one.wanted):
                self.remove(one.key, now)
            raise
        if history is not None:
            self._look_back(one, history, now)
        return one.key

    def beginning(
        self, key: str, text: str, *, named: bool = False, hosts: Mapping[str, str] = NOWHERE
    ) -> StandingPattern:
        """Return a pattern for `begin`, of which `hosts` detect parts."""
        return StandingPattern(key, text, "", self._base.journal.position, named=named, hosts=hosts)

    def begin(self, one: StandingPattern, now: float) -> None:
        """Let a pattern begin, behind the last event of the log."""
        one.by = f"{self._base.journal.life}:{one.born}:{one.key}"
        self._base.links.send_all(self._install(one, now))
        self._base.buffer.store(*one.rows())
        self.parts.began(one, now)

    def _install(self, one: StandingPattern, now: float) -> list[Send]:
        """Make a detector, and subscribe to the filters of the pattern; return the messages to neighbours."""
        base, pattern = self._base, one.pattern
        self.known[one.key] = one
        if pattern.disorder:
            one.own = one.own_detector(self.bounds)
            self._own[one.key], self._written[one.key] = one, {}
        else:
            self.shared.add(one.key, pattern)
        delivery = self.users.add(one)
        self._by[one.by] = one
        sends: list[Send] = []
        if base.broker.strategy.advertisements is not None:
            sends = base.broker.receive(m.Advertise(one.key, delivery), one.publisher, now)
        return sends + self.atoms.add(one, now)

    def remove(self, key: str, now: float) -> None:
        """End a pattern, with all state; subscribers get nothing more."""
        if key not in self.known:
            raise RequestRefused(f"there is no pattern {key}")
        base, one = self._base, self.known[key]
        self.parts.ended(one, now)
        self.atoms.remove(one, now)
        self.users.remove(one)
        del self.known[key], self._by[one.by]
        base.buffer.store(Row("pattern", (key,)), Row("pattern-count", (key,)))
        if one.own is not None:
            kept = [*rows.all_rows(one.own), *rows.changes(one.own, self._written.pop(key))]
            base.buffer.store(*(Row(row.kind, (key, *row.key)) for row in kept))
            del self._own[key]
        else:
            self.shared.remove(key)
        if base.broker.strategy.advertisements is not None:
            base.links.send_all(base.broker.receive(m.Unadvertise(key), one.publisher, now))
        self._store_state()

    # Events

    def take(
        self, forward: m.Forward, position: int, clients: Recipients, now: float
    ) -> tuple[Recipients, Sequence[Receiver]]:
        """Queue an event of the log for the detectors; return the other clients, and the part of the journal entry.

        A detection of this node has no such part: patterns over patterns get a detection from `_publish`, also if the
        detector finds the same again after a kill.
        """
        if self.parts.metering and forward.source == self._base.name:
            self.parts.meter(forward.event)
        ids = clients.get(PATTERNS)
        if ids is None:
            return clients, ()
        others = {name: known for name, known in clients.items() if name != PATTERNS}
        if forward.publisher.startswith(PUBLISHER) and forward.source == self._base.name:
            return others, ()
        self._queue.append((position, now + self._base.journal.ahead, forward.event, ids))
        return others, [(PATTERNS, "", 0, ids)]

    def run(self, now: float) -> None:
        """Give all queued events to the detectors, then let the timers strike; publish the detections."""
        for key in self.users.take_unused():
            self.remove(key, now)
        recovered = self._last_logged or self._doubtful
        if not self._queue and not recovered and (not self.known or self._next_deadline() >= self._wall(now)):
            return
        while self._queue:
            position, time, event, ids = self._queue.popleft()
            self._feed(position, microseconds(time), event, ids, now)
        if self._last_logged:
            self._advance(microseconds(self._last_logged), now)
            self._last_logged = 0.0
        self._advance(self._wall(now), now)
        if self._doubtful:
            self._rename()
        self.position = self._base.journal.position  # behind all detections, also those that the log had before a kill
        self._store_state()

    def _wall(self, now: float) -> int:
        return microseconds(now + self._base.journal.ahead)

    def _feed(self, position: int, at: int, event: Event, ids: Sequence[str], now: float, *, own: bool = False) -> None:
        """Give an event to the patterns whose filters match, at a time in microseconds; `own`: detected here."""
        names = self.atoms.names(position, event, ids)
        if not names:
            return
        self.parts.fed += len(names)
        self._advance(at, now)
        for key, _ in names:
            one = self._own.get(key)
            if one is not None and one.own is not None:
                self._touched.add(key)
                timed, found = occurrence(event, at / 1e6), list[Detection]()
                if one.lead is not None:  # so that it does not depend on ticks whether the event comes too late
                    found = one.own.advance(at + one.lead)
                one.lead = max(timed.high - at, timed.high - at if one.lead is None else one.lead)
                self._publish(found + one.own.step([timed]), position, now, at)
        shared = [(key, labels) for key, labels in names if key in self.shared.patterns]
        if shared:
            self._publish(self.shared.offer(self._stamped(event, at, own), shared), position, now, at)

    def _stamped(self, event: Event, at: int, detected: bool) -> Occurrence:
        """Return an event with a time that no other event has had; a detection of this node ends with such an event."""
        end = max(at, self._stamp if detected else self._stamp + 1)
        self._stamp = self._stamp if detected else end
        return stamped(event, end)

    def _advance(self, time: int, now: float) -> None:
        """Let the timers before a time strike, one after the other, however late this node hears of the time.

        A pattern over a pattern has the detection of a timer before the next timer strikes.
        """
        while (deadline := self.shared.deadline) < time:
            found = self.shared.advance(deadline + 1)
            self._publish(found, self._base.journal.position + 1, now, at=deadline + 1)
        for one in list(self._own.values()):
            if one.own is not None and one.lead is not None and one.own.deadline < time + one.lead:
                self._touched.add(one.key)
                self._publish(one.own.advance(time + one.lead), self._base.journal.position + 1, now)

    def _publish(self, found: Sequence[Detection], position: int, now: float, at: int | None = None) -> None:
        """Publish detections, unless the log has them; patterns over patterns get them at the time of the cause.

        That is not the present time: after a kill the same detection may be found much later.
        """
        base, here = self._base, self._base.name
        for detection in found:
            one = self.known[detection.pattern]
            one.count += 1
            event = event_of(one, detection, here)
            if one.count > one.logged:
                self._route([(m.Forward(event, one.publisher, one.count, one.by, here), Origin())], LOCAL, now)
                one.latest.append((now + base.journal.ahead, base.journal.position))
            base.buffer.store(one.count_row())
            if ids := self.atoms.ids_of(event):
                self._feed(position, self._wall(now) if at is None else at, event, ids, now, own=True)

    def _look_back(self, one: StandingPattern, history: Iterable[JournalEntry], now: float) -> None:
        """Give a new pattern the events of the log from before it."""
        detector = one.own or one.own_detector(self.bounds)
        found: list[Detection] = []
        composites = any(map(asks_for_composites, one.pattern.filters.values()))
        stamp = 0
        for entry in history:
            event, at = msgpack.decode(entry.event), microseconds(entry.time)
            if is_composite(event) and not composites:
                continue
            if one.own is not None:
                own = occurrence(event, entry.time)
                found += detector.advance(at + (one.lead or 0)) if one.lead is not None else []
                one.lead = max(own.high - at, own.high - at if one.lead is None else one.lead)
            else:
                stamp = max(at, stamp + 1)
                own = occurrence(event, entry.time) if is_composite(event) else Occurrence(stamp, stamp, event)
                found += detector.advance(stamp)
            found += detector.step([own])
        if one.own is None:
            self.shared.adopt(detector, one.key)
        self._publish(found, self._base.journal.position, now)
        self._store_state()

    # Time

    def maintain(self, now: float) -> None:
        """End the patterns that nobody has asked for since the maintenance before."""
        for key in self.users.take_idle():
            self.remove(key, now)
        self.parts.maintain(now)

    @property
    def wakes(self) -> float | None:
        """The time at which a timer strikes; None without timers."""
        deadline = self._next_deadline() if self.known else NEVER
        return None if deadline >= NEVER else (deadline + 10) / 1e6 - self._base.journal.ahead

    def _next_deadline(self) -> int:
        own = self._own.values()
        times = [one.own.deadline - one.lead for one in own if one.own is not None and one.lead is not None]
        return min([self.shared.deadline, *times])

    # Rows and recovery

    def _store_state(self) -> None:
        """Write what has changed in the detectors, and up to which event."""
        buffer = self._base.buffer
        buffer.store(Row("pattern-position", (), [self.position, self._stamp]))
        touched = [SHARED] if self.shared.changed else []
        touched += sorted(self._touched & self._own.keys())
        self._touched.clear()
        for name in touched:
            changed = rows.changes(self._detector(name), self._written[name])
            buffer.store(*([self.known[name].count_row()] if name else []))
            buffer.store(*(Row(row.kind, (name, *row.key), row.value) for row in changed))

    def _detector(self, name: str) -> Detector:
        own = self._own[name].own if name else None
        return self.shared if own is None else own

    def checkpoint(self) -> None:
        """Write the position: recovery begins there, and before it the log holds nothing that a detector lacks."""
        if not self._queue:
            self.position = self._base.journal.position
        if self.known:
            self._base.buffer.store(Row("pattern-position", (), [self.position, self._stamp]))

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; entries of the log follow, and `run` feeds those behind the rows."""
        self.position, self._stamp = stored.get("pattern-position", {}).get((), [0, 0])[:2]
        for (key,), (text, by, born, named, *more) in stored.get("pattern", {}).items():
            followed, parts = more[0] if more else True, more[1:]
            try:
                one = StandingPattern(str(key), text, by, born, named=named, hosts=parts[0] if parts else NOWHERE)
            except (ValueError, RecursionError) as error:
                logger.error("the pattern %s cannot be read, and is not detected any more: %s", key, str(error)[:300])
                continue
            one.followed = bool(followed)
            one.wanted = {(node, whole) for node, whole in parts[1]} if parts else set()
            one.count, one.lead = stored.get("pattern-count", {}).get((key,), [0, None])[:2]
            self._install(one, now)  # neighbours hear all filters anew, behind the entries of the log
        for name in [SHARED, *self._own]:
            detector = self._detector(name)
            kept = {
                kind: {key[1:]: value for key, value in stored.get(kind, {}).items() if key[0] == name}
                for kind in rows.KINDS
            }
            rows.restore(detector, kept)
            self._written[name] = dict(detector.machines)
        self.users.restore()

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: an event that detectors may lack, or a detection that is published."""
        if self._is_mine(entry, details) and not is_handed_over(entry):
            if one := self._by.get(details.by):
                one.logged = max(one.logged, entry.sequence)
            if entry.position > self.position:
                self._last_logged = max(self._last_logged, entry.time)
        for name, _, _, ids in details.to if entry.position > self.position else ():
            if name == PATTERNS:
                self._queue.append((entry.position, entry.time, msgpack.decode(entry.event), ids))

    def is_void(self, entry: JournalEntry, details: EntryDetails) -> bool:
        """Tell whether an entry is the detection of a pattern whose beginning was not written."""
        return self._is_mine(entry, details) and entry.position > self.position and details.by not in self._by

    def _is_mine(self, entry: JournalEntry, details: EntryDetails) -> bool:
        return entry.publisher.startswith(PUBLISHER) and details.source == self._base.name

    def finish_restore(self, *, doubtful: bool) -> None:
        """After the last entry of the log: numbers may have been given that no disk remembers."""
        self._doubtful = doubtful

    def rewind(self, position: int) -> None:
        """Forget the events behind a position: the end of the log is lost. What detectors have of them stays."""
        self.position = min(self.position, position)
        self._queue = deque(one for one in self._queue if one[0] <= position)
        self._doubtful = True

    def _rename(self) -> None:
        """Number the detections under another identity: the next numbers may have another meaning elsewhere."""
        self._doubtful = False
        for one in self.known.values():
            del self._by[one.by]
            one.by = f"{self._base.journal.life}:{self._base.journal.position}:{one.key}"
            self._by[one.by] = one
            self._base.buffer.store(*one.rows())
