"""The forms of deliveries against the obvious: every event with every filter, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare import Event, Index, parse
from fieldfare.pipeline.match import deliveries, forms
from fieldfare.pipeline.match.catalogue import About, Opened
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.pairs import Pairs, matched
from fieldfare.pipeline.parts import written

KINDS = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.decimal128(8, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("deep", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
        ("yes", pa.bool_()),
    ]
)
FILTERS = st.sampled_from(
    [
        *("x = 1", "x > 0", "x < 0", "s = 'a'", "s IN ('b', '')", "f >= 0", "d BETWEEN -1.4 AND 0.7", "deep.a = 1"),
        *("NOT EXISTS x", "deep.b LIKE 'a%' OR x = 2", "ANY tags = 'a'", "yes = TRUE", "TRUE", "x = 7 AND s = 'zz'"),
    ]
)
EVENTS = st.fixed_dictionaries(
    {
        "x": st.none() | st.integers(-1, 2),
        "s": st.none() | st.sampled_from(["", "a", "b", "ab" * 40]),
        "f": st.none() | st.sampled_from([0.0, -0.0, 1.5, float("inf")]),
        "d": st.none() | st.sampled_from([Decimal("0.70"), Decimal("0.71"), Decimal("-1.40")]),
        "at": st.none() | st.just(datetime(2026, 1, 2, tzinfo=UTC)),
        "deep": st.none()
        | st.fixed_dictionaries({"a": st.none() | st.integers(0, 1), "b": st.none() | st.sampled_from("ab")}),
        "tags": st.none() | st.lists(st.sampled_from("ab"), max_size=2),
        "raw": st.none() | st.binary(max_size=2),
        "yes": st.none() | st.booleans(),
    }
)


def subscribed(filters: list[str], *, version: int = 7, texts: bool = False) -> Opened:
    """Return subscriptions whose id is their number plus 100, half of them with an owner."""
    numbers = range(100, 100 + len(filters))
    ids = pa.array([f"s{number}" for number in numbers]) if texts else pa.array(numbers, pa.int64())
    owners = pa.array([f"o{n}" if n % 2 else None for n in range(len(filters))], pa.string())
    index: Index[int] = Index(enumerate(filters), kernels="numpy")
    return Opened(About(version, len(filters), None), index, ids, owners)


def naive(opened: Opened, filters: list[str], events: list[dict[str, Any]]) -> list[list[Any]]:
    """Return for each event the ids of the filters that match it."""
    known = [(id, parse(text)) for id, text in zip(opened.ids.to_pylist(), filters, strict=True)]
    return [
        [id for id, filter in known if filter.matches(Event(event))]
        for event in ({name: _value(value) for name, value in one.items() if value is not None} for one in events)
    ]


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one is not None}
    return float(value) if isinstance(value, Decimal) else value  # as the literal in a filter is read


def found_in(opened: Opened, events: Any) -> Iterator[Found]:
    given = pa.StructArray.from_arrays(events.columns, names=events.schema.names)
    yield from forms.found(opened, events, matched(opened, given))


def bits(row: dict[str, Any]) -> str:
    """Return a row so that 0.0 and -0.0 differ."""
    return repr(sorted(row.items()))


@few(30)
@given(st.lists(FILTERS, max_size=6), st.lists(EVENTS, max_size=12), st.booleans(), st.integers(1, 5))
def test_lists_rows_and_counts_are_what_brute_force_gives(
    filters: list[str], some: list[dict[str, Any]], texts: bool, step: int
) -> None:
    opened = subscribed(filters, texts=texts)
    events = [{"n": n, **event} for n, event in enumerate(some)]
    batch = pa.RecordBatch.from_pylist(events, KINDS)
    expected = naive(opened, filters, events)
    parts = [batch.slice(start, step) for start in range(0, len(events), step)]
    found = [one for part in parts for one in found_in(opened, part)]
    lists = [row for one in found for row in forms.lists(one).to_pylist()]
    assert [bits(row) for row in lists] == [
        bits({**event, "subscriptions": ids, "snapshot": 7})
        for event, ids in zip(batch.to_pylist(), expected, strict=True)
    ]
    owners = dict(zip(opened.ids.to_pylist(), opened.owners.to_pylist(), strict=True))
    wanted = [
        bits({**event, "subscription": id, "owner": owners[id], "snapshot": 7})
        for event, ids in zip(batch.to_pylist(), expected, strict=True)
        for id in ids
    ]
    assert [bits(row) for one in found for made in forms.rows(one) for row in made.to_pylist()] == wanted
    blocks = [*forms.counts(found[::2]), *forms.counts(found[1::2])]
    counted = {
        row["subscription"]: row["events"]
        for (_, block), total in forms.summed(blocks).items()
        for row in forms.named_counts(opened, block, total).to_pylist()
    }
    assert counted == Counter(id for ids in expected for id in ids)
    with TemporaryDirectory() as name:
        assert files(Path(name) / "rows", found, "rows") == wanted
        assert files(Path(name) / "lists", found, "lists") == [bits(row) for row in lists]


def files(folder: Path, found: list[Found], form: Any) -> list[str]:
    """Return the rows of the file that a worker writes, if there is one."""
    [*parts] = deliveries._writing(lambda _: iter(found), folder, form)(iter(()))
    rows = [row for part in parts for row in pq.read_table(folder / part["path"][0].as_py()).to_pylist()]
    assert [part["rows"][0].as_py() for part in parts] == ([len(rows)] if rows else [])
    return [bits(row) for row in rows]


def test_files_have_plain_columns_with_dictionaries_of_parquet(tmp_path: Path) -> None:
    opened = subscribed(["x = 1"] * 50, texts=True)
    events = pa.RecordBatch.from_pylist([{"n": n, "x": 1, "s": f"long text {n}"} for n in range(40)], KINDS)
    [part] = deliveries._writing(lambda _: found_in(opened, events), tmp_path, "rows")(iter(()))
    with pq.ParquetFile(tmp_path / part["path"][0].as_py()) as file:
        assert file.schema_arrow.field("s").type == pa.string()
        assert file.schema_arrow.field("subscription").type == pa.string()
        group = file.metadata.row_group(0)
        columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
        assert "RLE_DICTIONARY" in columns["s"].encodings
        assert columns["s"].total_uncompressed_size < 50 * 40 * 2  # a value for each event, an index for each row


def test_large_values_and_lists_are_cut_into_batches(monkeypatch: Any) -> None:
    monkeypatch.setattr(forms, "_BYTES", 1 << 12)
    opened = subscribed(["x = 1"] * 30)
    tags = [["a" * 10] * (n + 1) for n in range(20)]
    events = pa.RecordBatch.from_pylist([{"n": n, "x": 1, "s": "y" * 500, "tags": tags[n]} for n in range(20)], KINDS)
    [one] = found_in(opened, events)
    for made in ([*forms.rows(one)], [*forms.coded_rows(one)]):
        assert len(made) > 5
        rows = [row for batch in made for row in batch.select(["n", "subscription", "tags"]).to_pylist()]
        assert rows == [
            {"n": n, "subscription": id, "tags": tags[n]} for n in range(20) for id in opened.ids.to_pylist()
        ]


def test_counts_of_many_subscriptions_travel_in_blocks(monkeypatch: Any) -> None:
    monkeypatch.setattr(forms, "BLOCK", 4)
    opened = subscribed(["x = 1"] * 11)
    one = Found(opened, None, Pairs(np.array([2, 0, 1]), np.array([1, 9, 9])))
    [blocks] = forms.counts([one])
    assert blocks["block"].to_pylist() == [0, 2]
    rows = [
        row
        for (_, block), total in forms.summed([blocks, blocks]).items()
        for row in forms.named_counts(opened, block, total).to_pylist()
    ]
    assert rows == [
        {"subscription": 101, "owner": "o1", "events": 2, "snapshot": 7},
        {"subscription": 109, "owner": "o9", "events": 4, "snapshot": 7},
    ]


def test_an_attempt_that_fails_names_no_file(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": [1, 2]})

    def failing() -> Iterator[Any]:
        yield batch
        raise OSError("the disk is full")

    assert [*_tried(tmp_path, failing())] == []
    [part] = _tried(tmp_path, iter([batch]))
    assert len([*tmp_path.iterdir()]) == 2  # that of the failed attempt is named by nobody
    assert pq.read_table(tmp_path / part["path"][0].as_py()).to_pydict() == {"x": [1, 2]}


def _tried(folder: Path, batches: Iterator[Any]) -> list[Any]:
    try:
        return [*written(folder, batches)]
    except OSError:
        return []
