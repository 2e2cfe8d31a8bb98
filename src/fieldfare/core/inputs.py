"""Inputs of a core: requests of clients, messages of neighbours, the progress of handovers, and time.

An input is a value that is called with the core and the time, and returns an answer. A `ValueError` is the answer to an
input without effect. A run of a core is a list of inputs with times: the same inputs give the same steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from fieldfare.core import incoming
from fieldfare.core.replica_state import ReplicaPart
from fieldfare.core.state import Pending, Session
from fieldfare.protocol.handover import ClientVoucher
from fieldfare.protocol.journal import JournalEntry, Row
from fieldfare.protocol.lineage import Lineage, still_valid
from fieldfare.protocol.link_frames import LinkResume
from fieldfare.protocol.messages import Message, Role
from fieldfare.protocol.versions import NEWEST

if TYPE_CHECKING:
    from fieldfare.core.core import Core

Input: TypeAlias = "Callable[[Core, float], Any]"

logger = logging.getLogger("fieldfare.node")


# Clients


class Attach(Struct, frozen=True):
    """Connect a client to a session at this node; a new session gets the `fresh` identity."""

    session: str
    fresh: str
    durable: bool = True
    owner: str = ""

    def __call__(self, core: Core, now: float) -> Session:
        """Return the session, new or known, with its client connected."""
        core.presence.check_unshared(self.session)
        return core.presence.attach(self.session, self.fresh, now, durable=self.durable, owner=self.owner)


class Detach(Struct, frozen=True):
    """Note that the client of a session has gone."""

    session: str

    def __call__(self, core: Core, now: float) -> None:
        """Keep the session if it is durable."""
        core.presence.detach(self.session, now)


class Leave(Struct, frozen=True):
    """End a session on the request of its client."""

    session: str
    identity: str = ""

    def __call__(self, core: Core, now: float) -> None:
        """Refuse if the session of this identity is over."""
        if self.identity:
            core.sessions.check_identity(self.session, self.identity)
            core.members.check_alone(self.session)
        if self.session in core.sessions:
            core.presence.leave(self.session, now)


class EndSession(Struct, frozen=True):
    """End a session on the wish of the node; a session that is over stays over."""

    session: str

    def __call__(self, core: Core, now: float) -> None:
        """Drop the filters and all waiting deliveries."""
        if self.session in core.sessions:
            core.presence.leave(self.session, now)


class ChangeFilters(Struct, frozen=True):
    """Subscribe, unsubscribe, advertise or unadvertise on the request of a client."""

    session: str
    message: Message
    identity: str = ""

    def __call__(self, core: Core, now: float) -> None:
        """Refuse if the session of this identity is over."""
        if self.identity:
            core.sessions.check_identity(self.session, self.identity)
        core.presence.change_filters(self.message, self.session, now)


class ExpectMove(Struct, frozen=True):
    """Note where the client of a session goes next, as the client says."""

    session: str
    node: str
    identity: str = ""

    def __call__(self, core: Core, _: float) -> None:
        """Advertise there, if the policy for publishers is of that kind; refuse an unknown node."""
        core.sessions.check_identity(self.session, self.identity)
        core.stand_ins.expect(self.session, self.node)


class Acknowledge(Struct, frozen=True):
    """Forget all deliveries up to a number."""

    session: str
    number: int
    identity: str = ""

    def __call__(self, core: Core, _: float) -> None:
        """Do nothing if the session has just gone to another node: the client repeats the acknowledgement there."""
        session = core.sessions.get(self.session)
        if not self.identity or (session is not None and session.identity == self.identity):
            core.deliveries.acknowledge(self.session, self.number)


class AcknowledgeEarlier(Struct, frozen=True):
    """Acknowledge what an earlier connection has had, if the number still means the event at this position.

    A later session of the same name counts anew, and a node from an earlier copy of the folder gives numbers and
    positions again. In doubt nothing is acknowledged: a repeated delivery is the lesser evil.
    """

    session: str
    number: int
    position: int
    life: str = ""

    def __call__(self, core: Core, _: float) -> None:
        """Acknowledge only a delivery that may have been sent: one that is released."""
        session = core.sessions[self.session]
        known = ((self.life, 1),) if self.life else ()
        if still_valid(self.number, known, session.lives) < self.number:
            logger.warning("the session %s: delivery %d is another one by now", self.session, self.number)
            return
        pending = session.pending.get(self.number)
        if pending is not None and pending.position == self.position and self.number <= session.released:
            session.sent = max(session.sent, self.number)
            core.deliveries.acknowledge(self.session, self.number)


class Withhold(Struct, frozen=True):
    """Drop waiting deliveries that the owner of a session may no longer read."""

    session: str
    numbers: Sequence[int]

    def __call__(self, core: Core, _: float) -> None:
        """Drop the deliveries without a word to the client, and with one to the operator."""
        if self.session in core.sessions:
            core.deliveries.withhold(self.session, self.numbers)
            dropped = "session %s: %d waiting events were dropped: the owner may no longer read them"
            logger.warning(dropped, self.session, len(self.numbers))


class StoreRow(Struct, frozen=True):
    """Store a row of a part of the node that the core does not know."""

    row: Row

    def __call__(self, core: Core, _: float) -> None:
        """Write the row with the present step."""
        core.store_row(self.row)


# Neighbours


class ConnectLink(Struct, frozen=True):
    """Begin a link to a neighbour, or begin the link to a known neighbour anew."""

    neighbour: str
    role: Role
    local_name: str = ""
    remote_name: str = ""
    remote_lives: Lineage = ()
    id: str = ""
    version: int = NEWEST

    def __call__(self, core: Core, now: float) -> None:
        """Announce all filters to the neighbour."""
        names = {"local_name": self.local_name, "remote_name": self.remote_name, "id": self.id}
        lives, version = self.remote_lives, self.version
        core.links.connect(self.neighbour, self.role, now, **names, remote_lives=lives, version=version)


class ResumeLink(Struct, frozen=True):
    """Continue a link that both sides know."""

    neighbour: str
    resume: LinkResume
    id: str = ""
    version: int = NEWEST

    def __call__(self, core: Core, _: float) -> int:
        """Return the number of the last message that the neighbour has."""
        return core.links.resume(self.neighbour, self.resume, self.id, self.version)


class LinkUp(Struct, frozen=True):
    """Note that a neighbour can be reached."""

    neighbour: str

    def __call__(self, core: Core, now: float) -> None:
        """Send what may have been lost."""
        core.links.link_up(self.neighbour, now)


class LinkDown(Struct, frozen=True):
    """Note that a neighbour cannot be reached; it stays a neighbour."""

    neighbour: str

    def __call__(self, core: Core, now: float) -> None:
        """Stop control messages to the neighbour; events wait in the outbox."""
        core.links.link_down(self.neighbour, now)


class EndLink(Struct, frozen=True):
    """End a link for good."""

    neighbour: str

    def __call__(self, core: Core, now: float) -> None:
        """Forget the neighbour, with its filters and the messages for it."""
        core.links.disconnect(self.neighbour, now)


class LivesOfLink(Struct, frozen=True):
    """Ask in which lives of the log the messages to a neighbour were numbered."""

    neighbour: str

    def __call__(self, core: Core, _: float) -> Lineage:
        """Return the lives, up to the present one."""
        return core.links.lives_of(self.neighbour)


class ReceiveMessages(Struct, frozen=True):
    """Take numbered messages of a neighbour."""

    neighbour: str
    first: int
    messages: Sequence[bytes]

    def __call__(self, core: Core, now: float) -> int:
        """Return the number of events among the messages."""
        return core.receive(self.neighbour, self.first, self.messages, now)


class ReceiveUnnumbered(Struct, frozen=True):
    """Take a message of a neighbour that no row keeps."""

    neighbour: str
    message: bytes

    def __call__(self, core: Core, now: float) -> None:
        """Apply the message at once."""
        incoming.receive_unnumbered(core, self.neighbour, self.message, now)


class AcknowledgeMessages(Struct, frozen=True):
    """Forget the messages to a neighbour up to a number: they are on the neighbour's disk."""

    neighbour: str
    number: int

    def __call__(self, core: Core, _: float) -> None:
        """Drop the messages from the outbox, and their rows."""
        core.links.acknowledge(self.neighbour, self.number)


