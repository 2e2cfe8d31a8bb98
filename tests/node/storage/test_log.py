"""The event log: what was appended is read again, whatever happens in between."""

from __future__ import annotations

import errno
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fieldfare.node.storage import parquet_segment, private
from fieldfare.node.storage.log import Log, LogError
from fieldfare.protocol.journal import JournalEntry

EVENT = b"\x81\xa1a\x01"


def _entry(position: int, time: float = 0.0) -> JournalEntry:
    return JournalEntry(position, time or position / 10, f"p{position % 3}", position, EVENT, str(position).encode())


def _filled(folder: Path, *, segments: int = 3, size: int = 10, **options: Any) -> Log:
    """A log with segments of so many entries; the last one is active."""
    log = Log(folder, **options)
    for number in range(segments):
        if number:
            log.roll()
        log.append([_entry(position) for position in range(number * size + 1, (number + 1) * size + 1)])
    return log


def _files(folder: Path) -> list[str]:
    return sorted(path.name.replace("0000000000000000", "") for path in folder.iterdir())


times = st.floats(-100, 4e9) | st.floats(0, 300) | st.integers(0, 300).map(float)
bodies = st.binary(max_size=30) | st.just(EVENT) | st.sampled_from(range(30_000, 50_000, 5_000)).map(bytes)


