"""Results of matching for other programs, as JSON lines or as a Parquet file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from fieldfare.cli.formats.outcome import Result
from fieldfare.events.json import write

_ROWS: Final = 1 << 16
"""rows of a row group in a Parquet file"""


def write_jsonl(results: Iterable[Result], to: Path | None) -> None:
    """Write a line for each event, and flush each line: a program that follows the stream gets a result at once."""
    with nullcontext(sys.stdout.buffer) if to is None else to.open("wb") as stream:
        for number, event, matches in results:
            stream.write(write({"event": number, "id": event.id, "matches": matches}) + b"\n")
            stream.flush()


def write_parquet(results: Iterable[Result], to: Path) -> None:
    """Write a row for each match; the file appears under its name when all rows are written."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("event", pa.int64()), ("filter", pa.string())])
    part = to.with_name(f"{to.name}.part")
    numbers: list[int] = []
    names: list[str] = []
    try:
        with part.open("wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
            for number, _, matches in results:
                numbers += [number] * len(matches)
                names += matches
                if len(names) >= _ROWS:
                    writer.write_table(pa.table([numbers, names], schema=schema))
                    numbers, names = [], []
            writer.write_table(pa.table([numbers, names], schema=schema))
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
