"""`Archive`: the sealed segments of a log in another place, such as a bucket, where they stay for good.

    log.archive = "s3://bucket/oslo"

Sealed segments are copied in the order of positions, under the names on disk; no segment is deleted on disk before. So
the archive grows without an end, and readers of a log's folder read archives, too. An object `log.json` names the log:
another node, or a node after the loss of all data, is refused the place, because there positions mean other events.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from obstore.exceptions import BaseError

from fieldfare.node.storage.lost_segment import Lost
from fieldfare.node.storage.parquet_segment import Sealed
from fieldfare.node.storage.raw_format import LogError
from fieldfare.node.storage.segments import NAME, Segment
from fieldfare.objects import Objects

_OWNER: Final = "log.json"

logger = logging.getLogger("fieldfare.node")


class _Owner(msgspec.Struct):
    log: str


class Archive:
    """An archive of a log; `last` is the last archived position, or 0 before the first look at the archive."""

    def __init__(self, place: str, owner: Path) -> None:
        """Keep the place, and the file with the name of the log; nothing is read yet."""
        self.last = 0
        self._objects = Objects(place)
        self._owner = owner
        self._is_open = False

    def add(self, segments: Sequence[Segment]) -> None:
        """Copy closed segments that the archive lacks, of all present segments; what fails waits for the next call."""
        try:
            self._open()
            if segments[-1].last < self.last:
                raise LogError(
                    f"{self._objects.place} ends at position {self.last}, and the log at {segments[-1].last}: the log"
                    " has lost its end, and gives positions again; name another place in log.archive"
                )
            for segment in segments:
                if segment.last <= self.last:
                    continue
                if not isinstance(segment, Sealed | Lost):
                    return  # later ones wait, too
                if self.last and segment.first > self.last + 1:
                    logger.error(
                        "%s: positions %d to %d are missing, as the disk no longer has them",
                        self._objects.place,
                        self.last + 1,
                        segment.first - 1,
                    )
                self._objects.put_new(segment.path.name, segment.path)
                self.last = segment.last
        except (BaseError, OSError) as error:
            logger.warning(
                "%s: segments from position %d on stay on disk until the archive takes them: %s",
                self._objects.place,
                self.last + 1,
                " ".join(str(error).partition("\n")[0].split()),
            )

    def _open(self) -> None:
        if self._is_open:
            return
        if not self._owner.exists():
            self._owner.write_bytes(msgspec.json.encode(_Owner(uuid.uuid4().hex)))
        mine = self._owner.read_bytes()
        if not self._objects.create(_OWNER, mine) and self._objects.read(_OWNER) != mine:
            raise LogError(
                f"{self._objects.place} has the log of another node, or of this node before it lost its data: name"
                " another place in log.archive"
            )
        names = (NAME.fullmatch(one.name) for one in self._objects.here()[0])
        self.last = max((int(found[2]) for found in names if found and found[2]), default=0)
        self._is_open = True
