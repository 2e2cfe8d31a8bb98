"""`Revocations`: tokens that are void before their time, from a file that is read again whenever it changes.

    tokens = ["3f6c1a", "77ab02"]       # by their id (`jti`)

    [names]
    ana = true                          # all tokens of ana (`sub`)
    bob = 2026-05-01T12:00:00Z          # those of bob that were issued before

A connection whose token becomes void ends within `EVERY` seconds and a little.
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
"""seconds between two looks at the file"""

logger = logging.getLogger("fieldfare.node")


class Credential(NamedTuple):
    """What is known of the token that somebody came with."""

    name: str
    id: str = ""
    issued: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[str] = []
    names: dict[str, Any] = {}


class _Void(NamedTuple):
    tokens: frozenset[str] = frozenset()
    names: Mapping[str, float] = {}
    """by name: tokens that were issued before are void"""


class Revocations:
    """The tokens that are void, and whoever came with one that is not yet."""

    def __init__(self, file: str) -> None:
        """Read the file; ConfigError if that cannot be done."""
        self._file = Path(file)
        self._seen: tuple[int, int, int] | None = None
        self._watching: dict[object, tuple[Credential, Callable[[], None]]] = {}
        try:
            self._void = _read(self._file)
            self._seen = self._stamp()
        except (OSError, ValueError) as error:
            raise ConfigError(file, "security.void", error) from None

    def is_void(self, credential: Credential) -> bool:
        """Is a token void?"""
        before = self._void.names.get(credential.name)
        old = before is not None and (credential.issued is None or credential.issued < before)
        return old or (bool(credential.id) and credential.id in self._void.tokens)

    def watch(self, credential: Credential, end: Callable[[], None]) -> Callable[[], None]:
        """Call somebody when a token becomes void; gives what to call when nobody needs to know any more."""
        key = object()
        self._watching[key] = credential, end
        if self.is_void(credential):  # since a moment ago
            end()

        def unwatch() -> None:
            self._watching.pop(key, None)

        return unwatch

    async def run(self) -> None:
        """Look at the file now and then."""
        while True:
            await asyncio.sleep(EVERY)
            self.look()

    def look(self) -> None:
        """Read the file again if it has changed. If that cannot be done, what was void stays so."""
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            self._void = _read(self._file)
            self._seen = stamp
        except (OSError, ValueError) as error:
            logger.error("%s cannot be read, and what was void stays so: %s", self._file, error)
            return
        void = [end for credential, end in self._watching.values() if self.is_void(credential)]
        logger.warning("%s was read again: %d connections end", self._file, len(void))
        for end in void:
            end()

    def _stamp(self) -> tuple[int, int, int]:
        state = self._file.stat()
        return state.st_mtime_ns, state.st_size, state.st_ino


def _read(file: Path) -> _Void:
    """What a file says; ValueError if that makes no sense."""
    found = toml.decode(file.read_text("utf-8"), _File)
    return _Void(frozenset(found.tokens), {name: _moment(name, when) for name, when in found.names.items()})


def _moment(name: str, when: object) -> float:
    if when is True:
        return float("inf")
    if isinstance(when, datetime):
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    raise ValueError(f"names.{name}: true (all tokens), or a time before which they were issued")
