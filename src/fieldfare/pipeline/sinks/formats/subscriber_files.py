"""Deliveries as a file for each subscriber, written by workers in two steps; no delivery passes through Spark.

cut       the tasks that match sort their pairs of event and subscription by owner, and leave them beside the events, in
          files of Arrow that are read by mapping: a *chunk*. A pair is eight bytes, an event is there once
gather    each task takes some of the owners, reads their pairs in all chunks, and writes a file of rows for each
"""

from __future__ import annotations

import uuid
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fieldfare.pipeline.lake.folders import folder_name, move
from fieldfare.pipeline.match import forms
from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.deliveries import full
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.operator import Matched
from fieldfare.pipeline.match.pairs import Pairs
from fieldfare.pipeline.match.ways import Batches, MatchPlan
from fieldfare.pipeline.parts import written

_CHUNKS: Final = "path string, snapshot bigint"
_FILES: Final = "folder string, path string"
_EVENTS, _PAIRS, _OWNERS = "events.arrow", "pairs.arrow", "owners.arrow"
_TASKS: Final = 4
"""tasks of the second step for each core"""


class Chunk(NamedTuple):
    """A folder with some events and the pairs of matches, of a single version of the subscriptions."""

    path: str
    snapshot: int


def write_matched(matched: Matched, place: Path, aside: Path, name: str) -> int:
    """Write a file of a name into the folder of each owner with deliveries; return how many owners there are."""
    spark = matched.source.frame.sparkSession
    tasks = _TASKS * spark.sparkContext.defaultParallelism
    cut = matched.source.frame.mapInArrow(_cutting(matched.source.read, aside, tasks), _CHUNKS).collect()
    chunks = [Chunk(*row) for row in cut]
    if not chunks:
        return 0
    turns = spark.range(0, tasks, numPartitions=tasks)
    files = turns.mapInArrow(_gathering(matched.plan, aside, chunks), _FILES).collect()
    for folder, path in files:
        move(aside / path, place / folder / name)
    return len(files)


def _cutting(read: Callable[[Batches], Iterator[Found]], aside: Path, tasks: int) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        owners = _Owners(tasks)
        for one in full(forms.without_rest(found) for found in read(batches)):
            if len(one.pairs.numbers):
                chunk = cut(one, owners, aside)
                yield pa.record_batch({"path": [chunk.path], "snapshot": [chunk.snapshot]})

    return run


def _gathering(plan: MatchPlan, aside: Path, chunks: Sequence[Chunk]) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for turn in batch.column(0).to_pylist():
                for folder, found in gathered(plan.of, aside, chunks, turn):
                    rows = (rows for one in full(found) for rows in forms.coded_rows(one))
                    for part in written(aside, rows):
                        yield pa.record_batch({"folder": [folder], "path": part["path"]})

    return run


class _Owners:
    """The folders of the owners of a version, and the gathering tasks."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._version: Opened | None = None

    def of(self, opened: Opened) -> tuple[Any, Any, Any]:
        """Return the place of each subscription's owner, by number, and the folder and the task at each place."""
        if self._version is not opened:
            coded = opened.owners.dictionary_encode("encode")
            folders = [folder_name(owner) for owner in coded.dictionary.to_pylist()]
            turns = [zlib.crc32(folder.encode()) % self._tasks for folder in folders]
            self._found = np.asarray(coded.indices), pa.array(folders, pa.string()), pa.array(turns, pa.int32())
            self._version = opened
        return self._found


def cut(found: Found, owners: _Owners, aside: Path) -> Chunk:
    """Write a chunk: the events, their pairs sorted by owner, and where the pairs of each owner are."""
    opened, kept, (counts, numbers) = found
    place, folders, turns = owners.of(opened)
    whose = place[numbers]
    order = np.argsort(whose, kind="stable")
    events = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[order]
    starts = np.flatnonzero(np.diff(whose[order], prepend=-1))
    used = pa.array(whose[order[starts]])
    folder = aside / f"chunk-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    _store(folder / _EVENTS, kept)
    _store(folder / _PAIRS, pa.record_batch({"event": events, "number": numbers[order].astype(np.int32)}))
    ends = np.append(starts[1:], len(order))
    columns = {"folder": folders.take(used), "task": turns.take(used), "start": starts, "end": ends}
    _store(folder / _OWNERS, pa.record_batch(columns))
    return Chunk(folder.name, opened.about.version)


def gathered(
    version: Callable[[int], Opened], aside: Path, chunks: Sequence[Chunk], task: int
) -> Iterator[tuple[str, Iterator[Found]]]:
    """Yield the folder of each owner that falls to a task, with the owner's events and subscriptions."""
    places: dict[str, list[tuple[Chunk, int, int]]] = defaultdict(list)
    for chunk in chunks:
        owners = _stored(aside / chunk.path / _OWNERS)
        for row in owners.filter(pc.equal(owners["task"], task)).to_pylist():
            places[row["folder"]].append((chunk, row["start"], row["end"]))
    for folder, parts in places.items():
        yield folder, (_taken(version(chunk.snapshot), aside / chunk.path, start, end) for chunk, start, end in parts)


def _taken(opened: Opened, chunk: Path, start: int, end: int) -> Found:
    pairs = _stored(chunk / _PAIRS).slice(start, end - start)
    events, counts = np.unique(pairs["event"].to_numpy(), return_counts=True)
    kept = _stored(chunk / _EVENTS).take(pa.array(events))
    return Found(opened, kept, Pairs(counts, pairs["number"].to_numpy().astype(np.int64)))


def _store(path: Path, batch: Any) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _stored(path: Path) -> Any:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).get_batch(0)
