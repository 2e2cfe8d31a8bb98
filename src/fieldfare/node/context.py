"""`Context`: the parts of a running node, shared by HTTP routes, bridges and connections."""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.node.interest import Interests
from fieldfare.node.neighbourhood import Neighbourhood
from fieldfare.node.node import Node

HTTP: Final = "~http"
"""Session for events that come over HTTP without a session."""


class Context(NamedTuple):
    """A node, with the links and the watchers of the interest."""

    node: Node
    hood: Neighbourhood
    interests: Interests

    async def publish(self, events: list[Event], ttl: float | None = None, replaces: str = "") -> int:
        """Publish events without sequence numbers, all or none; after the call all are on disk."""
        await self.node.wait_for_capacity()
        expires = 0.0 if ttl is None else self.node.clock() + ttl
        return await self.node.publish(Publication(HTTP, 0, events, expires=expires, replaces=replaces))
