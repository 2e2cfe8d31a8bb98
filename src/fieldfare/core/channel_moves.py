"""`ChannelMoves`: a channel gets another home while publishers publish, without a lost, doubled or reordered event.

The channel goes from neighbour to neighbour, until it is at the node that an administrator has named. One such move:

    home                                     next home, a neighbour
      | ---- ChannelHandover ----------------> |   from now on holds all events of the type
      | <--- events on their way here -------- |   sent before it knew
      | ---- the same events, sent back -----> |   held, too
      | <--- advertisement, ChannelTaken ----- |
      | ---- subscriptions, ChannelDrained --> |   numbers what was sent back, and then all other events that it holds

Links keep the order of messages, so three things hold, for any receiver and any publisher:

- Numbers rise everywhere. Every event of the former home is on the link to the next home, and on all branches between,
  before the handover is; the events of the next home follow behind.
- A publisher's events keep their order, also if its session moves. Events always go towards the home, as each node on
  the way knows it, and are held nowhere but at the home. An event that went too far comes back before `ChannelDrained`,
  and so is numbered before all events that the next home has held.
- No subscription is missed. Before the next home numbers anything, the former home has its advertisement, and has sent
  the subscriptions from its side; the nodes beside the way have sent theirs through the next home all along.

A kill of either node, between any two steps, is a pause: each message is numbered on its link, homes and held events
are rows, and an event that was numbered in a torn write is in the log.
"""

from __future__ import annotations

import logging
from itertools import groupby
from typing import Final, NamedTuple

from fieldfare.core.base import Base
from fieldfare.core.channel_homes import ChannelHomes, Home
from fieldfare.core.channel_numbers import ChannelNumbers
from fieldfare.core.domains import domain_of, is_foreign
from fieldfare.core.state import Origin, RequestRefused, Route
from fieldfare.protocol import channels as c
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows
from fieldfare.protocol.versions import has
from fieldfare.routing.routes import LOCAL

_HANDOVER: Final = c.ChannelHandover.__name__
_NUMBERED: Final = Origin(numbered=True)

logger = logging.getLogger("fieldfare.node")


class Held(NamedTuple):
    """An event that waits for the end of a move."""

    forward: m.Forward
    via: str
    """Neighbour that sent the event; empty for an event of a client here."""
    origin: Origin
    """Message of the neighbour, while the row of the event is not written: see `ChannelMoves.written`."""


