"""Where the tables of a micro-batch go. Every sink knows a batch by its number, so that doing it again changes nothing.

`lake` and `parquet` are tables on disk (`lake` by type and day), `subscribers` a folder for each owner, `node` and
`webhooks` send. Only webhooks may get an event twice, if a batch is done again; its `ce-id` tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import sources
from fieldfare.pipeline.job.config import PipelineError, Scalar, Sink, sink_name
from fieldfare.pipeline.lake.history import ORDER, as_json
from fieldfare.pipeline.lake.table import Batch, write_table
from fieldfare.pipeline.sinks.subscriber_folders import write_by_subscriber

_OWN: Mapping[str, frozenset[str]] = {
    "lake": frozenset({"path"}),
    "parquet": frozenset({"path"}),
    "subscribers": frozenset({"path", "by"}),
}


def check(sink: Sink) -> None:
    """Refuse options that a sink does not have."""
    known = _OWN.get(sink.kind)
    if known is not None and (wrong := set(sink.options) - known):
        raise PipelineError(f"{sink_name(sink)} has no option `{min(wrong)}`, but {', '.join(sorted(known))}")


def write(sink: Sink, table: DataFrame, query: str, number: int) -> None:
    """Bring a table of a batch to a sink, which knows it by the query, the table's name and the number."""
    options = sink.options
    batch = Batch(f"{query}:{sink.of}", number)
    match sink.kind:
        case "lake" if sink.of == "quarantine":
            write_table(table, str(options["path"]), batch=batch, kind=F.lit("quarantine"), time=F.col("at"))
        case "lake":
            write_table(table, str(options["path"]), batch=batch)
        case "parquet":
            table.write.mode("overwrite").parquet(f"{options['path']}/batch={query[:8]}-{number}")
        case "subscribers":
            owner = str(options.get("by", "owner"))
            write_by_subscriber(table, str(options["path"]), batch=number, writer=f"{query[:8]}-", owner=owner)
        case "node":
            order = ORDER if sink.of != "deliveries" else (*ORDER, "subscription")
            session = f"{options.get('session', 'spark')}:{batch.writer}"
            told = {"order": ",".join(order), **options, "session": session, "batch": number}
            _send(table, "fieldfare_node", told)
        case "webhooks":
            _send(table, "fieldfare_webhooks", options)


def _send(table: DataFrame, format_: str, options: Mapping[str, Scalar]) -> None:
    sources.register(table.sparkSession)
    rows = as_json(table)
    given = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    rows.write.format(format_).options(**given).mode("append").save()
