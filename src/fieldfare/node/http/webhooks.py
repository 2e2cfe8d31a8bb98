"""`Webhooks`: the subscriptions whose events this node brings to a URL, and the tasks that do so.

Each has a durable session, `webhook:ID`, and one task: so events come in order, one at a time, as CloudEvents in binary
mode, and an event is acknowledged when its sink has taken it. What fails is tried again, after pauses that double and
are a little random, or as long as the sink says by Retry-After; a sink that says 410 Gone ends its subscription. What a
sink refuses, or does not take after `maxattempts`, is a *dead letter*: an event of the type `fieldfare.deadletter` is
published that has the event and the reason inside. A dead letter that fails itself makes no other.

A description is a row of the node's store. After a crash the last event may come twice, and none is lost.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.python import field
from fieldfare.filters.languages.subscriptions import documents
from fieldfare.node import descriptors, replay
from fieldfare.node.context import Context
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.http import binding, sinks
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.sinks import Outcome
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.security import EVERYBODY, Principal, Security, is_void, with_roles
from fieldfare.node.security.quotas import check_new_session
from fieldfare.node.security.rights import DEAD_LETTER, may_read
from fieldfare.node.state import RequestRefused, Session
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import Row

SESSION: Final = "webhook:"
"""how the names of their sessions begin"""
RATE: Final = 60_000
"""requests a minute that a sink is asked for, unless its subscription says otherwise"""
LETTER_ATTEMPTS: Final = 3
"""times that a dead letter is sent to a `deadlettersink`"""
_AGAIN: Final = 1.0

logger = logging.getLogger("fieldfare.node.http")


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a subscription; what it does not know is a mistake."""


class Settings(_Part, frozen=True):
    """How events are delivered: the `config` of a subscription."""

    maxattempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """then an event is a dead letter"""
    backoff: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 1.0
    """seconds before the second attempt; before each further one twice as many, up to a minute"""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0
    """seconds that a sink has for its answer"""
    rate: Annotated[int, msgspec.Meta(ge=1, le=RATE)] = RATE
    """requests a minute to ask the sink for"""
    validation: Literal["options", "callback"] = "options"
    """`callback`: the sink may agree later, by calling the URL in WebHook-Request-Callback; until then events wait"""
    deadlettersink: str = ""
    """where dead letters are sent, too"""
    since: int | float | str | None = None
    """events that happened already too: from a position, or a time (seconds, or RFC 3339); only when it is made"""


class ProtocolSettings(_Part, frozen=True):
    """How HTTP is spoken."""

    headers: dict[str, str] = {}
    method: Literal["POST", "PUT", "PATCH"] = "POST"


class Credential(_Part, frozen=True):
    """What a sink wants to see. It is never shown; in the node's folder it is kept as it is."""

    credentialtype: Literal["PLAIN", "ACCESSTOKEN"]
    identifier: str = ""
    secret: str = ""
    accesstoken: str = ""
    accesstokentype: str = "Bearer"
    accesstokenexpiresutc: str = ""


Filters: TypeAlias = Annotated[
    list[Any],
    msgspec.Meta(
        description="Objects with one of exact, prefix, suffix, all, any, not, sql (CESQL, whose numbers are integers),"
        " and fieldfare (a filter in the native language, over all fields). All of them must match.",
        examples=[[{"prefix": {"source": "/tills/"}}, {"fieldfare": "data.sum >= 2.5"}]],
    ),
]


