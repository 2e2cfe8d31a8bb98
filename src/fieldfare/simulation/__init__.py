"""A network of brokers and clients in virtual time, with links, faults and a trace checker."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.simulation.checker import check
    from fieldfare.simulation.network import Network
    from fieldfare.simulation.scenario import Scenario

__all__ = ["Network", "Scenario", "check"]
__getattr__ = lazy(
    __name__,
    {
        "checker": ("check",),
        "network": ("Network",),
        "scenario": ("Scenario",),
    },
)
