"""`ControlOverlay`: a small Fieldfare inside the brokers, over the same links, by which they talk of trees.

Each broker is the one client of a broker in it, and subscribes to the words that concern it. Nobody's events meet these
words: who subscribes to everything does not hear them, and nobody needs to keep them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from fieldfare.filters import parse
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.valueset import one_of
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.prefix.messages import AnyWord, Reader, events_of
from fieldfare.routing.routes import To


class Heard(NamedTuple):
    """What comes of a message: more to be sent, and words for us."""

    sends: list[To]
    words: list[AnyWord]


class ControlOverlay:
    """Our end of it."""

    def __init__(self, name: str, life: int) -> None:
        """We hear what all hear, and what is for us alone."""
        self._name = name
        self._broker = Broker(name, life=life)
        self._reader = Reader()
        self._want("all", parse("word = 'Beat' OR word = 'News'"))
        self._want("ours", Filter.where("to", Constraint(one_of([name]))))

    def _want(self, id: str, filter: Filter) -> list[To]:
        return self._heard(self._broker.receive(m.Subscribe(id, filter), self._name, 0.0)).sends

    def lead(self, part: int, leading: bool) -> list[To]:
        """Hear what is said to the optimizer of a part, or no more."""
        id = f"optimizer of {part}"
        if leading:
            return self._want(id, parse(f"part = {part} AND (word = 'Report' OR word = 'Ask')"))
        return self._heard(self._broker.receive(m.Unsubscribe(id), self._name, 0.0)).sends

    def connect(self, neighbour: str) -> list[To]:
        """A neighbour can be talked to."""
        return self._heard(self._broker.receive(m.Connect(), neighbour, 0.0)).sends

    def disconnect(self, neighbour: str) -> list[To]:
        """For now it cannot."""
        if neighbour not in self._broker.neighbours:
            return []
        return self._heard(self._broker.receive(m.Disconnect(), neighbour, 0.0)).sends

    def say(self, word: AnyWord, now: float) -> Heard:
        """Say a word; it may concern ourselves, too."""
        events = events_of(word, self._name)
        return self._heard([send for one in events for send in self._broker.receive(m.Publish(one), self._name, now)])

    def hear(self, said: m.FilterUpdate | m.Forward, neighbour: str, now: float) -> Heard:
        """Take what a neighbour says; from one that is none it is too late."""
        if neighbour not in self._broker.neighbours:
            return Heard([], [])
        return self._heard(self._broker.receive(said, neighbour, now))

    def _heard(self, sends: list[m.Send]) -> Heard:
        heard = Heard([], [])
        for send in sends:
            match send.message:
                case m.Deliver(event=event):
                    with suppress(ValueError):  # of another version of Fieldfare, say
                        word = self._reader.read(event)
                        heard.words.extend([] if word is None else [word])
                case m.FilterUpdate() | m.Forward() as said:
                    heard.sends.append(To(send.to, m.ControlMessage(said)))
        return heard