class LogMachine(RuleBasedStateMachine):
    """A log against the list of all that was ever appended, and where its segments begin."""

    @initialize(sync=st.booleans())
    def begin(self, sync: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.options: dict[str, Any] = {"segment_seconds": 100.0, "sync": sync}
        self.log = Log(self.folder, **self.options)
        self.entries: list[JournalEntry] = []
        self.starts = [1]
        """of all segments, the last one active"""
        self.sealed: set[int] = set()

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            shutil.rmtree(self.folder)

    @rule(batch=st.lists(st.tuples(times, st.text(max_size=5), st.integers(-(2**63), 2**63 - 1), bodies), max_size=5))
    def append(self, batch: list[tuple[float, str, int, bytes]]) -> None:
        given, kept = [], []
        newest = self.entries[-1].time if self.entries else -math.inf
        for position, (moment, publisher, sequence, body) in enumerate(batch, len(self.entries) + 1):
            given.append(JournalEntry(position, moment, publisher, sequence, body, body[:9]))
            newest = max(newest, round(moment * 1e6) / 1e6)
            kept.append(given[-1]._replace(time=newest))
        if (
            kept
            and self.starts[-1] <= len(self.entries)
            and kept[0].time - self.entries[self.starts[-1] - 1].time >= 100
        ):
            self.starts.append(len(self.entries) + 1)
        self.log.append(given)
        self.entries += kept

    @rule()
    def roll(self) -> None:
        self.log.roll()
        if self.starts[-1] <= len(self.entries):
            self.starts.append(len(self.entries) + 1)

    @rule()
    def seal(self) -> None:
        paths = self.log.seal()
        assert len(paths) == len(set(self.starts[:-1]) - self.sealed)
        assert all(path.exists() for path in paths)
        self.sealed |= set(self.starts[:-1])

    @rule(
        max_bytes=st.none() | st.integers(0, 100_000),
        max_seconds=st.none() | st.sampled_from([0.0, 10.0, 1e9]),
        later=st.sampled_from([0.0, 5.0, 50.0]),
        back=st.integers(0, 20),
    )
    def retain(self, max_bytes: int | None, max_seconds: float | None, later: float, back: int) -> None:
        now = (self.entries[-1].time if self.entries else 0.0) + later
        keep_from = len(self.entries) + 1 - back
        files = {int(path.name[7:27]): path.stat().st_size for path in self.folder.iterdir()}
        count = 0
        while len(self.starts) > 1 and (last := self.starts[1] - 1) < keep_from:
            large = max_bytes is not None and sum(files.values()) > max_bytes
            if not large and (max_seconds is None or now - self.entries[last - 1].time <= max_seconds):
                break
            count += last - self.starts[0] + 1
            files.pop(self.starts.pop(0))
        assert self.log.retain(max_bytes=max_bytes, max_seconds=max_seconds, now=now, keep_from=keep_from) == count

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        last = max(len(self.entries) - back, 0)
        lowest = next((start for start in self.starts if start not in self.sealed), None)
        assert lowest is not None
        if last + 1 < lowest:
            with pytest.raises(LogError, match="cannot be forgotten"):
                self.log.truncate(last)
            return
        self.log.truncate(last)
        del self.entries[last:]
        while len(self.starts) > 1 and self.starts[-1] > last + 1:
            self.starts.pop()

    @rule(torn=st.binary(max_size=20), seal=st.booleans())
    def crash(self, torn: bytes, seal: bool) -> None:
        self.log.close()
        active = self.folder / f"events-{self.starts[-1]:020}.log"
        active.write_bytes(active.read_bytes() + torn)
        if seal:
            (self.folder / ".events-1.parquet.tmp").write_bytes(torn)
        self.log = Log(self.folder, **self.options)
        assert self.log.cut == len(torn)

    @rule(moment=times)
    def position_at(self, moment: float) -> None:
        self.check_time(moment)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def position_at_entry(self, data: st.DataObject) -> None:
        self.check_time(data.draw(st.sampled_from(self.entries)).time)

    def check_time(self, moment: float) -> None:
        moment = round(moment * 1e6) / 1e6
        kept = self.entries[self.starts[0] - 1 :]
        expected = next((entry.position for entry in kept if entry.time >= moment), len(self.entries) + 1)
        assert self.log.position_at(moment) == expected

    @rule(first=st.integers(-1, 40), count=st.none() | st.integers(-1, 40))
    def read(self, first: int, count: int | None) -> None:
        last = None if count is None else first + count
        expected = self.entries[max(first, self.starts[0], 1) - 1 : None if last is None else max(last, 0)]
        assert list(self.log.read(first, last)) == expected

    @invariant()
    def same(self) -> None:
        if hasattr(self, "log"):
            assert (self.log.first, self.log.last) == (self.starts[0], len(self.entries))
            assert self.log.bytes == sum(path.stat().st_size for path in self.folder.iterdir())
            assert len(list(self.folder.iterdir())) == len(self.starts)


LogMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestLogMachine = LogMachine.TestCase


# Being killed

WRITERS = """
import os, sys, threading, time
from pathlib import Path
from fieldfare.node.storage.log import Log
from fieldfare.protocol.journal import JournalEntry

def seal(log):
    while True:
        log.seal()
        time.sleep(0.001)

def write():
    log = Log(Path(sys.argv[1]), segment_bytes=5_000)
    threading.Thread(target=seal, args=[log], daemon=True).start()
    os.write(1, b"%d\\n%d\\n" % (os.getpid(), log.last))
    while True:
        first = log.last + 1
        log.append([
            JournalEntry(p, p / 10, f"p{p % 3}", p, b"\\x81\\xa1a\\x01", str(p).encode())
            for p in range(first, first + first % 13 + 1)
        ])
        os.write(1, b"%d\\n" % log.last)
        time.sleep(0.0002)  # sealing gets its turn

while sys.stdin.readline():
    writer = os.fork()
    if not writer:
        write()
    os.waitpid(writer, 0)
    os.write(1, b"killed\\n")
"""
"""a process that forks a writer whenever a line comes: a new Python for each would take most of the time"""


def test_nothing_reported_is_missing_after_kill_9(tmp_path: Path) -> None:
    chance = random.Random(6)
    reported = sealed = 0
    with subprocess.Popen(
        [sys.executable, "-c", WRITERS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        for turn in range(8):
            writers.stdin.write(b"next\n")
            writers.stdin.flush()
            writer = int(writers.stdout.readline())
            last = int(writers.stdout.readline())  # the log is open
            assert last >= reported
            until, files = last + chance.randrange(100, 600), sealed + (turn < 4)
            while last < until or len([*tmp_path.glob("*.parquet")]) < files:
                last = int(writers.stdout.readline())
            time.sleep(chance.random() * 0.01)  # in the middle of something
            os.kill(writer, signal.SIGKILL)
            reported = max([last, *map(int, iter(writers.stdout.readline, b"killed\n"))])
            if chance.random() < 0.3:  # else the next writer has to make do with what it finds
                log = Log(tmp_path)
                assert log.last >= reported
                assert list(log.read(1)) == [_entry(position) for position in range(1, log.last + 1)]
                log.close()
            sealed = len([*tmp_path.glob("*.parquet")])
        writers.stdin.close()
    log = Log(tmp_path)
    assert log.last >= reported > 8 * 100
    assert list(log.read(1)) == [_entry(position) for position in range(1, log.last + 1)]
    assert sealed > 3
    log.close()


def test_a_crash_before_the_raw_file_is_removed_leaves_one_of_both(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    raws = {path: path.read_bytes() for path in sorted(tmp_path.iterdir())[:2]}
    log.seal()
    log.close()
    for path, data in raws.items():
        path.write_bytes(data)
    log = Log(tmp_path)
    assert _files(tmp_path) == ["events-0001-0010.parquet", "events-0011-0020.parquet", "events-0021.log"]
    assert list(log.read(1)) == [_entry(position) for position in range(1, 31)]
    assert log.seal() == []
    log.close()


def test_a_raw_file_that_could_not_be_removed_goes_with_the_sealed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(tmp_path)
    with monkeypatch.context() as patch:
        _failing_for(".log", patch)
        with pytest.raises(PermissionError):
            log.seal()
    assert list(log.read(1)) == [_entry(position) for position in range(1, 31)]
    assert log.retain(max_bytes=0, max_seconds=None, now=0.0, keep_from=100) == 20
    assert _files(tmp_path) == ["events-0021.log"]
    log.close()


def test_a_damaged_parquet_file_does_not_cost_the_raw_one(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    raw = tmp_path / "events-00000000000000000001.log"
    data = raw.read_bytes()
    sealed, _ = log.seal()
    log.close()
    raw.write_bytes(data)
    sealed.write_bytes(sealed.read_bytes()[:-20])
    with pytest.raises(LogError, match=sealed.name):
        Log(tmp_path)
    assert raw.read_bytes() == data
    sealed.unlink()  # what the error asks for; a raw file before sealed ones will do
    log = Log(tmp_path)
    assert list(log.read(1)) == [_entry(position) for position in range(1, 31)]
    assert log.position_at(0.95) == 10
    assert len(log.seal()) == 1
    log.close()


def _failing_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files with that in their name stay."""
    unlink = Path.unlink

    def failing(self: Path, missing_ok: bool = False) -> None:
        if name in self.name:
            raise PermissionError(self)
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", failing)


@pytest.mark.parametrize("seal", [False, True])
def test_a_segment_that_cannot_be_deleted_keeps_the_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seal: bool
) -> None:
    log = _filled(tmp_path, segments=4)
    if seal:
        log.seal()
    with monkeypatch.context() as patch:
        _failing_for("events-00000000000000000011", patch)
        for _ in range(2):
            with pytest.raises(PermissionError):
                log.retain(max_bytes=0, max_seconds=None, now=0.0, keep_from=100)
    assert (log.first, log.last) == (11, 40)
    log.close()
    log = Log(tmp_path)
    assert list(log.read(1)) == [_entry(position) for position in range(11, 41)]
    log.close()


def test_a_crash_while_truncating_leaves_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _filled(tmp_path, segments=4)
    with monkeypatch.context() as patch:
        _failing_for("events-00000000000000000021", patch)
        with pytest.raises(PermissionError):
            log.truncate(5)
    log = Log(tmp_path)
    assert list(log.read(1)) == [_entry(position) for position in range(1, 31)]
    log.truncate(5)
    assert list(log.read(1)) == [_entry(position) for position in range(1, 6)]
    log.close()


@pytest.mark.parametrize("change", ["retain", "truncate"])
def test_what_goes_while_it_is_sealed_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    log = _filled(tmp_path)
    write = parquet_segment.write

    def slow(path: Path, entries: Iterable[JournalEntry]) -> int:
        count = write(path, entries)
        if change == "retain":
            log.retain(max_bytes=0, max_seconds=None, now=0.0, keep_from=100)
        else:
            log.truncate(5)
        return count

    monkeypatch.setattr(parquet_segment, "write", slow)
    assert log.seal() == []
    assert _files(tmp_path) == (["events-0021.log"] if change == "retain" else ["events-0001.log"])
    expected = [_entry(position) for position in (range(21, 31) if change == "retain" else range(1, 6))]
    for _ in range(2):
        assert list(log.read(1)) == expected
        log.close()
        log = Log(tmp_path)
    log.close()


@pytest.mark.parametrize("seal", [False, True])
def test_a_missing_segment_is_an_error(tmp_path: Path, seal: bool) -> None:
    log = _filled(tmp_path)
    if seal:
        log.seal()
    log.close()
    sorted(tmp_path.iterdir())[1].unlink()
    if seal:
        with pytest.raises(LogError, match="too few"):
            Log(tmp_path)
    else:
        log = Log(tmp_path)  # of raw segments, only a reader can know how far they go
        with pytest.raises(LogError, match="ends before position 11"):
            list(log.read(1))
        log.close()


def test_a_file_that_vanishes_is_an_error_and_no_endless_search(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.seal()
    (tmp_path / "events-00000000000000000001-00000000000000000010.parquet").unlink()
    with pytest.raises(LogError, match="missing"):
        list(log.read(1))
    with pytest.raises(LogError, match="copy"):
        log.position_at(0.5)
    log.close()


# Writing


def test_a_group_is_one_write_and_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path, sync=True)
    calls: list[str] = []

    def noting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            calls.append(name)
            return call(*arguments)

        return noted

    monkeypatch.setattr(os, "write", noting("write", os.write))
    monkeypatch.setattr(os, "fsync", noting("fsync", os.fsync))
    log.append([_entry(position) for position in range(1, 1001)])
    assert calls == ["write", "fsync"]
    log.close()


def test_after_a_write_that_failed_half_way_the_log_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _filled(tmp_path, segments=1)
    write, calls = os.write, iter([5, 0])

    def full(file: int, data: bytes) -> int:
        if not (taken := next(calls)):
            raise OSError(errno.ENOSPC, "no space")
        return write(file, data[:taken])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="no space"):
            log.append([_entry(11), _entry(12)])
    assert (log.last, len(list(log.read(1)))) == (10, 10)
    log.append([_entry(11)])
    log.close()
    log = Log(tmp_path)
    assert (list(log.read(1)), log.cut) == ([_entry(position) for position in range(1, 12)], 0)
    log.close()


def test_after_a_sync_that_failed_the_log_wants_to_be_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _filled(tmp_path, segments=1, sync=True)

    def failing(file: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="broken"):
            log.append([_entry(11)])
    with pytest.raises(LogError, match="open it again"):
        log.append([_entry(11)])
    log = Log(tmp_path, sync=True)
    assert log.last == 10
    log.append([_entry(11)])
    log.close()


def test_a_roll_that_failed_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _filled(tmp_path, segments=1)

    def failing(path: Path, data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(private, "create", failing)
        with pytest.raises(OSError, match="no space"):
            log.roll()
    assert _files(tmp_path) == ["events-0001.log"]
    log.append([_entry(11)])
    log.roll()
    assert list(log.read(1)) == [_entry(position) for position in range(1, 12)]
    log.close()


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (_entry(13), "should have 12"),
        (_entry(11), "should have 12"),
        (_entry(12, math.nan), "seconds since the epoch"),
        (_entry(12, 1.7e12), "seconds since the epoch"),
        (_entry(12)._replace(sequence=1 << 63), "64 bits"),
        (_entry(12)._replace(publisher="\ud800"), "position 12 cannot be written"),
    ],
)
def test_a_group_with_something_wrong_is_refused_as_a_whole(tmp_path: Path, bad: JournalEntry, problem: str) -> None:
    log = _filled(tmp_path, segments=1)
    size = log.bytes
    with pytest.raises(LogError, match=problem):
        log.append([_entry(11), bad])
    assert (log.last, log.bytes) == (10, size) == (10, sum(path.stat().st_size for path in tmp_path.iterdir()))
    log.append([_entry(11), _entry(12)])
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append([_entry(13)])
    assert len(list(log.read(1))) == 12


def test_segments_end_by_size_and_by_time(tmp_path: Path) -> None:
    log = Log(tmp_path, segment_bytes=1000, segment_seconds=60.0)
    for position in range(1, 101):
        log.append([_entry(position, 1.0)])
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert len(sizes) > 3
    assert all(900 < size <= 1000 for size in sizes[:-1])
    before = len(sizes)
    log.append([_entry(101, 60.9)])
    assert len(_files(tmp_path)) in (before, before + 1)
    before = len(_files(tmp_path))
    log.append([_entry(102, 200.0)])
    assert len(_files(tmp_path)) == before + 1
    log.append([_entry(position, 200.0) for position in range(103, 203)])  # larger than a segment may be
    log.append([_entry(203, 200.0)])
    assert len(_files(tmp_path)) == before + 3
    assert [entry.position for entry in log.read(1)] == list(range(1, 204))
    log.close()


# Reading


def test_a_reader_sees_what_was_there_when_it_asked(tmp_path: Path) -> None:
    log = _filled(tmp_path, segments=1)
    readers = [log.read(1), log.read(1, 100)]
    log.append([_entry(11)])
    log.roll()
    log.append([_entry(12)])
    for reader in readers:
        assert [entry.position for entry in reader] == list(range(1, 11))
    log.close()


def test_times_outside_of_everything(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.seal()
    assert [log.position_at(moment) for moment in (-math.inf, -1e20, 1e20, math.inf)] == [1, 1, 31, 31]
    log.close()


@pytest.mark.parametrize("change", ["seal", "retain"])
def test_a_reader_in_the_middle_goes_on_after_a_change(tmp_path: Path, change: str) -> None:
    log = _filled(tmp_path, segments=4)
    reader = log.read(1)
    got = [next(reader).position for _ in range(5)]
    if change == "seal":
        log.seal()
        expected = list(range(1, 41))
    else:
        log.retain(max_bytes=0, max_seconds=None, now=0.0, keep_from=25)
        expected = [*range(1, 11), *range(21, 41)]
    assert got + [entry.position for entry in reader] == expected
    log.close()


def test_opening_looks_through_the_last_segment_only(tmp_path: Path) -> None:
    log = _filled(tmp_path, segments=5)
    log.seal()
    log.roll()
    log.append([_entry(51)])
    log.close()
    *older, _ = sorted(tmp_path.iterdir())
    for path in older:
        data = path.read_bytes()
        path.write_bytes(data[:40] + b"\xff" * (len(data) - 40))
    log = Log(tmp_path)
    assert (log.first, log.last, [entry.position for entry in log.read(51)]) == (1, 51, [51])
    log.close()


def test_readers_while_all_else_goes_on(tmp_path: Path) -> None:
    log = Log(tmp_path, segment_bytes=8_000)
    done = threading.Event()
    problems: list[BaseException] = []
    reads = [0, 0]

    def guarded(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as error:  # noqa: BLE001 - it is raised again by the test
                problems.append(error)
                done.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def read_all() -> None:
        first, last = log.first, log.last
        positions = []
        for entry in log.read(first, last):
            assert entry == _entry(entry.position)
            positions.append(entry.position)
        assert all(before < after for before, after in pairwise(positions))
        missed = set(range(first, last + 1)) - set(positions)
        assert all(position < log.first for position in missed), "only what was retained may be missing"
        reads[0] += len(positions)

    def read_some() -> None:
        position = random.randint(log.first, log.last + 1)
        entry = next(log.read(position), None)
        assert entry is None or entry.position == position or position < log.first <= log.last
        found = log.position_at(position / 10)
        assert found == position or (found > position >= 0 and position < log.first)
        reads[1] += 1

    def seal() -> None:
        log.seal()
        time.sleep(0.001)

    threads = [guarded(read_all), guarded(read_some), guarded(seal)]
    position = 0
    while not done.is_set() and (position < 4000 or log.first <= 1000 or min(reads) <= 20):
        log.append([_entry(position + number) for number in range(1, 21)])
        position += 20
        if position % 100 == 0:
            log.retain(max_bytes=30_000, max_seconds=None, now=0.0, keep_from=position - 300)
        if position % 700 == 0:
            log.roll()
        time.sleep(0.0005)
    done.set()
    for thread in threads:
        thread.join()
    for problem in problems:
        raise problem
    assert log.first > 1000
    assert min(reads) > 20
    log.close()
