"""One broker without I/O, a function of messages; and the strategies by which brokers route."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.routing.broker import Broker, Routed
    from fieldfare.routing.prefix.options import PrefixOptions
    from fieldfare.routing.publisher_policies import POLICIES, PublisherPolicy
    from fieldfare.routing.routes import LOCAL, ProtocolError, Routes
    from fieldfare.routing.strategies import (
        BOOK_MERGING,
        COVERING,
        FLOODING,
        IDENTITY,
        IMPERFECT,
        MERGING,
        PREFIX,
        RENDEZVOUS,
        SIMPLE,
        SOURCES,
        STRATEGIES,
        Strategy,
        by_name,
        cyclic,
        with_advertisements,
    )

__all__ = [
    "BOOK_MERGING",
    "COVERING",
    "FLOODING",
    "IDENTITY",
    "IMPERFECT",
    "LOCAL",
    "MERGING",
    "POLICIES",
    "PREFIX",
    "RENDEZVOUS",
    "SIMPLE",
    "SOURCES",
    "STRATEGIES",
    "Broker",
    "PrefixOptions",
    "ProtocolError",
    "PublisherPolicy",
    "Routed",
    "Routes",
    "Strategy",
    "by_name",
    "cyclic",
    "with_advertisements",
]
__getattr__ = lazy(
    __name__,
    {
        "broker": (
            "Broker",
            "Routed",
        ),
        "prefix.options": ("PrefixOptions",),
        "publisher_policies": (
            "POLICIES",
            "PublisherPolicy",
        ),
        "routes": (
            "LOCAL",
            "ProtocolError",
            "Routes",
        ),
        "strategies": (
            "BOOK_MERGING",
            "COVERING",
            "FLOODING",
            "IDENTITY",
            "IMPERFECT",
            "MERGING",
            "PREFIX",
            "RENDEZVOUS",
            "SIMPLE",
            "SOURCES",
            "STRATEGIES",
            "Strategy",
            "by_name",
            "cyclic",
            "with_advertisements",
        ),
    },
)
