"""Bridges join other messaging systems to a node, by `[[bridge]]` tables of its settings.

A table has a `kind`, perhaps a `name`, and the settings of that kind. A bridge of your own is little more than a page
(see `interface`), and may be in any package: `kind = "package.module:make"` names a function that gets the identity of
the bridge and its settings, and returns the bridge.
"""

from fieldfare.node.bridges.interface import (
    Batch,
    Bridge,
    BridgeConnection,
    BridgeError,
    IncomingEvent,
    LogConnection,
    OutgoingEvent,
    Positions,
    Rejection,
)
from fieldfare.node.bridges.registry import make_all, settings, start
from fieldfare.node.bridges.runner import Runner, Status

__all__ = [
    "Batch",
    "Bridge",
    "BridgeConnection",
    "BridgeError",
    "IncomingEvent",
    "LogConnection",
    "OutgoingEvent",
    "Positions",
    "Rejection",
    "Runner",
    "Status",
    "make_all",
    "settings",
    "start",
]
