"""The format `fieldfare_webhooks`: each row is an event that is POSTed to a URL, as a CloudEvent.

    deliveries.writeStream.format("fieldfare_webhooks").option("dead_letters", "dead").start()   # columns: event, url
    alarms.writeStream.format("fieldfare_webhooks").option("url", "https://example.org/hook").start()

**At least once**: a receiver gets an event again if the batch, or the task, runs again. The receiver recognises the
event by `ce-id` and `ce-source`, which stay the same. A CloudEvent has an id of its own; for others `ce-id` is the
column `id`, or `position`, or else a digest of the event, which is the same for equal events.

A failed attempt is repeated with growing pauses, or when the receiver says so (Retry-After). An event that is refused,
fails `attempts` times, or cannot be decoded, becomes a *dead letter*: a line of JSON in the folder `dead_letters`, with
a file for each batch. Without such a folder a dead letter is an error that ends the query: no event is lost silently.

Events for the same URL are sent one after the other, in the order of the rows of a task; URLs are served at the same
time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fieldfare.pipeline import options
from fieldfare.pipeline.sinks.formats import events

IDS: Final = ("id", "position")
"""columns with ids of events, the best first"""


class WebhookOptions(options.Options, frozen=True):
    """The options of `fieldfare_webhooks`: how to deliver, and when to give up."""

    url: str = ""
    """the URL for all rows; by default each row has its own in the column `url`"""
    mode: Literal["binary", "structured"] = "binary"
    """the content mode of CloudEvents over HTTP"""
    source: str = "/fieldfare/spark"
    """the `source` of events without a source"""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    """attempts after which an event is a dead letter"""
    backoff: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 1.0
    """seconds before the second attempt; doubled before each further attempt, up to a minute"""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0
    """seconds for an answer"""
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 16
    """URLs that a task serves at the same time"""
    authorization: str = ""
    """the value of the header Authorization"""
    dead_letters: str = ""
    """the folder for dead letters"""
    batch: str = ""
    """for a table: the name of the file of dead letters; a repeated write replaces the file"""


class WebhookDelivery(msgspec.Struct, frozen=True):
    """An event with the URL of its receiver."""

    url: str
    id: str
    """the id for an event without an id"""
    event: str | None
    """as JSON"""


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that could not be delivered, with the reason."""

    url: str
    id: str
    event: str | None
    """the text in the row, so that it can be sent again"""
    reason: str
    attempts: int
    time: str


class DeliveryFailed(RuntimeError):
    """An event could not be delivered, and there is no folder for dead letters."""


class WebhooksFormat(DataSource):
    """The data source that Spark knows as `fieldfare_webhooks`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "fieldfare_webhooks"

    def writer(self, schema: StructType, overwrite: bool) -> WebhooksWriter:
        """Return the writer for a table."""
        return self._made(WebhooksWriter, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> WebhooksStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer for a stream."""
        return self._made(WebhooksStreamWriter, schema)

    def _made(self, kind: type[Writer], schema: StructType) -> Writer:
        options.needs(self.name(), "httpx", "node")
        given = options.read(self.name(), self.options, WebhookOptions)
        if events.COLUMN not in schema.names or (not given.url and "url" not in schema.names):
            wanted = "a column `event`, and a column or an option `url`"
            raise options.OptionError(f"{self.name()} wants {wanted}; the columns are {schema.names}")
        return kind(given)


@dataclass(frozen=True)
class Left(WriterCommitMessage):
    """The dead letters of a task, and the id of the query."""

    query: str
    letters: list[DeadLetter]


class WebhooksWriter(DataSourceArrowWriter):
    """The writer for a table."""

    def __init__(self, given: WebhookOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Left:
        """Send the events of a task."""
        return _delivered(iterator, self._given)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write the dead letters of all tasks to a file."""
        _bury(self._given, self._given.batch or uuid4().hex, messages)


class WebhooksStreamWriter(DataSourceStreamArrowWriter):
    """The writer that delivers each micro-batch of a stream to URLs."""

    def __init__(self, given: WebhookOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Left:
        """Send the events of a task."""
        return _delivered(iterator, self._given)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Write the dead letters to a file; a batch that runs again replaces the file."""
        query = next((one.query for one in messages if isinstance(one, Left)), "")
        _bury(self._given, f"{query}-{batchId}", messages)


Writer = TypeVar("Writer", WebhooksWriter, WebhooksStreamWriter)


def deliveries(batch: pa.RecordBatch, given: WebhookOptions) -> list[WebhookDelivery]:
    """Return the events of a record batch, each with its URL and id."""
    names = batch.schema.names
    texts = batch.column(events.COLUMN).to_pylist()
    urls = [given.url] * len(texts) if given.url else batch.column("url").to_pylist()
    column = next((batch.column(name).to_pylist() for name in IDS if name in names), [None] * len(texts))
    return [
        WebhookDelivery(url or "", _digest(text) if id is None else str(id), text)
        for url, id, text in zip(urls, column, texts, strict=True)
    ]


def _digest(text: str | None) -> str:
    return hashlib.blake2b((text or "").encode(), digest_size=16).hexdigest()


def _delivered(batches: Iterator[pa.RecordBatch], given: WebhookOptions) -> Left:
    from fieldfare.pipeline.sinks.formats.http_post import post_all  # noqa: PLC0415 - it needs more than Spark does

    letters = [letter for batch in batches for letter in post_all(deliveries(batch, given), given)]
    if letters and not given.dead_letters:
        first = letters[0]
        raise DeliveryFailed(
            f"{len(letters)} events could not be delivered; that with the id {first.id} to {first.url or 'no URL'}:"
            f" {first.reason}. With the option dead_letters, a folder, they are kept there and the query goes on"
        )
    context = TaskContext.get()
    return Left((context and context.getLocalProperty("sql.streaming.queryId")) or "", letters)


def _bury(given: WebhookOptions, name: str, messages: list[WriterCommitMessage | None]) -> None:
    """Write the dead letters of a batch to a file, all or none."""
    letters = [letter for one in messages if isinstance(one, Left) for letter in one.letters]
    if not letters:
        return
    folder = Path(given.dead_letters)
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}.tmp"
    part.write_bytes(b"".join(msgspec.json.encode(letter) + b"\n" for letter in letters))
    part.replace(folder / f"{name}.json")
