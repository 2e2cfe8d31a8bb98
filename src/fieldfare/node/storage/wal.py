"""Check of the write-ahead log of a store (`node.sqlite-wal`), before SQLite reads it.

Commits stay there until they are copied into the file itself, and after a kill SQLite takes them from there. At the
first frame with a wrong checksum SQLite stops, without a word: right for a torn end, but one flipped bit would undo
all commits behind it. A frame continues the checksum of the frame before it, so frames behind a bad one can be judged
on their own: if any of them is good, the bad frame is no torn end.

A wrong last frame cannot be told from a torn one, since SQLite writes over the frames of an earlier round. Nor is it
damage if frames of an earlier round, or of a commit that a kill cut short, stand where later ones should.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER: Final = struct.Struct(">8I")
"""Magic, version, page size, round, two salts, two checksums."""
_FRAME: Final = struct.Struct(">6I")
"""Page, pages of the file if the frame ends a commit, two salts, two checksums."""
_MAGIC: Final = 0x377F0682
_LOW: Final = np.uint64(0xFFFFFFFF)


class Frame(NamedTuple):
    """A page of the file, as of one commit."""

    page: int
    commit: int
    """Number of pages of the file, if the frame is the last of a commit; else 0."""
    data: bytes
    is_good: bool
    is_written: bool
    """Whether the frame has the salts of this round, but for one bit at most."""


class Wal(NamedTuple):
    """The frames of a write-ahead log."""

    size: int
    """Size of a page in bytes."""
    has_header: bool
    """Whether the checksum of the header is right."""
    frames: list[Frame]

    @property
    def problem(self) -> str:
        """Description of the damage; empty if there is none."""
        if not self.has_header:
            return "its header has a wrong checksum" if self.last_commit else ""
        bad = self._first_bad
        written = bad and self.frames[bad - 1].is_written
        return f"frame {bad} of {self.last_commit} has a wrong checksum" if written else ""

    @property
    def is_torn(self) -> bool:
        """Tell whether a commit lacks an earlier frame, as a power failure may leave it."""
        return bool(self._first_bad) and not self.problem

    @property
    def last_commit(self) -> int:
        """Number of the last good frame that ends a commit; 0 if there is none."""
        return max((number for number, one in enumerate(self.frames, 1) if one.is_good and one.commit), default=0)

    @property
    def _first_bad(self) -> int:
        """Number of the first bad frame before a commit; 0 if there is none."""
        return next((number for number, one in enumerate(self.frames[: self.last_commit], 1) if not one.is_good), 0)


def wal_path(path: Path) -> Path:
    """Return the path of the write-ahead log of a file."""
    return path.with_name(f"{path.name}-wal")


def read(path: Path) -> Wal:
    """Read a write-ahead log; a missing file has no frames."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < _HEADER.size:
        return Wal(0, has_header=True, frames=[])
    magic, _, size, _, *_ = head = _HEADER.unpack_from(data)
    order: str = ">" if magic & 1 else "<"
    computed = _sums(np.frombuffer(data, f"{order}u4", 6)[None], np.zeros((1, 2), np.uint64))[0]
    has_header = computed == head[6:8]
    if not 512 <= size <= 65536 or size & (size - 1):
        size = 4096
    count = (len(data) - _HEADER.size) // (_FRAME.size + size)
    if not count or not any(head):
        return Wal(size, has_header=True, frames=[])
    body = np.frombuffer(data, np.uint8, count * (_FRAME.size + size), _HEADER.size).reshape(count, -1)
    heads = [_FRAME.unpack(row[: _FRAME.size].tobytes()) for row in body]
    checked = np.ascontiguousarray(np.delete(body, np.s_[8 : _FRAME.size], axis=1)).view(f"{order}u4")
    seeds = np.array([head[6:8], *(one[4:6] for one in heads[:-1])], np.uint64)
    sums = _sums(checked, seeds)
    salts = head[4:6] if has_header else heads[0][2:4]
    frames = [
        Frame(
            page=one[0],
            commit=one[1],
            data=row[_FRAME.size :].tobytes(),
            is_good=one[2:4] == salts and one[4:6] == found,
            is_written=sum((a ^ b).bit_count() for a, b in zip(one[2:4], salts, strict=True)) <= 1,
        )
        for one, row, found in zip(heads, body, sums, strict=True)
    ]
    return Wal(size, has_header, frames)


def applied(image: bytes, wal: Wal) -> bytes:
    """Return the content of a file with all good frames up to the last commit applied."""
    pages = bytearray(image)
    for frame in wal.frames[: wal.last_commit]:
        if frame.is_good and 0 < frame.page <= 1 << 24:
            begin = (frame.page - 1) * wal.size
            pages.extend(bytes(max(0, begin + wal.size - len(pages))))
            pages[begin : begin + wal.size] = frame.data
    return bytes(pages)


def _sums(words: NDArray[np.uint32], seeds: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Return SQLite's checksums of rows of words, each with a seed: s0 += x + s1; s1 += y + s0, for all pairs x, y."""
    steps = words.shape[1] // 2
    powers = _powers(steps)
    x = words[:, 0::2].astype(np.uint64)
    y = (x + words[:, 1::2]) & _LOW
    found = []
    for row in (0, 1):
        at_end, weights = powers[steps, row], powers[steps - 1 :: -1, row] if steps else powers[:0, row]
        total = (x * weights[:, 0] & _LOW).sum(1) + (y * weights[:, 1] & _LOW).sum(1)
        total += (seeds[:, 0] * at_end[0] & _LOW) + (seeds[:, 1] * at_end[1] & _LOW)
        found.append((total & _LOW).tolist())
    return list(zip(*found, strict=True))


@cache
def _powers(steps: int) -> NDArray[np.uint64]:
    """Return powers 0 to `steps` of the matrix by which a step changes the two sums."""
    powers = np.empty((steps + 1, 2, 2), np.uint64)
    a, b, c, d = 1, 0, 0, 1
    for step in range(steps + 1):
        powers[step] = (a, b), (c, d)
        a, b, c, d = (a + b) % 2**32, (a + 2 * b) % 2**32, (c + d) % 2**32, (c + 2 * d) % 2**32
    return powers