class ChannelMoves:
    """The moves of channels, seen from one node."""

    def __init__(self, base: Base, homes: ChannelHomes, numbers: ChannelNumbers, route: Route) -> None:
        """Begin without a held event."""
        self._base = base
        self._homes = homes
        self._numbers = numbers
        self._route = route
        self._held: dict[int, Held] = {}
        """By the number of the row: in the order of arrival."""
        self._count = 0
        self._fresh: list[int] = []
        """Events that are held since the present step."""

    def held(self, type: str) -> int:
        """Return the number of events that wait here for the end of a move."""
        return sum(c.type_of(one.forward.by) == type for one in self._held.values())

    # Requests

    def request(self, type: str, target: str) -> None:
        """Let a channel go to a node, on the request of an administrator at any node."""
        base = self._base
        if type not in self._homes.types:
            raise RequestRefused(f"the settings of {base.name} have no channel of the type {type}")
        if is_foreign(home := self._homes.of(type).node):
            raise RequestRefused(f"the channel of {type} is in the domain {domain_of(home)}, and moves inside it only")
        if type in self._homes.waiting:
            raise RequestRefused(f"the home of the channel of {type} has not answered yet")
        if target != base.name and not base.envelopes.knows(target):
            raise RequestRefused(f"{base.name} knows no way to a node {target}")
        base.versions.require(_HANDOVER, *base.envelopes.reached())
        if self._homes.here(type):
            self.begin(type, target)
        else:
            base.envelopes.send(self._homes.of(type).node, c.MoveChannel(type, target))

    def begin(self, type: str, target: str) -> None:
        """Let a channel at home here go to a node; if the channel has moved on, pass the request on."""
        home = self._homes.of(type)
        if not self._homes.here(type):
            if home.node:
                self._base.envelopes.send(home.node, c.MoveChannel(type, target))
            return
        self._homes.set(type, Home(home.node, home.epoch, target, home.source))
        self.go_on(type)

    def go_on(self, type: str) -> None:
        """Hand a channel over to the next node on its way, as soon as there is a way and nothing is held here."""
        base, home = self._base, self._homes.of(type)
        if not self._homes.here(type) or not home.target or home.source:
            return
        if home.target == base.name:
            self._homes.set(type, Home(home.node, home.epoch))
            return
        neighbour = base.envelopes.way(home.target)
        if neighbour is None or not base.links.is_up(neighbour) or not has(base.versions.of(neighbour), _HANDOVER):
            return  # `SetReachable` tries again
        epoch, last = home.epoch + 1, self._numbers.last(type)
        self._homes.set(type, Home(neighbour, epoch, leaving=True))
        base.envelopes.send(neighbour, c.ChannelHandover(type, epoch, last, home.target))
        self._homes.tell(type, but=neighbour)

    def all_go_on(self) -> None:
        """Hand over all channels that have waited for a way."""
        for type in self._homes.moving:
            self.go_on(type)

    # Messages of neighbours

    def receive(self, message: c.AnyChannelMessage, other: str, now: float) -> None:
        """Apply a message about a move."""
        match message:
            case c.MoveChannel(type=type, target=target):
                self.begin(type, target)
            case c.ChannelHandover():
                self._take(message, other, now)
            case c.ChannelTaken(type=type):
                self._drain(type, other, now)
            case c.ChannelDrained(type=type) if self._homes.here(type) and self._homes.of(type).source == other:
                self._number_held(type, now)
            case c.ChannelHome(type=type, node=node, epoch=epoch) if epoch > self._homes.of(type).epoch:
                self._learn(type, Home(node, epoch), other, now)

    def _take(self, message: c.ChannelHandover, source: str, now: float) -> None:
        """Become the home of a channel, and hold its events until the former home has sent back the last one."""
        type, here = message.type, self._base.name
        known = self._homes.of(type)
        if message.epoch < known.epoch or (message.epoch == known.epoch and known.node != here):
            logger.error("%s hands over the channel of %s, which is at %s by now", source, type, known.node)
            return
        self._numbers.raise_to(type, message.last)  # a torn write may have numbered more events already
        self._numbers.store(type)
        self._homes.set(type, Home(here, message.epoch, message.target, source))
        self._homes.advertise(type, now)
        self._base.envelopes.send(source, c.ChannelTaken(type))
        self._homes.tell(type, but=source)

    def _drain(self, type: str, other: str, now: float) -> None:
        """Tell the next home that nothing more comes back; its advertisement is here, so ours is not needed."""
        home = self._homes.of(type)
        if home.leaving and home.node == other:
            self._homes.set(type, Home(home.node, home.epoch))
            self._homes.unadvertise(type, now)
        self._base.envelopes.send(other, c.ChannelDrained(type))

    def _number_held(self, type: str, now: float) -> None:
        """Number all that is held: first the events that have gone to the former home and come back."""
        home = self._homes.of(type)
        self._homes.set(type, Home(home.node, home.epoch, home.target))
        mine = [number for number, one in self._held.items() if c.type_of(one.forward.by) == type]
        held = [self._release(number) for number in sorted(mine, key=lambda one: self._held[one].via != home.source)]
        for via, run in groupby(held, key=lambda one: one.via):
            self._route([(one.forward, one.origin) for one in run], via, now)
        self.go_on(type)

    def _learn(self, type: str, home: Home, via: str, now: float) -> None:
        """Note a later home, and tell the other neighbours."""
        base, before = self._base, self._homes.of(type)
        if before.node == base.name and before.epoch:
            logger.error("the channel of %s is at %s: this node has forgotten that it moved", type, home.node)
        if home.node == base.name:
            logger.error("the channel of %s is here, as %s says: this node had forgotten it", type, via)
            self._numbers.skip(type)
            self._take(c.ChannelHandover(type, home.epoch, self._numbers.counts[type], home.node), via, now)
            return
        self._homes.set(type, home)
        self._homes.tell(type, but=via)
        base.envelopes.assume(home.node, via)
        if before.node == base.name or before.leaving:
            self._homes.unadvertise(type, now)
            for number in [number for number, one in self._held.items() if c.type_of(one.forward.by) == type]:
                self.send_home(self._release(number).forward)

    # Events of clients, and held events

    def send_home(self, forward: m.Forward) -> None:
        """Send an event of a client here to its home; the end of a move may be awaited here."""
        home = self._homes.of(c.type_of(forward.by)).node
        if home == self._base.name:
            self.hold(forward, LOCAL, Origin())
        else:
            self._base.envelopes.forward(m.Envelope(home, self._base.name, wire.encode(forward)))

    def hold(self, forward: m.Forward, via: str, origin: Origin) -> None:
        """Keep an event until the end of a move."""
        self._count += 1
        self._held[self._count] = Held(forward, via, origin._replace(numbered=True))
        self._fresh.append(self._count)
        self._base.buffer.store(Row("held", (self._count,), [via, wire.encode(forward)]))

    def _release(self, number: int) -> Held:
        self._base.buffer.store(Row("held", (number,)))
        return self._held.pop(number)

    def written(self) -> None:
        """Forget from which messages the held events came: the rows of both are written together.

        Before, a torn write may leave an event numbered in the log, and no row that its message has come; the entry
        then names the message. Later, another link may give the number of the message again.
        """
        for number in self._fresh:
            if number in self._held:
                self._held[number] = self._held[number]._replace(origin=_NUMBERED)
        self._fresh = []

    # Recovery

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (number,), (via, data) in sorted(stored.get("held", {}).items()):
            self._count = int(number)
            forward = wire.decode(data)
            assert isinstance(forward, m.Forward)
            self._held[self._count] = Held(forward, via, _NUMBERED)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: a held event may have its number already."""
        if details.channel_number:
            for number, held in list(self._held.items()):
                one = held.forward
                if (one.publisher, one.by, one.sequence) == (entry.publisher, details.by, entry.sequence):
                    self._release(number)
