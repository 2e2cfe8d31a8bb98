"""`PublisherOrder`: events of a publisher keep their order, although their topics use different trees.

A tree keeps the order of its events, because links do. When a publisher changes the topic, its broker holds the event
back and sends a `FlushRequest` on the tree of the last topic: the request follows the earlier events, and each broker
replies after all brokers that it asked. A publisher that stays with a topic pays nothing; a change of topic costs a
round trip on the tree.

Absent brokers need not reply, and a long wait ends without replies: order is worth less than events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fieldfare.protocol.messages import FlushReply, FlushRequest, Forward
from fieldfare.routing.routes import LOCAL, Outgoing


class _Open(NamedTuple):
    """The asker of a request, and the brokers whose replies are missing."""

    asker: str
    silent: set[str]


class PublisherOrder:
    """The publishers of a broker, and the open flush requests."""

    def __init__(self, name: str, life: int, around: Callable[[str], Iterable[str]]) -> None:
        """Make the state of a broker without publishers.

        `around` returns the adjacent brokers on the tree of a topic.
        """
        self._name = name
        self._around = around
        self._number = life << 32
        self._last: dict[str, str] = {}
        """the topic of a publisher's last event, unless all its events have arrived"""
        self._held: dict[str, deque[tuple[str, Forward]]] = {}
        self._asked: dict[FlushRequest, str] = {}
        """the broker's own requests, and the publisher of each"""
        self._open: dict[FlushRequest, _Open] = {}
        self._old: set[FlushRequest | str] = set()
        """requests and publishers without news since the last sweep"""

    def publish(self, topic: str, event: Forward) -> list[Outgoing]:
        """Let an event of a publisher go, or hold the event and send a flush request."""
        publisher = event.publisher
        self._old.discard(publisher)
        if publisher in self._held:
            self._held[publisher].append((topic, event))
            return []
        self._held[publisher] = deque([(topic, event)])
        return self._advance(publisher)

    def _advance(self, publisher: str) -> list[Outgoing]:
        """Release held events of the same topic, and send a request for the rest."""
        outgoing, held = [], self._held[publisher]
        while held and self._last.get(publisher, held[0][0]) == held[0][0]:
            self._last[publisher], event = held.popleft()
            outgoing.append(Outgoing(LOCAL, event))
        if not held:
            del self._held[publisher]
            return outgoing
        self._number += 1
        request = FlushRequest(self._last.pop(publisher), self._name, self._number)
        self._asked[request] = publisher
        return outgoing + self.asked(request, LOCAL)

    def asked(self, request: FlushRequest, asker: str) -> list[Outgoing]:
        """Pass a request on to the adjacent brokers on its tree, except the asker."""
        if request in self._open:  # the tree is just changing: the first asker gets the answer
            return [Outgoing(asker, FlushReply(request))]
        silent = {other for other in self._around(request.topic) if other != asker}
        self._open[request] = _Open(asker, silent)
        return [Outgoing(other, request) for other in sorted(silent)] + self._answer([request])

    def answered(self, request: FlushRequest, by: str) -> list[Outgoing]:
        """Note that all events have arrived at an adjacent broker and beyond."""
        if request in self._open:
            self._open[request].silent.discard(by)
        return self._answer([request])

    def gone(self, neighbour: str) -> list[Outgoing]:
        """Remove a broker from all open requests, as asker and as respondent."""
        for request, (asker, silent) in list(self._open.items()):
            silent.discard(neighbour)
            if asker == neighbour:
                del self._open[request]
        return self._answer(list(self._open))

    def _answer(self, requests: Iterable[FlushRequest]) -> list[Outgoing]:
        """Reply to requests without missing replies."""
        outgoing = []
        for request in requests:
            if request in self._open and not self._open[request].silent:
                asker = self._open.pop(request).asker
                outgoing += [Outgoing(asker, FlushReply(request))] if asker else self._advance(self._asked.pop(request))
        return outgoing

    @property
    def needs_sweep(self) -> bool:
        """Whether there are remembered publishers or open requests."""
        return bool(self._last or self._open)

    def sweep(self) -> list[Outgoing]:
        """Close requests that were open at the last sweep too, and forget publishers that were silent since."""
        overdue = [request for request in self._open if request in self._old]
        for request in overdue:
            self._open[request].silent.clear()
        outgoing = self._answer(overdue)
        self._last = {one: topic for one, topic in self._last.items() if one not in self._old}
        self._old = {*self._open, *self._last}
        return outgoing
