"""What can go wrong between a client and its node."""

from __future__ import annotations


class Refused(ValueError):
    """The node did not do what it was asked; `reason` says why, `code` is `bad`, `denied` or `limit`."""

    def __init__(self, reason: str, code: str = "bad") -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str]]:
        return Refused, (self.reason, self.code)


class WindowFull(RuntimeError):
    """Too much was posted that is not safe yet: `await client.room()` first."""


class NotEntered(RuntimeError):
    """A client, or a subscription, is used outside of its `with` block: nothing would ever answer."""


class ConnectionRefused(ConnectionError):
    """The node does not want us, or not any more, and it is of no use to come back."""


class ConnectionLost(ConnectionError):
    """There is no connection, and nobody tries to make one."""


class MismatchError(ValueError):
    """An event is not of the type that was asked for. It says which field is wrong, and where the event stands."""
