"""`Receiver`: the messages of an MQTT broker are written to a log, and acknowledged when they are on disk.

Paho's thread receives messages from the broker, and another thread writes all waiting messages at once. A message from
a connection that is broken by now is not written: without an acknowledgement it comes again.
"""

from __future__ import annotations

import fcntl
import hashlib
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import Limits
from fieldfare.node.bridges.interface import Rejection
from fieldfare.node.bridges.mqtt_messages import IncomingRule, Message
from fieldfare.node.bridges.mqtt_messages import event_of as event_in
from fieldfare.node.storage.log import Log
from fieldfare.pipeline.options import OptionError
from fieldfare.pipeline.sources.mqtt import MqttOptions
from fieldfare.protocol.journal import JournalEntry

UNREADABLE: Final = "fieldfare.unreadable"
"""the type of the event for a message that cannot be decoded"""
UNACKNOWLEDGED: Final = 1000
"""messages that the broker may send before the first is acknowledged"""
SEGMENT: Final = 16 << 20
"""bytes of a segment, which is deleted as a whole"""
PATIENCE: Final = 10.0
"""seconds to wait for the broker, or for an earlier query to let go of the folder"""
QUIET: Final = 1.0
"""seconds without a message, after which the broker has sent all that it had"""
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_ANY_SIZE: Final = Limits(bytes=1 << 29, string=1 << 29)


class ReceiverError(RuntimeError):
    """The receiver has stopped, for the reason in the message."""


