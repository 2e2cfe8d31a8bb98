"""An MQTT 5 client with acknowledgements by hand, on top of aiomqtt and paho."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

import aiomqtt
from paho.mqtt.client import MQTT_ERR_SUCCESS, ConnectFlags
from paho.mqtt.client import Client as Paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from fieldfare.node.bridges.mqtt_messages import Message, OutgoingRule

UNACKNOWLEDGED: Final = 200
"""messages in either direction that may wait for their acknowledgement"""
QOS_0_BUFFER: Final = 10_000
"""messages of QoS 0 that may wait for the bridge; further ones are dropped, as QoS 0 allows"""


class Client(aiomqtt.Client):
    """A client of aiomqtt that acknowledges by hand, and passes on the answers to published messages.

    aiomqtt offers neither, so the methods reach for the paho client inside.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._client.manual_ack_set(True)
        self.largest = 0
        """bytes of the largest packet that the MQTT broker accepts; 0: any"""
        self.most = 1
        """messages that the MQTT broker accepts before an acknowledgement"""
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
        if message.qos > 0 or self._queue.qsize() < QOS_0_BUFFER:
            super()._on_message(client, userdata, message)

    def send(self, message: Message, rule: OutgoingRule) -> asyncio.Future[ReasonCode | None]:
        """Publish a message; the future gives the answer of the MQTT broker, None for QoS 0, which has no answer."""
        info = self._client.publish(message.topic, message.payload, rule.qos, rule.retain, _publish_properties(message))
        if info.rc != MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttCodeError(info.rc, "could not publish")
        future: asyncio.Future[ReasonCode | None] = self._loop.create_future()
        if rule.qos == 0:
            future.set_result(None)
        else:
            self._sent[info.mid] = future
        return future

    def acknowledge(self, messages: Sequence[aiomqtt.Message]) -> None:
        """Acknowledge messages in the order of their arrival, as MQTT requires; QoS 0 has no acknowledgements."""
        for message in messages:
            if message.qos > 0:
                self._client.ack(message.mid, message.qos)

    async def enter(self) -> None:
        """Connect. paho connects in a thread that cannot be cancelled, so a cancelled call waits, and then closes."""
        entering = asyncio.ensure_future(self.__aenter__())
        try:
            await asyncio.shield(entering)
        except BaseException:
            await asyncio.gather(entering, return_exceptions=True)
            self._client._sock_close()
            raise


def properties(packet: int) -> Any:
    """Return the empty properties of a packet of some type; Any, because paho has no types for them."""
    return Properties(packet)  # type: ignore[no-untyped-call]


def _publish_properties(message: Message) -> Properties:
    found: Any = properties(PacketTypes.PUBLISH)
    found.PayloadFormatIndicator = 1
    found.ContentType = message.content_type
    found.UserProperty = list(message.properties)
    if message.expires is not None:
        found.MessageExpiryInterval = min(message.expires, 0xFFFFFFFF)
    if message.reply_to:
        found.ResponseTopic = message.reply_to
    if message.correlation is not None:
        found.CorrelationData = message.correlation
    return cast("Properties", found)


def read_message(message: aiomqtt.Message) -> Message:
    """Return a message of aiomqtt as a plain value, without the types of paho."""
    found = message.properties
    return Message(
        message.topic.value,
        bytes(message.payload),
        getattr(found, "ContentType", ""),
        tuple(map(tuple, getattr(found, "UserProperty", ()))),
        getattr(found, "MessageExpiryInterval", None),
        getattr(found, "ResponseTopic", ""),
        getattr(found, "CorrelationData", None),
        getattr(found, "PayloadFormatIndicator", 0) == 1,
    )
