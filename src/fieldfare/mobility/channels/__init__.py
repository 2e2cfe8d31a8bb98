"""Event channels: a rendezvous for each type of events, access servers where clients and their sessions are.

Servers reach each other directly. *Resolution servers* host the channels (`resolution`), *access servers* have the
clients (`access`); together they are a *domain* (`domain`). How events get from one access server to another is the
domain's order: through their channel, in one order for all (`ordered`), or straight, in causal order (`causal`).
Domains are joined by gateways (`federation`).

This is the protocol of the literature, for the simulator. Running nodes have `core.channels`: the same order of all
events of a type, by a node that numbers them, over the links and sessions that nodes have anyway.
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.mobility.channels.access import AccessServer
    from fieldfare.mobility.channels.domain import Domain
    from fieldfare.mobility.channels.federation import Gateway
    from fieldfare.mobility.channels.resolution import ResolutionServer

__all__ = [
    "AccessServer",
    "Domain",
    "Gateway",
    "ResolutionServer",
]
__getattr__ = lazy(
    __name__,
    {
        "access": ("AccessServer",),
        "domain": ("Domain",),
        "federation": ("Gateway",),
        "resolution": ("ResolutionServer",),
    },
)
