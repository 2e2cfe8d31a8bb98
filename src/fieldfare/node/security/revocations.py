"""`Revocations`: tokens that are void before their time, from a file; the node reads each new version of the file.

    tokens = ["3f6c1a", "77ab02"]       # by their id (`jti`)

    [names]
    ana = true                          # all tokens of ana (`sub`)
    bob = 2026-05-01T12:00:00Z          # those of bob that were issued before

A connection whose token becomes void ends within about `EVERY` seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from fieldfare import toml
from fieldfare.node.config import ConfigError

EVERY: Final = 2.0
"""seconds between two checks of the file"""

logger = logging.getLogger("fieldfare.node")


class Credential(NamedTuple):
    """The marks of a token by which the file may name it: holder, id and time of issue."""

    name: str
    id: str = ""
    issued: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[str] = []
    names: dict[str, Any] = {}


class _Void(NamedTuple):
    tokens: frozenset[str] = frozenset()
    names: Mapping[str, float] = {}
    """by name: the time before which issued tokens are void"""


class Revocations:
    """The void tokens, and the watchers of tokens in use."""

    def __init__(self, file: str) -> None:
        """Read the file; ConfigError if the file is missing or wrong."""
        self._file = Path(file)
        self._seen: tuple[int, int, int] | None = None
        self._watching: dict[object, tuple[Credential, Callable[[], None]]] = {}
        try:
            self._void = _read(self._file)
            self._seen = self._stamp()
        except (OSError, ValueError) as error:
            raise ConfigError(file, "security.void", error) from None

    def is_void(self, credential: Credential) -> bool:
        """Tell whether the file names a token."""
        before = self._void.names.get(credential.name)
        old = before is not None and (credential.issued is None or credential.issued < before)
        return old or (bool(credential.id) and credential.id in self._void.tokens)

    def watch(self, credential: Credential, end: Callable[[], None]) -> Callable[[], None]:
        """Call `end` when a token becomes void; return a function that stops the watch."""
        key = object()
        self._watching[key] = credential, end
        if self.is_void(credential):  # the file changed after the token was checked
            end()

        def unwatch() -> None:
            self._watching.pop(key, None)

        return unwatch

    async def run(self) -> None:
        """Check the file every `EVERY` seconds, for ever."""
        while True:
            await asyncio.sleep(EVERY)
            self.look()

    def look(self) -> None:
        """Read a changed file, and end the connections with void tokens; if the file is wrong, the old list stays."""
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            self._void = _read(self._file)
            self._seen = stamp
        except (OSError, ValueError) as error:
            logger.error("%s cannot be read, and the old list of void tokens stays: %s", self._file, error)
            return
        void = [end for credential, end in self._watching.values() if self.is_void(credential)]
        logger.warning("%s has changed: %d connections with void tokens end", self._file, len(void))
        for end in void:
            end()

    def _stamp(self) -> tuple[int, int, int]:
        state = self._file.stat()
        return state.st_mtime_ns, state.st_size, state.st_ino


def _read(file: Path) -> _Void:
    """Read a file of void tokens; ValueError names the mistake."""
    found = toml.decode(file.read_text("utf-8"), _File)
    return _Void(frozenset(found.tokens), {name: _moment(name, when) for name, when in found.names.items()})


def _moment(name: str, when: object) -> float:
    if when is True:
        return float("inf")
    if isinstance(when, datetime):
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    raise ValueError(f"names.{name}: expected true (all tokens), or a time (tokens issued before)")
