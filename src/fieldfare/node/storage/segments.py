"""The segments in the folder of a log, found by their files.

Only the last segment is read when a log is opened: a write may have been cut short there, or the creation of the
file. The others are known by their names and headers. A crash during the sealing of a segment leaves two files, raw
and Parquet; then the raw one is deleted. A gap that a salvage has left has a file, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from fieldfare.node.storage import lost_segment, raw_segment
from fieldfare.node.storage.lost_segment import Lost
from fieldfare.node.storage.parquet_segment import Sealed
from fieldfare.node.storage.raw_format import LogError, advice
from fieldfare.node.storage.raw_segment import Raw

Segment: TypeAlias = Raw | Sealed | Lost

NAME: Final = re.compile(r"events-(\d{20})(?:\.log|-(\d{20})\.(parquet|lost))")
"""Name of the file of a segment: its first position, and for a closed segment its last."""


class Found(NamedTuple):
    """The segments in a folder."""

    segments: tuple[Segment, ...]
    """Segments in their order; the last is raw."""
    is_torn: bool
    """Whether the creation of the last segment had been cut short, so that it was created anew."""


def raw_path(directory: Path, first: int) -> Path:
    """Return the path of a raw segment."""
    return directory / f"events-{first:020}.log"


def found(directory: Path) -> Found:
    """Find the segments in a folder; if the last is not raw, an empty raw one is created."""
    for leftover in directory.glob(".events-*.tmp"):
        leftover.unlink()
    raws, sealed, torn = _listed(directory)
    parts: list[Segment] = []  # from the last to the first: a header has the newest time of the segment before
    for first in sorted(raws | sealed, reverse=True):
        after = parts[-1] if parts else None
        if first in sealed:
            parts.append(sealed[first])
        elif after is None:
            parts.append(raw_segment.recover(raws[first], first))
        else:
            newest = after.before if isinstance(after, Raw) else after.newest if isinstance(after, Lost) else None
            parts.append(raw_segment.closed(raws[first], first, after.first - 1, newest))
        if after is not None and parts[-1].last + 1 != after.first:
            raise _not_in_line(parts[-1].path, after.path)
    parts.reverse()
    if torn is not None:
        path = raw_path(directory, torn)
        if parts and parts[-1].last + 1 != torn:
            raise _not_in_line(parts[-1].path, path)
        path.unlink()
    if not parts or not isinstance(parts[-1], Raw):
        start, newest = (parts[-1].last + 1, parts[-1].newest) if parts else (torn or 1, -float("inf"))
        parts.append(raw_segment.create(raw_path(directory, start), start, newest))
    return Found(tuple(parts), torn is not None)


def _not_in_line(before: Path, after: Path) -> LogError:
    return LogError(f"between {before} and {after} there is a segment too few or too many. {advice(before.parent)}")


def _listed(directory: Path) -> tuple[dict[int, Path], dict[int, Sealed | Lost], int | None]:
    """Return raw and closed segments by first position, and the position of a raw one without a whole header."""
    raws: dict[int, Path] = {}
    closed: dict[int, Sealed | Lost] = {}
    torn = None
    for path in directory.iterdir():
        if match := NAME.fullmatch(path.name):
            first = int(match[1])
            if match[2] is None:
                raws[first] = path
            elif match[3] == "lost":
                closed[first] = lost_segment.read(path, first, int(match[2]))
            else:
                closed[first] = Sealed(path, first, int(match[2]), path.stat().st_size)
    for first in raws.keys() & closed.keys():  # a crash during the sealing
        if isinstance(closed[first], Lost):
            raise _not_in_line(closed[first].path, raws[first])
        closed[first].check()
        raws.pop(first).unlink()
    if raws and raw_segment.is_torn(raws[newest := max(raws)]):  # a crash during the creation: the file is empty
        torn = newest
        del raws[newest]
    return raws, closed, torn
