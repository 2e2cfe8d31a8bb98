"""Which segments a folder holds.

Only the last one is looked through when a log is opened: a write may have been cut short there, or the making of the
file itself. The others are known by their names and headers. A crash while a segment was being sealed leaves it twice,
raw and as Parquet, and the raw one goes then.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, TypeAlias

from fieldfare.node import segment
from fieldfare.node.parquet import Sealed
from fieldfare.node.records import LogError
from fieldfare.node.segment import Raw

Segment: TypeAlias = Raw | Sealed

_NAME: Final = re.compile(r"events-(\d{20})(?:\.log|-(\d{20})\.parquet)")


def raw_path(directory: Path, first: int) -> Path:
    """The file of a raw segment."""
    return directory / f"events-{first:020}.log"


def found(directory: Path) -> tuple[Segment, ...]:
    """The segments in a folder, of which the last is raw. The others are known by their names and headers alone."""
    for leftover in directory.glob(".events-*.tmp"):
        leftover.unlink()
    raws, sealed, start = _listed(directory)
    parts: list[Segment] = []  # from the last to the first: a header has the newest time of the segment before
    for first in sorted(raws | sealed, reverse=True):
        after = parts[-1] if parts else None
        if first in sealed:
            parts.append(sealed[first])
        elif after is None:
            parts.append(segment.recover(raws[first], first))
        else:
            newest = after.before if isinstance(after, Raw) else None
            parts.append(segment.closed(raws[first], first, after.first - 1, newest))
        if after is not None and parts[-1].last + 1 != after.first:
            raise LogError(
                f"between {parts[-1].path} and {after.path} there is a segment too few or too many: "
                "bring missing files back from a copy"
            )
    parts.reverse()
    if not parts or isinstance(parts[-1], Sealed):
        start, newest = (parts[-1].last + 1, parts[-1].newest) if parts else (start, -float("inf"))
        parts.append(segment.create(raw_path(directory, start), start, newest))
    return tuple(parts)


def _listed(directory: Path) -> tuple[dict[int, Path], dict[int, Sealed], int]:
    """The raw and the sealed segments by their first position, and where to begin if there are none."""
    raws: dict[int, Path] = {}
    sealed: dict[int, Sealed] = {}
    start = 1
    for path in directory.iterdir():
        if match := _NAME.fullmatch(path.name):
            first, last = int(match[1]), match[2]
            if last is None:
                raws[first] = path
            else:
                sealed[first] = Sealed(path, first, int(last), path.stat().st_size)
    for first in raws.keys() & sealed.keys():  # a crash while it was being sealed
        sealed[first].check()
        raws.pop(first).unlink()
    if raws and segment.is_torn(raws[newest := max(raws)]):  # a crash while it was being made: nothing is in it
        raws.pop(newest).unlink()
        start = newest
    return raws, sealed, start
