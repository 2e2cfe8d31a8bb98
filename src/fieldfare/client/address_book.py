"""`AddressBook`: the addresses of a program in order of preference, and the address named by a node. No I/O here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Invitation(NamedTuple):
    """An address named by another node, and the ticket to show there instead of the token."""

    url: str
    ticket: str


class AddressBook:
    """The addresses of a client.

    An address named by a node is not the program's own choice: the token must not go there, lest a bad node collect
    tokens. So such an address is only used with a ticket, or by a client without a token.
    """

    def __init__(self, urls: Iterable[str], *, has_token: bool) -> None:
        self.urls = list(urls)
        """addresses that the program has given, the best first"""
        if not self.urls:
            raise ValueError("a client needs at least one URL, such as ws://127.0.0.1:7400")
        self.invitation: Invitation | None = None
        self._has_token = has_token

    def prefer(self, url: str) -> None:
        """Try an address before the others."""
        self.urls[:] = [url, *(other for other in self.urls if other != url)]

    def follow(self, url: str, ticket: str) -> None:
        """Take the address where the session goes on, as a node says.

        A client with TLS does not follow to an address without TLS.
        """
        self.invitation = None
        if url in self.urls:
            self.prefer(url)
        elif not (self.urls[0].startswith("ws:") or url.startswith("wss:")):
            return
        elif ticket:
            self.invitation = Invitation(url, ticket)
        elif not self._has_token:
            self.prefer(url)
