"""The MQTT 5 bridge: topics come in as events, and events go out to topics.

    [[bridge]]
    kind = "mqtt"
    name = "plant"
    url = "mqtt://127.0.0.1:1883"
    in = [{ topic = "sensors/+/temperature", fields = { room = 1 }, type = "temperature" }]
    out = [{ filter = "type = 'alarm' AND level > 3", topic = "alarms/{room}" }]

**In.** The broker knows us by a fixed client id, and keeps for us what comes while we are away. A message of QoS 1 is
acknowledged when its event is safe. (QoS 2 would be less: there the broker lets go of a message before we have done
anything with it. So we subscribe with QoS 1, to which the broker lowers it.)

**Out.** An event is done with when the broker has acknowledged it. A topic may have fields of the event in it.

**Loops.** We subscribe with *no local*: what we publish does not come back to us. And what came in does not go out
again: see `runner`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Final, cast
from urllib.parse import urlsplit

import aiomqtt
import msgspec
from paho.mqtt.client import MQTT_ERR_SUCCESS, ConnectFlags
from paho.mqtt.client import Client as Paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from fieldfare.filters import EVERYTHING, Filter, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.languages.python import field
from fieldfare.node.bridges.interface import Arrived, Batch, BridgeError, Leaving, Problem
from fieldfare.node.bridges.mqtt_messages import FIELD, In, Message, Out, arrived, leaving, sayable
from fieldfare.node.bridges.registry import settings
from fieldfare.node.config import ConfigError, Secret

UNACKNOWLEDGED: Final = 200
"""messages that may be on their way, either way, before the first is acknowledged"""
CARELESS: Final = 10_000
"""messages of QoS 0 that may wait for us; nobody promised that more would arrive"""
PATIENCE: Final = 60.0
"""seconds to wait until the broker has acknowledged what we sent"""
HOPELESS: Final = frozenset({0x90, 0x95, 0x99})
"""reasons that do not pass: the topic is invalid, the packet too large, the payload not what it says it is"""
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}


# Settings


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"incoming": "in", "outgoing": "out"}):
    """A table of the configuration."""

    url: str
    """mqtt:// or mqtts://"""
    incoming: tuple[In, ...] = ()
    outgoing: tuple[Out, ...] = ()
    client_id: str = ""
    """under which the broker knows us; made of the names of node and bridge if not given"""
    username: str = ""
    password: Secret = Secret("")
    password_variable: str = ""
    """the variable of the environment that holds it"""
    authorities: str = ""
    """a file in PEM: whom to trust; empty: whom the machine trusts"""
    certificate: str = ""
    key: str = ""
    session_seconds: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)] = 7 * 86400
    """how long the broker keeps messages for us while we are away"""
    keep_alive_seconds: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 30


def make(identity: str, table: Mapping[str, Any]) -> Mqtt:
    """A bridge; ConfigError if its settings are no good."""
    given = settings(table, Settings)
    _check_url(given.url)
    if not given.incoming and not given.outgoing:
        raise ConfigError("", "", "nothing comes in and nothing goes out: add `in = [...]` or `out = [...]`")
    for place, coming in enumerate(given.incoming):
        _check_in(coming, f"in[{place}]")
    if len({coming.topic for coming in given.incoming}) < len(given.incoming):
        raise ConfigError("", "in", "two have the same topic: a message comes in once, so write one of them")
    filters = [_check_out(going, f"out[{place}]") for place, going in enumerate(given.outgoing)]
    if given.password_variable:
        if given.password_variable not in os.environ:
            raise ConfigError("", "password_variable", f"there is no variable {given.password_variable}")
        given = msgspec.structs.replace(given, password=Secret(os.environ[given.password_variable]))
    if not given.password.is_empty and not given.username:
        raise ConfigError("", "username", "is missing, and a password is of no use without it")
    if bool(given.certificate) != bool(given.key):
        raise ConfigError("", "certificate", "a certificate and its key go together: give both, or none")
    for key in ("authorities", "certificate", "key"):
        if getattr(given, key) and not Path(getattr(given, key)).is_file():
            raise ConfigError("", key, f"there is no file {getattr(given, key)}")
    return Mqtt(msgspec.structs.replace(given, client_id=given.client_id or identity), filters)


def _check_url(url: str) -> None:
    wanted = "write mqtt://HOST:PORT, or mqtts://HOST:PORT for TLS"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError("", "url", f"this is no URL: {wanted}") from None  # not quoted: it may hold a password
    if "@" in url:
        raise ConfigError("", "url", "a URL must not hold a name or password: there are username and password for that")
    if parts.scheme not in PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError("", "url", f"{url!r} will not do: {wanted}")


