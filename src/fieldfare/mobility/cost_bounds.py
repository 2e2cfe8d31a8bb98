"""Bounds on the cost of a handover: the number of updated brokers, without the old and the new broker.

A broker that gets several updates counts several times. Later withdrawals and the session itself do not count. A cost
of 0 comes from the covering optimisation: other clients at the new broker have covering subscriptions already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Protocol: TypeAlias = Literal["generic", "generic RP", "acyclic", "cyclic RP", "acyclic RP"]
Who: TypeAlias = Literal["subscriber", "publisher"]


class Terms(NamedTuple):
    """The parameters of the cost formulas."""

    brokers: int
    path: int = 0
    """number of brokers between the old and the new broker"""
    to_point: int = 0
    """number of links on the longest path to a rendezvous point"""
    points: int = 1
    """number of rendezvous points of the client"""
    resends: int = 0
    """number of repeated messages: none where brokers have addresses"""

    @property
    def others(self) -> int:
        """The number of brokers without the old and the new broker."""
        return self.brokers - 2


class Bounds(NamedTuple):
    """The lowest and the highest number of updated brokers."""

    lower: int
    upper: int


def bounds(protocol: Protocol, terms: Terms, *, who: Who = "subscriber", complete: bool = True) -> Bounds:
    """Return the bounds of a handover by a protocol, in a complete topology or in any topology.

    >>> bounds("generic", Terms(100)).upper, bounds("acyclic", Terms(100)).upper
    (588, 98)
    >>> bounds("acyclic RP", Terms(100, to_point=98), complete=False).upper
    196
    """
    if protocol in ("generic", "generic RP"):
        return _BOUNDS[protocol, "subscriber", True](terms)
    return _BOUNDS[protocol, who, complete](terms)


def _rendezvous(times: int) -> Callable[[Terms], Bounds]:
    return lambda t: Bounds(0, times * t.points * t.to_point)


def _tree_rendezvous(times: int) -> Callable[[Terms], Bounds]:
    return lambda t: Bounds(0, min(times * t.points * t.to_point, times * t.others))


_BOUNDS: Final[Mapping[tuple[Protocol, Who, bool], Callable[[Terms], Bounds]]] = {
    # Advertise pings and pongs to all, subscribe to them, and send them.
    ("generic", "subscriber", True): lambda t: Bounds(
        2 * t.others + 4 * t.path, 4 * t.others + (t.resends + 2) * t.others
    ),
    ("generic RP", "subscriber", True): lambda t: Bounds(
        2 * t.to_point + 4 * t.path, 2 * t.to_point + (t.resends + 4) * t.others
    ),
    ("acyclic", "subscriber", True): lambda t: Bounds(0, t.others),
    ("acyclic", "subscriber", False): lambda t: Bounds(t.path, (t.resends + 1) * t.others),
    ("acyclic", "publisher", True): lambda t: Bounds(0, 2 * t.others),
    ("acyclic", "publisher", False): lambda t: Bounds(2 * t.path, 2 * t.others),
    # Completeness is tested at the new broker, else also at the old broker; publishers wait for subscriptions, too.
    ("cyclic RP", "subscriber", True): _rendezvous(1),
    ("cyclic RP", "subscriber", False): _rendezvous(2),
    ("cyclic RP", "publisher", True): _rendezvous(2),
    ("cyclic RP", "publisher", False): _rendezvous(3),
    ("acyclic RP", "subscriber", True): _tree_rendezvous(1),
    ("acyclic RP", "subscriber", False): _tree_rendezvous(2),
    ("acyclic RP", "publisher", True): _tree_rendezvous(2),
    ("acyclic RP", "publisher", False): _tree_rendezvous(3),
}
