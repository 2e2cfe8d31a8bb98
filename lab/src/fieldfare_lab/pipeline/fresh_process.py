"""A program that opens a catalogue in a fresh process and prints the time of each step as JSON."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec


class Opening(msgspec.Struct):
    """Seconds of each step in a fresh process."""

    imported: float
    opened: float
    opened_cpu: float
    matched: float
    """time of the first batch, a thousand events"""


def measured(path: str, events: Path) -> Opening:
    """Measure the imports, the opening of the catalogue and the first batch."""
    begin = time.perf_counter()
    import pyarrow.parquet as pq  # noqa: PLC0415 - the import is a measured step

    from fieldfare.pipeline.match import catalogue  # noqa: PLC0415

    imported, cpu = time.perf_counter(), time.process_time()
    opened = catalogue.opened(path, catalogue.current(path))
    there, cpu = time.perf_counter(), time.process_time() - cpu
    file = min(events.glob("*.parquet"))
    batch = pq.read_table(file, columns=opened.about.fields).slice(0, 1000).combine_chunks().to_batches()[0]
    ready = time.perf_counter()
    opened.index.match_batch(batch)
    return Opening(imported - begin, there - imported, cpu, time.perf_counter() - ready)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measured(sys.argv[1], Path(sys.argv[2]))))
