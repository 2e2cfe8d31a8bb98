"""`Context`: all that answers on the port of a node, and what its parts share."""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.node.interest import Interests
from fieldfare.node.links import Neighbourhood
from fieldfare.node.node import Node
from fieldfare.node.state import Publication

HTTP: Final = "~http"
"""the session under which events are published that come without one"""


class Context(NamedTuple):
    """A node with its links and whoever is curious."""

    node: Node
    hood: Neighbourhood
    wishes: Interests

    async def publish(self, events: list[Event], ttl: float | None = None, replaces: str = "") -> int:
        """Publish events of somebody who does not count them, all or none; they are safe afterwards."""
        await self.node.room()
        expires = None if ttl is None else self.node.clock() + ttl
        return await self.node.publish(Publication(HTTP, 0, events, expires, replaces))
