"""`Core`: a node without sockets and files, and without any loss of accepted events, whenever the process is killed.

State survives in two forms. Every event is a *journal entry*, together with all receiving sessions and neighbours,
each with a number. All other state (sessions, filters, neighbours, progress) is in *rows* of a store. The owner of
the core calls `step` with a batch of `inputs`, writes the entries and rows of the resulting step, and only then
`release`s the effects: so nobody hears of an effect before a crash can no longer undo it.

- A client with a *session* keeps filters and unacknowledged deliveries (`sessions`,
  `deliveries`). A repeated request counts once.
- A session may have several workers, of which each event goes to one (`members`), or several devices, of which each
  gets every event (`devices`).
- A message to a neighbour is numbered and kept until the neighbour's acknowledgement (`links`).
- Events of some types are numbered at one node, in a total order (`channels`); others are detections of `patterns`.
- Sessions move between nodes (`handovers`) and have copies at neighbours (`replicas`); the messages for both travel in
  `envelopes`.

Nothing is sent from here: connections fetch released deliveries and messages. A restart is only a pause: rows hold
the state of the last `checkpoint` or later, the log the events since, and to see an entry twice changes nothing (see
`recovery`). There is no I/O: entries and rows go out as values, and come in again as stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from fieldfare.core import incoming, recovery
from fieldfare.core.arrivals import Arrivals
from fieldfare.core.base import Base
from fieldfare.core.borders import Borders
from fieldfare.core.channel_homes import ChannelHomes
from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.channels import Channels
from fieldfare.core.departed import Departed
from fieldfare.core.departures import Departures
from fieldfare.core.domains import Federation
from fieldfare.core.envelopes import Envelopes
from fieldfare.core.handover import Handovers
from fieldfare.core.inputs import Acknowledge, Input
from fieldfare.core.journal import Journal
from fieldfare.core.link_table import LinkTable
from fieldfare.core.patterns import Patterns
from fieldfare.core.peer_versions import PeerVersions
from fieldfare.core.presence import Presence
from fieldfare.core.reminders import Reminders
from fieldfare.core.replicas import Replicas
from fieldfare.core.session_parts import session_parts
from fieldfare.core.stand_ins import StandIns
from fieldfare.core.state import Origin, Policy, Publication, RequestRefused, lowest_position
from fieldfare.core.step import Step, StepBuffer
from fieldfare.events import msgpack
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.patterns.bounds import Bounds
from fieldfare.protocol import messages as m
from fieldfare.protocol.event_options import has_options, options_of
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, RowKey, StoredRows
from fieldfare.protocol.messages import Role
from fieldfare.protocol.versions import NEWEST
from fieldfare.routing.broker import Broker
from fieldfare.routing.deduplication import EventId
from fieldfare.routing.places import Places
from fieldfare.routing.publisher_policies import SAFE, PublisherPolicy
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.table_routes import TableRoutes

OTHER_ROWS: Final = ("webhook",)
"""Kinds of rows that belong to other parts of a node."""

logger = logging.getLogger("fieldfare.node")


class Core:
    """A broker, with all durable state."""

    def __init__(
        self,
        broker: Broker,
        stored: StoredRows | None = None,
        entries: Iterable[JournalEntry] = (),
        *,
        limit: int = 100_000,
        queue: int = 1_000,
        policy: Policy = "buffer",
        replicas: int = 0,
        places: Places = Places(),  # noqa: B008
        secure: bool = False,
        channels: ChannelMap = ChannelMap(),  # noqa: B008 - immutable
        federation: Federation = Federation(),  # noqa: B008 - immutable
        publishers: PublisherPolicy = SAFE,
        proxies: tuple[str, ...] = (),
        life: str = "",
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
        doubtful: bool = False,
        speaks: int = NEWEST,
        now: float = 0.0,
    ) -> None:
        """Recover from stored rows, and from the entries of the log from `low_water(stored)` on.

        At most `limit` events wait for a session; then the oldest are dropped. For a session without a name the limit
        is `queue`, and the policy may disconnect a slow client. Each session has `replicas` copies at neighbours. The
        `places` are those that sessions may have. With `secure`, a session is handed over only to the owner. Events of
        the types in `channels` are numbered; the `federation` says which events cross to other domains. Patterns have
        `bounds`. The `life` is a unique name of the present run of the log: see `lineage`. With `doubtful`, the stored
        state may not be the latest, and a program without memory of its session gets a new identity.
        """
        self.broker = broker
        self.limit = limit
        self.life = life
        self.doubtful = doubtful
        self.now = now
        self.buffer = StepBuffer()
        self.journal = Journal(self.buffer, life)
        self.links = LinkTable(broker, self.journal, self.buffer)
        self.envelopes = Envelopes(broker.name, self.links, self.buffer)
        self.versions = PeerVersions(broker.name, speaks, self.envelopes, federation.address)
        base = Base(broker, self.buffer, self.journal, self.links, self.envelopes, self.versions)
        # Every part gets the parts below it, and none knows the core.
        parts = session_parts(base, places, limit=limit, queue=queue, policy=policy)
        self.sessions, self.deliveries, self.dynamic = parts.sessions, parts.deliveries, parts.dynamic
        self.members, self.devices = parts.members, parts.devices
        self.replicas = Replicas(base, parts, replicas)
        self.stand_ins = StandIns(base, parts.sessions, publishers, proxies)
        departed = Departed(self.buffer)
        departures = Departures(base, parts, self.stand_ins, departed)
        self.presence = Presence(parts, self.replicas, departures, self.stand_ins)
        self.handovers = Handovers(
            base,
            parts,
            replicas=self.replicas,
            stand_ins=self.stand_ins,
            departures=departures,
            arrivals=Arrivals(base, parts, self.replicas, self.stand_ins, departed),
            presence=self.presence,
            secure=secure,
        )
        self.reminders = Reminders(broker.name, parts.sessions.states, departures, self.envelopes)
        homes = ChannelHomes(base, channels)
        self.channels = Channels(base, homes, self.route)
        self.borders = Borders(base, homes, federation)
        self.envelopes.at_border = self.borders.leaving
        self.patterns = Patterns(base, self.sessions, self.presence, route=self.route, bounds=bounds)
        following = self.dynamic, self.handovers, self.replicas, self.members, parts.device_places, self.patterns.users
        self.sessions.watchers, self.deliveries.watchers = following, (self.replicas, self.members)
        self.links.watchers = (self.envelopes, self.replicas, homes, self.borders)
        self.other_rows: dict[str, dict[RowKey, Any]] = {
            kind: dict((stored or {}).get(kind, {})) for kind in OTHER_ROWS
        }
        """By kind: rows of other parts of the node."""
        if stored is not None:
            recovery.restore(self, stored, entries)

    # Steps

    def step(self, inputs: Sequence[Input | Publication], now: float, ahead: float = 0.0) -> Step:
        """Apply inputs in order, and return everything to write before anybody may hear of the effects.

        Consecutive publications are matched as a single batch, across acknowledgements: those are about deliveries of
        earlier steps. An input that fails leaves the others alone. The wall clock is `ahead` seconds before `now`, a
        time that never jumps.
        """
        self.journal.ahead = ahead
        self.patterns.run(now)
        answers: list[Any] = [None] * len(inputs)
        places: list[int] = []
        for place, one in enumerate(inputs):
            if isinstance(one, Publication):
                places.append(place)
                continue
            if places and not isinstance(one, Acknowledge):
                self._publish(inputs, places, answers, now)
            answers[place] = self._answer(one, now)
        self._publish(inputs, places, answers, now)
        self.patterns.run(now)
        return self.drain()._replace(answers=answers)

    def _publish(self, inputs: Sequence[Any], places: list[int], answers: list[Any], now: float) -> None:
        """Publish the inputs of some places, note the answers there, and empty the list of places."""
        for place, answer in zip(places, self.publish([inputs[place] for place in places], now), strict=True):
            answers[place] = answer
        places.clear()

    def _answer(self, apply: Input, now: float) -> Any:
        try:
            return apply(self, now)
        except ValueError as error:
            return error
        except Exception as error:  # one bad input must not end the node
            logger.exception("an input failed: %r", apply)
            return error

    def drain(self) -> Step:
        """Return all unwritten changes since the last step."""
        self.replicas.assign_holders()
        self.members.store_changed()
        self.devices.places.store_changed()
        self.channels.moves.written()
        return self.buffer.drain(self.sessions, self.links)

    def store_row(self, row: Row) -> None:
        """Store a row of another part of the node, which finds the row in `other_rows`, also after a restart."""
        self.buffer.store(row)
        known = self.other_rows.setdefault(row.kind, {})
        if row.value is None:
            known.pop(row.key, None)
        else:
            known[row.key] = row.value

    def release(self, step: Step) -> None:
        """Let sessions and neighbours have the effects of a step, which is on disk now."""
        for name, count in step.sessions.items():
            if (session := self.sessions.get(name)) is not None and session.released < count:
                session.released = count
        for name, last in step.neighbours.items():
            if name in self.links:
                link = self.links[name]
                link.released, link.written = max(link.released, last), max(link.written, link.received)
        self.members.free(step.freed)

    def checkpoint(self) -> None:
        """Write the rows of all sessions and links; recovery needs less of the log then."""
        for name, session in self.sessions.items():
            if session.durable:
                self.sessions.store(name)
        for name in self.links:
            self.links.store(name)
        self.replicas.checkpoint()
        self.channels.checkpoint()
        self.patterns.checkpoint()
        self.buffer.store(Row("checkpoint", (), self.journal.position))

    def rewind(self, position: int) -> None:
        """Forget the events behind a position: the end of the log is lost, and other events will stand there soon."""
        self.journal.position = position
        self.deliveries.rewind(position)
        self.handovers.departures.rewind(position)
        self.channels.rewind(position)
        self.patterns.rewind(position)
        for link in self.links.values():
            link.born, link.low = min(link.born, position), min(link.low, position + 1)

    def resume(self) -> None:
        """Continue after a restart: cancel handovers without a waiting client, and announce filters to neighbours."""
        self.handovers.cancel_unanswered()
        self.channels.homes.begin(self.now)
        for neighbour in self.links:
            self.links.announce_filters(neighbour)

    def low_water(self) -> int:
        """Return the first position of the log with an entry still in use."""
        waiting = [lowest_position(one) for one in self.sessions.values() if one.durable and one.pending]
        outgoing = [link.low for link in self.links.values() if link.outbox]
        outgoing += [position for link in self.links.values() for position in link.already.values()]
        moving = [*self.handovers.low_water(), *self.replicas.low_water()]
        return min([*waiting, *outgoing, *moving, self.journal.position + 1])

    def tick(self, now: float) -> None:
        """Let the broker act on the passage of time, as with repeated announcements, and end stand-ins."""
        self.stand_ins.tick(now)
        self.links.send_all(self.broker.tick(now))

    def expire(self, now: float, life: float) -> list[str]:
        """End sessions after `life` seconds without use, and drop expired events; return the ended sessions."""
        wall = now + self.journal.ahead
        ended = self.presence.expire(now, life)
        self.replicas.expire(now, life, wall)
        self.deliveries.expire(wall)
        self.members.expire()
        self.devices.expire(now, life)
        self.handovers.departed.expire(now, life)
        self.reminders.maintain()
        self.channels.ask_again()
        self.patterns.maintain(now)
        return ended

    @property
    def wakes(self) -> float | None:
        """The time at which a `Tick` must come; None if no work is planned."""
        times = (self.broker.wakes, self.stand_ins.wakes, self.patterns.wakes)
        return min((time for time in times if time is not None), default=None)

    @property
    def position(self) -> int:
        """Position of the last event in the log."""
        return self.journal.position

    @property
    def changes(self) -> int:
        """How often the interest may have changed."""
        return self.sessions.changes + self.links.changes

    @property
    def unwritten(self) -> Sequence[JournalEntry]:
        """The journal entries since the last step."""
        return self.buffer.entries

    def interest(self) -> set[Filter]:
        """Return the filters of all clients and neighbours."""
        routes, everything = self.broker.routes, parse("TRUE")
        clients = self.broker.clients.all.values()
        filters = {one for client in clients for one in client.subscriptions.values() if not one.is_empty}
        for neighbour, link in self.links.items():
            if link.role is Role.PARENT or not isinstance(routes, TableRoutes):
                filters.add(everything)
            else:
                filters.update(map(unnamed, routes.filters_of(neighbour)))
        return filters

    # Events

    def publish(self, publications: Sequence[Publication], now: float) -> list[int | RequestRefused]:
        """Accept publications, matched as a single batch.

        For each the answer is the sequence number of the publisher's last accepted event, or the reason of a refusal.
        """
        if not publications:
            return []
        answers: list[int | RequestRefused] = []
        accepted: list[tuple[m.Forward, Origin]] = []
        for one in publications:
            session = self.sessions.get(one.session)
            refused = self._refusal_of(one)
            if session is None or refused is not None:
                answers.append(refused or RequestRefused(f"there is no session {one.session}"))
                continue
            known = session.sequence
            begin = one.number or known + 1
            last = begin + len(one.events) - 1
            origin = Origin(first=max(begin, known + 1), last=last)
            by, here, options = session.identity, self.broker.name, options_of(one) if has_options(one) else {}
            accepted += [
                (m.Forward(event, one.session, number, by, here, **options), origin)
                for number, event in enumerate(one.events, begin)
                if number > known
            ]
            session.sequence = max(known, last)
            self.replicas.published(one.session)
            answers.append(session.sequence)
        self.channels.publish(accepted, now)
        return answers

    @property
    def judges_events(self) -> bool:
        """Tell whether events may be refused for their content, and with them their whole publication."""
        return bool(self.channels.map.homes) or self.broker.strategy.advertisements is not None

    def _refusal_of(self, one: Publication) -> RequestRefused | None:
        try:
            self.sessions.check_identity(one.session, one.identity)
        except RequestRefused as refusal:
            return refusal
        refused = self.channels.refusal_of(one.events)
        if refused is not None or self.broker.strategy.advertisements is None:
            return refused
        if all(self.broker.clients.may_publish(one.session, event) for event in one.events):
            return None
        return RequestRefused("no advertisement of yours promises such an event")

    def receive(self, neighbour: str, first: int, messages: Sequence[bytes], now: float) -> int:
        """Accept messages of a neighbour, numbered from the first; return how many new events there were."""
        return incoming.receive(self, neighbour, first, messages, now)

    def route(self, accepted: Sequence[tuple[m.Forward, Origin]], via: str, now: float) -> None:
        """Match events, and log each with the receiving sessions and neighbours.

        An event that gets its channel number here goes to all neighbours, also to the one that sent it.
        """
        for numbered, run in groupby(accepted, key=lambda one: one[1].numbered):
            self._route(list(run), via, now, sender=LOCAL if numbered else via)

    def _route(self, accepted: Sequence[tuple[m.Forward, Origin]], via: str, now: float, sender: str) -> None:
        followed = self.handovers.any() or self.replicas.any()
        if followed:
            self.replicas.describe_changed()
        journal, events = self.journal, [forward for forward, _ in accepted]
        routed = self.borders.without_private(self.broker.route(events, sender, now))
        for forward, found, neighbours, _, place in routed:
            journal.position += 1
            clients, also = self.patterns.take(forward, journal.position, found, now)
            to = [*self.deliveries.add_event(forward, journal.position, clients), *also]
            for name in clients if followed else ():
                self.handovers.delivered(name, self.sessions[name].count, _id(forward))
                self.replicas.delivered(name, self.sessions[name].count, _id(forward))
            out = [(neighbour, self.links.enqueue(neighbour, journal.position)) for neighbour in neighbours]
            number, after, first, last, numbered = accepted[place][1]
            details = EntryDetails(forward.by, forward.source, via, number, after, to, out, first=first, last=last)
            if has_options(forward):
                details = replace(details, **options_of(forward))
            if numbered:
                details = replace(details, channel_number=self.channels.numbers.next(forward.by))
            journal.write(now, forward.publisher, forward.sequence, msgpack.encode(forward.event), details)


def _id(forward: m.Forward) -> EventId:
    return forward.publisher, forward.by, forward.sequence
