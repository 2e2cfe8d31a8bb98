"""The engine without Spark: processes that hold batches of events in memory and match all batches on request."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.pipeline.match import catalogue
from fieldfare_lab.node.servers import answer
from fieldfare_lab.pipeline.clock import Spent

Round = Callable[[], tuple[int, Spent]]
"""matches everything once; returns the number of matches and the cost"""


@contextlib.contextmanager
def engine(events: Path, subscriptions: Path, *, processes: int, rows: int) -> Iterator[Round]:
    """Start processes that open the snapshot, each with a share of the files, in batches of `rows` rows."""
    context = multiprocessing.get_context("spawn")
    files = sorted(events.glob("*.parquet"))
    with contextlib.ExitStack() as stack:
        pipes: list[Connection] = []
        for number in range(processes):
            ours, theirs = context.Pipe()
            share = files[number::processes]
            process = context.Process(target=_matching, args=(theirs, share, str(subscriptions), rows), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join)
            stack.callback(ours.close)
            pipes.append(ours)
        for pipe in pipes:
            answer(pipe)

        def once() -> tuple[int, Spent]:
            for pipe in pipes:
                pipe.send("go")
            found = [answer(pipe) for pipe in pipes]
            spent = Spent(max(wall for _, wall, _ in found), sum(cpu for _, _, cpu in found))
            return sum(matches for matches, _, _ in found), spent

        yield once


def batches(files: list[Path], fields: list[str], rows: int) -> list[pa.RecordBatch]:
    """Read events in the form in which Spark passes events to a worker: `rows` at a time, only fields of filters."""
    tables = (pq.read_table(file, columns=fields).combine_chunks() for file in files)
    return [batch for table in tables for batch in table.to_batches(max_chunksize=rows)]


def _matching(pipe: Connection, files: list[Path], subscriptions: str, rows: int) -> None:
    """Be a process that matches all its batches at each message of the pipe, until the pipe closes."""
    opened = catalogue.opened(subscriptions, catalogue.current(subscriptions))
    given = batches(files, opened.about.fields or [], rows)
    index = opened.index
    index.match_batch(given[0])
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while pipe.recv():
            wall, cpu = time.perf_counter(), time.process_time()
            matches = sum(index.match_batch(batch).num_rows for batch in given)
            pipe.send((matches, time.perf_counter() - wall, time.process_time() - cpu))
