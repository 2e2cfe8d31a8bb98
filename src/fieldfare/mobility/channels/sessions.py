"""`SharedSession`: a session that several applications of a user share, each with its own progress.

An application has a name within the session. A device with the same name takes its place: so a user changes devices,
and the new device needs no state. Events are kept until all applications have acknowledged them, but only up to a
limit.
"""

from __future__ import annotations

import msgspec

from fieldfare.mobility.sessions import MobileSession
from fieldfare.protocol.messages import Deliver


class SharedSession(MobileSession):
    """A session with the progress of each application."""

    apps: dict[str, int] = msgspec.field(default_factory=dict)
    """number of the last acknowledged delivery of each application"""
    published: dict[str, int] = msgspec.field(default_factory=dict)
    """the last event of each publisher that counts its events itself"""
    lost: int = 0
    """number of events dropped beyond the limit"""

    def attach(self, app: str, received: int | None = None) -> None:
        """Attach an application, new or returning; a new application gets all kept events."""
        first = self.pending[0].number - 1 if self.pending else self.last
        self.apps[app] = max(self.apps.get(app, first), min(received or 0, self.last))
        self._trim()

    def detach(self, app: str) -> None:
        """Remove an application that will not return."""
        self.apps.pop(app, None)
        self._trim()

    def acknowledge_as(self, app: str, number: int) -> None:
        """Note that an application has acknowledged all deliveries up to a number."""
        if app in self.apps:
            self.apps[app] = max(self.apps[app], min(number, self.last))
            self._trim()

    def store(self, delivery: Deliver, limit: int) -> None:
        """Number a delivery and keep it; beyond the limit the oldest is dropped."""
        self.accept(delivery)
        if len(self.pending) > limit:
            self.lost += len(self.pending) - limit
            self.pending = self.pending[-limit:] if limit else []

    def after(self, number: int) -> list[Deliver]:
        """Return the kept deliveries beyond a number."""
        place = len(self.pending)
        while place and self.pending[place - 1].number > number:
            place -= 1
        return self.pending[place:]

    def matching_ids(self, delivery: Deliver) -> tuple[str, ...]:
        """Return the ids of the present subscriptions that a delivery matches."""
        return tuple(id for id, filter in self.subscriptions.items() if filter.matches(delivery.event))

    def _trim(self) -> None:
        if self.apps:
            self.acknowledge(min(self.apps.values()))
