"""A log read from outside, against the log itself and the list of what was appended to it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fieldfare.events import json, msgpack
from fieldfare.events.event import Event
from fieldfare.node.storage.log import Log, LogError
from fieldfare.node.storage.rows import Store
from fieldfare.node.storage.salvage import salvage
from fieldfare.pipeline.sources import segments
from fieldfare.pipeline.sources.segments import Folder, Slice, slices
from fieldfare.protocol.journal import EntryDetails, JournalEntry, encode_details


def entry(position: int, first: int = 0, last: int = 0) -> JournalEntry:
    event = msgpack.encode(Event({"type": f"t{position % 3}", "number": position, "text": "x" * (position % 50)}))
    rest = encode_details(EntryDetails("", "", first=first, last=last)) if last else b""
    return JournalEntry(position, 1e9 + position, "ana", position, event, rest)


def shown(one: JournalEntry) -> tuple[Any, ...]:
    event = msgpack.decode(one.event)
    return one.position, one.time, one.publisher, one.sequence, event["type"], json.encode(event).decode()


def rows(folder: Path, pieces: Sequence[Slice]) -> list[tuple[Any, ...]]:
    batches = [batch for piece in pieces for batch in segments.read(folder, piece)]
    found = [row.values() for batch in batches for row in batch.to_pylist()]
    return [(position, time.timestamp(), *rest) for position, time, *rest in found]


@pytest.mark.parametrize("seed", range(4))
def test_reads_what_was_appended_whatever_happens_to_the_files(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SLICE", 70)
    chance = random.Random(seed)
    log, folder = Log(tmp_path, segment_bytes=20_000), Folder(tmp_path)
    appended: list[JournalEntry] = []
    planned: list[Slice] = []
    """made earlier, and read when the files are others"""
    for _ in range(60):
        match chance.randrange(8):
            case 0:
                log.roll()
            case 1:
                log.seal()
            case 2:
                log.retain(max_bytes=60_000, max_seconds=None, now=0.0, keep_from=10**9)
            case 3:
                log.close()
                log = Log(tmp_path, segment_bytes=20_000)
            case _:
                new = [entry(len(appended) + number + 1) for number in range(chance.randrange(1, 60))]
                log.append(new)
                appended += new
        parts = folder.parts()
        assert (parts[0].first, parts[-1].last) == (log.first, log.last)
        first = chance.randint(log.first, log.last + 1)
        last = chance.randint(first - 1, log.last)
        pieces = slices(parts, first, last)
        assert rows(tmp_path, pieces) == [shown(one) for one in appended[first - 1 : last]]
        planned = [piece for piece in planned if piece.first >= log.first]
        for piece in planned:
            assert rows(tmp_path, [piece]) == [shown(one) for one in appended[piece.first - 1 : piece.last]]
        planned = [*planned[-3:], *pieces]
    assert Folder(tmp_path).parts()[-1].last == len(appended)


def test_what_may_be_cut_off_is_not_shown(tmp_path: Path) -> None:
    log, folder = Log(tmp_path), Folder(tmp_path)
    log.append([entry(number) for number in range(1, 6)])
    log.append([entry(6, 6, 8), entry(7, 6, 8)])  # of a publication of three; a crash may have taken the third
    assert folder.parts()[-1].last == 5
    log.append([entry(8, 6, 8)])
    assert folder.parts()[-1].last == 8
    log.append([entry(9, 9, 11), entry(10, 9, 11)])
    assert folder.parts()[-1].last == 8
    log.truncate(8)
    other = [entry(number)._replace(publisher="bob") for number in (9, 10)]
    log.append(other)
    parts = folder.parts()
    assert parts[-1].last == 10
    assert rows(tmp_path, slices(parts, 9, 10)) == [shown(one) for one in other]


def test_a_torn_write_is_waited_for_and_damage_is_told(tmp_path: Path) -> None:
    log, folder = Log(tmp_path), Folder(tmp_path)
    log.append([entry(number) for number in range(1, 4)])
    (path,) = tmp_path.glob("*.log")
    before = path.stat().st_size
    log.append([entry(4)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    for _ in range(3):
        assert folder.parts()[-1].last == 3
    path.write_bytes(whole)
    assert folder.parts()[-1].last == 4
    log.append([entry(5)])
    damaged = bytearray(path.read_bytes())
    damaged[before + 20] ^= 1
    path.write_bytes(damaged)
    fresh = Folder(tmp_path)
    assert fresh.parts()[-1].last == 3  # it could still be a write that is under way
    with pytest.raises(LogError, match=f"damaged at byte {before}"):
        fresh.parts()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for begin in (1, 11, 21):
        log.append([entry(number) for number in range(begin, begin + 10)])
        log.roll()
    log.seal()
    parts = Folder(tmp_path).parts()
    parts[1].path.unlink()
    with pytest.raises(LogError, match="gap between two segments"):
        Folder(tmp_path).parts()
    with pytest.raises(LogError, match="no longer has position 15"):
        rows(tmp_path, [Slice(15, 17)])


def test_positions_that_a_salvage_could_not_save_are_skipped(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    for begin in (1, 11, 21):
        log.append([entry(number) for number in range(begin, begin + 10)])
        log.roll()
    log.seal()
    log.close()
    Folder(tmp_path / "log").parts()[1].path.unlink()
    Store(tmp_path / "node.sqlite").close()
    salvage(tmp_path)
    parts = Folder(tmp_path / "log").parts()
    assert rows(tmp_path / "log", slices(parts, 5, 25)) == [
        shown(entry(number)) for number in (*range(5, 11), *range(21, 26))
    ]
    assert len(rows(tmp_path / "log", [Slice(5, 25)])) == 11
