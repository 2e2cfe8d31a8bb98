"""Where input comes from: a file, standard input, or the sample that comes with Fieldfare."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePath
from typing import IO, Final

STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes to be read, under the name that messages call them by."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    again: bool = True
    """can it be opened more than once?"""

    @property
    def suffix(self) -> str:
        """What the name ends in, without the dot, in lower case."""
        return PurePath(self.name).suffix.removeprefix(".").lower()


def source_of(path: str) -> Source:
    """The file of a path; `-` is standard input."""
    if path == STDIN:
        return Source("<stdin>", lambda: nullcontext(sys.stdin.buffer), again=False)
    return Source(path, lambda: Path(path).open("rb"))


def sample(name: str) -> Source:
    """A file of the bundled market data: `events.jsonl` or `filters.txt`."""
    file = resources.files("fieldfare") / "data" / "market" / name
    return Source(f"sample:{name}", lambda: file.open("rb"))


@contextmanager
def as_text(stream: IO[bytes]) -> Iterator[io.TextIOWrapper]:
    """The stream as text for `csv`. Bytes that are not UTF-8 become surrogates, which no event or filter accepts."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()  # the stream belongs to whoever opened it
