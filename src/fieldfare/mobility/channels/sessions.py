"""`SharedSession`: a session that applications of one user share, each with its own place in it.

An application is known to the session by a name of its own. A device that says the same name takes its place: so a
user goes from one device to another, and the new one needs to know nothing. Events are kept until all applications are
done with them, but not more than so many.
"""

from __future__ import annotations

import msgspec

from fieldfare.mobility.sessions import MobileSession
from fieldfare.protocol.messages import Deliver


class SharedSession(MobileSession):
    """Subscriptions, what was kept under numbers, and who is done with what."""

    apps: dict[str, int] = msgspec.field(default_factory=dict)
    """up to which number each is done"""
    published: dict[str, int] = msgspec.field(default_factory=dict)
    """the last event of each publisher that counts its events itself"""
    lost: int = 0
    """events that were given up because too many were kept"""

    def attach(self, app: str, received: int | None = None) -> None:
        """An application comes, or comes back; a new one gets all that is kept."""
        first = self.pending[0].number - 1 if self.pending else self.last
        self.apps[app] = max(self.apps.get(app, first), min(received or 0, self.last))
        self._trim()

    def detach(self, app: str) -> None:
        """An application will not come back."""
        self.apps.pop(app, None)
        self._trim()

    def acknowledge_as(self, app: str, number: int) -> None:
        """An application is done with all up to a number."""
        if app in self.apps:
            self.apps[app] = max(self.apps[app], min(number, self.last))
            self._trim()

    def store(self, delivery: Deliver, limit: int) -> None:
        """Number a delivery and keep it, even if the oldest is lost by that."""
        self.accept(delivery)
        if len(self.pending) > limit:
            self.lost += len(self.pending) - limit
            self.pending = self.pending[-limit:] if limit else []

    def after(self, number: int) -> list[Deliver]:
        """What is kept beyond a number."""
        place = len(self.pending)
        while place and self.pending[place - 1].number > number:
            place -= 1
        return self.pending[place:]

    def matching_ids(self, delivery: Deliver) -> tuple[str, ...]:
        """The subscriptions that it matches now."""
        return tuple(id for id, filter in self.subscriptions.items() if filter.matches(delivery.event))

    def _trim(self) -> None:
        if self.apps:
            self.acknowledge(min(self.apps.values()))
