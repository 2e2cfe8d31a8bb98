"""The kind `webhooks`: the events are POSTed to a URL as CloudEvents (see `formats.webhooks`).

A batch that comes again is sent again. The receiver recognises an event by `ce-id` and `ce-source`, which stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import asdict, replace
from pyspark.sql import DataFrame

from fieldfare.pipeline import options, sources
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.history import as_json
from fieldfare.pipeline.sinks.formats.webhooks import WebhookOptions
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings


@dataclass(frozen=True)
class WebhookSink(Sink):
    """A URL to which events are POSTed, each at least once."""

    options: WebhookOptions

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """POST the rows; the file of dead letters, if there are any, is named after the batch."""
        sources.register(rows.sparkSession)
        name = f"{batch.writer}-{batch.number}".replace(":", "-")
        told = options.texts(asdict(replace(self.options, batch=name)))
        as_json(rows).write.format("fieldfare_webhooks").options(**told).mode("append").save()


def make(settings: SinkSettings) -> WebhookSink:
    """Make a sink that POSTs events."""
    if settings.table == "quarantine":
        raise options.OptionError("what is no event cannot be sent as one; keep it in a lake")
    return WebhookSink(settings.read(WebhookOptions))
