"""The format `fieldfare_mqtt`: messages of an MQTT 5 broker, as a stream.

    spark.readStream.format("fieldfare_mqtt").option("url", "mqtt://127.0.0.1:1883").option("topics", "sensors/#")
        .option("folder", "received").load()

MQTT has no offsets, and a broker forgets acknowledged messages. So the driver writes messages to a folder, with a log
like that of a node, before it acknowledges them; offsets are positions in the log, and all else is as in
`fieldfare_log`. The broker knows the driver by `client_id`, and keeps messages while no query runs. A message is
deleted from the folder some time after Spark has committed it.

No message that the broker has accepted is lost. MQTT may deliver a message twice if a connection breaks before the
broker gets the acknowledgement; then the log has the message twice, with two positions.

Payloads are decoded as in a node's bridge. A payload that cannot be decoded becomes an event of the type
`fieldfare.unreadable`, with the reason and the payload. All machines that run tasks must see the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from fieldfare.pipeline import options
from fieldfare.pipeline.sources.log import MAX_ROWS, LogStreamReader, Offset
from fieldfare.pipeline.sources.rows import SCHEMA

if TYPE_CHECKING:
    from fieldfare.pipeline.sources.receiver import Receiver

NAMES: Final = ["position", "time", "publisher", "type", "event"]
"""the columns of the log, where the topic stands for the publisher"""


class MqttOptions(options.Options, frozen=True):
    """The options of an MQTT broker."""

    url: str
    """mqtt://HOST:PORT, or mqtts:// for TLS"""
    topics: str
    """topics separated by commas; `+` stands for a level, `#` for all levels from there on"""
    folder: str
    """the folder for messages until they are processed; each query needs its own"""
    client_id: str = ""
    """the name of the client at the broker; by default made from the folder's path"""
    username: str = ""
    password: str = ""
    session_seconds: Annotated[int, msgspec.Meta(ge=1, le=0xFFFFFFFF)] = 7 * 86400
    """seconds for which the broker keeps messages while no query runs"""
    max_rows: Annotated[int, msgspec.Meta(ge=1)] = MAX_ROWS
    """rows of a micro-batch at most"""


class MqttSource(DataSource):
    """The data source that Spark knows as `fieldfare_mqtt`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "fieldfare_mqtt"

    def schema(self) -> str:
        """Return the columns of the rows."""
        return "position long, time timestamp, topic string, type string, event string"

    def streamReader(self, schema: StructType) -> MqttStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of all messages, present and future."""
        options.needs(self.name(), "paho", "mqtt")
        return MqttStreamReader(options.read(self.name(), self.options, MqttOptions))


class MqttStreamReader(LogStreamReader):
    """The reader of the log that a receiver writes."""

    def __init__(self, given: MqttOptions) -> None:
        super().__init__(Path(given.folder), 0, given.max_rows, "fail")
        self._given = given
        self._receiver: Receiver | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset before the first message in the folder."""
        self._receiving()
        return super().initialOffset()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the run at the messages that the broker has now."""
        self._receiving().drain()
        super().prepareForTriggerAvailableNow()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch; an error of the receiver ends the query."""
        self._receiving().check()
        return super().latestOffset(start, limit)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each slice of the received messages."""
        self._receiving()
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the messages of a slice."""
        schema = pa.schema([SCHEMA.field(name).with_name(name.replace("publisher", "topic")) for name in NAMES])
        for batch in super().read(partition):
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in NAMES], schema=schema)

    def commit(self, end: Offset) -> None:
        """Delete messages up to an offset, which Spark has processed."""
        self._receiving().forget(end["position"])

    def stop(self) -> None:
        """Close the connection, because the query is over."""
        if self._receiver is not None:
            self._receiver.stop()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the receiver: tasks only read."""
        return {**super().__getstate__(), "_receiver": None}

    def _receiving(self) -> Receiver:
        if self._receiver is None:
            from fieldfare.pipeline.sources.receiver import Receiver  # noqa: PLC0415 - it needs more than Spark does

            self._receiver = Receiver(self._given)
        return self._receiver
