"""The kind `node`: the events are published to a running node, each once (see `formats.node`).

The node knows the writer by a session and each row by a number, and accepts no number of a session twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import asdict, replace
from pyspark.sql import DataFrame

from fieldfare.pipeline import options, sources
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.history import ORDER, as_json
from fieldfare.pipeline.sinks.formats.node import NodeSinkOptions
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings


@dataclass(frozen=True)
class NodeSink(Sink):
    """A running node to which events are published."""

    options: NodeSinkOptions

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Publish the rows in the order of time, under a session named after the writer."""
        sources.register(rows.sparkSession)
        session = f"{self.options.session or 'spark'}:{batch.writer}"
        told = options.texts(asdict(replace(self.options, session=session, batch=batch.number)))
        as_json(rows).write.format("fieldfare_node").options(**told).mode("append").save()


def make(settings: SinkSettings) -> NodeSink:
    """Make a sink that publishes to a node; without `order`, by time, and of deliveries also by subscription."""
    if settings.table == "quarantine":
        raise options.OptionError("what is no event cannot be sent as one; keep it in a lake")
    given = settings.read(NodeSinkOptions)
    order = ORDER if settings.table != "deliveries" else (*ORDER, "subscription")
    return NodeSink(given if given.order else replace(given, order=",".join(order)))
