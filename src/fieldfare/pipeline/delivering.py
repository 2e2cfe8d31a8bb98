"""Where the tables of a micro-batch go. Every sink knows a batch by its number, so that doing it again changes nothing.

`lake` and `parquet` are tables on disk (`lake` by type and day), `subscribers` a folder for each owner, `node` and
`webhooks` send. Only webhooks may get an event twice, if a batch is done again; its `ce-id` tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import sources
from fieldfare.pipeline.declared import PipelineError, Scalar, Sink, sink_name
from fieldfare.pipeline.history import ORDER, as_json
from fieldfare.pipeline.lake import Batch, write_table
from fieldfare.pipeline.subscribers import write_by_subscriber

_OWN: Mapping[str, frozenset[str]] = {
    "lake": frozenset({"path"}),
    "parquet": frozenset({"path"}),
    "subscribers": frozenset({"path", "by"}),
}
_ORDER: Mapping[str, tuple[str, ...]] = {
    "events": ORDER,
    "late": ORDER,
    "deliveries": (*ORDER, "subscription"),
    "quarantine": ("at", "record"),
}
"""in which a batch is published; the same each time"""


def check(sink: Sink) -> None:
    """Refuse options that a sink does not have."""
    known = _OWN.get(sink.kind)
    if known is not None and (wrong := set(sink.options) - known):
        raise PipelineError(f"{sink_name(sink)} has no option `{min(wrong)}`, but {', '.join(sorted(known))}")


def write(sink: Sink, table: DataFrame, batch: Batch) -> None:
    """Bring a table of a batch to a sink."""
    options = sink.options
    match sink.kind:
        case "lake" if sink.of == "quarantine":
            write_table(table, str(options["path"]), batch=batch, kind=F.lit("quarantine"), time=F.col("at"))
        case "lake":
            write_table(table, str(options["path"]), batch=batch)
        case "parquet":
            table.write.mode("overwrite").parquet(f"{options['path']}/batch={batch.number}")
        case "subscribers":
            write_by_subscriber(table, str(options["path"]), batch=batch.number, owner=str(options.get("by", "owner")))
        case "node":
            told = {"session": batch.writer, "order": ",".join(_ORDER[sink.of]), **options, "batch": batch.number}
            _send(table, "fieldfare_node", told, sink)
        case "webhooks":
            _send(table, "fieldfare_webhooks", options, sink)


def _send(table: DataFrame, format_: str, options: Mapping[str, Scalar], sink: Sink) -> None:
    sources.register(table.sparkSession)
    rows = table if sink.of == "quarantine" else as_json(table)
    given = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    rows.write.format(format_).options(**given).mode("append").save()
