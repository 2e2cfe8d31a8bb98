"""The columns of the sources: an event as JSON, with its position, time, publisher, sequence and type.

The columns are those of a sealed segment (`node.storage.parquet_segment`) without the columns that only the node needs.
So a row is the same whether its segment was sealed or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fieldfare.node.storage import parquet_segment
from fieldfare.protocol.journal import JournalEntry

COLUMNS: Final = "position long, time timestamp, publisher string, sequence long, type string, event string"
NAMES: Final = ["position", "time", "publisher", "sequence", "type", "event"]
SCHEMA: Final = pa.schema([pa.field(name, parquet_segment.SCHEMA.field(name).type) for name in NAMES])
"""the schema for Spark, in which all columns may be null"""
ROWS: Final = 10_000
"""rows of a record batch at most"""


def of_entries(entries: Sequence[JournalEntry], *, counted: bool = True) -> Iterator[pa.RecordBatch]:
    """Return the rows of entries; without `sequence` where the sequence numbers are unknown."""
    table = parquet_segment.table_of(list(entries))
    if not counted:
        table = table.set_column(NAMES.index("sequence"), "sequence", pa.nulls(len(entries), pa.int64()))
    return of_table(table)


def of_table(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table with these columns among others, without those for sessions."""
    counts = pc.fill_null(table["sequence"], 0)
    for batch in (
        table.select(NAMES).filter(pc.greater_equal(counts, 0)).combine_chunks().to_batches(max_chunksize=ROWS)
    ):
        yield pa.RecordBatch.from_arrays(batch.columns, schema=SCHEMA)