class Receiver:
    """A connection to a broker, and the log with its messages."""

    def __init__(self, given: MqttOptions) -> None:
        """Connect, and begin to receive."""
        folder = Path(given.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)
        self._log = Log(folder, segment_bytes=SEGMENT, sync=True)
        self._url, self._topics = given.url, [topic.strip() for topic in given.topics.split(",")]
        self._queue: queue.SimpleQueue[tuple[int, paho.MQTTMessage] | None] = queue.SimpleQueue()
        self._connection = 0
        """the number of the connection; 0 without a connection"""
        self._connections = 0
        self._subscribed = threading.Event()
        self._heard = time.monotonic()
        self._problem: Exception | None = None
        try:
            self._client = self._connected(given)
        except BaseException:
            self._log.close()
            self._lock.close()
            raise
        self._writer = threading.Thread(target=self._write, name="fieldfare mqtt", daemon=True)
        self._writer.start()

    # For the reader

    def check(self) -> None:
        """Raise ReceiverError if the receiver has stopped."""
        if self._problem is not None:
            raise ReceiverError(f"{self._url}: {self._problem}") from self._problem

    def drain(self) -> None:
        """Wait until the broker has sent all messages that it kept."""
        if not self._subscribed.wait(PATIENCE):
            self.check()
            raise ReceiverError(f"{self._url}: the broker has not let us subscribe for {PATIENCE:g} seconds")
        while (left := self._heard + QUIET - time.monotonic()) > 0:
            time.sleep(left)
        self.check()

    def forget(self, position: int) -> None:
        """Delete segments of the log up to a position, because all their messages are processed."""
        self._log.retain(max_bytes=0, max_seconds=None, now=time.time(), keep_from=position + 1)

    def stop(self) -> None:
        """Close the connection; later messages wait at the broker."""
        self._client.disconnect()
        self._client.loop_stop()
        self._queue.put(None)
        self._writer.join(PATIENCE)
        self._log.close()
        self._lock.close()

    # The broker's part

    def _connected(self, given: MqttOptions) -> paho.Client:
        parts = urlsplit(given.url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise OptionError(f"fieldfare_mqtt: url is mqtt://HOST:PORT or mqtts://HOST:PORT, not {given.url!r}")
        made_up = hashlib.blake2b(str(Path(given.folder).resolve()).encode(), digest_size=8).hexdigest()
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            given.client_id or f"fieldfare-spark-{made_up}",
            protocol=paho.MQTTv5,
            manual_ack=True,
        )
        client.username_pw_set(given.username or None, given.password or None)
        if parts.scheme == "mqtts":
            client.tls_set()
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe, client.on_message = self._on_subscribe, self._on_message
        said: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        said.SessionExpiryInterval = given.session_seconds
        said.ReceiveMaximum = UNACKNOWLEDGED
        try:
            client.connect(parts.hostname, parts.port or PORTS[parts.scheme], clean_start=False, properties=said)
        except OSError as error:
            raise ReceiverError(f"no broker answers at {given.url}: {error}") from error
        client.loop_start()
        return client

    def _on_connect(self, client: paho.Client, _: object, __: object, code: ReasonCode, ___: object) -> None:
        if code.is_failure:
            self._problem = ReceiverError(f"the broker does not want us: {code}")
            return
        self._connections += 1
        self._connection = self._connections
        self._heard = time.monotonic()
        client.subscribe([(topic, SubscribeOptions(qos=1)) for topic in self._topics])

    def _on_disconnect(self, client: paho.Client, _: object, __: object, code: ReasonCode, ___: object) -> None:
        self._connection = 0
        self._subscribed.clear()

    def _on_subscribe(self, client: paho.Client, _: object, mid: int, codes: list[ReasonCode], __: object) -> None:
        for topic, code in zip(self._topics, codes, strict=True):
            if code.is_failure:
                self._problem = ReceiverError(f"the broker does not let us subscribe to {topic}: {code}")
        self._heard = time.monotonic()
        self._subscribed.set()

    def _on_message(self, client: paho.Client, _: object, message: paho.MQTTMessage) -> None:
        self._heard = time.monotonic()
        self._queue.put((self._connection, message))

    # The log's part

    def _waiting(self) -> Iterator[tuple[int, paho.MQTTMessage]]:
        while not self._queue.empty():
            one = self._queue.get()
            if one is None:
                self._queue.put(None)  # it is over, after these
                return
            yield one

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            came = [first, *self._waiting()]
            connection, position = self._connection, self._log.last + 1
            messages = [message for number, message in came if number == connection]
            try:
                self._log.append([_entry(message, position + place) for place, message in enumerate(messages)])
            except (OSError, ValueError) as error:  # not acknowledged: it comes again
                self._problem = error
                return
            self._heard = time.monotonic()
            for message in messages:
                if message.qos and connection == self._connection:
                    self._client.ack(message.mid, message.qos)


def _entry(message: paho.MQTTMessage, position: int) -> JournalEntry:
    """A message as an entry of the log, where the topic stands for the publisher."""
    event = msgpack.encode(event_of(message.topic, bytes(message.payload), message.properties))
    return JournalEntry(position, time.time(), message.topic, position, event, b"")


def event_of(topic: str, payload: bytes, said: object = None) -> Event:
    """Decode a message; a message that cannot be decoded becomes an event with the reason.

    >>> event_of("rooms/1", b'{"celsius": 21.5}')
    Event({'celsius': 21.5})
    """
    message = Message(
        topic,
        payload,
        getattr(said, "ContentType", ""),
        tuple(map(tuple, getattr(said, "UserProperty", ()))),
        None,
        getattr(said, "ResponseTopic", ""),
        getattr(said, "CorrelationData", None),
        getattr(said, "PayloadFormatIndicator", 0) == 1,
    )
    read = event_in(IncomingRule(topic), message)
    if isinstance(read, Rejection):
        return Event({"type": UNREADABLE, "reason": read.reason, "data": payload}, limits=_ANY_SIZE)
    return read.event


def _locked(folder: Path) -> IO[str]:
    """Lock a folder against other queries, as long as the file is open."""
    file = (folder / "lock").open("w")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline:
                file.close()
                raise ReceiverError(f"{folder} is used by another query: give each its own") from None
            time.sleep(0.1)
        else:
            return file
