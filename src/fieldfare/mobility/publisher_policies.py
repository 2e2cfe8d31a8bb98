"""`PublisherPolicy`: how what a publisher promises follows it from broker to broker.

Subscriptions go where something they overlap is promised, so a publisher has a tree of them, with its broker as root.
When it moves the tree must follow:

| policy | when it goes | when it comes |
|---|---|---|
| `STANDARD` | promises end | promises begin |
| `PREFETCHING` | they end, and begin at the broker where it is expected | nothing, if the guess was right |
| `PROXY` | a few brokers promise all the time; the others as STANDARD | nothing there; others graft onto their trees |
| `DELAYED` | promises end after a while | promises begin, and the new tree grafts onto the old one |
| `PREFETCH_DELAYED` | they end after a while, and begin where it is expected | nothing, if the guess was right |
| `SAFE` | they end when the new tree stands | promises begin; events wait until the new tree stands |
"""

from __future__ import annotations

from typing import Final, NamedTuple


class PublisherPolicy(NamedTuple):
    """How the promises of publishers follow them."""

    name: str
    ahead: bool = False
    """whether they begin where the publisher is expected as soon as it goes"""
    linger: float = 0.0
    """for how many seconds they outlive its going"""
    proxies: bool = False
    """whether some brokers promise all the time"""
    holds: bool = False
    """whether its events wait until they are heard everywhere"""


STANDARD: Final = PublisherPolicy("standard")
PREFETCHING: Final = PublisherPolicy("prefetching", ahead=True)
PROXY: Final = PublisherPolicy("proxy", proxies=True)
DELAYED: Final = PublisherPolicy("delayed", linger=10.0)
PREFETCH_DELAYED: Final = PublisherPolicy("prefetch-delayed", ahead=True, linger=10.0)
SAFE: Final = PublisherPolicy("safe", linger=3600.0, holds=True)
POLICIES: Final = {m.name: m for m in (STANDARD, PREFETCHING, PROXY, DELAYED, PREFETCH_DELAYED, SAFE)}
