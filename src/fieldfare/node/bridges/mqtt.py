"""The MQTT 5 bridge: topics come in as events, and events go out to topics.

    [[bridge]]
    kind = "mqtt"
    name = "plant"
    url = "mqtt://127.0.0.1:1883"
    in = [{ topic = "sensors/+/temperature", fields = { room = 1 }, type = "temperature" }]
    out = [{ filter = "type = 'alarm' AND level > 3", topic = "alarms/{room}" }]

**In.** The MQTT broker knows the bridge by a fixed client id, and stores messages while the bridge is away. A message
of QoS 1 is acknowledged after the node has stored its event. QoS 2 would give less: there the MQTT broker forgets a
message before the bridge has done anything with the message. So the bridge subscribes with QoS 1, and the MQTT broker
lowers QoS 2 to QoS 1.

**Out.** An event is acknowledged to the node after the MQTT broker has acknowledged the message. A topic may contain
fields of the event.

**Loops.** The bridge subscribes with *no local*: its own messages do not come back. And an event that came in does not
go out again: see `runner`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final
from urllib.parse import urlsplit

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from fieldfare.filters import EVERYTHING, Filter
from fieldfare.filters.languages.python import field
from fieldfare.node.bridges import mqtt_settings
from fieldfare.node.bridges.interface import Batch, BridgeError, IncomingEvent, OutgoingEvent, Rejection
from fieldfare.node.bridges.mqtt_client import UNACKNOWLEDGED, Client, properties, read_message
from fieldfare.node.bridges.mqtt_messages import IncomingRule, Message, OutgoingRule, event_of, message_of
from fieldfare.node.bridges.mqtt_settings import PORTS, Settings

ACKNOWLEDGE_SECONDS: Final = 60.0
"""wait for the acknowledgements of the MQTT broker"""
HOPELESS: Final = frozenset({0x90, 0x95, 0x99})
"""reason codes that another attempt does not change: topic invalid, packet too large, payload of another format"""


def make(identity: str, table: Mapping[str, Any]) -> MqttBridge:
    """Return a bridge from its table; ConfigError if a setting is wrong."""
    return MqttBridge(*mqtt_settings.read(identity, table))


class MqttBridge:
    """The bridge to one MQTT broker; each rule of `out` has its parsed filter in `rules`."""

    def __init__(self, given: Settings, filters: Sequence[Filter]) -> None:
        self.settings = given
        self.rules = tuple(zip(given.outgoing, filters, strict=True))

    @property
    def subscription(self) -> Filter | None:
        """The union of the filters in `out`."""
        return reduce(or_, (filter for _, filter in self.rules)) if self.rules else None

    @property
    def advertisement(self) -> Filter | None:
        """The types that the rules of `in` set; everything if one rule sets no type."""
        types = [rule.type for rule in self.settings.incoming]
        if not types:
            return None
        return reduce(or_, (field.type == type for type in types)) if all(types) else EVERYTHING

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[MqttConnection]:
        """Connect with a durable session if there is `in`, and subscribe to the topics of its rules."""
        given = self.settings
        parts = urlsplit(given.url)
        said: Any = properties(PacketTypes.CONNECT)
        said.SessionExpiryInterval = given.session_seconds if given.incoming else 0
        said.ReceiveMaximum = UNACKNOWLEDGED
        client = Client(
            parts.hostname,
            parts.port or PORTS[parts.scheme],
            identifier=given.client_id,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=not given.incoming,
            username=given.username or None,
            password=given.password.reveal() or None,
            keepalive=given.keep_alive_seconds,
            properties=said,
            max_inflight_messages=UNACKNOWLEDGED,
            tls_context=self._tls() if parts.scheme == "mqtts" else None,
        )
        try:
            await client.enter()
            try:
                for rule in given.incoming:
                    await _subscribe(client, rule)
                yield MqttConnection(self, client)
            finally:
                await client.__aexit__(None, None, None)
        except aiomqtt.MqttError as error:
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise BridgeError(f"{given.url}: {error}{cause}") from None

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.settings.authorities or None)
        if self.settings.certificate:
            context.load_cert_chain(self.settings.certificate, self.settings.key)
        return context


async def _subscribe(client: Client, rule: IncomingRule) -> None:
    """Subscribe to the topic of a rule; BridgeError if the MQTT broker refuses."""
    said: Any = properties(PacketTypes.SUBSCRIBE)
    said.SubscriptionIdentifier = subscription_number(rule)
    shared = rule.topic.startswith("$share/")
    options = SubscribeOptions(
        qos=rule.qos,
        noLocal=not shared,  # MQTT forbids no local for shared subscriptions
        retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        if rule.retained
        else SubscribeOptions.RETAIN_DO_NOT_SEND,
    )
    answers = await client.subscribe(rule.topic, options=options, properties=said)
    for answer in answers:
        if isinstance(answer, ReasonCode) and answer.is_failure:
            raise BridgeError(f"the MQTT broker refuses a subscription to {rule.topic}: {answer}")


def subscription_number(rule: IncomingRule) -> int:
    """Return the number that tells overlapping subscriptions apart; a restart must not change it."""
    return zlib.crc32(rule.topic.encode()) % 268_435_455 + 1


class MqttConnection:
    """An open connection to an MQTT broker."""

    def __init__(self, bridge: MqttBridge, client: Client) -> None:
        self._bridge, self._client = bridge, client
        self._numbers = {subscription_number(rule) for rule in bridge.settings.incoming}

    async def incoming(self) -> AsyncIterator[Batch]:
        """Yield the messages that have arrived, all that wait at a time, up to `UNACKNOWLEDGED`."""
        waiting = self._client.messages
        async for message in waiting:
            messages = [message]
            while len(waiting) and len(messages) < UNACKNOWLEDGED:
                messages.append(await anext(waiting))

            async def done(messages: Sequence[aiomqtt.Message] = messages) -> None:
                self._client.acknowledge(messages)

            yield Batch([one for one in map(self._arrived, messages) if one is not None], done)

    def _arrived(self, message: aiomqtt.Message) -> IncomingEvent | Rejection | None:
        """Return the event by the first rule with a fitting topic; None if the same message comes by that rule, too."""
        rule = next((rule for rule in self._bridge.settings.incoming if message.topic.matches(rule.topic)), None)
        if rule is None:
            return Rejection(
                f"a message to {message.topic}, which no rule of `in` has: an earlier subscription of this client_id;"
                " another client_id begins without it"
            )
        # Where topics overlap, an MQTT broker may send a message once for each subscription, or once for all.
        numbers = set(getattr(message.properties, "SubscriptionIdentifier", ()))
        if subscription_number(rule) not in numbers and numbers & self._numbers:
            return None
        return event_of(rule, read_message(message))

    async def outgoing(self, events: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        """Publish events, and wait until the MQTT broker has acknowledged all of them."""
        rejections: list[Rejection] = []
        sent: list[tuple[str, asyncio.Future[ReasonCode | None]]] = []
        try:
            async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
                for rule, message in self._messages(events):
                    if isinstance(message, Rejection):
                        rejections.append(message)
                        continue
                    if len(sent) >= self._client.most:
                        await sent[-self._client.most][1]
                    sent.append((message.topic, self._client.send(message, rule)))
                answers = await asyncio.gather(*(future for _, future in sent))
        except TimeoutError:
            raise BridgeError(
                f"the MQTT broker has not acknowledged messages for {ACKNOWLEDGE_SECONDS:g} seconds"
            ) from None
        for (topic, _), answer in zip(sent, answers, strict=True):
            if answer is not None and answer.is_failure:
                if answer.value not in HOPELESS:
                    raise BridgeError(f"the MQTT broker refuses a message to {topic}: {answer}")
                rejections.append(Rejection(f"the MQTT broker refuses a message to {topic}: {answer}"))
        return rejections

    def _messages(self, events: Sequence[OutgoingEvent]) -> Iterator[tuple[OutgoingRule, Message | Rejection]]:
        now, largest = time.time(), self._client.largest
        for one in events:
            for rule, filter in self._bridge.rules:
                if filter.matches(one.event):
                    message = message_of(rule, one, now)
                    if isinstance(message, Message) and 0 < largest < _size(message):
                        message = Rejection(f"an event for {message.topic} is larger than {largest} bytes")
                    yield rule, message


def _size(message: Message) -> int:
    """Return an upper bound of the bytes of the packet."""
    texts = [
        message.topic,
        message.content_type,
        message.reply_to,
        *(text for pair in message.properties for text in pair),
    ]
    return len(message.payload) + len(message.correlation or b"") + sum(len(text.encode()) + 5 for text in texts) + 32
