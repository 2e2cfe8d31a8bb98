"""`Sources`: the numbered sources of a bridge, such as the partitions of a topic, each with a session for each.

The session `bridge:plant/quotes/0` publishes the messages of a source under the numbers of the source. The node stores
the number with the event and accepts no number twice: a message read again after a crash is published once. A number
means the same message for ever, so a source with a new beginning needs another name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import groupby

from fieldfare.core.state import Publication
from fieldfare.node.bridges.interface import IncomingEvent
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.node import Node


class Sources:
    """The sessions of the sources of a connection; the stack ends all with the connection."""

    def __init__(
        self,
        node: Node,
        prefix: str,
        owner: str,
        stack: AsyncExitStack,
        begin: Callable[[str], Awaitable[None]],
    ) -> None:
        self._node, self._prefix, self._owner, self._stack, self._begin = node, prefix, owner, stack, begin

    def name(self, source: str) -> str:
        """Return the name of the session of a source."""
        return f"{self._prefix}/{source}"

    async def position(self, source: str) -> int:
        """Begin the session of a source, and return the number of the last stored message; 0: none."""
        name = self.name(source)
        if name not in self._node.closers:
            session = InternalSession(self._node, name, owner=self._owner, numbered=True)
            await self._stack.enter_async_context(session)
            await self._begin(name)
        return self._node.core.sessions[name].sequence

    def publications(self, source: str, events: Sequence[IncomingEvent], now: float) -> Iterator[Publication]:
        """Return the publications of new messages; successive numbers go into the same publication."""
        name = self.name(source)
        known = self._node.core.sessions[name].sequence
        new = [(one.number - place, one) for place, one in enumerate(events) if one.number > known]
        for (_, ttl), run in groupby(new, key=lambda pair: (pair[0], pair[1].ttl)):
            group = [one for _, one in run]
            expires = 0.0 if ttl is None else now + ttl
            yield Publication(name, group[0].number, [one.event for one in group], expires=expires)
