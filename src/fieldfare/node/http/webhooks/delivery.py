"""The delivery of events to sinks: one task for each webhook; an event is acknowledged when its sink has accepted it.

So events come in order, one at a time, as CloudEvents in binary mode. A failed attempt is repeated after delays that
double and are a little random, or after the time that the sink asks for by Retry-After; a sink that answers 410 Gone
ends its subscription. An event that a sink refuses, or does not accept after `maxattempts`, becomes a dead letter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fieldfare.core.inputs import Acknowledge
from fieldfare.core.state import RequestRefused
from fieldfare.node.context import Context
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.dead_letters import dead_letter
from fieldfare.node.http.webhooks.description import Webhook, filter_of
from fieldfare.node.http.webhooks.sender import Sender
from fieldfare.node.http.webhooks.sinks import Outcome
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.security import is_void
from fieldfare.node.security.rights import DEAD_LETTER, may_read

_RETRY_SECONDS: Final = 1.0
"""pause after a failure of the node itself, and while a token is void"""

logger = logging.getLogger("fieldfare.node.http")


class Progress:
    """The counters of a webhook since the start of the node, and the means to wake its task."""

    def __init__(self) -> None:
        self.delivered = 0
        self.retries = 0
        self.dead = 0
        self.problem = ""
        """of the last attempt; empty after a success"""
        self.changed = asyncio.Event()
        """ends a pause, because the description has changed"""
        self.free = 0.0
        """time from which on the rate of the sink allows a request"""


class _Gone(Exception):
    """The sink has answered 410 Gone."""


class Deliverer:
    """The tasks that deliver the events of webhooks."""

    def __init__(
        self,
        service: Context,
        sender: Sender,
        hooks: Mapping[str, Webhook],
        progress: Mapping[str, Progress],
        end: Callable[[Webhook], Awaitable[None]],
    ) -> None:
        """Deliver for `hooks`, which the registry changes at any time; `end` ends a webhook whose sink is gone."""
        self._service = service
        self._node = service.node
        self._sender = sender
        self._hooks = hooks
        self._progress = progress
        self._end = end
        self.total = Progress()
        """the counters of all webhooks, ended ones included"""

    async def run(self, id: str) -> None:
        """Deliver the events of a webhook, until the webhook ends."""
        while id in self._hooks:
            hook = self._hooks[id]
            try:
                async with InternalSession(self._node, hook.session, owner=hook.owner) as consumer:
                    await self._resubscribe(consumer, hook)
                    async for some in consumer.deliveries():
                        for delivered in some:
                            await self._deliver(id, delivered)
                            self._acknowledge(hook.session, delivered.number)
            except _Gone:
                logger.info("webhook %s: the sink is gone, and the webhook ends", id)
                await self._end(hook)
            except RequestRefused as error:
                logger.info("webhook %s: %s; next attempt in %g s", id, error, _RETRY_SECONDS)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:  # any error: the other webhooks and the next attempt must not suffer
                logger.exception("webhook %s: next attempt in %g s", id, _RETRY_SECONDS)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _resubscribe(self, consumer: InternalSession, hook: Webhook) -> None:
        """Subscribe again if an administrator has ended the session."""
        client = self._node.core.broker.clients.all.get(consumer.name)
        if client is None or hook.id not in client.subscriptions:
            await consumer.subscribe(hook.id, filter_of(hook.description))

    def _acknowledge(self, session: str, number: int) -> None:
        """Acknowledge an event without a wait: after a crash the sink gets the event twice at worst."""
        done = self._node.submit(Acknowledge(session, number))
        done.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _deliver(self, id: str, delivered: Delivered) -> None:
        """Deliver one event to the sink, or make a dead letter of the event."""
        progress = self._progress[id]
        attempts = 0
        while True:
            progress.changed.clear()
            hook = self._hooks[id]
            if not hook.active:
                await progress.changed.wait()
                continue
            principal = hook.principal(self._node.security)
            if is_void(principal.credential, self._node.security):
                progress.problem = "the token that the subscription was made with is void: events wait"
                await _pause(progress, _RETRY_SECONDS)
                continue
            readable = may_read(principal)
            if readable is not None and not readable(delivered.event):
                progress.problem = f"{hook.owner!r} may no longer read the event at position {delivered.position}"
                logger.warning("webhook %s: %s", id, progress.problem)
                return
            await self._wait_for_rate(hook, progress)
            if delivered.expires <= self._node.clock():  # the event has expired while the sink was away
                return
            attempts += 1
            outcome = await self._sender.send(hook, delivered)
            progress.problem = outcome.problem
            if outcome.delivered:
                progress.delivered += 1
                self.total.delivered += 1
                return
            if outcome.gone:
                raise _Gone
            if self._hooks.get(id) is not hook:
                attempts = 0  # another description: the attempts begin anew
                continue
            if not outcome.again or attempts >= hook.description.config.maxattempts:
                progress.dead += 1
                self.total.dead += 1
                await self._publish_letter(hook, delivered, outcome, attempts)
                return
            progress.retries += 1
            self.total.retries += 1
            await _pause(progress, outcome.delay(attempts, sinks.backoff_of(hook.description.config.backoff)))

    async def _wait_for_rate(self, hook: Webhook, progress: Progress) -> None:
        """Wait until the rate of the sink allows the next request."""
        now = asyncio.get_running_loop().time()
        if progress.free > now:
            await asyncio.sleep(progress.free - now)
        progress.free = max(progress.free, now) + 60 / hook.rate

    async def _publish_letter(self, hook: Webhook, delivered: Delivered, outcome: Outcome, attempts: int) -> None:
        logger.warning("webhook %s: position %d is a dead letter: %s", hook.id, delivered.position, outcome.problem)
        if delivered.event.type == DEAD_LETTER:
            return
        letter = dead_letter(
            hook, delivered, outcome.problem, attempts, id=self._node.fresh_name(), source=self._sender.source
        )
        try:
            await self._service.publish([letter])
        except RequestRefused as error:
            logger.error("webhook %s: a dead letter was refused: %s", hook.id, error)
        if hook.description.config.deadlettersink:
            sent = await self._sender.send_letter(hook, letter)
            if not sent.delivered:
                logger.error("webhook %s: the deadlettersink has not accepted a letter: %s", hook.id, sent.problem)


async def _pause(progress: Progress, seconds: float) -> None:
    """Wait some seconds, or until the description changes."""
    try:
        async with asyncio.timeout(seconds):
            await progress.changed.wait()
    except TimeoutError:
        return
