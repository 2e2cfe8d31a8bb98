"""`Interest`: the filters of all subscriptions in the network, for publishers with `quench`.

No I/O here, and no clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from fieldfare.client.registrations import Answer
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter


class Interest:
    """The interest announced by the node; with `quench`, `matches` checks events."""

    def __init__(self, *, quench: bool) -> None:
        self.quench = quench
        self.watched = False
        """whether the client has asked the node to announce its interest"""
        self.texts: tuple[str, ...] | None = None
        """the filters, None while they are not known"""
        self._filters: list[Filter] | None = None
        self._waiting: list[Answer] = []

    def wait(self, answer: Answer) -> None:
        """Call a function when the interest is known."""
        self.watched = True
        self._waiting.append(answer)

    def update(self, texts: Iterable[str]) -> None:
        """Take the interest announced by the node."""
        self.texts, self._filters = tuple(texts), None
        if self.quench:
            # A filter that cannot be parsed here, with a function of the node's own, say, might match any event.
            with contextlib.suppress(ValueError):
                self._filters = list(map(parse, self.texts))
        self.resolve(None)

    def forget(self) -> None:
        """Forget the interest: after each connection the node announces the interest again."""
        self.texts = self._filters = None

    def resolve(self, error: Exception | None) -> None:
        """Answer all calls of `wait`."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer(error)

    def matches(self, event: Event) -> bool:
        """Tell whether an event has to be sent: some filter matches, or the interest is not known."""
        return self._filters is None or any(filter.matches_fields(event.fields) for filter in self._filters)
