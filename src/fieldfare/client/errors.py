"""The errors of a client of a node."""

from __future__ import annotations


class Refused(ValueError):
    """The node did not accept a request or an event.

    `reason` is a sentence for people; `code` is `bad` (a mistake), `denied` (no permission) or `limit` (too much).
    """

    def __init__(self, reason: str, code: str = "bad") -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str]]:
        return Refused, (self.reason, self.code)


class WindowFull(RuntimeError):
    """Too many published events are not safe yet: `await client.wait_for_capacity()` before the next `publish_soon`."""


class NotEntered(RuntimeError):
    """A client or a subscription is used outside of the `with` block, where no answer would ever arrive."""


class ConnectionRefused(ConnectionError):
    """The node refuses the client: a bad token, or a session in use by another connection. Do not retry unchanged."""


class ConnectionLost(ConnectionError):
    """The client has no connection and does not try to connect again."""


class MismatchError(ValueError):
    """An event does not fit the class of the subscription; the message names the field and the position."""
