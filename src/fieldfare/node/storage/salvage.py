"""`salvage`: keep the whole entries and rows in a damaged folder of a node, and report the lost ones.

The node must not run. Damaged files are copied first, to `salvaged-1`, `salvaged-2`, ... in the folder. A second
salvage finds nothing more to do. After a loss, a row counts how often that has happened: numbers that clients and
neighbours have heard may be unknown now, so the node must not continue as if nothing had happened.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fieldfare.node.storage import private, salvage_log, salvage_rows, wal
from fieldfare.node.storage.log import Log
from fieldfare.node.storage.rows import Store, StoreError
from fieldfare.node.storage.salvage_log import Gap
from fieldfare.node.storage.salvage_rows import Gone, Rows
from fieldfare.node.storage.storage import locked
from fieldfare.protocol.journal import Row, RowKey, details_of

CENTURY: Final = 946_684_800.0
"""The year 2000 in seconds of Unix time; a life counted in seconds since then is later than any counted from 1."""
_COUNT, _DONE, _DROPPED, _MOVED = 2, 3, 6, 8
"""Places in the row of a session; see `state_rows`."""
_LOW: Final = {"session": 5, "neighbour": 1, "arrival": 0, "departure": 0, "kept": 0}
"""Place of the first needed position in each kind of row; the position is at most one behind the last entry."""


class SalvageReport(msgspec.Struct):
    """The findings and actions of a salvage."""

    folder: str
    dry_run: bool
    gaps: list[Gap] = []
    """Lost positions of the log."""
    rows: list[Gone] = []
    """Lost rows."""
    dropped: dict[str, int] = {}
    """Number of lost deliveries, by session."""
    problems: list[str] = []
    """Descriptions of the damage, also where nothing is lost."""
    notes: list[str] = []
    originals: str | None = None
    """Folder with copies of the damaged files."""
    times: int = 0
    """How often a salvage of this folder has found a loss."""

    @property
    def is_whole(self) -> bool:
        """Tell whether no entry and no row is lost."""
        return not self.gaps and not self.rows


def salvage(folder: Path, *, dry_run: bool = False) -> SalvageReport:
    """Repair the folder of a node; StoreError if it belongs to no node, or a running node uses it."""
    store, log = folder / "node.sqlite", folder / "log"
    if not store.exists() and not log.is_dir():
        raise StoreError(f"{folder} is no folder of a node: there is neither node.sqlite nor log in it")
    lock = locked(folder)
    try:
        rows = salvage_rows.look(store)
        plan = salvage_log.look(log, *_bounds(rows.kept))
        if not rows.kept and not plan.parts and not wal.wal_path(store).exists():
            return SalvageReport(str(folder), dry_run)  # a node without any state
        report = SalvageReport(str(folder), dry_run, plan.gaps, rows.gone, notes=plan.notes)
        report.problems = [*([rows.problem] if rows.problem else []), *(f"{path} is damaged" for path in plan.damaged)]
        report.times = int(rows.kept.get(("salvaged", ()), 0)) + (not report.is_whole)
        if dry_run or not (report.problems or plan.gaps):
            return report
        originals = _copied(folder, [*plan.damaged, *((store, wal.wal_path(store)) if rows.problem else ())])
        report.originals = str(originals)
        _write(store, rows, report)  # first: a gap in the log implies that the rows know of it
        salvage_log.apply(log, plan)
        report.dropped = _dropped(log, rows.kept, report.gaps)
        _note_dropped(store, rows, report.dropped)
        private.create(originals / "report.json", msgspec.json.format(msgspec.json.encode(report)) + b"\n")
        return report
    finally:
        lock.close()


def _copied(folder: Path, files: list[Path]) -> Path:
    """Copy files to a new folder, and return it."""
    number = 1
    while (target := folder / f"salvaged-{number}").exists():
        number += 1
    target.mkdir(mode=private.FOLDER)
    for file in files:
        if file.exists():
            private.create(target / file.name)
            shutil.copyfile(file, target / file.name)
    return target


def _write(path: Path, rows: Rows, report: SalvageReport) -> None:
    """Write the kept rows to the store, with the count of losses and a later life."""
    changed: dict[tuple[str, RowKey], Any] = {}
    if not report.is_whole:
        changed["salvaged", ()] = report.times
    if "life" in rows.made:
        changed["life", ()] = int(time.time() - CENTURY)
    if rows.problem:
        temporary = path.with_name(f".{path.name}.tmp")
        for file in (temporary, wal.wal_path(temporary)):
            file.unlink(missing_ok=True)
        salvage_rows.write(temporary, rows.kept | changed)
        for file in (wal.wal_path(path), path.with_name(f"{path.name}-shm")):
            file.unlink(missing_ok=True)  # first: SQLite must not apply it to the new file
        temporary.replace(path)
    elif changed:
        _commit(path, changed)


def _note_dropped(path: Path, rows: Rows, dropped: Mapping[str, int]) -> None:
    changed: dict[tuple[str, RowKey], Any] = {}
    for name, count in dropped.items():
        row = changed["session", (name,)] = list(rows.kept["session", (name,)])
        row[_DROPPED] += count
    if changed:
        _commit(path, changed)


def _commit(path: Path, changed: Mapping[tuple[str, RowKey], Any]) -> None:
    store = Store(path, sync="full")
    store.commit(Row(kind, key, value) for (kind, key), value in changed.items())
    store.close()


def _bounds(rows: Mapping[tuple[str, RowKey], Any]) -> tuple[int, int]:
    """Return the lowest position that rows need, and the highest that rows mention."""
    lows = [int(row[_LOW[kind]]) for (kind, _), row in rows.items() if kind in _LOW]
    checkpoint = int(rows.get(("checkpoint", ()), 0))
    replayed = [int(row[0]) for (kind, _), row in rows.items() if kind == "replayed"]
    known = max([checkpoint, *(low - 1 for low in lows), *replayed])
    return max(1, min([checkpoint + 1 if checkpoint else known + 1, *lows])), known


def _dropped(directory: Path, rows: Mapping[tuple[str, RowKey], Any], gaps: list[Gap]) -> dict[str, int]:
    """Return the number of deliveries that each session has lost with positions of the log.

    Numbers of a session rise with positions. Numbers that are missing between two deliveries were in the gap between
    both. Some of them may have been acknowledged or replaced; nothing tells.
    """
    sessions = {str(key[0]): row for (kind, key), row in rows.items() if kind == "session"}
    if not gaps or not sessions:
        return {}
    marks = {name: (row[_MOVED] if len(row) > _MOVED else "") or row[0] for name, row in sessions.items()}
    seen: dict[str, dict[int, int]] = {name: {} for name in sessions}
    for kind, key in rows:
        if kind == "replayed" and str(key[0]) in seen:
            seen[str(key[0])][int(key[1])] = 0
    log = Log(directory)
    log.close()
    for entry in log.read(1):
        for name, mark, number, _ in details_of(entry).to:
            if marks.get(name) == mark:
                seen[name][number] = entry.position
    found = {name: _missing(row, seen[name], gaps, log.last + 1) for name, row in sessions.items()}
    return {name: count for name, count in found.items() if count}


def _missing(row: list[Any], seen: Mapping[int, int], gaps: list[Gap], end: int) -> int:
    count = 0
    number, position = row[_DONE], 0
    for later, place in [*sorted(seen.items()), (max([row[_COUNT], *seen]) + 1, end)]:
        if later > number:
            there = sum(gap.last - gap.first + 1 for gap in gaps if position < gap.first and gap.last < (place or end))
            count += min(later - number - 1, there)
        if later >= number:
            number, position = later, place or position
        else:
            position = max(position, place)
    return count