class Wanted(_Part, frozen=True):
    """What a subscriber asks for."""

    sink: str
    protocol: Literal["HTTP"]
    source: str | None = None
    types: list[str] | None = None
    filters: Filters | None = None
    config: Settings = Settings()
    protocolsettings: ProtocolSettings = ProtocolSettings()
    sinkcredential: Credential | None = None


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription, as it is kept."""

    id: str
    owner: str
    wanted: Wanted
    active: bool
    """has the sink agreed?"""
    rate: int = RATE
    """requests a minute that the sink takes"""
    key: str = ""
    """that a callback must have"""
    private: bool = False
    """may the sink have an address that is not public?"""
    roles: tuple[str, ...] | None = None
    """of whoever asked for it last; None: an earlier version has not noted them, and nobody can ask again"""
    token: str = ""
    """the id of the token that they came with, and when it was issued: if it becomes void, events wait"""
    issued: float | None = None

    def principal(self, security: Security | None) -> Principal:
        """What they may do now."""
        if self.roles is None or security is None:
            return EVERYBODY
        return with_roles(self.owner, self.roles, security)._replace(token=self.token, issued=self.issued)

    @property
    def session(self) -> str:
        """The name of its session."""
        return SESSION + self.id


class Progress:
    """How far a subscription has come since the node started."""

    def __init__(self) -> None:
        """Nothing happened yet."""
        self.delivered = 0
        self.retries = 0
        self.dead = 0
        self.problem = ""
        """of the last attempt; empty: it went well"""
        self.changed = asyncio.Event()
        """ends a pause, since the subscription is another one now"""
        self.free = 0.0
        """when the sink may be called again"""


class _Gone(Exception):
    """The sink wants no more."""


def filter_of(wanted: Wanted) -> Filter:
    """What a subscription asks for, `source` and `types` included."""
    filter = documents.parse(list(wanted.filters or []))
    # These two are strings by their nature, so plain comparisons do: a permission `type = 'sale'` covers them.
    if wanted.source is not None:
        filter &= field.source == wanted.source
    if wanted.types:
        filter &= field.type.isin(wanted.types)
    if filter.is_empty:
        raise FilterDocumentError("/filters", "nothing can match: they contradict source or types")
    return filter


class Webhooks:
    """All subscriptions of a node that have a sink."""

    def __init__(self, service: Context) -> None:
        """Go on with those that were kept."""
        self._service = service
        self._node = service.node
        most = descriptors.share(descriptors.raise_limit()).sinks // 2
        self._clients = {public: sinks.make_client(public=public, connections=most) for public in (False, True)}
        """by whether they speak to public addresses only"""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.all: dict[str, Webhook] = {}
        self.progress: dict[str, Progress] = {}
        self.total = Progress()
        """of all, those that have ended included"""
        self.source = f"/fieldfare/{quote(service.node.name, safe='')}"
        for (id, *_), row in self._node.rows("webhook").items():
            try:
                self._start(msgspec.convert(row, Webhook))
            except msgspec.ValidationError as error:
                logger.error("the webhook %s cannot be read, and waits for a version that can: %s", id, error)
        self._node.spawn(self._look_after())

    @property
    def origin(self) -> str:
        """How this node calls itself when it asks a sink."""
        return urlsplit(self._service.hood.url).hostname or self._node.name

    async def _look_after(self) -> None:
        """End sessions whose webhook was not kept; when the node stops, hang up."""
        try:
            rows = {f"{SESSION}{id}" for id, *_ in self._node.rows("webhook")}
            left = [name for name in self._node.broker.sessions if name.startswith(SESSION) and name not in rows]
            for name in left:
                await self._node.submit(lambda broker, now, name=name: broker.sessions.end(name, now))  # type: ignore[misc]
            await asyncio.Event().wait()
        finally:
            await asyncio.gather(*(client.aclose() for client in self._clients.values()))

    def session(self, hook: Webhook) -> Session | None:
        """The session of a webhook; there is one, but for a moment."""
        return self._node.broker.sessions.get(hook.session)

    # Coming, changing and going

    async def add(self, id: str, wanted: Wanted, filter: Filter, *, principal: Principal, private: bool) -> Webhook:
        """Begin a subscription, if its sink agrees."""
        node, owner = self._node, principal.name
        check_new_session(node, node.broker, owner)
        hook = Webhook(
            id=id, owner=owner, wanted=wanted, active=False, key=node.fresh_name() + node.fresh_name(), private=private,
            roles=principal.roles, token=principal.token, issued=principal.issued,
        )  # fmt: skip
        hook = await self._agreed(hook)
        await node.submit(lambda broker, now: broker.sessions.attach(hook.session, node.fresh_name(), now, owner=owner))
        try:
            if wanted.config.since is None:
                await node.submit(
                    lambda broker, now: broker.sessions.change_filters(m.Subscribe(id, filter), hook.session, now)
                )
            else:
                await replay.subscribe(node, hook.session, id, filter, wanted.config.since)
            await self._keep(hook)
        except ValueError:
            await node.submit(lambda broker, now: broker.sessions.end(hook.session, now))
            raise
        self._start(hook)
        return hook

    async def change(
        self, hook: Webhook, wanted: Wanted, filter: Filter, *, principal: Principal, private: bool
    ) -> Webhook:
        """Let a subscription be another one; what waits for it still comes."""
        before = hook.wanted
        elsewhere = (before.sink, before.config.deadlettersink) != (wanted.sink, wanted.config.deadlettersink)
        if wanted.sinkcredential is None and wanted.sink == before.sink:
            wanted = msgspec.structs.replace(wanted, sinkcredential=before.sinkcredential)
        new = msgspec.structs.replace(
            hook, wanted=wanted, private=private,
            roles=principal.roles, token=principal.token, issued=principal.issued,
        )  # fmt: skip
        if elsewhere or not hook.active or before.config.rate != wanted.config.rate:
            new = await self._agreed(new)
        self._still(hook)

        def job(broker: DurableBroker, now: float) -> None:
            broker.sessions.change_filters(m.Subscribe(hook.id, filter), hook.session, now)
            self._node.store_row(Row("webhook", (hook.id,), msgspec.to_builtins(new)))

        await self._node.submit(job)
        self._replace(new)
        return new

    async def confirm(self, id: str, key: str, rate: str) -> None:
        """A sink agrees by its callback."""
        hook = self.all.get(id)
        if hook is None or not hmac.compare_digest(hook.key.encode(), key.encode(errors="replace")):
            raise Problem(404, "there is no such subscription, or the key is not that of its callback")
        asked = hook.wanted.config.rate
        new = msgspec.structs.replace(hook, active=True, rate=sinks.granted_rate(rate, asked))
        await self._keep(new)
        self._replace(new)

    async def remove(self, hook: Webhook) -> None:
        """End a subscription, with all that waits for it."""
        self._still(hook)
        del self.all[hook.id]
        task = self._tasks.pop(hook.id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._forget(hook)

    def _still(self, hook: Webhook) -> None:
        if hook.id not in self.all:
            raise Problem(404, f"there is no subscription {hook.id}")

    def _replace(self, hook: Webhook) -> None:
        if hook.id in self.all:
            self.all[hook.id] = hook
            self.progress[hook.id].free = 0.0
            self.progress[hook.id].changed.set()

    async def _keep(self, hook: Webhook) -> None:
        row = Row("webhook", (hook.id,), msgspec.to_builtins(hook))
        await self._node.submit(lambda _, __: self._node.store_row(row))

    async def _forget(self, hook: Webhook) -> None:
        self.progress.pop(hook.id, None)

        def job(broker: DurableBroker, now: float) -> None:
            self._node.store_row(Row("webhook", (hook.id,)))
            if hook.session in broker.sessions:
                broker.sessions.end(hook.session, now)

        await self._node.submit(job)

    async def _agreed(self, hook: Webhook) -> Webhook:
        """The subscription as its sinks allow it."""
        wanted = hook.wanted
        targets = [sink for sink in (wanted.sink, wanted.config.deadlettersink) if sink]
        callback = f"{self._base}/subscriptions/{hook.id}/confirm?key={hook.key}"
        for sink in targets:
            sinks.check_url(sink)
            if self._public(hook):
                await sinks.check_public(sink)
        rates: list[int | None] = []
        for sink in targets:
            later = callback if wanted.config.validation == "callback" and sink == wanted.sink else ""
            headers = headers_of(wanted) if sink == wanted.sink else {}
            rates.append(
                await sinks.agreed_rate(
                    self._client(hook), sink, self.origin, wanted.config.rate, headers, callback=later
                )
            )
        rate = rates[0]
        return msgspec.structs.replace(hook, active=rate is not None, rate=rate or wanted.config.rate)

    @property
    def _base(self) -> str:
        """Where this node speaks HTTP."""
        return "http" + self._service.hood.url.removeprefix("ws").rstrip("/")

    def _public(self, hook: Webhook) -> bool:
        """Must its sinks have public addresses?"""
        security = self._node.security
        return security is not None and not (hook.private and hook.principal(security).permissions.administer)

    def _client(self, hook: Webhook) -> httpx.AsyncClient:
        return self._clients[self._public(hook)]

    # Delivering

    def _start(self, hook: Webhook) -> None:
        self.all[hook.id] = hook
        self.progress[hook.id] = Progress()
        self._tasks[hook.id] = self._node.spawn(self._run(hook.id))

    async def _run(self, id: str) -> None:
        """Bring events to a sink, as long as there is the subscription."""
        while id in self.all:
            hook = self.all[id]
            try:
                async with InternalSession(self._node, hook.session, owner=hook.owner) as consumer:
                    await self._resubscribe(consumer, hook)
                    async for some in consumer.deliveries():
                        for delivered in some:
                            await self._bring(id, delivered)
                            self._acknowledge(hook.session, delivered.number)
            except _Gone:
                logger.info("webhook %s: its sink is gone, and so it ends", id)
                self._tasks.pop(id, None)
                self.all.pop(id, None)
                await self._forget(hook)
            except RequestRefused as error:
                logger.info("webhook %s: %s; again in a moment", id, error)
                await asyncio.sleep(_AGAIN)
            except Exception:  # whatever it is, the others' deliveries and the next try must not suffer
                logger.exception("webhook %s: again in a moment", id)
                await asyncio.sleep(_AGAIN)

    async def _resubscribe(self, consumer: InternalSession, hook: Webhook) -> None:
        """Should the session have been ended by somebody, begin anew."""
        client = self._node.broker.broker.clients.all.get(consumer.name)
        if client is None or hook.id not in client.subscriptions:
            await consumer.subscribe(hook.id, filter_of(hook.wanted))

    def _acknowledge(self, session: str, number: int) -> None:
        """It is done; nobody needs to wait until that is written."""
        done = self._node.submit(lambda broker, _: broker.deliveries.acknowledge(session, number))
        done.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _bring(self, id: str, delivered: Delivered) -> None:
        """Bring one event to the sink, or make a dead letter of it."""
        progress = self.progress[id]
        attempts = 0
        while True:
            progress.changed.clear()
            hook = self.all[id]
            if not hook.active:
                await progress.changed.wait()
                continue
            principal = hook.principal(self._node.security)
            if is_void(principal.credential, self._node.security):
                progress.problem = "the token that it was made with is void: events wait"
                await _pause(progress, _AGAIN)
                continue
            readable = may_read(principal)
            if readable is not None and not readable(delivered.event):
                progress.problem = f"{hook.owner!r} may not read all of it any more: position {delivered.position}"
                logger.warning("webhook %s: %s", id, progress.problem)
                return
            await self._turn(hook, progress)
            if delivered.expires <= self._node.clock():  # its time to live has ended while the sink was away
                return
            attempts += 1
            outcome = await self._send(hook, delivered)
            progress.problem = outcome.problem
            if outcome.delivered:
                progress.delivered += 1
                self.total.delivered += 1
                return
            if outcome.gone:
                raise _Gone
            if self.all.get(id) is not hook:
                attempts = 0  # it is another subscription now: begin anew
                continue
            if not outcome.again or attempts >= hook.wanted.config.maxattempts:
                progress.dead += 1
                self.total.dead += 1
                await self._bury(hook, delivered, outcome, attempts)
                return
            progress.retries += 1
            self.total.retries += 1
            await _pause(progress, outcome.delay(attempts, sinks.backoff_of(hook.wanted.config.backoff)))

    async def _turn(self, hook: Webhook, progress: Progress) -> None:
        """Wait until the sink may be called again: no more often than it allows."""
        now = asyncio.get_running_loop().time()
        if progress.free > now:
            await asyncio.sleep(progress.free - now)
        progress.free = max(progress.free, now) + 60 / hook.rate

    async def _send(self, hook: Webhook, delivered: Delivered) -> Outcome:
        wanted = hook.wanted
        message = binding.binary(delivered.event, self._node.event_id(delivered.position), self.source)
        headers = {**headers_of(wanted), "WebHook-Request-Origin": self.origin}
        method = wanted.protocolsettings.method
        return await sinks.send(
            self._client(hook), wanted.sink, message, headers, seconds=wanted.config.timeout, method=method
        )

    # Dead letters

    async def _bury(self, hook: Webhook, delivered: Delivered, outcome: Outcome, attempts: int) -> None:
        """Publish what could not be delivered, and why."""
        logger.warning("webhook %s: position %d is a dead letter: %s", hook.id, delivered.position, outcome.problem)
        if delivered.event.type == DEAD_LETTER:
            return
        letter = self.letter(hook, delivered, outcome.problem, attempts)
        try:
            await self._service.publish([letter])
        except RequestRefused as error:
            logger.error("webhook %s: a dead letter was refused: %s", hook.id, error)
        if hook.wanted.config.deadlettersink:
            await self._send_letter(hook, letter)

    def letter(self, hook: Webhook, delivered: Delivered, reason: str, attempts: int) -> Event:
        """An event about one that could not be delivered; that one is inside, unless both are too large together."""
        about: dict[str, object] = {
            "reason": reason,
            "attempts": attempts,
            "subscription": hook.id,
            "sink": sinks.masked(hook.wanted.sink),
            "position": delivered.position,
        }
        head = {
            "specversion": "1.0",
            "id": self._node.fresh_name(),
            "source": self.source,
            "type": DEAD_LETTER,
            "subject": hook.id,
            "datacontenttype": binding.PLAIN,
        }
        try:
            letter = Event({**head, "data": {**about, "event": dict(delivered.event.tree)}})
            msgpack.decode(msgpack.encode(letter))
        except EventError:
            return Event({**head, "data": about})
        return letter

    async def _send_letter(self, hook: Webhook, letter: Event) -> None:
        sink, seconds = hook.wanted.config.deadlettersink, hook.wanted.config.timeout
        message = binding.binary(letter, "", self.source)
        headers = {"WebHook-Request-Origin": self.origin}
        backoff = sinks.backoff_of(hook.wanted.config.backoff, LETTER_ATTEMPTS)
        outcome, _ = await sinks.deliver(self._client(hook), sink, message, headers, seconds=seconds, backoff=backoff)
        if not outcome.delivered:
            logger.error("webhook %s: the sink of dead letters did not take one: %s", hook.id, outcome.problem)


async def _pause(progress: Progress, seconds: float) -> None:
    """Wait, or until the subscription is another one."""
    try:
        async with asyncio.timeout(seconds):
            await progress.changed.wait()
    except TimeoutError:
        return


def headers_of(wanted: Wanted) -> Mapping[str, str]:
    """The headers that a sink wants to see."""
    headers = dict(wanted.protocolsettings.headers)
    match wanted.sinkcredential:
        case Credential(credentialtype="PLAIN", identifier=name, secret=password):
            headers["Authorization"] = sinks.basic(name, password)
        case Credential(accesstoken=token, accesstokentype=kind):
            headers["Authorization"] = f"{kind} {token}"
    return headers
