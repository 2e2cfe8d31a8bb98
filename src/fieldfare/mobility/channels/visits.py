"""`SessionVisit`: a session at an access server, from the call until another server calls the session.

The home of a session's name numbers its visits, and each visit gets the session from the visit before. So a session may
be called on before its arrival, and calls are answered in sequence. A server may even have two visits of a session: a
visit that is to end, and a later visit.
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
    """A domain as an access server serves it: the member, and the filters of the sessions."""

    member: ChannelMember
    clients: Clients = field(default_factory=Clients)
    """filters by the keys of visits"""

    @property
    def awaits_interest(self) -> bool:
        """Whether the filters of other servers are still unknown here."""
        return any(self.member.awaits_interest(channel) for channel in self.member.domain.channels)

    def wanted(self) -> list[Filter]:
        """Return the minimal cover of all known subscriptions, here and at other servers."""
        here = (filter for client in self.clients.all.values() for filter in client.subscriptions.values())
        elsewhere = (filter for table in self.member.proxies.values() for filter in table.roots())
        return minimal_cover((*here, *elsewhere))


class ClientRequest(NamedTuple):
    """A request of a client, with the name of its application."""

    client: str
    app: str
    message: Message


@dataclass(eq=False, slots=True)
class SessionVisit:
    """A past, present or future visit of a session."""

    name: str
    service: DomainService
    number: int = 0
    """0: not known yet"""
    session: SharedSession | None = None
    """None until its arrival"""
    clients: dict[str, str] = field(default_factory=dict)
    """the present clients, with their applications"""
    sent: dict[str, int] = field(default_factory=dict)
    """number of the last delivery sent to each client"""
    waiting: list[ClientRequest] = field(default_factory=list)
    """requests of clients before the arrival of the session"""

    arrivals: set[tuple[str, int]] = field(default_factory=set)
    """the clients that have come here, with their numbers of moves"""
    behind: list[Message] = field(default_factory=list)
    """messages that must not reach the session's home before it knows of this visit"""

    source: str = ""
    tickets: frozenset[Ticket] | None = None
    """requests that must be in force before the session can come, or go"""
    fetching: bool = False
    """from now on, events for the session are buffered"""
    buffered: list[tuple[Mark, Forward]] = field(default_factory=list)
    floor: Position = field(default_factory=dict)
    """position up to which the session has had events elsewhere"""

    target: str = ""
    """the server that has called the session"""
    offered: bool = False
    cut: Position | None = None
    """position which the session must reach before it goes"""

    ending: bool = False
    """no client is left; further requests wait until the home knows of the end"""
    awaits_past: bool = False
    """events are buffered until the past events are here"""
    questions: set[Ticket] = field(default_factory=set)
    """open requests for past events"""
    past: dict[int, Forward] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name and number, which identify the visit."""
        return f"{self.name}#{self.number}"

    @property
    def serving(self) -> bool:
        """Whether requests of clients can be processed."""
        return self.session is not None and not self.ending
