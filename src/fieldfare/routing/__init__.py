"""One broker without I/O: messages in, messages out; and the strategies of routing."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.routing.broker import Broker
    from fieldfare.routing.routes import Routes
    from fieldfare.routing.strategies import STRATEGIES

__all__ = ["STRATEGIES", "Broker", "Routes"]
__getattr__ = lazy(
    __name__,
    {
        "broker": ("Broker",),
        "routes": ("Routes",),
        "strategies": ("STRATEGIES",),
    },
)
