"""`PublisherOrder`: events of one publisher keep their order, though their topics go by different trees.

A tree keeps the order of what goes by it, because links do. When a publisher goes on to another topic, its broker holds
the event back and asks on the tree of the last topic whether all has arrived: the request, `FlushRequest`, follows the
events up and down the tree, and each broker answers when all that it asked have. A publisher that stays with a topic
pays nothing; one that changes it waits for one round on the tree.

Brokers that are gone need not answer, and whoever has waited for long goes on without: order is worth less than events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fieldfare.protocol.messages import FlushReply, FlushRequest, Forward
from fieldfare.routing.routes import LOCAL, Outgoing


class _Open(NamedTuple):
    """Who wants to know, and who has not answered yet."""

    asker: str
    silent: set[str]


class PublisherOrder:
    """The publishers of a broker, and the requests that are open."""

    def __init__(self, name: str, life: int, around: Callable[[str], Iterable[str]]) -> None:
        """Nobody has published anything yet; `around` gives the brokers next to us on the tree of a topic."""
        self._name = name
        self._around = around
        self._number = life << 32
        self._last: dict[str, str] = {}
        """the topic of a publisher's last event, unless all of that has arrived"""
        self._held: dict[str, deque[tuple[str, Forward]]] = {}
        self._asked: dict[FlushRequest, str] = {}
        """our own requests, and for which publishers"""
        self._open: dict[FlushRequest, _Open] = {}
        self._old: set[FlushRequest | str] = set()
        """requests and publishers of which nothing was heard since `sweep`"""

    def publish(self, topic: str, event: Forward) -> list[Outgoing]:
        """An event is published here: it goes, or it waits and we ask."""
        publisher = event.publisher
        self._old.discard(publisher)
        if publisher in self._held:
            self._held[publisher].append((topic, event))
            return []
        self._held[publisher] = deque([(topic, event)])
        return self._advance(publisher)

    def _advance(self, publisher: str) -> list[Outgoing]:
        """Let go what may go, and ask for the rest."""
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
        """Pass a request on to those next to us on its tree, but for the one who asks."""
        if request in self._open:  # the tree is just changing: whoever asked first gets the answer
            return [Outgoing(asker, FlushReply(request))]
        silent = {other for other in self._around(request.topic) if other != asker}
        self._open[request] = _Open(asker, silent)
        return [Outgoing(other, request) for other in sorted(silent)] + self._answer([request])

    def answered(self, request: FlushRequest, by: str) -> list[Outgoing]:
        """All has arrived at a broker next to us, and beyond it."""
        if request in self._open:
            self._open[request].silent.discard(by)
        return self._answer([request])

    def gone(self, neighbour: str) -> list[Outgoing]:
        """Who is gone does not answer, nor does it want to know."""
        for request, (asker, silent) in list(self._open.items()):
            silent.discard(neighbour)
            if asker == neighbour:
                del self._open[request]
        return self._answer(list(self._open))

    def _answer(self, requests: Iterable[FlushRequest]) -> list[Outgoing]:
        """Answer those that nobody is silent about any more."""
        outgoing = []
        for request in requests:
            if request in self._open and not self._open[request].silent:
                asker = self._open.pop(request).asker
                outgoing += [Outgoing(asker, FlushReply(request))] if asker else self._advance(self._asked.pop(request))
        return outgoing

    @property
    def needs_sweep(self) -> bool:
        """Is there anything that time may make useless?"""
        return bool(self._last or self._open)

    def sweep(self) -> list[Outgoing]:
        """Wait no longer for what was open the last time too, and forget publishers that were silent since then."""
        overdue = [request for request in self._open if request in self._old]
        for request in overdue:
            self._open[request].silent.clear()
        outgoing = self._answer(overdue)
        self._last = {one: topic for one, topic in self._last.items() if one not in self._old}
        self._old = {*self._open, *self._last}
        return outgoing
