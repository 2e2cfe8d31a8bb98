"""Addresses of sinks: which are public, and connecting to just those that were looked at.

A name can lead elsewhere from one moment to the next. So a name is resolved once for each connection, all its addresses
are checked, and one of them is connected to; TLS and `Host` still have the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import httpcore

NEXT: Final = 2.0
"""seconds in which an address must answer, before the next one is tried"""
_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NOT_PUBLIC: Final = [
    ip_network(text)
    for text in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24",
        "2001::/23",  # Teredo, ORCHID, benchmarks: none of them is a place of its own
        "2002::/16",  # 6to4
        "3fff::/20",
    )
]  # fmt: skip
"""that `ipaddress` takes for global, in some versions of Python or in all: they lead to others, or nowhere"""


class SinkError(ValueError):
    """A sink that is not to be used."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Is it an address of the Internet, whatever it is wrapped in?

    >>> [is_public(ip_address(text)) for text in ("8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::1111")]
    [True, True, True]
    >>> [is_public(ip_address(text)) for text in ("10.0.0.1", "64:ff9b::10.0.0.1", "::ffff:10.0.0.1", "2002:a00:1::")]
    [False, False, False, False]
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _UNICAST:
            return False
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _NOT_PUBLIC if network.version == address.version)


async def resolved(host: str, port: int, *, public: bool) -> list[str]:
    """The addresses of a host; SinkError if there are none, or if they must be public and one is not."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SinkError(f"the sink's host {host} is not known: {error}") from None
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    for text in addresses if public else ():
        if not is_public(ip_address(text.partition("%")[0])):
            raise SinkError(
                f"the sink's host {host} is not public ({text}): only those who may administer this node use such"
            )
    return addresses


class Backend(httpcore.AsyncNetworkBackend):
    """Connections to sinks, for the pool of an HTTP client."""

    def __init__(self, *, public: bool) -> None:
        """`public`: to public addresses only."""
        self._public = public
        self._backend: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the addresses that a host has now, the first that answers."""
        last: Exception = SinkError(f"the sink's host {host} has no address")
        found = await resolved(host, port, public=self._public)
        for place, address in enumerate(found, 1):
            seconds = timeout if place == len(found) else NEXT
            try:
                return await self._backend.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last

    async def connect_unix_socket(self, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        """No sink is a file."""
        raise SinkError("a sink is no socket in the file system")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