def _check_in(coming: In, where: str) -> None:
    try:
        aiomqtt.Wildcard(coming.topic)
        levels = _levels(coming.topic)
        if not any(levels) or "#" in levels[:-1] or not sayable(coming.topic):
            raise ValueError
    except ValueError:
        raise ConfigError(
            "", f"{where}.topic", f"{coming.topic!r} is no topic: `+` stands for one level, `#` for all from there on"
        ) from None
    for name, level in coming.fields.items():
        if isinstance(level, int) and level >= len(levels) and levels[-1] != "#":
            raise ConfigError(
                "", f"{where}.fields", f"{name} = {level}: {coming.topic} has levels 0 to {len(levels) - 1}"
            )


def _check_out(going: Out, where: str) -> Filter:
    rest = FIELD.sub("", going.topic)
    if not going.topic or any(sign in rest for sign in "{}+#") or going.topic.startswith("$") or not sayable(rest):
        raise ConfigError("", f"{where}.topic", f"{going.topic!r} is no topic with fields, such as alarms/{{room}}")
    try:
        return parse(going.filter)
    except (FilterSyntaxError, FilterTooComplex) as error:
        raise ConfigError("", f"{where}.filter", error) from None


def _levels(topic: str) -> list[str]:
    levels = topic.split("/")
    return levels[2:] if levels[0] == "$share" else levels


# The connection


