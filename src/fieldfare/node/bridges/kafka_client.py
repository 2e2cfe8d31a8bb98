"""Kafka's client for asyncio: the blocking calls of librdkafka run in a thread for reading and a thread for writing.

A thread for each side keeps the order of calls, and the end of a connection waits for the call in progress.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from fieldfare.node.bridges.interface import BridgeError, Rejection
from fieldfare.node.bridges.kafka_records import Record

T = TypeVar("T")
SECONDS: Final = 30.0
"""wait for an answer of Kafka"""
_WAIT: Final = 0.2
"""seconds in which a call that waits for records returns, with or without any"""
_MOST: Final = 500
HOPELESS: Final = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD, KafkaError.TOPIC_EXCEPTION}
)
"""errors of a record that another attempt does not change"""


class Partition(NamedTuple):
    """A partition of a topic; a deleted and recreated topic has another id."""

    topic: str
    number: int
    topic_id: str

    @property
    def source(self) -> str:
        """The name under which the node remembers the position."""
        return f"{self.topic}/{self.number}/{self.topic_id}"


class _Side:
    """A client of librdkafka with a thread, and the last error of the client as a whole."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "fieldfare-kafka")
        self.failed = ""
        """why all further work is in vain; empty: it is not"""

    def note(self, error: KafkaError) -> None:
        """Take an error from outside of a call; librdkafka retries after most errors, but not quietly."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN or error.fatal():
            self.failed = error.str()

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a blocking function; BridgeError for an error of Kafka."""
        if self.failed:
            raise BridgeError(self.failed)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        except KafkaException as error:
            raise BridgeError(_said(error.args[0])) from None

    async def end(self, close: Callable[[], object]) -> None:
        """Close the client after the call in progress, which stops waiting for Kafka."""
        self.failed = self.failed or "the connection is closed"
        try:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, close))
        finally:
            self._thread.shutdown(wait=False)


class Reader:
    """Reads partitions from given offsets on."""

    def __init__(self, settings: dict[str, Any], group: str) -> None:
        self._side = _Side()
        self._settings = settings
        self._consumer = Consumer(
            {
                **settings,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "error_cb": self._side.note,
            }
        )

    async def partitions(self, topics: Sequence[str]) -> list[Partition]:
        """Return the partitions of topics; BridgeError if a topic does not exist."""
        return await self._side.call(self._partitions, topics)

    def _partitions(self, topics: Sequence[str]) -> list[Partition]:
        from confluent_kafka import TopicCollection  # noqa: PLC0415 - beside AdminClient, which is as rarely used

        admin = AdminClient(self._settings)
        found = admin.describe_topics(TopicCollection(list(topics)), request_timeout=SECONDS)
        return [
            Partition(topic, one.id, _hex(about.topic_id))
            for topic, future in found.items()
            for about in [future.result()]
            for one in about.partitions
        ]

    async def committed(self, partition: Partition) -> int | None:
        """Return the committed offset of the group; None without a commit."""
        place = TopicPartition(partition.topic, partition.number)
        (found,) = await self._side.call(self._consumer.committed, [place], SECONDS)
        return found.offset if found.offset >= 0 else None

    async def range(self, partition: Partition) -> tuple[int, int]:
        """Return the first offset of a partition, and the offset after the last."""
        place = TopicPartition(partition.topic, partition.number)
        found = await self._side.call(self._consumer.get_watermark_offsets, place, SECONDS)
        if found is None:
            raise BridgeError(f"Kafka does not tell the offsets of {partition.topic}/{partition.number}")
        return found

    async def assign(self, starts: dict[Partition, int]) -> None:
        """Read partitions from these offsets on."""
        places = [TopicPartition(one.topic, one.number, offset) for one, offset in starts.items()]
        await self._side.call(self._consumer.assign, places)

    async def read(self) -> list[Record]:
        """Return new records in the order of each partition, or an empty list after a moment."""
        found = await self._side.call(self._consumer.consume, _MOST, _WAIT)
        for one in found:
            if (error := one.error()) is not None:
                raise BridgeError(_said(error))
        return [_record(one) for one in found]

    async def commit(self, offsets: dict[Partition, int], *, confirmed: bool) -> None:
        """Commit the offsets of partitions; `confirmed` returns when Kafka has the commit.

        A commit that waits hears of no errors of the client: where Kafka dies at that moment, it waits for
        ever.
        """
        places = [TopicPartition(one.topic, one.number, offset) for one, offset in offsets.items()]
        if confirmed:
            await self._side.call(lambda: self._consumer.commit(offsets=places, asynchronous=False))
        else:
            await self._side.call(lambda: self._consumer.commit(offsets=places, asynchronous=True))

    async def close(self) -> None:
        """Leave, after the call in progress."""
        await self._side.end(self._consumer.close)


class Writer:
    """Writes records, each acknowledged by all replicas, in order and without duplicates while the writer lives."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._side = _Side()
        self._producer = Producer(
            {
                **settings,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "delivery.timeout.ms": int(SECONDS * 1000),
                "error_cb": self._side.note,
            }
        )

    async def write(self, records: Sequence[Record]) -> list[Rejection]:
        """Write records and return when Kafka has all but the rejected ones."""
        return await self._side.call(self._write, records)

    def _write(self, records: Sequence[Record]) -> list[Rejection]:
        failed: list[tuple[KafkaError, str]] = []

        def told(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append((error, message.topic() or ""))

        for record in records:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, headers=list(record.headers), on_delivery=told
                )
            except KafkaException as error:  # too large, say
                failed.append((error.args[0], record.topic))
        while self._producer.flush(_WAIT):
            if self._side.failed:
                raise BridgeError(self._side.failed)
        for problem, topic in failed:
            if problem.code() not in HOPELESS:
                raise BridgeError(f"a record to {topic}: {_said(problem)}")
        return [Rejection(f"Kafka refuses a record to {topic}: {_said(problem)}") for problem, topic in failed]

    async def close(self) -> None:
        """Drop unwritten records, after the call in progress."""

        def close() -> None:
            self._producer.purge()
            self._producer.flush(1.0)

        await self._side.end(close)


@contextlib.asynccontextmanager
async def closing(side: Reader | Writer) -> AsyncIterator[None]:
    """Close a side at the end of a block."""
    try:
        yield
    finally:
        await side.close()


def _record(message: Message) -> Record:
    kind, moment = message.timestamp()
    headers: Any = message.headers() or ()
    key: Any = message.key()
    value: Any = message.value()
    return Record(
        message.topic() or "",
        value,
        key,
        tuple((name, text.encode() if isinstance(text, str) else text) for name, text in headers),
        message.partition() or 0,
        message.offset() or 0,
        moment if kind else None,
    )


def _hex(id: Any) -> str:
    return f"{id.get_most_significant_bits() % 2**64:016x}{id.get_least_significant_bits() % 2**64:016x}"


def _said(error: Any) -> str:
    return str(error.str() if isinstance(error, KafkaError) else error)
