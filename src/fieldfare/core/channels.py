"""`Channels`: one order for all events of a type, at every node.

The type of an event may have a *channel*, and the channel has a home: one node, which numbers the events 1, 2, 3, ...
and sends the events into the overlay. Links form a tree and keep the order of messages, so the events come in the order
of the numbers on every way from the home, and at every session: at a node, on the move, or taken over by a replica
holder. A missing number is visible, and means an event outside the filter of the subscriber.

A client publishes at any node. The node of the publisher logs the event (so the event is accepted), and sends the home
an envelope, which arrives exactly once by the numbers of messages on links. The log entry names the home, and counts
for nothing but the publisher's sequence: if a kill comes between entry and envelope, the restart sends the envelope. A
node accepts such events after a first answer of the home. From then on the way is known: events wait for the home in an
outbox, and the events of a publisher go the way of its session, and keep their order if the publisher moves. Homes are
in `channel_homes`; a channel gets another home as `channel_moves` says.

The log of the home holds all events of the channel. After the loss of the end of the log, the numbers continue
`NUMBER_GAP` further on: no number has two meanings.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby

import msgspec

from fieldfare.core.base import Base
from fieldfare.core.channel_homes import ChannelHomes
from fieldfare.core.channel_moves import ChannelMoves
from fieldfare.core.channel_numbers import ChannelNumbers
from fieldfare.core.domains import address_of, domain_of, is_foreign
from fieldfare.core.state import Origin, RequestRefused, Route
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.event_options import options_of
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows, handed_over
from fieldfare.protocol.versions import has
from fieldfare.routing.routes import LOCAL

logger = logging.getLogger("fieldfare.node")


class Channels:
    """The channels of an overlay, seen from one node: the home of some, a publishers' node for others."""

    def __init__(self, base: Base, homes: ChannelHomes, route: Route) -> None:
        """Begin without any event; `route` is the way of events into the node."""
        self._base = base
        self._route = route
        self.map = homes.map
        self.homes = homes
        self.numbers = ChannelNumbers(base, homes)
        self.moves = ChannelMoves(base, homes, self.numbers, route)
        self._asked: set[str] = set()
        """Types whose homes were asked since the start of the node."""
        self._sent = 0
        """Position up to which all events for homes are in envelopes."""
        self._unsent: dict[tuple[str, str, int], m.Forward] = {}
        """Recovery only: the events of later entries, by publisher, stream and number."""

    # Publishers

    def refusal_of(self, events: Sequence[Event]) -> RequestRefused | None:
        """Return the reason to refuse events, whose channel is not open yet."""
        waiting = self.homes.waiting if self.map.homes else ()
        for type in map(self.map.type_of, events) if waiting else ():
            if type in waiting:
                home = self.homes.of(type).node
                reason = self.homes.closed.get(type, f"the node {home} has not answered yet")
                return RequestRefused(f"events of the type {type} are numbered at {home}: {reason}")
        return None

    def publish(self, accepted: Sequence[tuple[m.Forward, Origin]], now: float) -> None:
        """Route accepted events of clients, but log and send events with a home elsewhere."""
        if not self.map.homes:
            self._route(accepted, LOCAL, now)
            return
        for home, run in groupby(map(self._addressed, accepted), key=lambda one: one[0]):
            events = [(forward, origin) for _, forward, origin in run]
            if home:
                self._log_and_send(home, events, now)
            else:
                self._route(events, LOCAL, now)

    def _addressed(self, accepted: tuple[m.Forward, Origin]) -> tuple[str, m.Forward, Origin]:
        """Return an event with its home, which is empty if the event is routed here at once."""
        forward, origin = accepted
        type = self.map.type_of(forward.event)
        if not type:
            return "", forward, origin
        forward, home = msgspec.structs.replace(forward, by=c.stream(forward.by, type)), self.homes.of(type)
        if home.node == self._base.name and not home.source:
            return "", forward, origin._replace(numbered=True)
        return home.node, forward, origin

    def _log_and_send(self, home: str, events: Sequence[tuple[m.Forward, Origin]], now: float) -> None:
        for one, origin in events:
            more = {"first": origin.first, "last": origin.last, "channel_home": home, **options_of(one)}
            details = EntryDetails(one.by, one.source, LOCAL, **more)
            event = msgpack.encode(one.event)
            self._sent = self._base.journal.append(now, one.publisher, handed_over(one.sequence), event, details)
            self.moves.send_home(one)
        self._store_sent()

    def _store_sent(self) -> None:
        self._base.buffer.store(Row("sent_home", (), self._sent))

    # Events in envelopes

    def opened(self, envelope: m.Envelope) -> m.Forward | None:
        """Return the event in an envelope if it gets its number here, now."""
        found = self._event_in(envelope)
        if found is None:
            return None
        home = self.homes.of(c.type_of(found.by))
        if home.node == self._base.name:
            return None if home.source else found
        return None if home.epoch or envelope.to != self._base.name else found

    def _event_in(self, envelope: m.Envelope) -> m.Forward | None:
        """Return the event of a channel in an envelope; one for another node is opened only if channels have moved."""
        if envelope.to != self._base.name and (is_foreign(envelope.to) or not self.homes.any_moved):
            return None
        if not wire.is_event(envelope.content):
            return None
        try:
            message = wire.decode(envelope.content)
        except ValueError:  # the envelope is refused like any other of unknown content
            return None
        return message if isinstance(message, m.Forward) else None

    def pass_on(self, envelope: m.Envelope, via: str, origin: Origin) -> bool:
        """Hold an event, or send it to its home as this node knows the home; False if the envelope has no such event.

        An event goes back to the neighbour only if the channel has gone there.
        """
        found = self._event_in(envelope)
        home = self.homes.of(c.type_of(found.by)) if found is not None else None
        if found is None or home is None or not home.node:
            return False
        if home.node == self._base.name:
            self.moves.hold(found, via, origin)
        else:
            readdressed = m.Envelope(home.node, envelope.origin, envelope.content)
            self._base.envelopes.forward(readdressed, "" if home.node == via else via)
        return True

    # Agreement

    def look_around(self) -> None:
        """Use the ways that have become known: ask homes, and let channels go on."""
        self.ask()
        self.moves.all_go_on()

    def ask(self) -> None:
        """Ask silent homes within reach, once each, unless the home's version lacks the question."""
        base = self._base
        for type in self.homes.waiting if self.map.homes else ():
            home = self.homes.of(type).node
            knows = has(min(base.versions.speaks, base.versions.of(home)), c.JoinChannel.__name__)
            if type not in self._asked and knows and base.envelopes.knows(home):
                self._asked.add(type)
                base.envelopes.send(home, c.JoinChannel(type))

    def ask_again(self) -> None:
        """Ask again after a refusal: the settings of the home may have changed."""
        closed, self.homes.closed = self.homes.closed, {}
        self._asked -= closed.keys()
        self.ask()

    def receive(self, envelope: m.Envelope, now: float) -> None:
        """Answer a node with publishers, note the answer of a home, or take part in a move."""
        message, other = c.decode(envelope.content), envelope.origin
        home = self.homes.of(message.type)
        from_home = home.node in (other, address_of(domain_of(other)))
        match message:
            case c.JoinChannel(type=type) if home.epoch and not is_foreign(other):
                self._answer(other, c.ChannelHome(type, home.node, home.epoch))
            case c.JoinChannel(type=type) if self.homes.here(type):
                self._answer(other, c.ChannelOpen(type))
            case c.JoinChannel() if home.epoch:
                self._base.envelopes.forward(m.Envelope(home.node, other, envelope.content))
            case c.JoinChannel(type=type):
                reason = f"the settings of {self._base.name} name {home.node or 'no node'} for it"
                self._answer(other, c.ChannelClosed(type, reason))
            case c.ChannelOpen(type=type) if from_home:
                self.homes.join(type)
            case c.ChannelClosed() if from_home:
                self.homes.close(message)
            case _:
                self.moves.receive(message, other, now)

    def _answer(self, to: str, answer: c.AnyChannelMessage) -> None:
        """Answer a node whose version may not be known here yet; a node with the question knows the answer."""
        self._base.envelopes.forward(m.Envelope(to, self._base.name, c.encode(answer)))

    # Rows and recovery

    def checkpoint(self) -> None:
        """Write the last numbers, and the position of the last envelope."""
        self.numbers.checkpoint()
        if self._sent:
            self._store_sent()

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        self.numbers.restore(stored)
        self._sent = int(stored.get("sent_home", {}).get((), 0))
        self.homes.restore(stored)
        self.moves.restore(stored)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: the count of a channel, or an event without its envelope.

        An event of a torn write may have been held and then numbered. It needs no other number.
        """
        if details.channel_number:
            self.numbers.restore_entry(details)
            self._unsent.pop((entry.publisher, details.by, entry.sequence), None)
            self.moves.restore_entry(entry, details)
        elif details.channel_home and entry.position > self._sent:
            name = entry.publisher, details.by, handed_over(entry.sequence)
            forward = wire.decode(wire.encode_forward(entry._replace(sequence=name[2])))
            assert isinstance(forward, m.Forward)
            self._unsent[name] = forward

    def finish_restore(self, *, doubtful: bool) -> None:
        """After the last entry of the log: send the logged events without an envelope."""
        unsent, self._unsent = self._unsent, {}
        for forward in unsent.values():
            self.moves.send_home(forward)
        if unsent:
            self._sent = self._base.journal.position
            self._store_sent()
        if doubtful:
            self.numbers.skip_all()

    def rewind(self, position: int) -> None:
        """Continue behind all numbers in use elsewhere: the end of the log is lost."""
        self._sent = min(self._sent, position)
        self.numbers.skip_all()
