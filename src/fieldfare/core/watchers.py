"""Watchers: how a part of a core follows the changes of a part below, which does not know it.

`Core` says who watches what. Each method is called in the middle of a step, right after the change.
"""

from __future__ import annotations

from collections.abc import Iterable


class SessionWatcher:
    """A part that follows the sessions of a node."""

    def session_changed(self, name: str) -> None:
        """Follow a change of what other nodes must know of a session: its filters, values and devices."""

    def filter_replaced(self, name: str, id: str) -> None:
        """Follow the end of a subscription, or another filter under its id."""

    def filters_dropped(self, name: str) -> None:
        """Follow the end of all filters of a session that ends or departs."""

    def session_ended(self, name: str) -> None:
        """Forget a session that has ended at this node."""

    def session_left(self, name: str) -> None:
        """Follow the end of a session for good: no other node goes on with the session."""


class DeliveryWatcher:
    """A part that follows the deliveries of sessions."""

    def acknowledged(self, name: str, number: int) -> None:
        """Follow the acknowledgement of all deliveries of a session up to a number."""


class LinkWatcher:
    """A part that follows the links of a node."""

    def link_begun(self, neighbour: str) -> None:
        """Follow the beginning of a link: the neighbour has no memory of another one."""

    def link_resumed(self, neighbour: str) -> None:
        """Follow the agreement of both ends on what each has."""

    def link_ended(self, neighbour: str, outbox: Iterable[bytes | int]) -> None:
        """Follow the end of a link for good, with the messages that waited for the neighbour."""
