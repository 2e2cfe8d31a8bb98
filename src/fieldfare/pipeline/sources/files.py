"""Files as raw records, in a batch or as a stream of new files.

JSON lines are read as lines and not parsed here, so that a bad line reaches the quarantine unchanged. CSV becomes JSON,
an event for each row, see `table.csv`; a file is read by a single task as a whole, up to 2 GB, which is the price of
quoted line breaks. Parquet, ORC and Avro have types: their columns are the fields, for `normalise(…, event=None)`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path, PurePath
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructType

from fieldfare.pipeline.hadoop import HadoopError, hadoop_path
from fieldfare.pipeline.sources.kafka import missing_jar
from fieldfare.pipeline.table.csv import Row, read_csv
from fieldfare.pipeline.table.schema import declared
from fieldfare.pipeline.workers import check_workers


class FileFormat(StrEnum):
    """The format of files of events."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


class FilesError(ValueError):
    """Files that cannot be read, with advice."""


_SUFFIXES: Final = {
    **{kind.value: kind for kind in FileFormat},
    "json": FileFormat.JSONL,
    "ndjson": FileFormat.JSONL,
    "txt": FileFormat.JSONL,
    "pq": FileFormat.PARQUET,
}
_CSV: Final = "event string, problem string, file string, position long"
_ROWS: Final = 10_000


def read_files(
    spark: SparkSession,
    path: str | Path,
    format: FileFormat | str | None = None,  # noqa: A002 - as Spark says
    *,
    stream: bool = False,
    max_files: int | None = None,
    fields: StructType | str | None = None,
) -> DataFrame:
    """Read the records in a file, or in all files below a folder.

    JSON lines and CSV have the columns `event` and `file`, CSV also `problem` and `position`, which is the line.

    Args:
        spark: the Spark session.
        path: the file, the folder, or a pattern such as `lake/2026-*`.
        format: by default the ending of the path, or of the first file below it; a `.gz` is ignored.
        stream: whether to go on with files that are added later.
        max_files: the largest number of files in a micro-batch of the stream.
        fields: declared fields. A cell of CSV in a string field stays a string: 12 is "12" then.
    """
    check_workers(spark)
    try:
        place = hadoop_path(spark, str(path))
    except HadoopError as error:
        raise FilesError(str(error)) from None
    kind = _format(spark, place, format)
    read = _reader(spark, kind, place, stream=stream, max_files=max_files)
    match kind:
        case FileFormat.JSONL:
            lines = read.select(F.col("value").alias("event"), F.col("_metadata.file_path").alias("file"))
            return lines.where(F.trim("event", F.lit(" \t\r")) != "")
        case FileFormat.CSV:
            return _csv(read, declared(fields) if fields is not None else StructType())
        case _:
            return read


def _format(spark: SparkSession, path: str, given: FileFormat | str | None) -> FileFormat:
    if given is not None:
        try:
            return FileFormat(given)
        except ValueError:
            raise FilesError(f"{given!r} is no format, but {', '.join(FileFormat)} are") from None
    if (found := _by_name(path)) is None:
        first = _listed(spark, path).select("path").first()
        found = _by_name(first["path"]) if first else None
    if found is None:
        raise FilesError(f"nothing in {path} has a name that tells its format: say which of {', '.join(FileFormat)}")
    return found


def _by_name(path: str) -> FileFormat | None:
    name = PurePath(path.lower().removesuffix(".gz"))
    return _SUFFIXES.get(name.suffix.removeprefix("."))


def _listed(spark: SparkSession, path: str) -> DataFrame:
    try:
        return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
    except AnalysisException as error:
        raise FilesError(f"{path} cannot be read: {error.getMessage()}") from None


def _reader(spark: SparkSession, kind: FileFormat, path: str, *, stream: bool, max_files: int | None) -> DataFrame:
    source = {FileFormat.JSONL: "text", FileFormat.CSV: "binaryFile"}.get(kind, kind.value)
    options = {"lineSep": "\n"} if kind is FileFormat.JSONL else {}
    if kind in {FileFormat.JSONL, FileFormat.CSV}:
        options["recursiveFileLookup"] = "true"  # folders are only folders there, and no columns
    try:
        batch = spark.read.format(source).options(**options).load(path)
        if not stream:
            return batch
        if max_files is not None:
            options["maxFilesPerTrigger"] = str(max_files)
        return spark.readStream.format(source).schema(batch.schema).options(**options).load(path)
    except AnalysisException as error:
        if error.getCondition() == "AVRO_DATA_SOURCE_NOT_ENABLED":
            advice = missing_jar("avro", spark.version)
            raise FilesError(f"Avro needs a jar that Spark does not bring: {advice}") from None
        raise FilesError(f"{path} cannot be read as {kind}: {error.getMessage()}") from None


def _csv(files: DataFrame, fields: StructType) -> DataFrame:
    strings = frozenset(field.name for field in fields if isinstance(field.dataType, StringType))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, content in zip(batch["path"].to_pylist(), batch["content"], strict=True):
                yield from _rows(path, content.as_py(), strings)

    return files.select("path", "content").mapInArrow(read, _CSV)


def _rows(path: str, content: bytes, strings: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file, in batches."""
    try:
        rows = read_csv(gzip.decompress(content) if path.lower().endswith(".gz") else content, strings)
    except (OSError, EOFError, zlib.error) as error:
        rows = iter([Row(content, f"not gzip: {error}", 0)])
    while some := list(islice(rows, _ROWS)):
        columns = {
            "event": pa.array([row.event for row in some], pa.binary()).view(pa.string()),  # not all need be UTF-8
            "problem": pa.array([row.problem for row in some], pa.string()),
            "file": pa.array([path] * len(some), pa.string()),
            "position": pa.array([row.line for row in some], pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(columns)