class _Client(aiomqtt.Client):
    """aiomqtt, with acknowledgements by hand, and with what the broker says to what we send.

    It offers neither, so this goes to the paho client beneath it.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._client.manual_ack_set(True)
        self.largest = 0
        """bytes of a packet that the broker takes; 0: any"""
        self.most = 1
        """messages that the broker takes before it has acknowledged the first"""
        self._sent: dict[int, asyncio.Future[ReasonCode | None]] = {}

    def _on_connect(
        self, client: Paho, userdata: Any, flags: ConnectFlags, reason_code: ReasonCode, properties: Any = None
    ) -> None:
        self.largest = getattr(properties, "MaximumPacketSize", 0)
        self.most = min(UNACKNOWLEDGED, getattr(properties, "ReceiveMaximum", UNACKNOWLEDGED))
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_publish(
        self, client: Paho, userdata: Any, mid: int, reason_code: ReasonCode, properties: Properties
    ) -> None:
        future = self._sent.pop(mid, None)
        if future is not None and not future.done():
            future.set_result(reason_code)

    def _on_message(self, client: Paho, userdata: Any, message: Any) -> None:
        if message.qos > 0 or self._queue.qsize() < CARELESS:
            super()._on_message(client, userdata, message)

    def send(self, message: Message, rule: Out) -> asyncio.Future[ReasonCode | None]:
        """Publish; the future holds the answer of the broker, if it gives one."""
        info = self._client.publish(message.topic, message.payload, rule.qos, rule.retain, _properties(message))
        if info.rc != MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttCodeError(info.rc, "could not publish")
        future: asyncio.Future[ReasonCode | None] = self._loop.create_future()
        if rule.qos == 0:
            future.set_result(None)
        else:
            self._sent[info.mid] = future
        return future

    def acknowledge(self, messages: Sequence[aiomqtt.Message]) -> None:
        """Let the broker forget messages, in the order in which they came."""
        for message in messages:
            if message.qos > 0:
                self._client.ack(message.mid, message.qos)

    async def enter(self) -> None:
        """Connect. A thread does it, which cannot be stopped halfway."""
        entering = asyncio.ensure_future(self.__aenter__())
        try:
            await asyncio.shield(entering)
        except BaseException:
            await asyncio.gather(entering, return_exceptions=True)
            self._client._sock_close()
            raise


def _new(packet: int) -> Any:
    return Properties(packet)  # type: ignore[no-untyped-call]


def _properties(message: Message) -> Properties:
    properties: Any = _new(PacketTypes.PUBLISH)
    properties.PayloadFormatIndicator = 1
    properties.ContentType = message.content_type
    properties.UserProperty = list(message.properties)
    if message.expires is not None:
        properties.MessageExpiryInterval = min(message.expires, 0xFFFFFFFF)
    if message.reply_to:
        properties.ResponseTopic = message.reply_to
    if message.correlation is not None:
        properties.CorrelationData = message.correlation
    return cast("Properties", properties)


def _read(message: aiomqtt.Message) -> Message:
    said = message.properties
    return Message(
        message.topic.value,
        bytes(message.payload),
        getattr(said, "ContentType", ""),
        tuple(map(tuple, getattr(said, "UserProperty", ()))),
        getattr(said, "MessageExpiryInterval", None),
        getattr(said, "ResponseTopic", ""),
        getattr(said, "CorrelationData", None),
        getattr(said, "PayloadFormatIndicator", 0) == 1,
    )


class Mqtt:
    """A bridge to an MQTT broker."""

    def __init__(self, given: Settings, filters: Sequence[Filter]) -> None:
        self.settings = given
        self.rules = tuple(zip(given.outgoing, filters, strict=True))

    @property
    def wants(self) -> Filter | None:
        """What goes out."""
        return reduce(or_, (filter for _, filter in self.rules)) if self.rules else None

    @property
    def promises(self) -> Filter | None:
        """What may come in."""
        types = [rule.type for rule in self.settings.incoming]
        if not types:
            return None
        return reduce(or_, (field.type == type for type in types)) if all(types) else EVERYTHING

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Connected]:
        """Connect and subscribe."""
        given = self.settings
        parts = urlsplit(given.url)
        said: Any = _new(PacketTypes.CONNECT)
        said.SessionExpiryInterval = given.session_seconds if given.incoming else 0
        said.ReceiveMaximum = UNACKNOWLEDGED
        client = _Client(
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
                yield Connected(self, client)
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


async def _subscribe(client: _Client, rule: In) -> None:
    """Ask for a topic. The number tells subscriptions apart that overlap; it must be the same after a restart."""
    said: Any = _new(PacketTypes.SUBSCRIBE)
    said.SubscriptionIdentifier = number_of(rule)
    shared = rule.topic.startswith("$share/")
    options = SubscribeOptions(
        qos=rule.qos,
        noLocal=not shared,  # MQTT forbids it there
        retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        if rule.retained
        else SubscribeOptions.RETAIN_DO_NOT_SEND,
    )
    answers = await client.subscribe(rule.topic, options=options, properties=said)
    for answer in answers:
        if isinstance(answer, ReasonCode) and answer.is_failure:
            raise BridgeError(f"the broker does not let us subscribe to {rule.topic}: {answer}")


def number_of(rule: In) -> int:
    """A number for a subscription."""
    return zlib.crc32(rule.topic.encode()) % 268_435_455 + 1


class Connected:
    """A connection to a broker."""

    def __init__(self, bridge: Mqtt, client: _Client) -> None:
        self._bridge, self._client = bridge, client
        self._numbers = {number_of(rule) for rule in bridge.settings.incoming}

    async def incoming(self) -> AsyncIterator[Batch]:
        """All that is there at a time."""
        waiting = self._client.messages
        async for message in waiting:
            messages = [message]
            while len(waiting) and len(messages) < UNACKNOWLEDGED:
                messages.append(await anext(waiting))

            async def done(messages: Sequence[aiomqtt.Message] = messages) -> None:
                self._client.acknowledge(messages)

            yield Batch([one for one in map(self._arrived, messages) if one is not None], done)

    def _arrived(self, message: aiomqtt.Message) -> Arrived | Problem | None:
        """An event by the first rule that fits; None if it comes again by that rule."""
        rule = next((rule for rule in self._bridge.settings.incoming if message.topic.matches(rule.topic)), None)
        if rule is None:
            return Problem(
                f"a message to {message.topic}, which no `in` has: it was subscribed to earlier; another client_id"
                " makes a new beginning"
            )
        # Where topics overlap, a broker may send a message once for each, or once for all.
        numbers = set(getattr(message.properties, "SubscriptionIdentifier", ()))
        if number_of(rule) not in numbers and numbers & self._numbers:
            return None
        return arrived(rule, _read(message))

    async def outgoing(self, leave: Sequence[Leaving], /) -> Sequence[Problem]:
        """Publish, and wait until the broker has acknowledged all of it."""
        problems: list[Problem] = []
        sent: list[tuple[str, asyncio.Future[ReasonCode | None]]] = []
        try:
            async with asyncio.timeout(PATIENCE):
                for rule, message in self._messages(leave):
                    if isinstance(message, Problem):
                        problems.append(message)
                        continue
                    if len(sent) >= self._client.most:
                        await sent[-self._client.most][1]
                    sent.append((message.topic, self._client.send(message, rule)))
                answers = await asyncio.gather(*(future for _, future in sent))
        except TimeoutError:
            raise BridgeError(f"the broker has not acknowledged for {PATIENCE:g} seconds what we sent") from None
        for (topic, _), answer in zip(sent, answers, strict=True):
            if answer is not None and answer.is_failure:
                if answer.value not in HOPELESS:
                    raise BridgeError(f"the broker refuses a message to {topic}: {answer}")
                problems.append(Problem(f"the broker refuses a message to {topic}: {answer}"))
        return problems

    def _messages(self, leave: Sequence[Leaving]) -> Iterator[tuple[Out, Message | Problem]]:
        now, largest = time.time(), self._client.largest
        for one in leave:
            for rule, filter in self._bridge.rules:
                if filter.matches(one.event):
                    message = leaving(rule, one, now)
                    if isinstance(message, Message) and 0 < largest < _size(message):
                        message = Problem(f"an event for {message.topic} is larger than {largest} bytes")
                    yield rule, message


def _size(message: Message) -> int:
    """Bytes of the packet, or a few more."""
    texts = [
        message.topic,
        message.content_type,
        message.reply_to,
        *(text for pair in message.properties for text in pair),
    ]
    return len(message.payload) + len(message.correlation or b"") + sum(len(text.encode()) + 5 for text in texts) + 32
