"""`SessionVisit`: a session at an access server, from the call until another server calls the session.

The visits of a session are numbered by the home of its name, and each gets the session from the one before. So a
session may be called on before it has come, and the calls are answered one after the other. A server may even have two
visits of a session: one that is to end, and a later one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels.member import ChannelMember, Mark, Ticket
from fieldfare.mobility.channels.messages import Position
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.protocol.messages import Forward, Message
from fieldfare.routing.clients import Clients
from fieldfare.tables.covers import minimal_cover


@dataclass(eq=False, slots=True)
class DomainService:
    """An access server in a domain: as channels see it, and what the sessions there want."""

    member: ChannelMember
    clients: Clients = field(default_factory=Clients)
    """by the keys of visits"""

    @property
    def awaits_interest(self) -> bool:
        """Is it still unknown here what other servers want?"""
        return any(self.member.awaits_interest(channel) for channel in self.member.domain.channels)

    def wanted(self) -> list[Filter]:
        """What anybody wants, here or at servers that are known to want it: the fewest filters that say so."""
        here = (filter for client in self.clients.all.values() for filter in client.subscriptions.values())
        elsewhere = (filter for table in self.member.proxies.values() for filter in table.roots())
        return minimal_cover((*here, *elsewhere))


class ClientRequest(NamedTuple):
    """What a client says, and as which application."""

    client: str
    app: str
    message: Message


@dataclass(eq=False, slots=True)
class SessionVisit:
    """Where a session is, was, or will be."""

    name: str
    service: DomainService
    number: int = 0
    """0: not known yet"""
    session: SharedSession | None = None
    """None until it is here"""
    clients: dict[str, str] = field(default_factory=dict)
    """those that are here, and which application they are"""
    sent: dict[str, int] = field(default_factory=dict)
    """the number of the last delivery that each was sent"""
    waiting: list[ClientRequest] = field(default_factory=list)
    """what clients have said before it is here"""

    arrivals: set[tuple[str, int]] = field(default_factory=set)
    """the clients that have come here, and how often they had moved"""
    behind: list[Message] = field(default_factory=list)
    """what must not get to the session's home before this visit is known there"""

    source: str = ""
    tickets: frozenset[Ticket] | None = None
    """what must be in force before it can come, or go"""
    fetching: bool = False
    """from then on, events for it are put aside"""
    buffered: list[tuple[Mark, Forward]] = field(default_factory=list)
    floor: Position = field(default_factory=dict)
    """events up to there it has had elsewhere"""

    target: str = ""
    """who has called it"""
    offered: bool = False
    cut: Position | None = None
    """how far it must get before it goes"""

    ending: bool = False
    """nobody is left; what clients say waits until that is known"""
    awaits_past: bool = False
    """events are put aside until those of the past are here"""
    questions: set[Ticket] = field(default_factory=set)
    """about the past"""
    past: dict[int, Forward] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Tells visits apart."""
        return f"{self.name}#{self.number}"

    @property
    def serving(self) -> bool:
        """Can clients be heard?"""
        return self.session is not None and not self.ending
