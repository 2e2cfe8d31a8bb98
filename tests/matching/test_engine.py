"""What only the engine has: batches, snapshots, bulk loading, background merges, many threads."""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.matching.strategies import events, filters

from fieldfare.events import EventError, arrow
from fieldfare.events.event import Event
from fieldfare.filters import Filter, parse
from fieldfare.matching import BruteForce
from fieldfare.matching.index import Index
from fieldfare.matching.store.snapshot import MAGIC, SnapshotError

KERNELS = ["numba", "numpy"]


def pairs(table: Any) -> set[tuple[int, Any]]:
    found = list(zip(table["event"].to_pylist(), table["id"].to_pylist(), strict=True))
    assert len(found) == len(set(found))
    assert found == sorted(found, key=lambda pair: pair[0])
    return set(found)


@pytest.mark.parametrize("kernels", KERNELS)
@few(15)
@given(
    stored=st.lists(filters(), min_size=1, max_size=10),
    given_events=st.lists(events(), min_size=1, max_size=6),
    drain=st.booleans(),
)
def test_a_batch_is_its_events(kernels: str, stored: list[Filter], given_events: list[Any], drain: bool) -> None:
    try:
        batch = arrow.to_batch([event if isinstance(event, Event) else Event(event) for event in given_events])
    except EventError:
        return  # values of two kinds in one column
    index: Index[int] = Index(enumerate(stored), kernels=kernels)
    if drain:
        index.compact()
    rows = arrow.rows(batch)
    expected = {
        (row, i) for row, fields in enumerate(rows) for i, wanted in enumerate(stored) if wanted.matches(fields)
    }
    assert pairs(index.match_batch(batch)) == expected


@pytest.mark.parametrize("kernels", KERNELS)
def test_batches_of_every_arrow_type(kernels: str) -> None:
    texts = ["", "a", "ab", "äb", "abc", None, "b", "\U0001f426b"]
    index: Index[str] = Index(
        [(text, text) for text in (
            "s = 'ab'", "s STARTS WITH 'ä'", "s ENDS WITH 'b'", "s != 'a'", "NOT EXISTS s", "n > 2", "n = 3", "f < 1.5", "f IS NAN",
            "t >= TIMESTAMP '2026-01-01T00:00:00Z'", "b = TRUE", "o.x = 1", "EXISTS o", "ANY l = 2", "ALL l > 1", "x = X'61'", "big = 9007199254740993",
        )],
        kernels=kernels,
    )  # fmt: skip
    columns = {
        "s": pa.array(texts),
        "n": pa.array([None, 1, 2, 3, 4, -(2**63), 2**63 - 1, 0], pa.int64()),
        "f": pa.array([float("nan"), 1.5, -0.0, 0.0, None, float("-inf"), 1.0, 2.0]),
        "t": pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 9)], pa.timestamp("ms", "UTC")),
        "b": pa.array([True, False, None, True, False, True, False, None]),
        "o": pa.array([{"x": i % 2} if i else None for i in range(8)]),
        "l": pa.array([[1, 2], [2, 3], [], None, [5], [1], [2], [0]]),
        "x": pa.array([b"a", b"", None, b"b", b"a", b"a", b"", b""]),
        "big": pa.array([2**53, 2**53 + 1, 0, 0, 0, 0, 0, 0], pa.int64()),
    }
    batch = pa.record_batch(columns)
    brute = BruteForce[str]()
    brute.add_many((text, text) for text in index)
    expected = {(row, id) for row, fields in enumerate(arrow.rows(batch)) for id in brute.match(fields)}
    assert pairs(index.match_batch(batch)) == expected
    assert pairs(index.match_batch(batch.slice(2, 4))) == {(row - 2, id) for row, id in expected if 2 <= row < 6}
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        other = pa.record_batch({**columns, "s": columns["s"].cast(kind)})
        assert pairs(index.match_batch(other)) == expected
    assert index.match_batch(batch.slice(0, 0)).num_rows == 0


def stock(count: int, seed: int = 1) -> list[tuple[int, str]]:
    rng = random.Random(seed)
    return [
        (
            i,
            f"symbol = 'S{rng.randrange(40)}' AND price BETWEEN {(low := rng.randrange(900))} AND {low + rng.randrange(200)}",
        )
        for i in range(count)
    ]


def quote(rng: random.Random) -> dict[str, object]:
    return {"symbol": f"S{rng.randrange(40)}", "price": rng.uniform(0, 1000), "venue": "XXYX"}


@pytest.mark.parametrize("kernels", KERNELS)
def test_bulk_loading_is_adding_one_by_one(kernels: str) -> None:
    items: list[tuple[Any, str]] = [
        *stock(400),
        ("res", "price * 2 > 1500"),
        ("any", "ANY symbol = 'S1'"),
        ("or", "price < 5 OR symbol = 'S2'"),
        ("ne", "symbol != 'S3'"),
    ]
    bulk: Index[Any] = Index(items, kernels=kernels)
    single: Index[Any] = Index(kernels=kernels)
    for id, text in items:
        single.add(id, text)
    rng = random.Random(2)
    for _ in range(200):
        event = quote(rng)
        assert sorted(map(str, bulk.match(event))) == sorted(map(str, single.match(event)))
    assert all(bulk.filter(id) == parse(text) for id, text in items)


def test_bulk_loading_is_all_or_nothing() -> None:
    index: Index[int] = Index(stock(300))
    with pytest.raises(KeyError):
        index.add_many([(i + 299, text) for i, text in stock(300)])
    with pytest.raises(ValueError, match="expected"):
        index.add_many([*((i + 1000, text) for i, text in stock(300)), (5000, "price <")])
    assert len(index) == 300