class SetReachable(Struct, frozen=True):
    """Note which nodes can be reached by a neighbour."""

    neighbour: str
    nodes: Sequence[str]
    versions: Mapping[str, int] = {}

    def __call__(self, core: Core, _: float) -> None:
        """Send the envelopes that have waited for a way, greet proxies, ask homes of channels, and move channels."""
        core.envelopes.set_reachable(self.neighbour, self.nodes, self.versions)
        core.stand_ins.greet()
        core.channels.look_around()


# Handovers and replicas


class OfferSession(Struct, frozen=True):
    """Offer a session, with its client, to another node."""

    session: str
    target: str
    ticket: str

    def __call__(self, core: Core, _: float) -> None:
        """Send the target the name and the owner of the session."""
        core.handovers.offer(self.session, self.target, self.ticket)


class TakeOver(Struct, frozen=True):
    """Ask a replica holder for a session whose node is silent."""

    session: str
    holder: str
    ticket: str

    def __call__(self, core: Core, now: float) -> None:
        """Take the session from the replica, here or at another node."""
        core.handovers.take_over(self.session, self.holder, now)


class CancelArrival(Struct, frozen=True):
    """Cancel the request for a session after its client has gone."""

    session: str

    def __call__(self, core: Core, _: float) -> None:
        """Let the session stay at its node, if the node has not answered yet."""
        core.handovers.arrivals.cancel(self.session)


