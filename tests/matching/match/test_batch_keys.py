"""Batches larger than a chunk, sliced anywhere, of every width of number and string; and columns that come meanwhile."""

from __future__ import annotations

import random
import threading
from typing import Any

import pyarrow as pa
import pytest
from tests.matching.test_engine import KERNELS, pairs

from fieldfare.events import arrow
from fieldfare.matching import BruteForce
from fieldfare.matching.index import Index

ROWS = 2500
TEXTS = [
    "",
    "a",
    "abcdefg",
    "abcdefgh",
    "abcdefghi",
    "abcdefgh" * 3,
    "abcdefgh" * 2 + "x",
    "äöüßäöüß",
    "\U0001f426" * 4,
]
FILTERS = [
    *(f"s = '{text}'" for text in TEXTS),
    "s STARTS WITH 'abc'",
    "s STARTS WITH 'äö'",
    "s ENDS WITH 'h'",
    "s ENDS WITH '\U0001f426\U0001f426'",
    "EXISTS s AND NOT s = 'a'",
    "n < -3",
    "n BETWEEN -3 AND 5",
    "n = 7 OR n = 0",
    "NOT EXISTS n",
    "f < 0",
    "f = 0",
    "f > 1.5",
    "f IS NAN",
    "EXISTS f",
    "n > 100",
]


def some(rng: random.Random, values: list[Any], nulls: float) -> list[Any]:
    return [None if rng.random() < nulls else rng.choice(values) for _ in range(ROWS)]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("nulls", [0.0, 0.1, 0.98])
def test_chunks_and_slices(kernels: str, nulls: float) -> None:
    rng = random.Random(nulls)
    index: Index[str] = Index([(text, text) for text in FILTERS], kernels=kernels)
    brute = BruteForce[str]()
    brute.add_many((text, text) for text in FILTERS)
    texts = pa.array(some(rng, [*TEXTS, "other", "abcdefgx", "abcdefghabcdefgy"], nulls), pa.string())
    whole = pa.array(some(rng, [-9, -3, -1, 0, 5, 7, 101], nulls), pa.int64())
    real = pa.array(some(rng, [-2.5, -0.0, 0.0, 1.5, 3.0, float("nan"), float("-inf")], nulls), pa.float64())
    plain = pa.record_batch({"s": texts, "n": whole, "f": real})
    hits = [brute.match(fields) for fields in arrow.rows(plain)]  # whatever the widths: all values are exact in all
    for text_kind, whole_kind, real_kind in (
        (pa.string(), pa.int64(), pa.float64()),
        (pa.large_string(), pa.int8(), pa.float32()),
        (pa.string_view(), pa.int16(), pa.float64()),
        (pa.dictionary(pa.int16(), pa.string()), pa.int32(), pa.float32()),
    ):
        batch = pa.record_batch({"s": texts.cast(text_kind), "n": whole.cast(whole_kind), "f": real.cast(real_kind)})
        for start, length in ((0, ROWS), (3, 1500), (1021, 1030), (8, 1024), (2499, 1), (77, 0)):
            part = batch.slice(start, length)
            expected = {(row, id) for row, ids in enumerate(hits[start : start + length]) for id in ids}
            assert pairs(index.match_batch(part)) == expected


@pytest.mark.parametrize("kernels", KERNELS)
def test_unsigned_and_long_integers(kernels: str) -> None:
    index: Index[str] = Index([(text, text) for text in ("n > 5", "n = 9007199254740993", "n < 0")], kernels=kernels)
    for kind, values in (
        (pa.uint8(), [0, 5, 6, 255, None]),
        (pa.uint32(), [0, 6, 2**32 - 1, None]),
        (pa.uint64(), [0, 6, 2**53, 2**53 + 1, 2**63 - 1, None]),
        (pa.int64(), [-(2**63), -(2**53) - 1, 2**53, 2**53 + 1, 2**63 - 1, None]),
    ):
        batch = pa.record_batch({"n": pa.array(values, kind)})
        expected = {(row, id) for row, fields in enumerate(arrow.rows(batch)) for id in index.match(fields)}
        assert pairs(index.match_batch(batch)) == expected


@pytest.mark.parametrize("kernels", KERNELS)
def test_columns_may_come_while_events_are_read(kernels: str) -> None:
    """A filter on a new attribute, or with a new constant, is added while others match: nothing is lost or made up."""
    index: Index[str] = Index([("stay", "a >= 0"), ("not", "a < 0")], kernels=kernels)
    event = {"a": 1.5, **{f"b{i}": -1.0 for i in range(150)}, "s": "x"}
    batch = pa.RecordBatch.from_pylist([event] * 3)
    problems: list[object] = []
    done = threading.Event()

    def read(*, whole: bool) -> None:
        while not done.is_set():
            found = index.match_batch(batch)["id"].to_pylist() if whole else index.match(event)
            if "stay" not in found or any(id.startswith("not") for id in found):
                problems.append(found)

    readers = [threading.Thread(target=read, kwargs={"whole": whole}) for whole in (False, True)]
    for thread in readers:
        thread.start()
    try:
        for i in range(150):
            index.add(f"b{i}", f"b{i} < 0 AND s = 'x'")
            index.add(f"not{i}", f"b{i} > 0 OR s = 'y{i}'")
    finally:
        done.set()
        for thread in readers:
            thread.join()
    assert not problems
    assert len(index.match(event)) == 151
