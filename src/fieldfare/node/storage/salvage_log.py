"""Salvage of a damaged log: its whole entries stay, and the lost positions become gaps.

A whole file stays as it is. In a damaged one, each run of whole entries becomes a file, and the
positions in between gaps (`lost_segment`). If the end of the log is gone, its last position is unknown: then as
many positions are skipped as there can have been, since a position must never stand for two events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.events import EventError, json, msgpack
from fieldfare.node.storage import lost_segment, parquet_segment, private, raw_segment
from fieldfare.node.storage.parquet_segment import Sealed
from fieldfare.node.storage.raw_format import LogError
from fieldfare.node.storage.salvage_raw import read_all
from fieldfare.node.storage.segments import NAME, raw_path
from fieldfare.protocol.journal import JournalEntry

MARGIN: Final = 10_000_000
"""Positions to skip if the end of a log is missing: more than a node gives between two checkpoints."""
_BEGIN: Final = -float("inf")


class Gap(msgspec.Struct, frozen=True):
    """A range of lost positions."""

    first: int
    last: int
    why: str
    exact: bool = True
    """Whether all of the positions were in use; else there may have been fewer."""


class Part(NamedTuple):
    """A run of entries, or a gap, and its file."""

    first: int
    last: int
    newest: float
    """Time of the last entry; for a gap, of the last entry before it."""
    path: Path
    """Present file."""
    entries: Sequence[JournalEntry] | None = None
    """Entries to write, if the file is damaged; None: the file stays."""
    is_gap: bool = False


class Plan(NamedTuple):
    """The planned repair of a log."""

    parts: list[Part]
    gaps: list[Gap]
    damaged: list[Path]
    """Damaged or superfluous files, also where nothing is lost."""
    notes: list[str]


def look(directory: Path, needed: int, known: int) -> Plan:
    """Plan the repair of a log; rows need positions from `needed` on, and mention some up to `known`."""
    plan = Plan([], [], [], [])
    files = _chosen(directory, plan)
    position, newest, is_open = min([needed, *(first for first, *_ in files)]), _BEGIN, False

    def lose(last: int, why: str, *, exact: bool = True) -> int:
        plan.gaps.append(Gap(position, last, why, exact))
        path = lost_segment.lost_path(directory, position, last)
        plan.parts.append(Part(position, last, newest, path, (), is_gap=True))
        return last + 1

    for number, (first, last, path) in enumerate(files):
        if last is not None and last < position:
            plan.damaged.append(path)  # the entries are in another file as well
            continue
        following = files[number + 1][0] if number + 1 < len(files) else None
        is_open = last is None and following is None
        end = last if last is not None else following - 1 if following is not None else None
        if first > position:
            position = lose(first - 1, "a file is missing")
        run = _Run(path, first, end, known)
        for entries in run.runs(position):
            if entries[0].position > position:
                position = lose(entries[0].position - 1, run.why)
            position, newest = entries[-1].position + 1, max(newest, entries[-1].time)
            kept = None if run.is_whole else entries
            plan.parts.append(Part(entries[0].position, position - 1, newest, path, kept))
        if run.is_gap:
            plan.parts.append(Part(first, run.last, newest, path, None if run.is_whole else (), is_gap=True))
            position = run.last + 1
        if not run.is_whole:
            plan.damaged.append(path)
        if end is not None and position <= end:
            position = lose(end, run.why)
        elif end is None and run.rest is not None:
            position = lose(position + run.rest[0] - 1, run.why, exact=run.rest[1])
        plan.notes.extend(run.notes)
    if known >= position or (files and not is_open):
        lose(max(known, position - 1) + MARGIN, "the end of the log is missing", exact=False)
    return plan


def apply(directory: Path, plan: Plan) -> None:
    """Carry out a plan; the damaged files are deleted, so copy them before."""
    private.make_folder(directory)
    new: list[tuple[Path, Path]] = []
    before = _BEGIN
    for part in plan.parts:
        if part.entries is not None:
            target = _target(directory, part)
            temporary = directory / f".{target.name}.tmp"
            _write(temporary, part, before)
            new.append((temporary, target))
        before = part.newest
    for path in plan.damaged:
        path.unlink(missing_ok=True)
    for temporary, target in new:
        temporary.replace(target)
    last = plan.parts[-1] if plan.parts else None
    if last is not None and (last.is_gap or last.path.suffix != ".log"):  # a log ends with a file to append to
        path = raw_path(directory, last.last + 1)
        if not path.exists():
            raw_segment.create(path, last.last + 1, before)
    parquet_segment.sync(directory)


def _target(directory: Path, part: Part) -> Path:
    if part.is_gap:
        return part.path
    if part.path.suffix == ".parquet":
        return directory / f"events-{part.first:020}-{part.last:020}.parquet"
    return raw_path(directory, part.first)


def _write(path: Path, part: Part, before: float) -> None:
    if part.is_gap:
        lost_segment.write(path, part.first, part.last, part.newest)
    elif part.path.suffix == ".parquet":
        parquet_segment.write(path, part.entries or ())
    else:
        raw = raw_segment.create(path, part.first, before)
        with path.open("ab") as file:
            file.write(raw_segment.encode(part.entries or (), raw).data)
    parquet_segment.sync(path)


def _chosen(directory: Path, plan: Plan) -> list[tuple[int, int | None, Path]]:
    """Return the files of a log in order: first position, last if named, path. Of two the better one counts."""
    found: dict[int, tuple[int, int | None, Path]] = {}
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if match := NAME.fullmatch(path.name):
            one = int(match[1]), int(match[2]) if match[2] else None, path
            other = found.get(one[0])
            if other is None:
                found[one[0]] = one
                continue
            better, worse = sorted((one, other), key=_rank)
            found[one[0]] = better
            plan.damaged.append(worse[2])
    return [found[first] for first in sorted(found)]


def _rank(file: tuple[int, int | None, Path]) -> int:
    """Return the quality of a file, best first: a whole sealed segment, a raw one, a damaged one, a gap."""
    first, last, path = file
    if path.suffix == ".parquet":
        return 0 if _Run(path, first, last, 0).is_whole else 2
    return 1 if path.suffix == ".log" else 3


class _Run:
    """One file: its whole entries in runs, and what is wrong with it."""

    def __init__(self, path: Path, first: int, last: int | None, known: int) -> None:
        self.path, self.first, self.end = path, first, last
        self.is_whole, self.is_gap = True, path.suffix == ".lost"
        self.last = last or first - 1
        self.rest: tuple[int, bool] | None = None
        """how many entries there may have been behind the last whole one, and whether that is exact"""
        self.notes: list[str] = []
        if self.is_gap:
            self._entries: list[JournalEntry] = []
            try:
                lost_segment.read(path, first, self.last)
            except LogError:
                self.is_whole = False
        elif path.suffix == ".parquet":
            self._entries = self._sealed(Sealed(path, first, self.last, path.stat().st_size))
        else:
            self._entries = self._raw(known)

    @property
    def why(self) -> str:
        """The fault of the file, as a text."""
        return f"{self.path.name} is damaged"

    def runs(self, position: int) -> Iterator[list[JournalEntry]]:
        """Entries from a position on, in runs without gaps."""
        run: list[JournalEntry] = []
        for entry in self._entries:
            if entry.position < position or (self.end is not None and entry.position > self.end):
                self.is_whole = False
                continue
            if run and entry.position != run[-1].position + 1:
                yield run
                run = []
            run.append(entry)
        if run:
            yield run

    def _raw(self, known: int) -> list[JournalEntry]:
        read = read_all(self.path, self.first)
        entries = read.entries
        positions = [entry.position for entry in entries]
        wanted = list(range(self.first, self.first + len(entries)))
        self.is_whole = not read.is_damaged and positions == wanted
        if self.end is not None:
            self.is_whole &= len(entries) == self.end - self.first + 1 and not read.torn
        elif read.lost is not None:
            self.is_whole = False
            self.rest = read.lost
        elif read.torn and (entries[-1].position if entries else self.first - 1) < known:
            self.is_whole = False  # a gap will follow, and what is torn must not stand before it
        elif read.torn and self.is_whole:
            self.notes.append(f"{self.path.name} ends in {read.torn} bytes of a torn write, which the node cuts off")
        return _rising(entries, self.first)

    def _sealed(self, sealed: Sealed) -> list[JournalEntry]:
        try:
            sealed.check()
            entries = list(chain.from_iterable(sealed.read(sealed.first, sealed.last)))
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                for _ in file.iter_batches(columns=["type", "event"]):
                    pass  # what is only shown
        except (FileNotFoundError, LogError, *parquet_segment.ANYTHING):
            self.is_whole = False
            found: list[list[JournalEntry]] = [
                _groups(image) for image in parquet_segment.images(self.path.read_bytes())
            ]
            longest = max([[], *found], key=len)
            return _rising(longest, self.first)
        self.is_whole = [entry.position for entry in entries] == list(range(sealed.first, sealed.last + 1))
        return _rising(entries, self.first)


def _rising(entries: Iterable[JournalEntry], first: int) -> list[JournalEntry]:
    """Without entries whose positions go back."""
    found: list[JournalEntry] = []
    for entry in entries:
        if entry.position >= (found[-1].position + 1 if found else first):
            found.append(entry)
    return found


def _groups(image: bytes) -> list[JournalEntry]:
    """The entries of all row groups that can be read."""
    entries: list[JournalEntry] = []
    try:
        with pq.ParquetFile(pa.BufferReader(image), page_checksum_verification=True) as file:
            firsts = [group.first for group in parquet_segment.groups_in(file.metadata.metadata)]
            for number, first in enumerate(firsts):
                entries += _group(file, number, first)
    except parquet_segment.ANYTHING:
        pass
    return entries


def _group(file: Any, number: int, first: int) -> list[JournalEntry]:
    """The entries of a row group: columns that say the same as others can be made from these."""
    columns: dict[str, Any] = {}
    for name in ("position", "time", "publisher", "sequence", "rest", "record", "event"):
        try:
            columns[name] = file.read_row_group(number, [name], use_threads=False).column(name)
        except parquet_segment.ANYTHING:
            if name not in ("position", "record", "event"):
                return []
    try:
        if "position" in columns and columns["position"].to_pylist()[:1] != [first]:
            return []  # it is another row group
        if "record" in columns:
            events: list[bytes | None] = columns["record"].to_pylist()
        else:
            events = [_event(text) for text in columns["event"].to_pylist()]
        times = (columns["time"].cast(pa.int64()).to_numpy() / 1e6).tolist()
        rows = (times, columns["publisher"].to_pylist(), columns["sequence"].to_pylist())
        rests = columns["rest"].to_pylist()
        entries = [
            JournalEntry(position, time, publisher, sequence, event, rest)
            for position, (time, publisher, sequence, event, rest) in enumerate(
                zip(*rows, events, rests, strict=True), first
            )
            if event is not None
        ]
    except parquet_segment.ANYTHING:
        return []
    return entries


def _event(text: str | None) -> bytes | None:
    try:
        return None if text is None else msgpack.encode(json.decode(text.encode(), limits=parquet_segment.ANY_SIZE))
    except (EventError, RecursionError):
        return None
