"""The claim of a client on a session: the first input of each connection of a durable client."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from fieldfare.core.state import Session
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.protocol.lineage import Lineage

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class Claimed(NamedTuple):
    """A session attached to a client."""

    session: Session
    void: int = 0
    """First delivery whose number means another event by now; 0 if there is none."""


class ClaimSession(Struct, frozen=True):
    """Connect a client to a session, which may still be at another node.

    The client was `at` a node before. The `identity` and `moves`, as far as known to the client, tell which session of
    the name is meant; `seen` is the number of the last delivery, given in the lives `known`.
    """

    session: str
    fresh: str
    at: str = ""
    identity: str = ""
    moves: int = 0
    owner: str = ""
    seen: int = 0
    known: Lineage = ()
    member: str = ""
    """Unique name of a member that shares the session; empty for a client with a session of its own."""
    label: str = ""
    """Name that the member has given itself."""
    key: str = ""
    """Field by which the members share the events; empty: each event may go to any member."""
    device: str = ""
    """Name of the device that the member is; empty for a worker."""
    oldest: bool = False
    """Whether a new device begins with the oldest waiting event, and not with the next one."""

    def __call__(self, core: Core, now: float) -> Claimed | None:
        """Return the session, or None while the session is on its way to this node."""
        if self.device:
            core.presence.check_device(self.session, self.device)
        elif self.member:
            core.presence.check_worker(self.session, self.key)
        else:
            core.presence.check_unshared(self.session)
        session = core.handovers.claim(
            self.session, self.fresh, now, at=self.at, identity=self.identity, moves=self.moves, owner=self.owner
        )
        if session is None:
            return None
        if self.member and not self.device:
            core.members.attach(self.session, self.member, self.label, self.key)
            return Claimed(session)
        void = 0
        if self.identity == session.identity:
            void = core.sessions.first_void(self.session, self.seen, self.known)
        if self.device:
            core.devices.attach(self.session, self.device, self.member, now, oldest=self.oldest)
            return Claimed(session, void)
        if session.doubt and not self.identity:
            # A program that does not know its last sequence number: the replica holder may not know it either.
            session.sequence += NUMBER_GAP
            core.sessions.store(self.session)
        return Claimed(session, void)
