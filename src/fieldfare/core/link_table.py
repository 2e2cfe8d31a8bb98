"""`LinkTable`: the neighbours of a broker, and the numbered messages to and from each.

Messages to a neighbour are numbered and stay in an outbox until the neighbour's acknowledgement: an absent neighbour
misses nothing, and a repeated message counts once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from fieldfare.core.journal import Journal
from fieldfare.core.state import Link, filter_key
from fieldfare.core.state_rows import link_row
from fieldfare.core.step import StepBuffer
from fieldfare.core.watchers import LinkWatcher
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import Row
from fieldfare.protocol.lineage import MOST, Lineage, extend, still_valid
from fieldfare.protocol.link_frames import LinkResume
from fieldfare.protocol.messages import FilterUpdate, Message, Role, Send
from fieldfare.protocol.versions import NEWEST
from fieldfare.routing.broker import Broker

INCOMPLETE: Final = "incomplete"
"""Kind of the rows that name the neighbours of which filters may be lost."""
MOST_UNNUMBERED: Final = 2000
"""Unnumbered messages that may wait for a neighbour; beyond that, only filter updates are added."""

logger = logging.getLogger("fieldfare.node")


class LinkTable(dict[str, Link]):
    """All neighbours of a broker by name, reachable now or not."""

    def __init__(self, broker: Broker, journal: Journal, buffer: StepBuffer) -> None:
        """Begin without known neighbours, for a broker."""
        super().__init__()
        self._broker = broker
        self._journal = journal
        self._buffer = buffer
        self.watchers: tuple[LinkWatcher, ...] = ()
        self.changes = 0
        """How often the interest of neighbours may have changed."""
        self._unnumbered: dict[str, list[bytes]] = {}
        """Messages that no row keeps, for the neighbours that can be reached."""

    def known(self, neighbour: str) -> Link:
        """Return the link to a neighbour; ValueError if there is none."""
        if neighbour not in self:
            raise ValueError(f"{neighbour} is no neighbour of {self._broker.name}")
        return self[neighbour]

    def store(self, neighbour: str) -> None:
        """Write the row of a link."""
        self._buffer.store(link_row(neighbour, self[neighbour], self._journal.position))

    # Links that begin and end

    def connect(
        self,
        neighbour: str,
        role: Role,
        now: float,
        *,
        local_name: str = "",
        remote_name: str = "",
        remote_lives: Lineage = (),
        id: str = "",
        version: int = NEWEST,
    ) -> None:
        """Add a neighbour, or replace the link to a known neighbour.

        Both ends must begin to count together, so each gives the link a name. If one end has forgotten the link, both
        begin anew, and the outbox is dropped: a neighbour without the link has forgotten all filters, too.
        """
        self.disconnect(neighbour, now)
        sends = self._broker.receive(m.Connect(role), neighbour, now)
        self[neighbour] = Link(
            role,
            version,
            local_name=local_name,
            remote_name=remote_name,
            born=self._journal.position,
            remote_lives=remote_lives[-MOST:],
            id=id,
        )
        self.lives_of(neighbour)
        self.send_all(sends)
        for watcher in self.watchers:
            watcher.link_begun(neighbour)

    def disconnect(self, neighbour: str, now: float) -> None:
        """Remove a neighbour for good, with all waiting messages."""
        if neighbour not in self:
            return
        step = self._buffer
        self.changes += 1
        sends = self._broker.receive(m.Disconnect(), neighbour, now)
        link = self.pop(neighbour)
        waiting = sum(isinstance(what, int) for what in link.outbox.values())
        if waiting:
            logger.error("%d events that waited here for the node %s are dropped with its link", waiting, neighbour)
        for watcher in self.watchers:
            watcher.link_ended(neighbour, link.outbox.values())
        step.store(Row("neighbour", (neighbour,)))
        step.store(*(Row("outbox", (neighbour, number)) for number in link.outbox))
        step.store(*(Row("told", (neighbour, about, *key)) for about, keys in link.filters.items() for key in keys))
        if link.incomplete:
            step.store(Row(INCOMPLETE, (neighbour,)))
        self.send_all(sends)

    def lives_of(self, neighbour: str) -> Lineage:
        """Return the lives in which messages to a neighbour are numbered, including the present life from now on."""
        link = self[neighbour]
        link.lives = extend(link.lives, self._journal.life, link.last + 1)
        self.store(neighbour)
        return link.lives

    def resume(self, neighbour: str, theirs: LinkResume, id: str, version: int = NEWEST) -> int:
        """Resume a link known to both ends; return the number of the last message at the neighbour.

        A node may have gone back in time, with a lost end of the log or an earlier copy of the
        folder: then both ends find the last number with the same meaning for both.
        """
        link, here = self.known(neighbour), self._broker.name
        valid = min(still_valid(theirs.received, theirs.received_lives, link.lives), link.last)
        if valid < theirs.received:
            count = theirs.received - valid
            logger.error("%s went back in time: it has forgotten %d messages that %s has heard", here, count, neighbour)
        if valid < link.acknowledged:
            count = link.acknowledged - valid
            logger.error("%s went back in time: it has forgotten %d messages of %s", neighbour, count, here)
        if theirs.incomplete or valid < link.acknowledged:  # some of the forgotten messages were filter updates
            self.announce_filters(neighbour)
        sent = max(valid, link.acknowledged)
        self.acknowledge(neighbour, sent)
        known = max([link.received, *link.already])
        theirs_valid = min(still_valid(known, link.remote_lives, theirs.lives), theirs.last)
        received = max(min(link.received, theirs_valid), theirs.first - 1)
        if received != link.received:
            before, after = link.received + 1, received + 1
            logger.error("%s goes on with message %d of %s, not with %d", here, after, neighbour, before)
        if received != link.received or theirs_valid < known:
            link.received = link.written = received
            link.last_change, link.renumbered_at = min(link.last_change, received), self._journal.position
            link.already = {number: place for number, place in link.already.items() if number <= theirs_valid}
        link.remote_lives, link.id, link.version = theirs.lives[-MOST:], id, version
        self.store(neighbour)
        for watcher in self.watchers:
            watcher.link_resumed(neighbour)
        return sent

    def link_up(self, neighbour: str, now: float) -> None:
        """Note the beginning of a connection to a neighbour."""
        self._unnumbered[neighbour] = []
        self.send_all(self._broker.link_up(neighbour, now))

    def is_up(self, neighbour: str) -> bool:
        """Tell whether there is a connection to a neighbour."""
        return neighbour in self._unnumbered

    def link_down(self, neighbour: str, now: float) -> None:
        """Note the end of a connection to a neighbour."""
        self._unnumbered.pop(neighbour, None)
        self.send_all(self._broker.link_down(neighbour, now))

    # Messages to neighbours

    def announce_filters(self, neighbour: str) -> None:
        """Send a neighbour all filters anew; after a restart the merging may differ from before."""
        routes = self._broker.routes
        for about in routes.subjects():
            self.send(neighbour, FilterUpdate(routes.exports(neighbour, about), about=about, all=True))

    def send_all(self, sends: Iterable[Send]) -> None:
        """Send the messages of a broker to neighbours; clients fetch deliveries on another way."""
        for send in sends:
            if isinstance(send.message, m.ControlMessage):
                self._send_unnumbered(send.to, send.message)
            elif send.to in self:
                self.send(send.to, send.message)

    def send(self, neighbour: str, message: Message) -> None:
        """Send a message to a neighbour, behind all earlier messages."""
        data = wire.encode(message)
        self._buffer.store(Row("outbox", (neighbour, self.enqueue(neighbour, data)), data))
        self.store(neighbour)

    def enqueue(self, neighbour: str, what: bytes | int) -> int:
        """Put a message, or the position of an event, into the outbox; return the number. No row is written."""
        link = self[neighbour]
        if not link.outbox:
            link.low = self._journal.position
        if not link.lives or link.lives[-1][0] != self._journal.life:
            self.lives_of(neighbour)
        link.last += 1
        link.outbox[link.last] = what
        self._buffer.wake(neighbour)
        return link.last

    def outgoing(self, neighbour: str, after: int, limit: int) -> list[tuple[int, bytes | int]]:
        """Return the next messages, or positions of events, behind a number, at most `limit`.

        Between writing and sending, the neighbour may have gone back to an older version.
        """
        link = self[neighbour]
        last = min(link.released, after + limit)
        waiting = ((number, link.outbox[number]) for number in range(max(after, link.acknowledged) + 1, last + 1))
        if link.version == NEWEST:
            return list(waiting)
        version = link.version
        return [(n, one if isinstance(one, int) else wire.for_version(one, version, neighbour)) for n, one in waiting]

    def acknowledge(self, neighbour: str, number: int) -> None:
        """Forget all messages up to a number, which the neighbour has on disk."""
        link = self.known(neighbour)
        if number > link.last:
            raise ValueError(f"{neighbour} has received {number}, but {link.last} was the last that was said")
        for done in range(link.acknowledged + 1, number + 1):
            what = link.outbox.pop(done)
            if isinstance(what, int):
                link.low = what + 1
            else:
                self._buffer.store(Row("outbox", (neighbour, done)))
        if number > link.acknowledged:
            link.acknowledged = number
            self.store(neighbour)
            link.check()

    def _send_unnumbered(self, neighbour: str, message: m.ControlMessage) -> None:
        waiting = self._unnumbered.get(neighbour)
        # A filter update must not get lost while the link is up: the neighbour would not know what to send.
        if waiting is not None and (len(waiting) < MOST_UNNUMBERED or isinstance(message.content, FilterUpdate)):
            waiting.append(wire.for_version(wire.encode(message), self[neighbour].version))
            self._buffer.wake(neighbour)

    def take_unnumbered(self, neighbour: str) -> list[bytes]:
        """Remove and return the unnumbered messages for a neighbour."""
        if not self._unnumbered.get(neighbour):
            return []
        taken, self._unnumbered[neighbour] = self._unnumbered[neighbour], []
        return taken

    # Filters of neighbours

    def store_filters(self, update: FilterUpdate, neighbour: str) -> None:
        """Store the filters of a neighbour as texts, in the neighbour's own form, each with its name if it has one.

        A filter covered by a larger filter leaves the table, but stays in the rows. After a restart the neighbour gets
        some events too many, until the neighbour announces all filters again, and never too few.
        """
        step, known = self._buffer, self[neighbour].filters.setdefault(update.about, {})
        for key in list(known) if update.all else map(filter_key, update.removed):
            if known.pop(key, key) is None:
                step.store(Row("told", (neighbour, update.about, *key)))
        for key in map(filter_key, update.added):
            known[key] = None
            step.store(Row("told", (neighbour, update.about, *key), 1))
        if self[neighbour].incomplete and update.all and update.about == self._broker.routes.subjects()[-1]:
            self[neighbour].incomplete = False
            step.store(Row(INCOMPLETE, (neighbour,)))
