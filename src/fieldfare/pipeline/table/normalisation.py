"""Raw records to the event table: records that can be decoded become events, and the others go to the quarantine.

    table = normalise(raw, "symbol string, price double")
    table.events            # id, source, sequence, time, type, fields, rest
    table.quarantine        # reason, field, record, the columns of the source, at

Every record is in exactly one of the two. Both are views of `table.records`, which are decoded at each reading: to
write both, persist the records first, in a stream each micro-batch, and split them with `Normalised(batch)`. Only the
text crosses into Python; all other columns stay in the JVM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fieldfare.events.limits import DEFAULT_LIMITS, Limits
from fieldfare.pipeline.table.event_columns import Unknown
from fieldfare.pipeline.table.json_columns import Decoder
from fieldfare.pipeline.table.schema import ATTRIBUTES, TableError, declared
from fieldfare.pipeline.workers import check_workers

_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns
PROBLEM: Final = "problem"
"""a raw column with the problem of a record that a reader could not decode"""
_DEFAULTS: Final = {
    "id": ("id",),
    "source": ("source", "publisher"),
    "sequence": ("sequence",),
    "time": ("time",),
    "type": ("type",),
}
"""raw columns with attributes that an event may lack"""
_PLACE: Final = ("topic", "partition", "file", "publisher", "position")
_EVENT: Final = [*ATTRIBUTES, "fields", "rest"]


@dataclass(frozen=True)
class Normalised:
    """Decoded records, good and bad."""

    records: DataFrame

    @property
    def events(self) -> DataFrame:
        """The good records, as an event table."""
        return self.records.where("reason IS NULL").select(*_EVENT)

    @property
    def quarantine(self) -> DataFrame:
        """The records that are no events, with the reason; `field` has the problem, "" or null for the whole record."""
        bad = self.records.where("reason IS NOT NULL")
        return bad.select("reason", "field", "record", *(["raw.*"] if "raw" in bad.columns else []), "at")


def normalise(
    raw: DataFrame,
    fields: StructType | str | None = None,
    *,
    event: str | None = "event",
    id: str | Column | None = None,
    source: str | Column | None = None,
    sequence: str | Column | None = None,
    time: str | Column | None = None,
    type: str | Column | None = None,
    require: Collection[str] = (),
    since: datetime | Column | None = None,
    until: datetime | Column | None = None,
    unknown: Unknown = "keep",
    limits: Limits = DEFAULT_LIMITS,
) -> Normalised:
    """Decode raw records to events and quarantine; the same for a batch and a stream.

    The id, source, sequence, time and type of an event come from the column or expression in the arguments, which may
    be a field, such as `fields.order`; otherwise from the event, as CloudEvents defines, or from the source: raw
    columns of these names, and `publisher`. A missing id is computed: a hash of the record's position in its source, or
    without a position, of its text. So a record has the same id at each reading, and without positions, equal texts are
    the same event for `deduplicate`.

    Args:
        raw: has a column of JSON texts, or a column for each field.
        fields: the declared fields, see `schema`; `infer` finds them. None if the fields are columns already.
        event: the column of the texts; None if the columns are the fields.
        id: the column of the id.
        source: the column of the source.
        sequence: the column of the sequence number.
        time: the column of the time.
        type: the column of the type.
        require: which of these five an event must have; a required id is not computed.
        since: an earlier event goes to the quarantine; an event without a time does not.
        until: a later event does, too: an event from the far future would make all others late for a watermark.
        unknown: undeclared fields are kept as JSON in `rest`, or send the event to the quarantine, or are dropped.
        limits: the limits of an event.
    """
    check_workers(raw.sparkSession)
    if wrong := set(require) - set(ATTRIBUTES):
        raise TableError(f"{', '.join(sorted(wrong))} cannot be required, but {', '.join(ATTRIBUTES)} can")
    if "fields" in raw.columns:
        raise TableError("there is a column 'fields' already: this is an event table, or else rename the column")
    if event is None:
        if fields is not None:
            raise TableError("the columns have types already: leave the fields out, or name the column of the texts")
        read = _typed(raw)
    else:
        if fields is None:
            raise TableError("declare the fields, such as 'symbol string, price double', or infer() them")
        if event not in raw.columns:
            raise TableError(f"there is no column {event!r}, but {', '.join(raw.columns)}: say which has the events")
        read = _decoded(raw, event, declared(fields), unknown, limits)
    given = {"id": id, "source": source, "sequence": sequence, "time": time, "type": type}
    found = {name: _candidates(name, given[name], read, raw.columns) for name in ATTRIBUTES}
    values = {
        name: F.coalesce(F.lit(None).cast(kind), *(place.try_cast(kind) for place in found[name]))
        for name, kind in ATTRIBUTES.items()
    }
    problems = [
        *(_problem(values[name].isNull() & _any(found[name]), name, f"not {a}") for name, a in _UNREADABLE.items()),
        *(_problem(values[name].isNull(), name, "an event needs it, and there is none") for name in require),
        *([] if since is None else [_problem(values["time"] < since, "time", "earlier than events may be")]),
        *([] if until is None else [_problem(values["time"] > until, "time", "later than events may be")]),
    ]
    if "id" not in require:
        values["id"] = F.coalesce(values["id"], _made(raw.columns))
    about = [] if event is None else [name for name in raw.columns if name not in {event, PROBLEM}]
    if taken := {"reason", "field", "record", "at"}.intersection(about):
        raise TableError(f"the quarantine has columns named {', '.join(sorted(taken))} of its own: rename those")
    problem = F.coalesce(F.col(f"`{_READ}`.refused"), *problems)
    return Normalised(
        read.select(
            *(value.alias(name) for name, value in values.items()),
            *("fields", f"`{_READ}`.rest", f"`{_READ}`.record"),
            *(problem[name].alias(name) for name in ("reason", "field")),
            F.current_timestamp().alias("at"),
            *([F.struct(*map(_column, about)).alias("raw")] if about else []),
        )
    )


def deduplicate(events: DataFrame, watermark: str = "1 hour") -> DataFrame:
    """Return the events without copies: events whose source and id occurred before.

    In a batch the result is exact. In a stream, an event is remembered for at least `watermark` after its *arrival*,
    and no event is dropped as late: Spark's own way, a watermark on the time of the event, silently drops events that
    are older than the watermark of a micro-batch ago. So a copy that arrives very much later passes, and so does a late
    event; see `late`.
    """
    if not events.isStreaming:
        return events.dropDuplicates(["source", "id"])
    arriving = events.withColumn("arrived", F.current_timestamp()).withWatermark("arrived", watermark)
    return arriving.dropDuplicatesWithinWatermark(["source", "id"]).drop("arrived")


def late(watermark: str = "1 hour") -> Column:
    """Return whether an event of a stream arrives so long after its time; false for an event without a time.

    The arrival is the start of the micro-batch, which Spark writes down: a batch that runs again gives the same answer.
    """
    return F.coalesce(F.col("time") < F.current_timestamp() - F.expr(f"INTERVAL {watermark}"), F.lit(False))


_READ: Final = "fieldfare read"
"""the name of a column that no source has"""
_UNREADABLE: Final = {"sequence": "a whole number of 64 bits", "time": "a timestamp"}
_TAKEN: Final = {
    name: (StringType, LongType) if kind == StringType() else type(kind) for name, kind in ATTRIBUTES.items()
}
"""the types of fields that attributes are taken from"""
_DIGITS: Final = 18
"""digits of a decimal that surely fits in 64 bits"""
_DIGEST: Final = 32
"""hexadecimal digits: enough that no two of a trillion records have the same id"""


def _any(places: Collection[Column]) -> Column:
    return reduce(or_, (place.isNotNull() for place in places), F.lit(False))


def _problem(wrong: Column, field: str, reason: str) -> Column:
    return F.when(wrong, F.struct(F.lit(reason).alias("reason"), F.lit(field).alias("field")))


def _decoded(raw: DataFrame, event: str, fields: StructType, unknown: Unknown, limits: Limits) -> DataFrame:
    """Return the records with their fields, and in a struct: rest, record, refused, and other attributes."""
    decoder = Decoder(to_arrow_type(fields, timezone="UTC"), unknown, limits)

    def decode(texts: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from map(decoder, texts)

    # Called chancy, or else Spark would decode once to filter, and once more for what passes.
    udf = _udf(decode, returnType=_result(decoder, fields)).asNondeterministic()
    text = _column(event).cast("string")
    read = F.col(f"`{_READ}`")
    refused = F.when(read["reason"].isNotNull(), F.struct(read["reason"].alias("reason"), read["field"].alias("field")))
    if PROBLEM in raw.columns:
        complaint = F.struct(F.col(PROBLEM).alias("reason"), F.lit("").alias("field"))
        refused = F.when(F.col(PROBLEM).isNotNull(), complaint).otherwise(refused)
    return raw.withColumn(_READ, udf(text)).select(
        *map(_column, raw.columns),
        read["fields"].alias("fields"),
        F.struct(
            read["rest"].alias("rest"),
            text.alias("record"),
            refused.alias("refused"),
            *(read[name].alias(name) for name in decoder.attributes),
        ).alias(_READ),
    )


def _result(decoder: Decoder, fields: StructType) -> StructType:
    return StructType(
        [
            StructField(part.name, fields if part.name == "fields" else from_arrow_type(part.type))
            for part in decoder.result
        ]
    )


def _typed(raw: DataFrame) -> DataFrame:
    """Return the same for records whose fields are columns."""
    fields = [_column(field.name).cast(_widened(field.dataType)).alias(field.name) for field in raw.schema]
    about = F.struct(
        F.lit(None).cast("string").alias("rest"),
        F.to_json(F.struct(*map(_column, raw.columns))).alias("record"),
        F.lit(None).cast("struct<reason: string, field: string>").alias("refused"),
    )
    return raw.select("*", F.struct(*fields).alias("fields"), about.alias(_READ))


def _widened(kind: DataType) -> DataType:
    """Return the type of a field for the type of a column; dates and times without a zone are in the session's zone."""
    match kind:
        case ByteType() | ShortType() | IntegerType():
            return LongType()
        case FloatType():
            return DoubleType()
        case DecimalType():
            return LongType() if kind.scale == 0 and kind.precision <= _DIGITS else DoubleType()
        case DateType() | TimestampNTZType():
            return TimestampType()
        case ArrayType():
            return ArrayType(_widened(kind.elementType))
        case StructType():
            return StructType([StructField(field.name, _widened(field.dataType)) for field in kind])
    return kind


def _candidates(name: str, given: str | Column | None, read: DataFrame, known: Collection[str]) -> list[Column]:
    """Where an attribute may be, the best place first."""
    if given is not None:
        return [F.col(given) if isinstance(given, str) else given]
    fields, about = (cast(StructType, read.schema[column].dataType) for column in ("fields", _READ))
    own = [F.col(f"fields.{name}")] if name in fields.names and isinstance(fields[name].dataType, _TAKEN[name]) else []
    undeclared = [F.col(f"`{_READ}`.{name}")] if name in about.names else []
    return [*own, *undeclared, *(_column(column) for column in _DEFAULTS[name] if column in known)]


def _made(known: Collection[str]) -> Column:
    """Return an id that is the same at each reading of the record."""
    parts = [name for name in _PLACE if name in known] if "position" in known else []
    text = F.to_json(F.struct(*map(_column, parts))) if parts else F.col(f"`{_READ}`.record")
    return F.substring(F.sha2(text, 256), 1, _DIGEST)


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
