"""The client of a node: publish events, subscribe to events, and come back when the connection breaks."""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.client.client import Client, connect
    from fieldfare.client.receipt import Receipt
    from fieldfare.client.subscription import Subscription
    from fieldfare.client.sync import SyncClient, connect_sync

__all__ = ["Client", "Receipt", "Subscription", "SyncClient", "connect", "connect_sync"]
__getattr__ = lazy(
    __name__,
    {
        "client": (
            "Client",
            "connect",
        ),
        "receipt": ("Receipt",),
        "subscription": ("Subscription",),
        "sync": (
            "connect_sync",
            "SyncClient",
        ),
    },
)
