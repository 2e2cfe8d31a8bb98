"""Inputs of the members of a shared session, workers and devices; a member attaches with `claims.ClaimSession`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class DetachMember(Struct, frozen=True):
    """Note that a member of a session has gone."""

    session: str
    member: str

    def __call__(self, core: Core, now: float) -> None:
        """Let the deliveries without an acknowledgement go to the other members."""
        core.presence.detach_member(self.session, self.member, now)


class AcknowledgeByMember(Struct, frozen=True):
    """Forget deliveries of a member, in any order."""

    session: str
    member: str
    numbers: Sequence[int]
    identity: str

    def __call__(self, core: Core, _: float) -> None:
        """Do nothing if the session is over: a later session counts anew."""
        session = core.sessions.get(self.session)
        if session is not None and session.identity == self.identity:
            core.members.acknowledge(self.session, self.member, self.numbers)


class LoseDeliveries(Struct, frozen=True):
    """Forget the deliveries without a readable event, or without the owner's right to read."""

    session: str
    member: str
    numbers: Sequence[int]

    def __call__(self, core: Core, _: float) -> None:
        """Give the member the credit back."""
        core.members.lose(self.session, self.member, self.numbers)


class AcknowledgeByDevice(Struct, frozen=True):
    """Forget all deliveries of a device up to a number."""

    session: str
    device: str
    number: int
    identity: str

    def __call__(self, core: Core, _: float) -> None:
        """Do nothing if the session is over: a later session counts anew."""
        session = core.sessions.get(self.session)
        if session is not None and session.identity == self.identity:
            core.devices.acknowledge(self.session, self.device, self.number)


class RemoveDevice(Struct, frozen=True):
    """Remove a device from its session."""

    session: str
    device: str
    identity: str = ""

    def __call__(self, core: Core, now: float) -> bool:
        """End the session with its last device; tell whether it is over. Refuse if another session has the name."""
        core.sessions.check_identity(self.session, self.identity)
        return core.presence.remove_device(self.session, self.device, now)
