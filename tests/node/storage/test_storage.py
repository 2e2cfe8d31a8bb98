"""Log and rows together: what a kill left, and what was salvaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fieldfare.core.step import Step
from fieldfare.node.config import Log as LogSettings
from fieldfare.node.storage import lost_segment
from fieldfare.node.storage.log import Log
from fieldfare.node.storage.segments import raw_path
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, encode_details


def _entry(position: int, sequence: int, last: int) -> JournalEntry:
    """Number `sequence` of a publication with the numbers 1 to `last`."""
    return JournalEntry(
        position, 1.0, "ana", sequence, b"\x80", encode_details(EntryDetails("id", "a", first=1, last=last))
    )


def _opened(folder: Path) -> tuple[bool, list[int], int]:
    storage = Storage(folder, LogSettings())
    found = storage.is_torn, [entry.position for entry in storage.log.read(1)], storage.log.last
    storage.close()
    return found


def _written(folder: Path, *entries: JournalEntry) -> None:
    storage = Storage(folder, LogSettings())
    storage.write(Step(list(entries), [Row("name", (), "a")], {}, {}, set(), {}))
    storage.close()


def test_a_publication_that_was_not_written_to_its_end_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _written(tmp_path, _entry(1, 1, 1), _entry(2, 1, 3), _entry(3, 2, 3))
    assert _opened(tmp_path) == (True, [1], 1)
    assert "the last 2 events were cut off: their publication had not been written to its end" in caplog.text
    caplog.clear()
    assert _opened(tmp_path) == (False, [1], 1)
    assert caplog.text == ""


def test_torn_bytes_are_said(tmp_path: Path) -> None:
    _written(tmp_path, _entry(1, 1, 1), _entry(2, 1, 1))
    path = raw_path(tmp_path / "log", 1)
    path.write_bytes(path.read_bytes()[:-3])
    assert _opened(tmp_path) == (True, [1], 1)
    assert _opened(tmp_path) == (False, [1], 1)


def test_a_publication_that_began_in_a_gap_is_cut_behind_it(tmp_path: Path) -> None:
    """Positions in a gap are never given again, and it cannot be forgotten."""
    _written(tmp_path, _entry(1, 1, 1))
    log = tmp_path / "log"
    lost_segment.write(lost_segment.lost_path(log, 2, 9), 2, 9, 1.0)
    again = Log(log)
    again.append([_entry(10, 3, 5), _entry(11, 4, 5)])
    again.close()
    assert _opened(tmp_path) == (True, [1], 9)
    storage = Storage(tmp_path, LogSettings())
    stored, _ = storage.load()
    storage.close()
    assert stored["checkpoint"] == {(): 9}, "whoever goes on must do so behind the gap"


def test_a_log_that_lacks_its_begin_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _written(tmp_path, _entry(1, 1, 1))
    storage = Storage(tmp_path, LogSettings())
    storage.remember(Row("checkpoint", (), 1))
    storage.remember(Row("session", ("bob",), ["id", 0, 1, 0, 1.0, 1, 0, ""]))
    assert storage._disk is not None
    storage._disk.roll()
    storage.write(Step([_entry(2, 1, 1)], [], {}, {}, set(), {}))
    storage.close()
    raw_path(tmp_path / "log", 1).unlink()
    storage = Storage(tmp_path, LogSettings())
    storage.load()
    storage.close()
    assert "the log begins with position 2, and events from 1 on are needed" in caplog.text
