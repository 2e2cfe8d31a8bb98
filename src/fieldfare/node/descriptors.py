"""File descriptors: the limit of the process, and its shares, so that the log never lacks a descriptor.

Clients open as many connections as they like. If a connection got the last descriptor, the node could
not open the next segment of its log, and would stop. So a part is reserved for the node's own files and links.
"""

from __future__ import annotations

import resource
from typing import Final, NamedTuple

RESERVE: Final = 128
"""Descriptors reserved for files, the store, links and bridges."""
MOST: Final = 1 << 20
"""Largest limit that is requested, even where the system has none."""
SINKS: Final = 1000
"""Connections to sinks of webhooks, where there are enough descriptors."""


class Shares(NamedTuple):
    """Numbers of descriptors by purpose."""

    connections: int
    """Connections of clients and neighbours."""
    sinks: int
    """Connections to sinks of webhooks."""


def raise_limit() -> int:
    """Raise the soft limit of this process as far as the system allows; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return MOST if soft == resource.RLIM_INFINITY else soft


def share(descriptors: int) -> Shares:
    """Divide descriptors among the purposes.

    >>> share(1024), share(1 << 20)
    (Shares(connections=768, sinks=128), Shares(connections=1047448, sinks=1000))
    """
    sinks = min(SINKS, descriptors // 8)
    return Shares(max(1, descriptors - RESERVE - sinks), sinks)
