"""Addresses of nodes, and whether others can read the traffic."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

_PLAIN: Final = re.compile(r"(?:ws|http)://(?:[^/?#@]*@)?(?:\[([^\]]*)\]|([^/?#:]*))", re.IGNORECASE)
"""An address without TLS; the groups are the host."""


def is_exposed(url: str) -> bool:
    """Tell whether others on the way can read the traffic: an address without TLS, on another machine.

    >>> [is_exposed(url) for url in ("ws://10.0.0.7:7400", "WS://oslo", "ws://localhost@oslo:1", "ws://[2001:db8::1]/")]
    [True, True, True, True]
    >>> [is_exposed(url) for url in ("wss://oslo", "ws://127.0.0.1", "ws://[::1]:7400", "http://localhost:7400/a")]
    [False, False, False, False]
    """
    found = _PLAIN.match(url)
    return found is not None and not is_this_machine((found[1] or found[2] or "").lower())


def is_this_machine(host: str) -> bool:
    """Tell whether a host name or address is a loopback address.

    >>> is_this_machine("localhost"), is_this_machine("127.8.8.8"), is_this_machine("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
