"""Webhooks: subscriptions whose events this node delivers to a URL, the *sink*.

`description` has the form of a subscription, `registry` adds, changes and ends webhooks, `delivery` sends their events;
`sinks` and `addresses` speak HTTP to a sink, `masks` hides the secrets of a description.
"""

from fieldfare.node.http.webhooks.description import (
    SESSION,
    Credential,
    Description,
    Filters,
    ProtocolSettings,
    Settings,
    Webhook,
    filter_of,
)
from fieldfare.node.http.webhooks.registry import Webhooks

__all__ = [
    "SESSION",
    "Credential",
    "Description",
    "Filters",
    "ProtocolSettings",
    "Settings",
    "Webhook",
    "Webhooks",
    "filter_of",
]
