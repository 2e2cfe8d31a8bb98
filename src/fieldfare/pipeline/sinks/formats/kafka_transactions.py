"""A batch of records and its number in one transaction of Kafka: each batch exactly once.

The number of the batch is committed as an offset of a consumer group named after the writer, inside the transaction: a
batch that comes again finds its number there and writes nothing. The transactional id is named after the writer, too,
so a driver that was believed dead cannot finish what it had begun. The rows pass through the driver, part by part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame, Row

from fieldfare.pipeline.batch import Batch

SECONDS: Final = 900
"""the longest transaction that brokers allow by default"""
_ANSWER: Final = 60.0
"""seconds for an answer of Kafka"""


class KafkaWriteFailed(RuntimeError):
    """Kafka has refused a batch; nothing of the batch is visible."""


def write(records: DataFrame, servers: str, topic: str, client: dict[str, str], batch: Batch) -> None:
    """Write the records of a batch (`key`, `value`, `headers`), unless Kafka has the batch already."""
    name = f"fieldfare-{batch.writer}-{topic}"
    settings: dict[str, Any] = {"log_level": 0, **client, "bootstrap.servers": servers}
    consumer = Consumer({**settings, "group.id": name, "enable.auto.commit": False})
    try:
        producer = Producer(
            {**settings, "transactional.id": name, "transaction.timeout.ms": SECONDS * 1000, "linger.ms": 5}
        )
        producer.init_transactions(_ANSWER)  # ends the transaction of an earlier driver, so that the offset is final
        place = TopicPartition(topic, 0)
        (known,) = consumer.committed([place], _ANSWER)
        if known.offset > batch.number:
            return
        producer.begin_transaction()
        try:
            _produce(producer, topic, records.toLocalIterator(prefetchPartitions=True))
            mark = TopicPartition(topic, 0, batch.number + 1)
            producer.send_offsets_to_transaction([mark], consumer.consumer_group_metadata(), _ANSWER)
            producer.commit_transaction(_ANSWER)
        except BaseException:
            producer.abort_transaction(_ANSWER)
            raise
    except KafkaException as error:
        raise KafkaWriteFailed(f"Kafka refuses batch {batch.number} to {topic}: {_said(error)}") from None
    finally:
        consumer.close()


def _produce(producer: Producer, topic: str, rows: Iterable[Row]) -> None:
    failed: list[KafkaError] = []

    def told(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    for row in rows:
        headers: list[tuple[str, str | bytes | None]] = [
            (one.key, None if one.value is None else bytes(one.value)) for one in row.headers
        ]
        key = None if row.key is None else bytes(row.key)
        while True:
            try:
                producer.produce(topic, bytes(row.value), key, headers=headers, on_delivery=told)
                break
            except BufferError:  # the buffer is full: wait for answers
                producer.poll(0.1)
        producer.poll(0)
        if failed:
            break
    producer.flush()
    if failed:
        raise KafkaException(failed[0])


def _said(error: KafkaException) -> str:
    found = error.args[0]
    return str(found.str() if isinstance(found, KafkaError) else found)
