"""`Sender`: the requests of a node to the sinks of its webhooks."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from fieldfare.events.event import Event
from fieldfare.node import descriptors
from fieldfare.node.context import Context
from fieldfare.node.http import binding
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.description import Webhook, headers_of
from fieldfare.node.http.webhooks.sinks import Outcome
from fieldfare.node.internal_session import Delivered

LETTER_ATTEMPTS: Final = 3
"""attempts to deliver a dead letter to a `deadlettersink`"""


class Sender:
    """The HTTP clients for sinks, with the names under which a node calls."""

    def __init__(self, service: Context) -> None:
        self._service = service
        most = descriptors.share(descriptors.raise_limit()).sinks // 2
        self._clients = {public: sinks.make_client(public=public, connections=most) for public in (False, True)}
        """by whether they connect to public addresses only"""
        self.source = f"/fieldfare/{quote(service.node.name, safe='')}"
        """`source` of the CloudEvents that the node makes"""

    @property
    def origin(self) -> str:
        """The name of this node in WebHook-Request-Origin."""
        return urlsplit(self._service.hood.url).hostname or self._service.node.name

    async def agree(self, hook: Webhook) -> Webhook:
        """Ask the sinks of a webhook for their agreement; return the webhook with the rate that its sink accepts."""
        description = hook.description
        targets = [sink for sink in (description.sink, description.config.deadlettersink) if sink]
        callback = f"{self._base}/subscriptions/{hook.id}/confirm?key={hook.key}"
        for sink in targets:
            sinks.check_url(sink)
            if self._public(hook):
                await sinks.check_public(sink)
        rates: list[int | None] = []
        for sink in targets:
            later = callback if description.config.validation == "callback" and sink == description.sink else ""
            headers = headers_of(description) if sink == description.sink else {}
            rates.append(
                await sinks.agreed_rate(
                    self._client(hook), sink, self.origin, description.config.rate, headers, callback=later
                )
            )
        rate = rates[0]
        return msgspec.structs.replace(hook, active=rate is not None, rate=rate or description.config.rate)

    async def send(self, hook: Webhook, delivered: Delivered) -> Outcome:
        """Send an event to the sink of a webhook, one attempt."""
        description = hook.description
        message = binding.binary(delivered.event, self._service.node.event_id(delivered.position), self.source)
        headers = {**headers_of(description), "WebHook-Request-Origin": self.origin}
        method = description.protocolsettings.method
        return await sinks.send(
            self._client(hook), description.sink, message, headers, seconds=description.config.timeout, method=method
        )

    async def send_letter(self, hook: Webhook, letter: Event) -> Outcome:
        """Send a dead letter to the `deadlettersink` of a webhook, in up to `LETTER_ATTEMPTS` attempts."""
        config = hook.description.config
        message = binding.binary(letter, "", self.source)
        headers = {"WebHook-Request-Origin": self.origin}
        backoff = sinks.backoff_of(config.backoff, LETTER_ATTEMPTS)
        outcome, _ = await sinks.deliver(
            self._client(hook), config.deadlettersink, message, headers, seconds=config.timeout, backoff=backoff
        )
        return outcome

    async def close(self) -> None:
        """Close all connections to sinks."""
        await asyncio.gather(*(client.aclose() for client in self._clients.values()))

    @property
    def _base(self) -> str:
        """The HTTP address of this node."""
        return "http" + self._service.hood.url.removeprefix("ws").rstrip("/")

    def _public(self, hook: Webhook) -> bool:
        """Tell whether the sinks of a webhook must have public addresses."""
        security = self._service.node.security
        return security is not None and not (hook.private and hook.principal(security).permissions.administer)

    def _client(self, hook: Webhook) -> httpx.AsyncClient:
        return self._clients[self._public(hook)]
