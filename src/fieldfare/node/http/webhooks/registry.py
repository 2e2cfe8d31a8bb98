"""`Webhooks`: the subscriptions of a node that have a sink.

Each has a durable session, `webhook:ID`, and one task that delivers (`delivery`). A webhook is a row of the node's
store. After a crash the last event may come twice, and none is lost.
"""

from __future__ import annotations

import asyncio
import hmac
import logging

import msgspec

from fieldfare.core.core import Core
from fieldfare.core.inputs import Attach, ChangeFilters, EndSession, StoreRow
from fieldfare.core.state import Session
from fieldfare.filters.filter import Filter
from fieldfare.node import replay
from fieldfare.node.context import Context
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.webhooks import sinks
from fieldfare.node.http.webhooks.delivery import Deliverer, Progress
from fieldfare.node.http.webhooks.description import SESSION, Description, Webhook
from fieldfare.node.http.webhooks.sender import Sender
from fieldfare.node.security import Principal
from fieldfare.node.security.quotas import check_new_session
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import Row

logger = logging.getLogger("fieldfare.node.http")


class Webhooks:
    """All webhooks of a node; stored webhooks begin to deliver at once."""

    def __init__(self, service: Context) -> None:
        self._node = service.node
        self._sender = Sender(service)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.all: dict[str, Webhook] = {}
        self.progress: dict[str, Progress] = {}
        self._deliverer = Deliverer(service, self._sender, self.all, self.progress, self._end_gone)
        for (id, *_), row in self._node.core.other_rows["webhook"].items():
            try:
                self._start(msgspec.convert(row, Webhook))
            except msgspec.ValidationError as error:
                logger.error("webhook %s: the row cannot be read, and waits for a version that can: %s", id, error)
        self._node.spawn(self._clean_up())

    @property
    def total(self) -> Progress:
        """The counters of all webhooks, ended ones included."""
        return self._deliverer.total

    async def _clean_up(self) -> None:
        """End sessions without a stored webhook, and close the connections when the node stops."""
        try:
            rows = {f"{SESSION}{id}" for id, *_ in self._node.core.other_rows["webhook"]}
            left = [name for name in self._node.core.sessions if name.startswith(SESSION) and name not in rows]
            for name in left:
                await self._node.submit(EndSession(name))
            await asyncio.Event().wait()
        finally:
            await self._sender.close()

    def session(self, hook: Webhook) -> Session | None:
        """Return the session of a webhook; None for the moment between an end and a new beginning."""
        return self._node.core.sessions.get(hook.session)

    async def add(
        self, id: str, description: Description, filter: Filter, *, principal: Principal, private: bool
    ) -> Webhook:
        """Begin a webhook, if its sink agrees; `private`: the sink may have an address that is not public."""
        node, owner = self._node, principal.name
        check_new_session(node, node.core, owner)
        hook = Webhook(
            id=id, owner=owner, description=description, active=False, key=node.fresh_name() + node.fresh_name(),
            private=private, roles=principal.roles, token=principal.token, issued=principal.issued,
        )  # fmt: skip
        hook = await self._sender.agree(hook)
        await node.submit(Attach(hook.session, node.fresh_name(), owner=owner))
        try:
            if description.config.since is None:
                await node.submit(ChangeFilters(hook.session, m.Subscribe(id, filter)))
            else:
                await replay.subscribe(node, hook.session, id, filter, description.config.since)
            await self._store(hook)
        except ValueError:
            await node.submit(EndSession(hook.session))
            raise
        self._start(hook)
        return hook

    async def change(
        self, hook: Webhook, description: Description, filter: Filter, *, principal: Principal, private: bool
    ) -> Webhook:
        """Give a webhook another description; waiting events are still delivered."""
        before = hook.description
        elsewhere = (before.sink, before.config.deadlettersink) != (description.sink, description.config.deadlettersink)
        if description.sinkcredential is None and description.sink == before.sink:
            description = msgspec.structs.replace(description, sinkcredential=before.sinkcredential)
        new = msgspec.structs.replace(
            hook, description=description, private=private,
            roles=principal.roles, token=principal.token, issued=principal.issued,
        )  # fmt: skip
        if elsewhere or not hook.active or before.config.rate != description.config.rate:
            new = await self._sender.agree(new)
        self._check_alive(hook)

        def job(core: Core, now: float) -> None:
            core.presence.change_filters(m.Subscribe(hook.id, filter), hook.session, now)
            core.store_row(Row("webhook", (hook.id,), msgspec.to_builtins(new)))

        await self._node.submit(job)
        self._replace(new)
        return new

    async def confirm(self, id: str, key: str, rate: str) -> None:
        """Activate a webhook whose sink agrees by its callback; Problem 404 for a wrong key."""
        hook = self.all.get(id)
        if hook is None or not hmac.compare_digest(hook.key.encode(), key.encode(errors="replace")):
            raise Problem(404, "there is no such subscription, or the key is not that of its callback")
        asked = hook.description.config.rate
        new = msgspec.structs.replace(hook, active=True, rate=sinks.granted_rate(rate, asked))
        await self._store(new)
        self._replace(new)

    async def remove(self, hook: Webhook) -> None:
        """End a webhook, and drop its waiting events."""
        self._check_alive(hook)
        del self.all[hook.id]
        task = self._tasks.pop(hook.id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._delete(hook)

    async def _end_gone(self, hook: Webhook) -> None:
        """End a webhook from its own task, which so must not be cancelled."""
        self._tasks.pop(hook.id, None)
        self.all.pop(hook.id, None)
        await self._delete(hook)

    def _start(self, hook: Webhook) -> None:
        self.all[hook.id] = hook
        self.progress[hook.id] = Progress()
        self._tasks[hook.id] = self._node.spawn(self._deliverer.run(hook.id))

    def _check_alive(self, hook: Webhook) -> None:
        if hook.id not in self.all:
            raise Problem(404, f"there is no subscription {hook.id}")

    def _replace(self, hook: Webhook) -> None:
        if hook.id in self.all:
            self.all[hook.id] = hook
            self.progress[hook.id].free = 0.0
            self.progress[hook.id].changed.set()

    async def _store(self, hook: Webhook) -> None:
        row = Row("webhook", (hook.id,), msgspec.to_builtins(hook))
        await self._node.submit(StoreRow(row))

    async def _delete(self, hook: Webhook) -> None:
        self.progress.pop(hook.id, None)

        def job(core: Core, now: float) -> None:
            core.store_row(Row("webhook", (hook.id,)))
            if hook.session in core.sessions:
                core.sessions.end(hook.session, now)

        await self._node.submit(job)
