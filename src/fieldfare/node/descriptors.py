"""File descriptors: how many a process may have, and how they are shared out, so that the log never lacks one.

Connections come from outside, as many as somebody likes to open. Were they given the last descriptor, the node could
not open the next segment of its log, and would stop. So a part is kept back for the node's own files and links.
"""

from __future__ import annotations

import resource
from typing import Final, NamedTuple

RESERVE: Final = 128
"""for files, the store, links, bridges"""
MOST: Final = 1 << 20
"""more are not asked for, even where there is no limit"""
SINKS: Final = 1000
"""connections to sinks of webhooks, where there are descriptors enough"""


class Shares(NamedTuple):
    """How many descriptors each purpose gets."""

    connections: int
    """from outside"""
    sinks: int
    """to the sinks of webhooks"""


def raise_limit() -> int:
    """Let this process have as many descriptors as the system allows; says how many."""
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
    """Share descriptors out.

    >>> share(1024), share(1 << 20)
    (Shares(connections=768, sinks=128), Shares(connections=1047448, sinks=1000))
    """
    sinks = min(SINKS, descriptors // 8)
    return Shares(max(1, descriptors - RESERVE - sinks), sinks)
