"""Clients that move: handover of sessions, moving publishers, event channels, filters that depend on a place."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.mobility.broker import MobileBroker, Part
    from fieldfare.mobility.location import Location
    from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
    from fieldfare.mobility.path_update import CoveredUpdate, PathUpdate
    from fieldfare.mobility.ping_pong import PingPong
    from fieldfare.mobility.places import World
    from fieldfare.mobility.predictors import LastDirection, Markov
    from fieldfare.mobility.publishers import Publishers
    from fieldfare.mobility.relocation import Relocation
    from fieldfare.mobility.rendezvous_handover import RendezvousUpdate

__all__ = [
    "Acknowledge",
    "CoveredUpdate",
    "LastDirection",
    "Location",
    "Markov",
    "MobileBroker",
    "MoveIn",
    "MoveOut",
    "Part",
    "PathUpdate",
    "PingPong",
    "Publishers",
    "Relocation",
    "RendezvousUpdate",
    "World",
]
__getattr__ = lazy(
    __name__,
    {
        "broker": (
            "MobileBroker",
            "Part",
        ),
        "location": ("Location",),
        "messages": (
            "Acknowledge",
            "MoveIn",
            "MoveOut",
        ),
        "path_update": (
            "CoveredUpdate",
            "PathUpdate",
        ),
        "ping_pong": ("PingPong",),
        "places": ("World",),
        "predictors": (
            "LastDirection",
            "Markov",
        ),
        "publisher_policies": (),
        "publishers": ("Publishers",),
        "relocation": ("Relocation",),
        "rendezvous_handover": ("RendezvousUpdate",),
    },
)