class SendVoucher(Struct, frozen=True):
    """Tell the target of a departing session about its client."""

    voucher: ClientVoucher

    def __call__(self, core: Core, _: float) -> None:
        """Send the voucher if the departure still goes on."""
        core.handovers.departures.send_voucher(self.voucher)


class FreezeSession(Struct, frozen=True):
    """Remove the filters of a departing session, whose target is ready."""

    session: str

    def __call__(self, core: Core, now: float) -> None:
        """Let the session get nothing more here."""
        core.handovers.departures.freeze(self.session, now)


class SendDeliveries(Struct, frozen=True):
    """Send waiting deliveries of a frozen session to its target."""

    session: str
    waiting: Sequence[tuple[int, Pending]]
    entries: Mapping[int, JournalEntry]

    def __call__(self, core: Core, now: float) -> bool:
        """Tell whether these were the last; then the session has left."""
        return core.handovers.departures.send_deliveries(self.session, self.waiting, self.entries, now)


class SendReplicaPart(Struct, frozen=True):
    """Send waiting deliveries of a session to a replica holder."""

    part: ReplicaPart

    def __call__(self, core: Core, _: float) -> None:
        """Send the part unless the replica was renewed."""
        core.replicas.send_part(self.part)


# Time


class Tick(Struct, frozen=True):
    """Let the broker act on the passage of time."""

    def __call__(self, core: Core, now: float) -> None:
        """Sweep stale state, and send the periodic messages of the overlay."""
        core.tick(now)


class Maintain(Struct, frozen=True):
    """End sessions after `life` seconds without use, drop expired events, and write a checkpoint."""

    life: float

    def __call__(self, core: Core, now: float) -> int:
        """Return the first position of the log that is still in use."""
        core.expire(now, self.life)
        core.checkpoint()
        return core.low_water()
