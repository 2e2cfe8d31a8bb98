"""Addresses of sinks: the check for public addresses, and connections to checked addresses only.

A host name can lead to another address from one moment to the next (*DNS rebinding*). So each connection resolves the
name once, checks all addresses, and connects to a checked one; TLS and `Host` still have the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import httpcore

NEXT: Final = 2.0
"""seconds in which an address must answer, before the attempt with the next address"""
_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NOT_PUBLIC: Final = [
    ip_network(text)
    for text in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24",
        "2001::/23",  # Teredo, ORCHID, benchmarks: addresses that stand for others
        "2002::/16",  # 6to4
        "3fff::/20",
    )
]  # fmt: skip
"""networks that `ipaddress` counts as global, in some versions of Python or in all: they lead elsewhere, or nowhere"""


class SinkError(ValueError):
    """A sink that the node must not call."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Tell whether an address belongs to the Internet, also inside an IPv6 address that wraps an IPv4 one.

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
    """Return the addresses of a host; SinkError if there are none, or with `public` if any address is not public."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SinkError(f"the sink's host {host} is not known: {error}") from None
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    for text in addresses if public else ():
        if not is_public(ip_address(text.partition("%")[0])):
            raise SinkError(
                f"the sink's host {host} is not public ({text}): only administrators of this node may use such sinks"
            )
    return addresses


class Backend(httpcore.AsyncNetworkBackend):
    """The network backend of the HTTP clients for sinks, with the check of addresses; `public`: public ones only."""

    def __init__(self, *, public: bool) -> None:
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
        """Connect to the first address of a host that answers."""
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
        """Raise SinkError: a sink is never a file."""
        raise SinkError("a sink cannot be a socket in the file system")

    async def sleep(self, seconds: float) -> None:
        """Wait some seconds; httpcore calls this between its own attempts."""
        await asyncio.sleep(seconds)
