"""Raw files of the event log: torn writes, damage, the index."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare.node.storage import raw_format, raw_segment
from fieldfare.node.storage.log import Log, LogError
from fieldfare.node.storage.raw_format import BLOCK, HEADER_SIZE
from fieldfare.protocol.journal import JournalEntry


def _entry(position: int, size: int = 10) -> JournalEntry:
    return JournalEntry(position, 1000.0 + position, "ana", 70_000 + position, bytes([position % 256]) * size, b"rest")


def _written(folder: Path, *sizes: int) -> tuple[Path, list[JournalEntry], list[int]]:
    """A file with entries of those sizes, and where each of them ends."""
    entries = [_entry(position, size) for position, size in enumerate(sizes, 1)]
    path = folder / "events-00000000000000000001.log"
    ends = [HEADER_SIZE]
    log = Log(folder)
    for entry in entries:
        log.append([entry])
        ends.append(path.stat().st_size)
    log.close()
    return path, entries, ends


def test_a_write_torn_at_any_byte_costs_that_record_and_no_other(tmp_path: Path) -> None:
    path, entries, ends = _written(tmp_path, 10, 20, 30)
    whole = path.read_bytes()
    for size in range(ends[2], ends[3]):
        path.write_bytes(whole[:size])
        log = Log(tmp_path)
        assert list(log.read(1)) == entries[:2]
        assert log.cut == size - ends[2]
        assert path.stat().st_size == log.bytes == ends[2]
        log.append([_entry(3, 5)])
        log.close()
        log = Log(tmp_path)
        assert list(log.read(1)) == [*entries[:2], _entry(3, 5)]
        assert log.cut == 0
        log.close()


def test_of_a_torn_group_the_whole_records_stay(tmp_path: Path) -> None:
    log = Log(tmp_path)
    entries = [_entry(position) for position in range(1, 101)]
    log.append(entries)
    log.close()
    path = tmp_path / "events-00000000000000000001.log"
    whole = path.read_bytes()
    for size in range(HEADER_SIZE, len(whole), 37):
        path.write_bytes(whole[:size])
        log = Log(tmp_path)
        assert list(log.read(1)) == entries[: log.last]
        assert log.last == (size - HEADER_SIZE) * 100 // (len(whole) - HEADER_SIZE)  # all are of one size
        log.close()


@pytest.mark.parametrize("torn", [b"\0", b"\0" * 100, b"\xff" * 100, b"\x96" * 5000])
def test_what_follows_the_last_record_and_is_none_goes(tmp_path: Path, torn: bytes) -> None:
    path, entries, _ = _written(tmp_path, 10, 20)
    path.write_bytes(path.read_bytes() + torn)
    log = Log(tmp_path)
    assert (list(log.read(1)), log.cut) == (entries, len(torn))
    log.close()


def test_a_flipped_bit_is_an_error_wherever_it_is(tmp_path: Path) -> None:
    """In the last record, too: what is there to its end was accepted, and is not what a kill leaves."""
    path, _, ends = _written(tmp_path, 10, 20, 30)
    whole = path.read_bytes()
    for at, bit in [
        *((at, at % 8) for at in range(len(whole))),
        *((ends[2] + at, bit) for at in range(8) for bit in range(8)),
    ]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        record = max((end for end in ends if end <= at), default=0)
        with pytest.raises(LogError) as caught:
            Log(tmp_path)
        assert str(path) in str(caught.value)
        assert (
            f"fieldfare admin salvage {tmp_path}" in str(caught.value) or 12 <= at < 20
        )  # a name has words of its own
        assert f"byte {record}" in str(caught.value), at
        assert path.read_bytes() == bytes(damaged), "nothing is thrown away"


def test_a_write_that_lost_power_may_end_in_zeros(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, entries, ends = _written(tmp_path, 10, 20, 300)
    whole = path.read_bytes()
    for kept in range(ends[2], ends[3] - 16, 7):
        path.write_bytes(whole[:kept] + bytes(len(whole) - kept))
        log = Log(tmp_path)
        assert (list(log.read(1)), log.cut, log.is_torn) == (entries[:2], ends[3] - ends[2], True)
        log.close()


def test_what_is_cut_off_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, entries, ends = _written(tmp_path, 10, 20, 30)
    path.write_bytes(path.read_bytes()[:-5])
    log = Log(tmp_path)
    log.close()
    assert log.is_torn
    assert f"{path}: {ends[3] - ends[2] - 5} bytes at its end were cut off" in caplog.text
    assert caplog.records[-1].levelname == "WARNING"
    caplog.clear()
    log = Log(tmp_path)
    assert (list(log.read(1)), log.is_torn, caplog.text) == (entries[:2], False, "")
    log.roll()
    log.close()
    active = max(tmp_path.iterdir())
    active.write_bytes(active.read_bytes()[:7])
    log = Log(tmp_path)
    log.close()
    assert log.is_torn
    assert "had only been begun" in caplog.text


def test_a_flipped_bit_in_an_older_segment_is_found_by_whoever_reads_it(tmp_path: Path) -> None:
    path, entries, ends = _written(tmp_path, 10, 20, 30)
    log = Log(tmp_path)
    log.roll()
    log.append([_entry(4)])
    log.close()
    damaged = bytearray(path.read_bytes())
    damaged[ends[2] + 12] ^= 1
    path.write_bytes(damaged)
    log = Log(tmp_path)  # only the last segment is looked through
    assert list(log.read(1, 2)) == entries[:2]
    assert list(log.read(4)) == [_entry(4)]
    with pytest.raises(LogError, match=f"{path} is damaged at byte {ends[2]}"):
        list(log.read(1))
    with pytest.raises(LogError, match=f"byte {ends[2]}"):
        log.seal()
    assert {file.suffix for file in tmp_path.iterdir()} == {".log"}
    log.close()


def test_an_older_segment_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    path, entries, ends = _written(tmp_path, 10, 20, 30)
    log = Log(tmp_path)
    log.roll()
    log.append([_entry(4)])
    log.close()
    path.write_bytes(path.read_bytes()[: ends[2]])
    log = Log(tmp_path)
    assert list(log.read(1, 2)) == entries[:2]
    with pytest.raises(LogError, match="ends before position 3"):
        list(log.read(1))
    log.close()


@pytest.mark.parametrize("size", range(HEADER_SIZE))
def test_a_segment_whose_making_was_cut_short_is_made_again(tmp_path: Path, size: int) -> None:
    _, entries, _ = _written(tmp_path, 10, 20)
    (tmp_path / "events-00000000000000000003.log").write_bytes(bytes(size))
    log = Log(tmp_path)
    log.append([_entry(3)])
    log.close()
    log = Log(tmp_path)
    assert list(log.read(1)) == [*entries, _entry(3)]
    log.close()


def test_a_first_segment_whose_making_was_cut_short_keeps_its_position(tmp_path: Path) -> None:
    (tmp_path / "events-00000000000000000041.log").touch()
    log = Log(tmp_path)
    assert (log.first, log.last) == (41, 40)
    log.close()


def test_a_format_of_the_future_is_left_alone(tmp_path: Path) -> None:
    path, _, _ = _written(tmp_path, 10)
    data = bytearray(path.read_bytes())
    data[8:12] = struct.pack("<I", 2)
    data[HEADER_SIZE - 4 : HEADER_SIZE] = struct.pack("<I", crc32(data[: HEADER_SIZE - 4] + bytes(4)))
    path.write_bytes(data)
    with pytest.raises(LogError, match=r"version 2.*newer Fieldfare"):
        Log(tmp_path)
    assert path.read_bytes() == bytes(data)


def test_a_renamed_file_is_noticed(tmp_path: Path) -> None:
    path, _, _ = _written(tmp_path, 10)
    path.rename(tmp_path / "events-00000000000000000002.log")
    with pytest.raises(LogError, match="begins with position 1"):
        Log(tmp_path)


def test_an_event_cannot_pass_for_a_record(tmp_path: Path) -> None:
    """A publisher sends what looks like a record in an event, and the write of it is torn."""
    path, entries, ends = _written(tmp_path, 10)
    for salt in (0, 1):
        payload = b"".join(raw_format.encode(_entry(3), salt))
        assert crc32(payload[8:], salt) == struct.unpack_from("<I", payload, 4)[0]
        log = Log(tmp_path)
        log.append([JournalEntry(2, 2000.0, "eve", 1, payload * 5, b"")])
        log.close()
        path.write_bytes(path.read_bytes()[:-3])
        log = Log(tmp_path)
        assert list(log.read(1)) == entries
        assert log.bytes == ends[1]
        log.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 100, 5000, BLOCK, 3 * BLOCK]), max_size=30), max_size=5), st.data())
def test_any_position_is_found_whatever_the_sizes(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, entries = Log(folder), list[JournalEntry]()
    for sizes in batches:
        batch = [_entry(len(entries) + number, size) for number, size in enumerate(sizes, 1)]
        log.append(batch)
        entries += batch
    for reopened in (False, True):
        if reopened:
            log.close()
            log = Log(folder)
        for _ in range(3):
            position = data.draw(st.integers(1, len(entries) + 1))
            assert next(log.read(position), None) == next(iter(entries[position - 1 :]), None)
            assert log.position_at(1000.0 + position) == position
    log.close()


def test_a_reader_begins_near_its_position(tmp_path: Path) -> None:
    """What is between the marks is at most a block, also in a group that is larger."""
    log = Log(tmp_path)
    log.append([_entry(position, 100) for position in range(1, 5001)])
    raw = log._active
    offsets = [mark.offset for mark in raw.marks] + [raw.size]
    gaps = [after - before for before, after in pairwise(offsets)]
    assert len(gaps) > 10
    assert max(gaps) < BLOCK + 200
    recovered = raw_segment.recover(raw.path, 1)
    assert (recovered.last, recovered.size, recovered.newest, recovered.oldest) == (5000, raw.size, 6000.0, 1001.0)
    log.close()
