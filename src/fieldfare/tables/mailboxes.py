"""`Mailboxes`: messages kept for clients that are away, and no more of them than are still worth reading.

A message may carry a *replace-identifier*: it takes the place of a waiting one with the same identifier, so that of
many changes of one thing a client who comes back reads only the last. And it may expire. What expired unread is not
forgotten altogether: the client is told that something is missing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Letter(Protocol):
    """What a message must say to be kept."""

    @property
    def recipients(self) -> Iterable[str]:
        """The clients it is for."""

    @property
    def replaces(self) -> Hashable:
        """Its replace-identifier; None if it replaces nothing and is replaced by nothing."""

    @property
    def expires(self) -> float:
        """When it is no longer worth reading."""


Message = TypeVar("Message", bound=Letter)


@dataclass(frozen=True, slots=True)
class Mail(Generic[Message]):
    """What a client finds who comes back."""

    messages: tuple[Message, ...]
    """what is still good, oldest first"""
    missed: int
    """how many messages expired, and nothing newer replaced them: if any, better ask for everything"""


@dataclass(eq=False, slots=True)
class _Box(Generic[Message]):
    waiting: dict[Hashable, Message] = field(default_factory=dict)
    missed: set[Hashable] = field(default_factory=set)

    def tidy(self, now: float) -> None:
        """Throw away what has expired."""
        for name in [name for name, message in self.waiting.items() if message.expires <= now]:
            del self.waiting[name]
            self.missed.add(name)


class Mailboxes(Generic[Message]):
    """One for each client that was ever away. A client is there until it leaves."""

    def __init__(self) -> None:
        """Everybody is there."""
        self._boxes: dict[str, _Box[Message]] = {}
        self._count = 0

    def leave(self, client: str) -> None:
        """From now on, keep what comes for a client."""
        self._boxes.setdefault(client, _Box())

    def enter(self, client: str, *, now: float) -> Mail[Message]:
        """A client is back; gives what waited for it."""
        box = self._boxes.pop(client, None)
        if box is None:
            return Mail((), 0)
        box.tidy(now)
        return Mail(tuple(box.waiting.values()), len(box.missed))

    def post(self, message: Message) -> list[str]:
        """Keep a message for the recipients that are away; gives those that are there."""
        self._count += 1
        name = (None, self._count) if message.replaces is None else (message.replaces,)
        present = []
        for client in message.recipients:
            box = self._boxes.get(client)
            if box is None:
                present.append(client)
            else:
                box.waiting.pop(name, None)  # the newer goes to the end of the line
                box.waiting[name] = message
                box.missed.discard(name)
        return present

    def tidy(self, *, now: float) -> None:
        """Throw away what has expired, for all. Nothing depends on it but memory."""
        for box in self._boxes.values():
            box.tidy(now)

    def waiting(self, client: str) -> int:
        """How many messages wait for a client, those that have expired meanwhile included."""
        box = self._boxes.get(client)
        return 0 if box is None else len(box.waiting)
