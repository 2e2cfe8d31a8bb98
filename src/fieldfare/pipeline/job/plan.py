"""The plan of a pipeline as DataFrames: source, decoding, matching, and the tables of a micro-batch.

A stream has a single plan. Each micro-batch is computed once and kept while its tables are selected from it: `events`,
`deliveries`, `quarantine` and `late`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DataType, StructType

from fieldfare.pipeline import sources
from fieldfare.pipeline.batch import has_query
from fieldfare.pipeline.detection.operator import DetectError, as_table, detect
from fieldfare.pipeline.job.config import Normalise, Pipeline, PipelineError
from fieldfare.pipeline.lake.history import field_columns
from fieldfare.pipeline.match.operator import Matched, numbered
from fieldfare.pipeline.match.ways import MATCHES, MatchPlan, matched_before
from fieldfare.pipeline.options import texts
from fieldfare.pipeline.sinks.interface import Table
from fieldfare.pipeline.sources.files import FileFormat, FilesError, read_files
from fieldfare.pipeline.sources.kafka import KafkaError, read_kafka
from fieldfare.pipeline.table.normalisation import Normalised, late, normalise
from fieldfare.pipeline.table.schema import TableError, infer

_OURS: Final = frozenset({"log", "node", "mqtt"})
_LATE: Final = "came late"
_KEY: Final = "told apart by"
_FIELDS: Final = "fields.ddl"
_PATTERNS: Final = "patterns.json"
_DELIVERED: Final = ("id", "source", "sequence", "time", "type", "fields", "rest")


def raw(spark: SparkSession, pipeline: Pipeline, *, stream: bool = True) -> DataFrame:
    """Read the records of the source."""
    source = pipeline.source
    try:
        if source.kind in _OURS:
            sources.register(spark)
            reader = spark.readStream if stream else spark.read
            return reader.format(f"fieldfare_{source.kind}").options(**texts(source.options)).load()
        if source.kind == "kafka":
            return read_kafka(spark, source.options, stream=stream)
        known = {"path", "format", "max_files"}
        if wrong := set(source.options) - known:
            raise PipelineError(f"source: files have no option `{min(wrong)}`, but {', '.join(sorted(known))}")
        limit = source.options.get("max_files")
        return read_files(
            spark,
            str(source.options["path"]),
            cast("FileFormat | None", source.options.get("format")),
            stream=stream,
            max_files=None if limit is None else int(limit),
            fields=pipeline.normalise.fields,
        )
    except (FilesError, KafkaError) as error:
        raise PipelineError(f"source: {error}") from None


def fields_of(spark: SparkSession, pipeline: Pipeline, state: Path) -> StructType | str | None:
    """Return the declared fields, or those inferred at the first run; None if the source has columns."""
    records = raw(spark, pipeline)
    if "event" not in records.columns:
        return None
    if pipeline.normalise.fields is not None:
        return pipeline.normalise.fields
    kept = state / _FIELDS
    if kept.exists():
        return kept.read_text(encoding="utf-8")
    if pipeline.source.kind in {"mqtt", "node"}:
        raise PipelineError(f"normalise.fields: declare them, {pipeline.source.kind} has nothing to infer them from")
    try:
        found = infer(raw(spark, pipeline, stream=False))
    except TableError as error:
        raise PipelineError(f"normalise.fields: declare them, they cannot be inferred: {error}") from None
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(found.toDDL(), encoding="utf-8")
    return found.toDDL()


class Names(NamedTuple):
    """The meaning of the numbers of subscriptions in `MATCHES`."""

    plan: MatchPlan
    id: DataType
    """the type of the ids"""


def planned(
    records: DataFrame, pipeline: Pipeline, fields: StructType | str | None, subscriptions: str | Path | None
) -> tuple[DataFrame, Names | None]:
    """Decode and match the records; `Tables` selects the tables from the result.

    Matches are lists of numbers, which the workers turn into deliveries.
    """
    how = pipeline.normalise
    try:
        read = normalise(
            records,
            fields,
            event=None if fields is None else "event",
            id=how.id,
            source=how.source,
            sequence=how.sequence,
            time=how.time,
            type=how.type,
            require=how.require,
            unknown=how.unknown,
        ).records
    except TableError as error:
        raise PipelineError(f"normalise: {error}") from None
    read = read.withColumn(_LATE, F.lit(False) if how.late is None else late(how.late))
    read = _told_apart(read, how)
    if pipeline.match is None or subscriptions is None:
        return read, None
    columns = field_columns(read)
    matched, plan, id = numbered(read, subscriptions, columns=columns, rest="rest", mode=pipeline.match.mode)
    return matched, Names(plan, id)


def detected(records: DataFrame, pipeline: Pipeline, fields: StructType | str | None) -> DataFrame:
    """Decode the records, and return the composite events of the pipeline's patterns, as an event table."""
    check_unchanged(pipeline)
    read, _ = planned(records, msgspec.structs.replace(pipeline, match=None), fields, None)
    texts = {name: one.text for name, one in pipeline.patterns.items()}
    how = pipeline.detect
    try:
        found = detect(Tables(read).events, texts, by=how.by, delay=how.delay or None, detector=pipeline.name)
    except DetectError as error:
        raise PipelineError(f"patterns: {error}") from None
    return as_table(found)


