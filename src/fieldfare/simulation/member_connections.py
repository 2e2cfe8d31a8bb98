"""`MemberConnection`: the connection of a member of a shared session at a simulated node, as `node.members`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fieldfare.core.claims import ClaimSession
from fieldfare.core.keys import keys_of
from fieldfare.core.member_inputs import AcknowledgeByMember, DetachMember
from fieldfare.core.state import Session
from fieldfare.protocol import frames as f
from fieldfare.protocol.journal import event_id
from fieldfare.simulation import trace as records
from fieldfare.simulation.core_connections import ClientConnection, DeliveredEvent
from fieldfare.simulation.detections import traced_name
from fieldfare.simulation.pipes import Pipe

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost


class MemberDeliveries(NamedTuple):
    """Numbered events for a member, and the numbers of the events known to a member, perhaps."""

    items: list[DeliveredEvent]
    redelivered: frozenset[int]


class MemberConnection(ClientConnection):
    """The side of the node: takes turns with the other members' connections."""

    def __init__(self, host: CoreHost, session: str, label: str, out: Pipe) -> None:
        super().__init__(host, session, out)
        self._label = label
        self._member = host.network.fresh(f"~{label}")
        self._sent: dict[int, tuple[str, int]] = {}
        """events by number"""

    def _attempt(self, hello: f.Hello) -> ClaimSession:
        fresh = self.host.network.fresh("claim" if hello.identity else hello.session)
        about = hello.at, hello.identity, hello.moves, "", 0, ()
        return ClaimSession(hello.session, fresh, *about, self._member, hello.member, hello.key)

    def _use(self, session: Session, hello: f.Hello) -> None:
        host, name = self.host, self.session
        former = host.connections.pop(name, None)
        if former is not None:
            former.close("the session is used by members")
        members = host.members.setdefault(name, {})
        for other in list(members.values()):
            if other._label == self._label:
                other.close("the member has another connection")
        if not members:
            host.core.members.restart(name)
        host.members.setdefault(name, {})[self._member] = self
        host.core.members.grant(name, self._member, hello.credit)

    def _ended(self) -> None:
        host = self.host
        members = host.members.get(self.session, {})
        members.pop(self._member, None)
        if not members:
            host.members.pop(self.session, None)
        host.network.record(records.MemberGone, host.name, self.session, self._label)
        host.submit(DetachMember(self.session, self._member))

    def pump(self) -> None:
        """Give waiting deliveries to all members, and send them."""
        host, name, members = self.host, self.session, self.host.core.members
        sharing = members.of(name)
        if not self._attached or sharing is None:
            return
        now = host.network.wall(host.name)
        without_key = members.without_key(name, now)
        entries = host.disk.entries(pending.position for _, pending in without_key)
        given = members.give(name, now, keys_of(without_key, entries, sharing.key))
        self._send_taken()
        for member in sorted(given - {self._member}):
            if member in host.members.get(name, {}):
                host.members[name][member]._send_taken()

    def _send_taken(self) -> None:
        host, name = self.host, self.session
        taken = host.core.members.take(name, self._member, 1000)
        entries = host.disk.entries(one.pending.position for one in taken)
        items = []
        for number, pending, _ in taken:
            if pending.position not in entries:
                host.network.lost_event(host.name, pending.position, name)
                continue
            entry = entries[pending.position]
            items.append(DeliveredEvent(number, *event_id(entry), entry.event, pending.subscriptions, identified=False))
            self._sent[number] = traced_name(items[-1].publisher, items[-1].by), items[-1].sequence
        if items:
            self.out.send(MemberDeliveries(items, frozenset(one.number for one in taken if one.redelivered)))

    def _handle(self, frame: Any) -> None:
        host, name = self.host, self.session
        match frame:
            case f.Acknowledge(numbers=numbers):
                what = AcknowledgeByMember(name, self._member, numbers, self._identity)
                host.submit(what, lambda answer: self._acknowledged(numbers, answer))
            case f.Credit(more=more):
                host.core.members.grant(name, self._member, more)
                self.pump()
            case _:
                super()._handle(frame)

    def _acknowledged(self, numbers: tuple[int, ...], answer: Any) -> None:
        if not self._refused(answer):
            for number in numbers:
                about = self.session, self._label, *self._sent.pop(number)
                self.host.network.record(records.AcknowledgedByMember, self.host.name, *about)
