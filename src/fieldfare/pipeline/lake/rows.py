"""Rows of Parquet files in an object store, read by Spark's Python workers: no jar of Hadoop's is needed.

Each task reads some of the files. Spark sees only the rows and cannot skip blocks within a file; the types, days and
the version have already chosen the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from fieldfare.objects import Objects

_ROWS: Final = 16_384


def read_rows(spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Read files with all columns of a schema; a missing column is null."""
    wanted = to_arrow_schema(schema, timezone="UTC")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                folder, _, name = path.rpartition("/")
                yield from rows_of(Objects(folder).open(name), wanted)

    named = spark.createDataFrame([(path,) for path in paths], "path string")
    return named.repartition(len(paths)).mapInArrow(read, schema)


def rows_of(file: Any, wanted: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file with the columns of a schema."""
    with pq.ParquetFile(file) as source:
        for batch in source.iter_batches(_ROWS, use_threads=False):
            whole = fitted(batch.to_struct_array(), pa.struct(wanted))
            yield pa.RecordBatch.from_struct_array(whole)


def fitted(values: Any, kind: Any) -> Any:
    """Return an array with the type of a newer schema: structs may have more fields there, which are null."""
    if values.type == kind:
        return values
    if pa.types.is_struct(kind):
        have = {field.name for field in values.type}
        parts = [
            fitted(values.field(field.name), field.type) if field.name in have else pa.nulls(len(values), field.type)
            for field in kind
        ]
        missing = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(parts, fields=[*kind], mask=missing)
    if pa.types.is_list(kind):
        lengths_known = values.null_count and values.is_null()
        inner = fitted(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, kind, mask=lengths_known if values.null_count else None)
    return values.cast(kind)
