"""Sources of input: a file, standard input, or the sample in the package."""

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
    """A stream of bytes that can be opened, with a name for messages."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    again: bool = True
    """False for a stream, which can be opened only once"""

    @property
    def suffix(self) -> str:
        """The ending of the name, without the dot and in lower case."""
        return PurePath(self.name).suffix.removeprefix(".").lower()


def source_of(path: str) -> Source:
    """Return the source of a path; `-` is standard input."""
    if path == STDIN:
        return Source("<stdin>", lambda: nullcontext(sys.stdin.buffer), again=False)
    return Source(path, lambda: Path(path).open("rb"))


def sources_of(path: str) -> list[Source]:
    """Return the source of a path or, for a folder, those of all YAML files below, in order."""
    if path == STDIN or not Path(path).is_dir():
        return [source_of(path)]
    return [source_of(str(file)) for file in sorted(Path(path).rglob("*.y*ml")) if file.suffix in (".yml", ".yaml")]


def sample(name: str) -> Source:
    """Return a file of the market data in the package: `events.jsonl` or `filters.txt`."""
    file = resources.files("fieldfare") / "data" / "market" / name
    return Source(f"sample:{name}", lambda: file.open("rb"))


@contextmanager
def as_text(stream: IO[bytes]) -> Iterator[io.TextIOWrapper]:
    """Provide a stream as text for `csv`; bytes outside UTF-8 become surrogates, which no event or filter accepts."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()  # the stream belongs to whoever opened it
