"""POST requests with events, as a node sends them: `node.http` defines attempts and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import httpx

from fieldfare.events import binary_mode
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.events.values import format_timestamp
from fieldfare.node.http import binding
from fieldfare.node.http.binding import Message
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.addresses import SinkError
from fieldfare.pipeline.sinks.formats import events
from fieldfare.pipeline.sinks.formats.webhooks import DeadLetter, WebhookDelivery, WebhookOptions


def post_all(deliveries: Iterable[WebhookDelivery], given: WebhookOptions) -> list[DeadLetter]:
    """Send events, those for the same URL one after the other; return the dead letters."""
    by_url: dict[str, list[WebhookDelivery]] = {}
    for one in deliveries:
        by_url.setdefault(one.url, []).append(one)
    return asyncio.run(_post_all(by_url.values(), given))


async def _post_all(groups: Iterable[Sequence[WebhookDelivery]], given: WebhookOptions) -> list[DeadLetter]:
    at_once = asyncio.Semaphore(given.concurrency)

    async def serve(client: httpx.AsyncClient, group: Sequence[WebhookDelivery]) -> list[DeadLetter]:
        async with at_once:
            answers = [await _post(client, one, given) for one in group]
            return [letter for letter in answers if letter is not None]

    async with sinks.make_client(public=False, connections=given.concurrency) as client:
        left = await asyncio.gather(*(serve(client, group) for group in groups))
    return [letter for letters in left for letter in letters]


async def _post(client: httpx.AsyncClient, one: WebhookDelivery, given: WebhookOptions) -> DeadLetter | None:
    """Send an event, with all attempts; return a dead letter if the event could not be delivered."""
    event = events.of_text(one.event)
    if isinstance(event, EventError):
        return _letter(one, f"it is no event: {event}", 0)
    try:
        sinks.check_url(one.url)
    except SinkError as error:
        return _letter(one, str(error), 0)
    message = message_of(event, one.id, given)
    headers = {"Authorization": given.authorization} if given.authorization else {}
    backoff = sinks.backoff_of(given.backoff, given.attempts)
    outcome, attempts = await sinks.deliver(client, one.url, message, headers, seconds=given.timeout, backoff=backoff)
    return None if outcome.delivered else _letter(one, outcome.problem, attempts)


def message_of(event: Event, id: str, given: WebhookOptions) -> Message:
    """Return the headers and the body of a request with an event."""
    if given.mode == "binary":
        return binding.binary(event, id, given.source)
    return Message({"content-type": binary_mode.STRUCTURED}, binary_mode.structured(event, id, given.source))


def _letter(one: WebhookDelivery, reason: str, attempts: int) -> DeadLetter:
    return DeadLetter(one.url, one.id, one.event, reason, attempts, format_timestamp(datetime.now(UTC)))
