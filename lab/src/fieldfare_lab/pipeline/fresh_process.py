"""A fresh process that opens a catalogue and prints how long each step took."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec


class Opening(msgspec.Struct):
    """Seconds."""

    imported: float
    opened: float
    opened_cpu: float
    matched: float
    """the first thousand events"""


def measured(path: str, events: Path) -> Opening:
    """Import, open, match for the first time."""
    begin = time.perf_counter()
    import pyarrow.parquet as pq  # noqa: PLC0415 - that is what is measured

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
