"""`PublisherOrder`: events of one publisher keep their order, though their topics go by different trees.

A tree keeps the order of what goes by it, because links do. When a publisher goes on to another topic, its broker holds
the event back and asks on the tree of the last topic whether all has arrived: the question, `FlushRequest`, follows the
events up and down the tree, and each broker answers when all that it asked have. A publisher that stays with a topic
pays nothing; one that changes it waits for one round on the tree.

Brokers that are gone need not answer, and whoever has waited for long goes on without: order is worth less than events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fieldfare.protocol.messages import FlushReply, FlushRequest, Forward
from fieldfare.routing.routes import LOCAL, To


class _Open(NamedTuple):
    """Who wants to know, and who has not answered yet."""

    asker: str
    silent: set[str]


class PublisherOrder:
    """The publishers of a broker, and the questions that are open."""

    def __init__(self, name: str, life: int, around: Callable[[str], Iterable[str]]) -> None:
        """Nobody has published anything yet; `around` gives the brokers next to us on the tree of a topic."""
        self._name = name
        self._around = around
        self._number = life << 32
        self._last: dict[str, str] = {}
        """the topic of a publisher's last event, unless all of that has arrived"""
        self._held: dict[str, deque[tuple[str, Forward]]] = {}
        self._asked: dict[FlushRequest, str] = {}
        """our own questions, and for which publishers"""
        self._open: dict[FlushRequest, _Open] = {}
        self._old: set[FlushRequest | str] = set()
        """questions and publishers of which nothing was heard since `tidy`"""

    def enter(self, topic: str, event: Forward) -> list[To]:
        """An event is published here: it goes, or it waits and we ask."""
        publisher = event.publisher
        self._old.discard(publisher)
        if publisher in self._held:
            self._held[publisher].append((topic, event))
            return []
        self._held[publisher] = deque([(topic, event)])
        return self._advance(publisher)

    def _advance(self, publisher: str) -> list[To]:
        """Let go what may go, and ask for the rest."""
        told, held = [], self._held[publisher]
        while held and self._last.get(publisher, held[0][0]) == held[0][0]:
            self._last[publisher], event = held.popleft()
            told.append(To(LOCAL, event))
        if not held:
            del self._held[publisher]
            return told
        self._number += 1
        question = FlushRequest(self._last.pop(publisher), self._name, self._number)
        self._asked[question] = publisher
        return told + self.asked(question, LOCAL)

    def asked(self, question: FlushRequest, asker: str) -> list[To]:
        """Pass a question on to those next to us on its tree, but for the one who asks."""
        if question in self._open:  # the tree is just changing: whoever asked first gets the answer
            return [To(asker, FlushReply(question))]
        silent = {other for other in self._around(question.topic) if other != asker}
        self._open[question] = _Open(asker, silent)
        return [To(other, question) for other in sorted(silent)] + self._answer([question])

    def answered(self, question: FlushRequest, by: str) -> list[To]:
        """All has arrived at a broker next to us, and beyond it."""
        if question in self._open:
            self._open[question].silent.discard(by)
        return self._answer([question])

    def gone(self, neighbour: str) -> list[To]:
        """Who is gone does not answer, nor does it want to know."""
        for question, (asker, silent) in list(self._open.items()):
            silent.discard(neighbour)
            if asker == neighbour:
                del self._open[question]
        return self._answer(list(self._open))

    def _answer(self, questions: Iterable[FlushRequest]) -> list[To]:
        """Answer those that nobody is silent about any more."""
        told = []
        for question in questions:
            if question in self._open and not self._open[question].silent:
                asker = self._open.pop(question).asker
                told += [To(asker, FlushReply(question))] if asker else self._advance(self._asked.pop(question))
        return told

    @property
    def untidy(self) -> bool:
        """Is there anything that time may make useless?"""
        return bool(self._last or self._open)

    def tidy(self) -> list[To]:
        """Wait no longer for what was open the last time too, and forget publishers that were silent since then."""
        overdue = [question for question in self._open if question in self._old]
        for question in overdue:
            self._open[question].silent.clear()
        told = self._answer(overdue)
        self._last = {one: topic for one, topic in self._last.items() if one not in self._old}
        self._old = {*self._open, *self._last}
        return told
