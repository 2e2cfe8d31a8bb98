"""`PublisherPolicy`: how the advertisements of a publisher follow the publisher from broker to broker.

Subscriptions go towards overlapping advertisements, so a publisher has a tree of subscriptions with its broker as root.
When the publisher moves, the tree must follow:

| policy | on departure | on arrival |
|---|---|---|
| `STANDARD` | advertisements end | advertisements begin |
| `PREFETCHING` | they end, and begin at the predicted broker | nothing, if the prediction was right |
| `PROXY` | a few brokers advertise all the time; the others as STANDARD | nothing at a proxy; others graft |
| `DELAYED` | advertisements end after a while | they begin, and the new tree grafts onto the old tree |
| `PREFETCH_DELAYED` | they end later, and begin at the predicted broker | nothing, if the prediction was right |
| `SAFE` | they end when the new tree is complete | they begin; events wait until the new tree is complete |
"""

from __future__ import annotations

from typing import Final, NamedTuple


class PublisherPolicy(NamedTuple):
    """The rules by which advertisements follow a publisher."""

    name: str
    ahead: bool = False
    """advertise at the predicted broker as soon as the publisher leaves"""
    linger: float = 0.0
    """seconds for which advertisements outlive the departure"""
    proxies: bool = False
    """let some brokers advertise all the time"""
    holds: bool = False
    """hold events back until the advertisements are known everywhere"""


STANDARD: Final = PublisherPolicy("standard")
PREFETCHING: Final = PublisherPolicy("prefetching", ahead=True)
PROXY: Final = PublisherPolicy("proxy", proxies=True)
DELAYED: Final = PublisherPolicy("delayed", linger=10.0)
PREFETCH_DELAYED: Final = PublisherPolicy("prefetch-delayed", ahead=True, linger=10.0)
SAFE: Final = PublisherPolicy("safe", linger=3600.0, holds=True)
POLICIES: Final = {m.name: m for m in (STANDARD, PREFETCHING, PROXY, DELAYED, PREFETCH_DELAYED, SAFE)}
