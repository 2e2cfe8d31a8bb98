"""Fieldfare's own contenders: the index, fed in several ways, and the classic algorithms that the index should beat."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from fieldfare.events import Event as FieldEvent
from fieldfare.events.arrow import to_batch
from fieldfare.events.json import decode_lines, encode_lines
from fieldfare.matching import BruteForce, Counting, DecisionDiagram, DecisionTree, Matcher
from fieldfare.matching.index import Index
from fieldfare_lab.bench.engines import Contender, Feed, Run
from fieldfare_lab.bench.rules import Event
from fieldfare_lab.bench.workloads import Workload


@lru_cache(maxsize=2)
def index_of(workload: Workload, kernels: str) -> Index[int]:
    """Make an index with all filters in one segment; the layout has learned from the workload's `seen` events."""
    index: Index[int] = Index(kernels=kernels)
    index.add_many(enumerate(workload.parsed))
    for event in workload.seen:
        index.match(event)
    index.compact()
    return index


def batch_of(events: Sequence[Event]) -> pa.RecordBatch:
    """Return the events as an Arrow batch of typed columns."""
    return to_batch([FieldEvent(event) for event in events])


def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with dictionary-encoded strings, as Parquet files deliver strings."""
    columns = [pc.dictionary_encode(c) if pa.types.is_string(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _batches(kernels: str, shape: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Callable[[Workload], Feed]:
    def prepare(workload: Workload) -> Feed:
        index = index_of(workload, kernels)

        def feed(events: Sequence[Event]) -> Run:
            batch = shape(batch_of(events))
            return lambda: int(index.match_batch(batch).num_rows)

        return feed

    return prepare


def _typed(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def _singles(kernels: str) -> Callable[[Workload], Feed]:
    def prepare(workload: Workload) -> Feed:
        index = index_of(workload, kernels)

        def feed(events: Sequence[Event]) -> Run:
            return lambda: sum(len(index.match(event)) for event in events)

        return feed

    return prepare


def _lines(match: Callable[[Index[int], list[bytes]], int]) -> Callable[[Workload], Feed]:
    def prepare(workload: Workload) -> Feed:
        index = index_of(workload, "numba")

        def feed(events: Sequence[Event]) -> Run:
            lines = list(encode_lines(FieldEvent(event) for event in events))
            return lambda: match(index, lines)

        return feed

    return prepare


def _decoded(index: Index[int], lines: list[bytes]) -> int:
    return sum(len(index.match(event)) for event in decode_lines(lines))


def _looked_at(index: Index[int], lines: list[bytes]) -> int:
    return sum(len(index.match_json(line)) for line in lines)


def _file(workload: Workload) -> Feed:
    """A contender that is given a whole file of JSON lines."""
    index = index_of(workload, "numba")

    def feed(events: Sequence[Event]) -> Run:
        text = b"".join(encode_lines(FieldEvent(event) for event in events))
        return lambda: int(index.match_json_lines(text).num_rows)

    return feed


def _text(workload: Workload) -> Feed:
    """A contender that reads a whole file of JSON lines at once, with Arrow's reader."""
    index = index_of(workload, "numba")

    def feed(events: Sequence[Event]) -> Run:
        schema = pa.schema([_naive(field) for field in batch_of(events).schema])
        text = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        parsing = pj.ParseOptions(explicit_schema=schema)

        def run() -> int:
            table = pj.read_json(io.BytesIO(text), parse_options=parsing)
            return sum(int(index.match_batch(_zoned(part)).num_rows) for part in table.to_batches())

        return run

    return feed


def _naive(field: Any) -> Any:
    """The type that Arrow's JSON reader can read: timestamps without a zone, even where the text has `Z`."""
    return field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field


def _zoned(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [c.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _classic(make: Callable[[], Matcher[int]]) -> Callable[[Workload], Feed]:
    def prepare(workload: Workload) -> Feed:
        matcher = make()
        matcher.add_many(enumerate(workload.parsed))

        def feed(events: Sequence[Event]) -> Run:
            return lambda: sum(map(matcher.count, events))

        return feed

    return prepare


CONTENDERS: Final = (
    Contender("batch", "Index, Arrow batch of typed columns", _batches("numba", _typed), "numba"),
    Contender("batch-dict", "Index, Arrow batch with dictionary-encoded strings", _batches("numba", encoded), "numba"),
    Contender("single", "Index, one dict at a time", _singles("numba"), "numba", pairs=lambda _: 2e9),
    Contender("json", "Index, a line of JSON at a time: match_json", _lines(_looked_at), "numba", pairs=lambda _: 2e9),
    Contender("json-lines", "Index, a file of JSON lines: match_json_lines", _file, "numba"),
    Contender(
        "json-whole",
        "Index, a line at a time: decode all fields, then match",
        _lines(_decoded),
        "numba",
        pairs=lambda _: 2e9,
    ),
    Contender("json-batch", "Index, a file of JSON lines: Arrow reads, match_batch", _text, "numba"),
    Contender("numpy-batch", "Index without numba, Arrow batch", _batches("numpy", _typed), pairs=lambda _: 2e7),
    Contender("numpy-single", "Index without numba, one dict at a time", _singles("numpy"), pairs=lambda _: 5e6),
    Contender("counting", "the classic: count satisfied predicates", _classic(Counting), pairs=lambda _: 2e6),
    Contender("tree", "a decision tree", _classic(DecisionTree), pairs=lambda _: 2e6, most_filters=10_000),
    Contender(
        "diagram", "a binary decision diagram", _classic(DecisionDiagram), pairs=lambda _: 5e5, most_filters=1_000
    ),
    Contender("brute", "every filter on every event", _classic(BruteForce), pairs=lambda _: 2e5),
)
