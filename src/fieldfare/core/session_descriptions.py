"""`SessionDescriptions`: what another node has to know of a session, to continue it or to hold a replica."""

from __future__ import annotations

from fieldfare.core.base import Base
from fieldfare.core.device_places import DevicePlaces
from fieldfare.core.dynamic_filters import DynamicFilters, encode_values
from fieldfare.core.sessions import SessionTable
from fieldfare.protocol.handover import SessionDescription


class SessionDescriptions:
    """Identity, owner, filters, values and devices of sessions, as messages."""

    def __init__(self, base: Base, sessions: SessionTable, dynamic: DynamicFilters, places: DevicePlaces) -> None:
        """Describe the sessions of a node."""
        self._clients = base.broker.clients
        self._sessions = sessions
        self._dynamic = dynamic
        self._places = places

    def of(self, name: str, ticket: str, *, replica: bool = False) -> SessionDescription:
        """Return the description of a session, in a handover or for a replica."""
        session, client = self._sessions[name], self._clients.get(name)
        return SessionDescription(
            name,
            ticket,
            session.identity,
            session.owner,
            {id: str(filter) for id, filter in client.subscriptions.items() if not filter.is_empty},
            {id: str(filter) for id, filter in client.advertisements.items()},
            replica,
            session.moves if replica else 0,
            self._dynamic.texts_of(name),
            encode_values(self._dynamic.values.get(name, {})),
            tuple(sorted(self._places.of(name))) if replica else (),
        )