def test_merges_in_the_background_change_no_answer() -> None:
    index: Index[int] = Index(kernels="numba")
    brute = BruteForce[int]()
    rng = random.Random(3)
    for i, text in stock(5000):
        index.add(i, text)
        brute.add(i, text)
        if i % 3 == 0 and i > 100:
            gone = rng.randrange(i)
            if gone in brute:
                index.remove(gone)
                brute.remove(gone)
        if i % 300 == 0:
            event = quote(rng)
            assert set(index.match(event)) == set(brute.match(event))
    assert sum(index.stats().segments) > 2000


def test_many_threads() -> None:
    """Readers see every filter that was added before, each once, while others are added, updated and removed."""
    index: Index[Any] = Index(((f"stay{i}", text) for i, text in stock(300)), kernels="numba")
    stay = BruteForce[Any]()
    stay.add_many((f"stay{i}", text) for i, text in stock(300))
    index.add("moving", "price >= 0")
    forms = [
        "price >= {}",
        "venue CONTAINS 'XX' AND price >= {}",
        "NOT venue CONTAINS 'YY' AND price >= {}",
        "venue LIKE '%XXY%' OR price >= {}",
    ]
    problems: list[object] = []
    done = threading.Event()

    def read(seed: int) -> None:
        rng = random.Random(seed)
        while not done.is_set():
            event = quote(rng)
            found = index.match(event)
            if len(found) != len(set(found)):
                problems.append(("twice", found))
            if not set(stay.match(event)) <= set(found):
                problems.append("lost")
            if "moving" not in found:
                problems.append("gap")

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in readers:
        thread.start()
    rng = random.Random(9)
    for i, text in stock(1000, seed=5):
        index.add(i, text)
        if i % 2:
            index.remove(i - 1)
        index.update("moving", rng.choice(forms).format(-rng.randrange(100)))
    done.set()
    for thread in readers:
        thread.join()
    assert not problems


@pytest.mark.parametrize("kernels", KERNELS)
def test_an_update_between_finding_and_naming(kernels: str) -> None:
    """Deterministic, where threads would have to be lucky: the update lands when a reader has its answer already."""
    index: Index[str] = Index([("moving", "price >= 0"), ("going", "price >= 1")], kernels=kernels)
    reader = index._reader
    batch = pa.record_batch({"price": [5.0]})
    for name, ask in (
        ("owners", lambda: index.match({"price": 5.0})),
        ("pairs", lambda: ids(index.match_batch(batch))),
    ):
        found = getattr(reader, name)

        def then_change(what: Any, found: Any = found) -> Any:
            answer = found(what)
            index.update("moving", "price >= -1")
            index.remove("going")
            index.add("going", "price >= 2")
            return answer

        setattr(reader, name, then_change)
        assert ask().count("moving") == 1
        assert None not in ask()
        setattr(reader, name, found)


def ids(table: Any) -> list[Any]:
    return list(table["id"].to_pylist())


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_snapshot_matches_as_its_index_did(kernels: str, tmp_path: Path) -> None:
    items: list[tuple[str, str]] = [
        *((str(i), text) for i, text in stock(500)),
        ("res", "price * 2 > 1500"),
        ("list", "ANY symbol = 'S1'"),
    ]
    index: Index[str] = Index(items, kernels=kernels)
    index.remove("7")
    index.save(tmp_path / "index.ff")
    rng = random.Random(4)
    batch = pa.Table.from_pylist([quote(rng) for _ in range(50)]).to_batches()[0]
    for opened in (Index.open(tmp_path / "index.ff", kernels=kernels), Index.open(index.snapshot(), kernels=kernels)):
        assert len(opened) == len(index)
        assert pairs(opened.match_batch(batch)) == pairs(index.match_batch(batch))
        assert sorted(opened.match(quote(random.Random(5)))) == sorted(index.match(quote(random.Random(5))))
        assert opened.filter("list") == parse("ANY symbol = 'S1'")
        opened.add("new", "price >= 0")
        opened.remove("8")
        assert "new" in opened.match({"price": 1})
        assert "8" not in opened


def test_a_damaged_snapshot_is_refused() -> None:
    whole = Index(stock(300), kernels="numba").snapshot()
    rng = random.Random(6)
    places = [rng.randrange(len(whole)) for _ in range(60)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        try:
            Index.open(bytes(damaged), kernels="numba")
        except SnapshotError:
            continue
        assert whole[place] == 0  # only the gaps between sections are not looked at
    with pytest.raises(SnapshotError, match=r"cut short|damaged"):
        Index.open(whole[: len(whole) // 2])
    with pytest.raises(SnapshotError, match="not a Fieldfare snapshot"):
        Index.open(b"something else entirely, and long enough to have a header")
    with pytest.raises(SnapshotError, match="format 99"):
        Index.open(MAGIC + (99).to_bytes(4, "little") + whole[12:])


def test_stats_and_ids() -> None:
    index: Index[Any] = Index([*stock(300), ("text", "name CONTAINS 'x'")], kernels="numba")
    for _ in range(40):
        index.match({"symbol": "S1", "price": 5.0, "name": "abc"})
    spent = index.profile([{"symbol": "S1", "price": 5.0}] * 5, time.process_time)
    assert set(spent) == {"flatten", "look up", "verify", "name"}
    assert all(seconds >= 0 for seconds in spent.values())
    stats = index.stats()
    assert (stats.filters, stats.attributes, stats.verified, stats.kernels) == (301, 3, 1, "numba")
    assert stats.checks == [("text", 40)]
    assert 0 < stats.selectivity["price"] < 1
    with pytest.raises(TypeError, match="one type"):
        index.match_batch(pa.record_batch({"price": [1.0]}))
