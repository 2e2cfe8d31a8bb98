"""The errors of access control; HTTP answers with their status, the WebSocket with their text."""

from __future__ import annotations


class AccessDenied(ValueError):
    """A request that the caller's roles do not permit; the text says why. HTTP: 403."""


class Unauthenticated(AccessDenied):
    """A caller without a token, or with a token that does not count. HTTP: 401."""
