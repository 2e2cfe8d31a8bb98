"""Sealed segments: what Spark sees, and that the log sees no difference."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from fieldfare import Event, Interval
from fieldfare.events import json, msgpack
from fieldfare.node.storage import parquet_segment
from fieldfare.node.storage.log import Log, LogError, export
from fieldfare.protocol.journal import JournalEntry

EVENTS = [
    Event({"type": "quote", "price": 1.5}),
    Event({"type": 7, "deep": {"er": [1, 2, None]}}),
    Event({"time": datetime(2026, 1, 2, tzinfo=UTC), "digest": b"\0\xff", "text": "né ☃", "open": Interval(1, 2)}),
]


def _entries(count: int, first: int = 1) -> list[JournalEntry]:
    return [
        JournalEntry(
            position, 1.7e9 + position / 8, f"p{position % 3}", -position, msgpack.encode(EVENTS[position % 3]), b"\0r"
        )
        for position in range(first, first + count)
    ]


def _sealed(folder: Path, count: int) -> tuple[Log, Path]:
    log = Log(folder)
    log.append(_entries(count))
    log.roll()
    (path,) = log.seal()
    return log, path


def test_the_folder_is_a_dataset_of_plain_columns(tmp_path: Path) -> None:
    log, path = _sealed(tmp_path, 100)
    log.append(_entries(50, 101))
    log.roll()
    assert [file.name for file in log.seal()] == ["events-00000000000000000101-00000000000000000150.parquet"]
    assert path.name == "events-00000000000000000001-00000000000000000100.parquet"
    log.append(_entries(1, 151))  # raw, so not among them
    log.close()
    table = ds.dataset(sorted(tmp_path.glob("*.parquet")), format="parquet").to_table()
    assert {field.name: str(field.type) for field in table.schema} == {
        "position": "int64",
        "time": "timestamp[us, tz=UTC]",
        "publisher": "string",
        "sequence": "int64",
        "type": "string",
        "event": "string",
        "record": "binary",
        "rest": "binary",
    }
    rows = table.sort_by("position").to_pylist()
    assert len(rows) == 150
    for row, entry in zip(rows, _entries(150), strict=True):
        event = EVENTS[entry.position % 3]
        assert row == {
            "position": entry.position,
            "time": datetime.fromtimestamp(entry.time, UTC),
            "publisher": entry.publisher,
            "sequence": entry.sequence,
            "type": "quote" if entry.position % 3 == 0 else None,
            "event": json.encode(event).decode(),
            "record": entry.event,
            "rest": entry.details,
        }
        assert json.decode(row["event"]) == event


def test_files_are_compressed_sorted_into_groups_and_checksummed(tmp_path: Path) -> None:
    log, path = _sealed(tmp_path, 25_000)
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(number).num_rows for number in range(3)] == [10_000, 10_000, 5_000]
    assert metadata.row_group(0).column(6).compression == "ZSTD"
    assert metadata.row_group(1).column(0).statistics.min == 10_001
    for position in (1, 9_999, 10_000, 10_001, 20_000, 25_000):
        assert list(log.read(position, position + 2)) == _entries(min(3, 25_001 - position), position)
        assert log.position_at(1.7e9 + position / 8) == position
    assert list(log.read(1)) == _entries(25_000)
    log.close()


def test_a_row_group_is_not_too_large_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_segment, "_BYTES", 1000)
    log, path = _sealed(tmp_path, 300)
    assert pq.read_metadata(path).num_row_groups > 5
    assert list(log.read(1)) == _entries(300)
    log.close()


def test_what_is_no_event_is_kept_as_it_is(tmp_path: Path) -> None:
    log = Log(tmp_path)
    odd = [b"", b"\xc1", b"\x01", b"\x81\xa1a", b"\x81\xa6$valid\x01", b"\x81\xa1a" + b"\x91" * 500 + b"\x01"]
    entries = [JournalEntry(number, 5.0, "", 0, data, b"") for number, data in enumerate(odd, 1)]
    log.append(entries)
    log.roll()
    (path,) = log.seal()
    assert list(log.read(1)) == entries
    assert pq.read_table(path)["event"].to_pylist() == [None] * len(odd)
    log.close()


def test_an_event_over_the_usual_limits_is_shown_too(tmp_path: Path) -> None:
    log = Log(tmp_path)
    data = b"\x81\xa1a\xdb" + (1 << 21).to_bytes(4, "big") + b"x" * (1 << 21)
    log.append([JournalEntry(1, 5.0, "ana", 1, data, b"")])
    log.roll()
    (path,) = log.seal()
    assert pq.read_table(path)["event"].to_pylist() == ['{"a":"' + "x" * (1 << 21) + '"}']
    log.close()


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    log, path = _sealed(tmp_path, 100)
    log.close()
    whole, noticed = path.read_bytes(), 0
    for at in [*range(0, len(whole), 41), len(whole) - 6]:
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        log = Log(tmp_path)
        got = list[JournalEntry]()
        with suppress(LogError):
            got = list(log.read(1))
        noticed += not got
        assert got in ([], _entries(100)), "it may be in a column that the log has no need of, but nothing is wrong"
        log.close()
    assert noticed > 10


def test_a_file_with_too_few_entries_is_noticed(tmp_path: Path) -> None:
    log, path = _sealed(tmp_path, 100)
    log.close()
    parquet_segment.write(path, _entries(99))
    log = Log(tmp_path)
    with pytest.raises(LogError, match="has 99 entries"):
        list(log.read(1))
    log.close()


def test_export_writes_any_range_from_both_kinds(tmp_path: Path) -> None:
    log, path = _sealed(tmp_path / "log", 20)
    log.append(_entries(10, 21))
    target = tmp_path / "out.parquet"
    assert export(log, target) == 30
    assert pq.read_schema(target) == pq.read_schema(path) == parquet_segment.SCHEMA
    assert pq.read_table(target)["position"].to_pylist() == list(range(1, 31))
    assert export(log, target, 19, 22) == 4
    assert pq.read_table(target)["record"].to_pylist() == [entry.event for entry in _entries(4, 19)]
    assert export(log, target, 31) == 0
    assert pq.read_table(target).num_rows == 0
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["out.parquet"]
    log.close()


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    log, _ = _sealed(tmp_path / "log", 5)
    broken = [*_entries(5), JournalEntry(6, 1.0, "ana", 1 << 70, b"", b"")]
    with pytest.raises((OverflowError, pa.ArrowException)):
        parquet_segment.write(tmp_path / "x.parquet", broken)
    assert not (tmp_path / "x.parquet").exists()
    log.close()