def checkpoint(pipeline: Pipeline) -> str:
    """Return the place of the checkpoint of the records."""
    return pipeline.checkpoint or str(Path(pipeline.state) / "checkpoint")


def patterns_checkpoint(records: str) -> str:
    """Return the place of the checkpoint of the composite events, beside that of the records."""
    return f"{records}-patterns"


def check_unchanged(pipeline: Pipeline) -> None:
    """Refuse patterns that differ from those of the first run, whose state is in the checkpoint."""
    kept, begun = Path(pipeline.state) / _PATTERNS, patterns_checkpoint(checkpoint(pipeline))
    now = msgspec.json.format(msgspec.json.encode((pipeline.patterns, pipeline.detect)))
    if kept.exists() and kept.read_bytes() != now and has_query(begun):
        raise PipelineError(
            f"patterns: they differ from those of the first run, in {kept}: change them back, or remove {begun} to"
            " begin anew, with the beginning of the source"
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(now)


def _told_apart(records: DataFrame, how: Normalise) -> DataFrame:
    """Drop copies of events; records that are no events all stay."""
    if how.duplicates is None:
        return records
    key = F.when(F.col("reason").isNull(), F.concat_ws(" ", F.lit("event"), "id")).otherwise(F.expr("uuid()"))
    marked = records.withColumn(_KEY, key)
    if not records.isStreaming:
        return marked.dropDuplicates(["source", _KEY]).drop(_KEY)
    arriving = marked.withColumn("arrived", F.current_timestamp()).withWatermark("arrived", how.duplicates)
    return arriving.dropDuplicatesWithinWatermark(["source", _KEY]).drop(_KEY, "arrived")


def measures(records: DataFrame) -> list[Column]:
    """Return the counts of the rows of each table, and the last version of the subscriptions."""
    good = F.col("reason").isNull()
    timely = good & ~F.col(f"`{_LATE}`")
    matched = MATCHES in records.columns
    size = F.size(f"`{MATCHES}`.matches") if matched else F.lit(0)
    return [
        F.count_if(timely).alias("events"),
        F.count_if(good & F.col(f"`{_LATE}`")).alias("late"),
        F.count_if(~good).alias("quarantined"),
        F.coalesce(F.sum(F.when(timely, size)), F.lit(0)).alias("deliveries"),
        F.max(f"`{MATCHES}`.snapshot" if matched else F.lit(None).cast("long")).alias("snapshot"),
    ]


@dataclass(frozen=True)
class Tables:
    """A micro-batch with its tables."""

    records: DataFrame
    names: Names | None = None

    @property
    def events(self) -> DataFrame:
        """The events that came in time."""
        return Normalised(self._good(late=False)).events

    @property
    def late(self) -> DataFrame:
        """The events that came too late."""
        return Normalised(self._good(late=True)).events

    @property
    def quarantine(self) -> DataFrame:
        """The records that are no events."""
        return Normalised(self.records).quarantine

    @property
    def deliveries(self) -> DataFrame:
        """The events with their matching subscriptions, a row for each match."""
        return self.matched.rows()

    @property
    def matched(self) -> Matched:
        """The deliveries before workers make rows or files of them."""
        assert self.names is not None, "nothing is matched"
        good = self._good(late=False).select(*_DELIVERED, MATCHES)
        return Matched(matched_before(good, self.names.plan), *self.names)

    def named(self, name: Table) -> DataFrame:
        """Return a table by its name in the file."""
        tables: Mapping[Table, Callable[[], DataFrame]] = {
            "events": lambda: self.events,
            "late": lambda: self.late,
            "quarantine": lambda: self.quarantine,
            "deliveries": lambda: self.deliveries,
        }
        return tables[name]()

    def counted(self) -> DataFrame:
        """Count the rows of each table, in a single row with the last version of the subscriptions."""
        return self.records.agg(*measures(self.records))

    def _good(self, *, late: bool) -> DataFrame:
        return self.records.where(F.col("reason").isNull() & (F.col(f"`{_LATE}`") == F.lit(late)))
