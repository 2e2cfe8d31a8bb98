"""A log's archive has every segment once, whatever fails, and readers read it like the log of a node."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fieldfare.node.config import Log as LogSettings
from fieldfare.node.storage.archive import Archive
from fieldfare.node.storage.log import Log, LogError
from fieldfare.node.storage.segments import Segment
from fieldfare.node.storage.storage import Storage
from fieldfare.objects import Objects
from fieldfare.pipeline.sources import register
from fieldfare.pipeline.sources.log import LogReader, LogStreamReader
from fieldfare.protocol.journal import JournalEntry


class ArchiveSuite:
    """The promises of an archive, wherever it lies."""

    def test_a_segment_leaves_the_disk_when_the_archive_has_it(
        self, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        storage = opened(tmp_path / "node", place)
        write(storage, 1, 30)
        assert storage.tidy(2e9, 10**9) == 30
        assert read(place) == [*range(1, 31)]
        write(storage, 31, 60)
        with monkeypatch.context() as patch:
            patch.setattr(Objects, "put_new", failing_after(1))
            with caplog.at_level(logging.WARNING):
                assert storage.tidy(2e9, 10**9) == 10, "all that the archive has"
        assert "segments from position 41 on stay on disk until the archive takes them: no network" in caplog.text
        storage._archive = Archive(place, tmp_path / "node" / "archive.json")  # as after a restart
        storage.tidy(2e9, 10**9)
        assert read(place) == [*range(1, 51)]
        storage.close()
        assert follow(place, 7) == [*range(1, 51)]

    def test_another_log_is_refused(self, place: str, tmp_path: Path) -> None:
        for name, entries in (("one", 30), ("two", 20)):
            storage = opened(tmp_path / name, place)
            write(storage, 1, entries)
            if name == "one":
                storage.tidy(2e9, 10**9)
            else:
                with pytest.raises(LogError, match="has the log of another node, or of this node before it lost its"):
                    storage.tidy(2e9, 10**9)
                assert storage.log.first == 1, "nothing was deleted"
            storage.close()

    def test_a_log_that_has_lost_its_end_is_refused(self, place: str, tmp_path: Path) -> None:
        storage = opened(tmp_path / "node", place)
        write(storage, 1, 30)
        storage.tidy(2e9, 10**9)
        storage.close()
        shorter = opened(tmp_path / "shorter", "")
        write(shorter, 1, 10)
        with pytest.raises(LogError, match="ends at position 30, and the log at 10: the log has lost its end"):
            Archive(place, tmp_path / "node" / "archive.json").add(segments(shorter))
        shorter.close()


class TestFolder(ArchiveSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "archive")


class TestBucket(ArchiveSuite):
    @pytest.fixture
    def place(self, s3: str) -> str:
        return s3


@pytest.mark.long
def test_spark_reads_an_archive_in_a_bucket(
    spark: SparkSession, s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"):
        monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])
    storage = opened(tmp_path / "node", s3)
    write(storage, 1, 30)
    storage.tidy(2e9, 10**9)
    storage.close()
    register(spark)
    found = spark.read.format("fieldfare_log").load(s3).select("position", "event").sort("position").collect()
    assert found == [(number, "{}") for number in range(1, 31)]


def opened(folder: Path, place: str) -> Storage:
    """Open a node's storage, where every write is a segment, and none stays longer than need be."""
    storage = Storage(folder, LogSettings(archive=place, segment_bytes=1, max_bytes=1))
    storage.load()
    return storage


def write(storage: Storage, first: int, last: int) -> None:
    """Write entries, ten in a segment."""
    for begin in range(first, last + 1, 10):
        entries = [JournalEntry(number, 1e9, "ana", number, b"\x80", b"") for number in range(begin, begin + 10)]
        storage.log.append(entries)


def segments(storage: Storage) -> Sequence[Segment]:
    assert isinstance(storage.log, Log)
    return storage.log.segments


def read(place: str) -> list[int]:
    reader = LogReader(place, 0, "fail")
    return [
        position
        for part in reader.partitions()
        for batch in reader.read(part)
        for position in batch["position"].to_pylist()
    ]


def follow(place: str, rows: int) -> list[int]:
    reader = LogStreamReader(place, 0, rows, "fail")
    found: list[int] = []
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    while end != start:
        for part in reader.partitions(start, end):
            found += [position for batch in reader.read(part) for position in batch["position"].to_pylist()]
        start, end = end, reader.latestOffset(end, reader.getDefaultReadLimit())
    return found


def failing_after(calls: int) -> Any:
    real = Objects.put_new
    left = calls

    def put(place: Objects, name: str, file: Path) -> bool:
        nonlocal left
        if not left:
            raise OSError("no network")
        left -= 1
        return real(place, name, file)

    return put
