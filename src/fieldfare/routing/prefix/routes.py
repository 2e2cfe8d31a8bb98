"""`PrefixRoutes`: routing by tags.

An event meets filters once, where it enters the network; later brokers read its tag.

The base is routing with covering: the same tables determine the filters for neighbours, and the recipients of an event
with an unreadable tag (`TableRoutes`). Beside the tables brokers share a tree for each part: see `follower`,
`election`, `control_overlay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import ControlMessage, Forward, RoutingMessage
from fieldfare.routing.prefix.control_overlay import ControlOverlay, Received
from fieldfare.routing.prefix.election import Election
from fieldfare.routing.prefix.follower import Follower
from fieldfare.routing.prefix.messages import (
    AnyTreeMessage,
    Heartbeat,
    InterestReport,
    TreeNews,
    TreeRequest,
    WholeTree,
)
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.prefix.tree import TreeVersion
from fieldfare.routing.routes import LOCAL, Outgoing
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.shared_index import SharedIndex

if TYPE_CHECKING:
    from fieldfare.routing.strategies import Strategy

SAMPLE: Final = 200
"""number of events that are kept to estimate the selectivity of attributes"""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


class TreeStatus(NamedTuple):
    """The status of a tree, for display."""

    part: int
    optimizer: str
    """the name of the leading broker, as far as known, with a mark of its life"""
    version: TreeVersion
    nodes: int
    loose: int
    """number of boxes without nodes of their own"""


class PrefixRoutes(TableRoutes):
    """Routes by tags, and by filters for events without a readable tag."""

    def __init__(self, name: str, strategy: Strategy, life: int, index: SharedIndex) -> None:
        options = self.options = strategy.prefix or PrefixOptions()
        super().__init__(replace(strategy, table=partial(IndexedTable, watch=self._watched)), index)
        self.followers = [Follower(part, name, life, options) for part in range(options.parts)]
        self.elections = [Election(follower, name, life, options) for follower in self.followers]
        self.by_tag = self.by_content = 0
        """number of events forwarded by tag"""
        self._overlay = ControlOverlay(name, life)
        self._sample: deque[Mapping[str, object]] = deque(maxlen=SAMPLE)

    def _watched(self, filter: Filter, interface: str, wanted: bool) -> None:
        for follower in self.followers:
            follower.record(filter, interface, wanted)

    # Events

    def tag(self, event: Forward) -> Forward:
        """Return the event with its tag: the selected nodes of all trees."""
        if self.options.layout == "selectivity":
            self._sample.append(event.event)
        tags = [follower.placements.write(event.event, self.options.depth) for follower in self.followers]
        return msgspec.structs.replace(event, tag=_encode(tags))

    def read(self, event: Forward, sender: str) -> set[str] | None:
        """Return the interfaces at the nodes of the tag; None for an unreadable tag."""
        found = self._read(event.tag)
        if found is not None:
            self.by_tag += 1
        else:
            self.by_content += 1
            if not self.options.blind:
                return None
            found = {one for follower in self.followers for one in follower.placements.interfaces}
        found |= self._parents
        if sender != LOCAL:
            found.discard(sender)
        return found

    def _read(self, tag: bytes) -> set[str] | None:
        found: set[str] = set()
        try:
            tags = _decode(tag)
            if len(tags) != len(self.followers):
                return None
            for follower, one in zip(self.followers, tags, strict=True):
                interfaces = follower.placements.read_bytes(one)
                if interfaces is None:
                    return None
                found |= interfaces
        except ValueError:
            return None
        return found

    # Other brokers

    def link_up(self, neighbour: str) -> list[Outgoing]:
        """Connect the control overlay to a reachable neighbour."""
        return self._overlay.connect(neighbour)

    def link_down(self, neighbour: str) -> list[Outgoing]:
        """Disconnect the control overlay from an unreachable neighbour."""
        return self._overlay.disconnect(neighbour)

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Process a control message of a neighbour."""
        if not isinstance(message, ControlMessage):
            return super().receive(message, sender, now)
        return self._follow(self._overlay.receive(message.content, sender, now), now)

    @property
    def wakes(self) -> float | None:
        """The earliest time at which a follower or an election has work."""
        times = [follower.wakes for follower in self.followers] + [election.wakes for election in self.elections]
        return min((time for time in times if time is not None), default=None)

    def tick(self, now: float) -> list[Outgoing]:
        """Let all followers and elections do the work that is due."""
        sends: list[Outgoing] = []
        for follower, election in zip(self.followers, self.elections, strict=True):
            messages = follower.tick(now)
            was = election.leading
            messages += election.tick(now, tuple(self._sample))
            if election.leading and not was:
                sends += self._overlay.set_leading(follower.part, True)
            sends += self._publish(messages, now)
        return sends

    def _publish(self, messages: list[AnyTreeMessage], now: float) -> list[Outgoing]:
        return [to for message in messages for to in self._follow(self._overlay.publish(message, now), now)]

    def _follow(self, received: Received, now: float) -> list[Outgoing]:
        """Return the messages to send, including those that follow from tree messages for this broker."""
        sends = list(received.sends)
        for message in received.messages:
            sends += self._handle(message, now)
        return sends

    def _handle(self, message: AnyTreeMessage, now: float) -> list[Outgoing]:
        if message.part >= len(self.followers):
            return []
        follower, election = self.followers[message.part], self.elections[message.part]
        was = election.leading
        messages: list[AnyTreeMessage] = []
        match message:
            case Heartbeat():
                election.observe_term(message.term, now)
                messages = follower.receive_heartbeat(message, now)
            case TreeNews() | WholeTree():
                election.observe_term(message.update.version.term, now)
                messages = follower.receive_update(message.update, now)
            case InterestReport():
                messages = election.receive_report(message, now)
            case TreeRequest():
                messages = election.receive_request(message, now)
        sends = self._overlay.set_leading(message.part, False) if was and not election.leading else []
        return sends + self._publish(messages, now)

    @property
    def status(self) -> list[TreeStatus]:
        """The status of each tree."""
        return [
            TreeStatus(
                follower.part,
                election.term.by,
                follower.placements.tree.version,
                follower.placements.tree.size,
                follower.placements.loose,
            )
            for follower, election in zip(self.followers, self.elections, strict=True)
        ]
