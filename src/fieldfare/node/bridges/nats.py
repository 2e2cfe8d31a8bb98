"""The NATS bridge: messages of JetStream come in as events, and events go out as messages.

    [[bridge]]
    kind = "nats"
    name = "plant"
    url = "nats://127.0.0.1:4222"
    in = [{ subject = "sensors.*.temperature", fields = { room = 1 }, type = "temperature" }]
    out = [{ filter = "type = 'alarm' AND level > 3", subject = "alarms.{room}" }]

**In.** The node stores the stream sequence of a message as the number of the event, so a message is published once,
whichever side crashes. The bridge reads a stream from there on, in order and without acknowledgements: NATS remembers
nothing for the bridge. So the stream must keep messages by limits; a stream with another retention would drop messages
while the bridge is away, and is refused.

**Out.** An event is acknowledged to the node after JetStream has stored the message. `Nats-Msg-Id` stays the same in
a second attempt, which JetStream drops within the window of the stream (2 minutes).

**Loops.** A message has the identity of the sending bridge, which does not read the message.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, MaxPayloadError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, PubAck, RetentionPolicy
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from fieldfare.filters import EVERYTHING, Filter
from fieldfare.filters.languages.python import field
from fieldfare.node.bridges import nats_settings
from fieldfare.node.bridges.interface import Batch, BridgeError, IncomingEvent, OutgoingEvent, Positions, Rejection
from fieldfare.node.bridges.nats_messages import BRIDGE, IncomingRule, Message, event_of, message_of
from fieldfare.node.bridges.nats_settings import Settings

_MOST: Final = 200
"""messages in one answer of JetStream"""
_WAIT: Final = 5.0
"""seconds after which JetStream is asked again; a consumer that nobody asks ends after a minute"""
SECONDS: Final = 30.0
"""wait for an answer"""
_TOO_LARGE: Final = 10054
"""error code of JetStream for a message that the stream would never take"""


def make(identity: str, table: Mapping[str, Any]) -> NatsBridge:
    """Return a bridge from its table; ConfigError if a setting is wrong."""
    return NatsBridge(identity, *nats_settings.read(table))


class NatsBridge:
    """The bridge to one NATS system; each rule of `out` has its parsed filter in `rules`."""

    def __init__(self, identity: str, given: Settings, filters: Sequence[Filter]) -> None:
        self.identity, self.settings = identity, given
        self.rules = tuple(zip(given.outgoing, filters, strict=True))

    @property
    def subscription(self) -> Filter | None:
        """The union of the filters in `out`."""
        return reduce(or_, (filter for _, filter in self.rules)) if self.rules else None

    @property
    def advertisement(self) -> Filter | None:
        """The types in the rules of `in`; everything if a rule sets no type."""
        types = [rule.type for rule in self.settings.incoming]
        if not types:
            return None
        return reduce(or_, (field.type == type for type in types)) if all(types) else EVERYTHING

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[NatsConnection]:
        """Connect once: the runner connects again, from the positions of the node."""
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def closed() -> None:
            if not lost.done():
                lost.set_result(None)

        try:
            client = await nats.connect(
                **nats_settings.client(self.settings), name=self.identity, allow_reconnect=False,
                connect_timeout=10, closed_cb=closed, disconnected_cb=closed, error_cb=_ignore,
            )  # fmt: skip
        except (Error, OSError, TimeoutError) as error:
            raise BridgeError(f"{self.settings.url}: {str(error) or type(error).__name__}") from None
        try:
            yield NatsConnection(self, client, lost)
        finally:
            with contextlib.suppress(Error, OSError):
                await client.close()


class NatsConnection:
    """An open connection to a NATS system."""

    def __init__(self, bridge: NatsBridge, client: Client, lost: asyncio.Future[None]) -> None:
        self._bridge, self._client, self._lost = bridge, client, lost
        self._streams: JetStreamContext = client.jetstream(timeout=SECONDS)

    async def incoming_from(self, position: Positions) -> AsyncIterator[Batch]:
        """Yield messages by all rules, from the position of each rule on."""
        rules = self._bridge.settings.incoming
        readers = [await self._reader(rules, place, position) for place in range(len(rules))]
        for one in readers:
            if one.gone:
                yield Batch([Rejection(one.gone)], _nothing)
        pending = {asyncio.create_task(one.read()): one for one in readers}
        try:
            while True:
                waited: list[asyncio.Future[Any]] = [*pending, self._lost]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in pending if task.done()]:
                    one = pending.pop(task)
                    if messages := one.arrived(task.result(), self._bridge.identity):
                        yield Batch(messages, _nothing, one.source)
                    pending[asyncio.create_task(one.read())] = one
                if self._lost.done():
                    raise BridgeError("NATS closed the connection")
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _reader(self, rules: Sequence[IncomingRule], place: int, position: Positions) -> _Reader:
        """Return a reader for the messages after the last message in the node."""
        subject = rules[place].subject
        with _told(f"the stream of {subject}"):
            name = await self._streams.find_stream_name_by_subject(subject)
            about = await self._streams.stream_info(name)
        if about.config.retention not in (None, RetentionPolicy.LIMITS):
            raise BridgeError(
                f"the stream {name} drops messages that its consumers have acknowledged, and the bridge is none while"
                " it is away: read a stream with the retention `limits`"
            )
        # A stream that is deleted and made again counts anew, and other rules read other messages.
        begun = int(about.created.timestamp() * 1e6) if about.created is not None else 0
        source = f"{name}/{begun:x}/{zlib.crc32(subject.encode()):08x}"
        known, state = await position(source), about.state
        if known > state.last_seq:
            raise BridgeError(
                f"the stream {name} ends at {state.last_seq}, and the node has read up to {known}: NATS has lost"
                " messages. Give the bridge another name to read the stream anew"
            )
        gone = 0 < known < state.first_seq - 1
        new = rules[place].start == "new" and not known
        config = ConsumerConfig(
            filter_subject=subject,
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=(state.last_seq if new else known) + 1,
            inactive_threshold=60.0,
        )
        with _told(f"the stream {name}"):
            reading = await self._streams.pull_subscribe(subject, stream=name, config=config)
        remark = f"the stream {name} has dropped messages up to {state.first_seq - 1} that may not have been read"
        return _Reader(rules, place, source, reading, remark if gone else "")

    async def outgoing(self, events: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        """Publish events in order, and wait until JetStream has stored the last."""
        rejections: list[Rejection] = []
        stored: list[tuple[str, asyncio.Future[PubAck]]] = []
        for one in events:
            for number, (rule, filter) in enumerate(self._bridge.rules):
                if not filter.matches(one.event):
                    continue
                made = message_of(rule, one, self._bridge.identity, number)
                if isinstance(made, Rejection):
                    rejections.append(made)
                    continue
                try:
                    with _told(f"a message to {made.subject}"):
                        future = await self._streams.publish_async(
                            made.subject, made.payload, headers=dict(made.headers)
                        )
                    stored.append((made.subject, future))
                except MaxPayloadError:
                    rejections.append(Rejection(f"a message to {made.subject} is larger than NATS takes"))
        for subject, future in stored:
            with _told(f"a message to {subject}"):
                try:
                    await asyncio.wait_for(future, SECONDS)
                except APIError as error:
                    if error.err_code != _TOO_LARGE:
                        raise
                    rejections.append(Rejection(f"a message to {subject} is larger than its stream takes"))
        return rejections


class _Reader:
    """The messages of a rule, in the order of the stream."""

    def __init__(
        self,
        rules: Sequence[IncomingRule],
        place: int,
        source: str,
        reading: JetStreamContext.PullSubscription,
        gone: str,
    ) -> None:
        self._rules, self._place, self._reading = rules, place, reading
        self._count = 0
        self.source, self.gone = source, gone

    async def read(self) -> list[Msg]:
        """Return new messages, or an empty list after a while."""
        with _told(f"the messages of {self._rules[self._place].subject}"):
            try:
                return await self._reading.fetch(_MOST, timeout=_WAIT)
            except NatsTimeoutError:
                return []

    def arrived(self, found: Sequence[Msg], identity: str) -> list[IncomingEvent | Rejection]:
        """Return the events in messages, except messages of this bridge or of an earlier rule."""
        events: list[IncomingEvent | Rejection] = []
        for one in found:
            place = one.metadata.sequence
            self._count += 1
            if place.consumer != self._count:
                raise BridgeError("a message is missing: the bridge reads again from its position")
            headers = tuple((one.headers or {}).items())
            if (BRIDGE, identity) in headers or any(rule.takes(one.subject) for rule in self._rules[: self._place]):
                continue
            message = Message(one.subject, one.data, headers, place.stream)
            events.append(event_of(self._rules[self._place], message))
        return events


@contextlib.contextmanager
def _told(about: str) -> Iterator[None]:
    """Turn errors of NATS into BridgeErrors about a stream or message."""
    try:
        yield
    except MaxPayloadError:
        raise
    except NotFoundError:
        raise BridgeError(f"{about}: there is none in JetStream") from None
    except NoStreamResponseError:
        raise BridgeError(f"{about}: no stream takes it") from None
    except (Error, OSError, TimeoutError) as error:
        raise BridgeError(f"{about}: {str(error) or type(error).__name__}") from None


async def _nothing() -> None:
    """Acknowledge nothing: the node remembers the position."""


async def _ignore(error: Exception) -> None:
    """Leave an error to the failing call."""
