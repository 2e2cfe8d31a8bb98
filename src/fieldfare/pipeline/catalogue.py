"""Subscriptions in bulk: versions of an index, each an immutable directory that every worker of a machine maps.

    catalogue/
      v0000000001/index.ff              the engine's snapshot, its ids the numbers of rows in
      v0000000001/subscriptions.arrow   id, owner and filter of each subscription
      v0000000001/about.json            how many, and which fields their filters look at
      pins/…                            which version a micro-batch has used: it will use it again after a crash

A version appears by a rename, whole or not at all; the current one is the highest. Nothing here needs Spark.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from fieldfare.filters import Filter
from fieldfare.filters.dialects import Dialect, read
from fieldfare.filters.paths import Path as Anywhere
from fieldfare.matching.index import Index

INDEX: Final = "index.ff"
SUBSCRIPTIONS: Final = "subscriptions.arrow"
ABOUT: Final = "about.json"
_PINS: Final = "pins"
_PINS_KEPT: Final = 1000
_ABANDONED: Final = 86_400
"""seconds after which a draft is one that nobody will finish"""


class SubscriptionError(ValueError):
    """A subscription that cannot be used, and which one it is."""


class Subscription(NamedTuple):
    """Who wants what."""

    id: str | int
    filter: str | Filter
    owner: str | None = None
    dialect: Dialect = Dialect.NATIVE


class About(msgspec.Struct, frozen=True):
    """What a version holds."""

    version: int
    count: int
    fields: list[str] | None
    """the paths its filters look at; None if one of them looks everywhere"""


@dataclass(frozen=True)
class Opened:
    """A version, mapped: its index gives row numbers, which are looked up in the arrays beside it."""

    about: About
    index: Index[int]
    ids: Any
    owners: Any


def publish(path: str | Path, subscriptions: Iterable[Subscription], *, keep: int = 8) -> int:
    """Make a new version of all these subscriptions, and forget those before the last few. Gives its number."""
    given = [_checked(row, one) for row, one in enumerate(subscriptions, 1)]
    _refuse_equal(given)
    index: Index[int] = Index(enumerate(filter for _, filter in given))
    rows = pa.record_batch(
        {
            "id": _ids([one.id for one, _ in given]),
            "owner": pa.array([one.owner for one, _ in given], pa.string()),
            "filter": pa.array([str(filter) for _, filter in given], pa.string()),
        }
    )
    fields = _looked_at([filter for _, filter in given])
    return _written(Path(path), index, rows, About(0, len(given), fields), keep)


def amend(
    path: str | Path, add: Iterable[Subscription] = (), remove: Iterable[str | int] = (), *, keep: int = 8
) -> int:
    """Make a new version from the current one: what is added replaces a subscription of the same id."""
    given = [_checked(row, one) for row, one in enumerate(add, 1)]
    _refuse_equal(given)
    before = opened(str(path), current(path))
    index: Index[int] = Index.open(Path(path) / _name(before.about.version) / INDEX)
    old = _rows(Path(path) / _name(before.about.version))
    place = {id: number for number, id in enumerate(old["id"].to_pylist()) if id is not None}
    gone = {one.id for one, _ in given} | set(remove)
    for id in gone:
        if (number := place.get(id)) is not None:
            index.remove(number)
    first = old.num_rows
    if len(index) < first // 2:  # mostly gaps by now: number them anew
        owners = old["owner"].to_pylist()
        left = [Subscription(id, index.filter(n), owners[n]) for id, n in place.items() if id not in gone]
        return publish(path, [*left, *(one._replace(filter=filter) for one, filter in given)], keep=keep)
    index.add_many((first + number, filter) for number, (_, filter) in enumerate(given))
    kept = pa.array([None if id in gone else id for id in old["id"].to_pylist()], old["id"].type)
    rows = pa.record_batch(
        {
            "id": pa.concat_arrays([kept, _ids([one.id for one, _ in given], kept.type)]),
            "owner": pa.concat_arrays([old["owner"], pa.array([one.owner for one, _ in given], pa.string())]),
            "filter": pa.concat_arrays([old["filter"], pa.array([str(filter) for _, filter in given], pa.string())]),
        }
    )
    new = _looked_at([filter for _, filter in given])
    known = before.about.fields
    fields = None if new is None or known is None else sorted({*known, *new})
    return _written(Path(path), index, rows, About(0, len(index), fields), keep)


def is_catalogue(path: str | Path) -> bool:
    """Is there a catalogue at a path?"""
    return bool(versions(path))


def versions(path: str | Path) -> list[int]:
    """The versions that are there, in their order."""
    folder = Path(path)
    return sorted(int(found.name[1:]) for found in folder.glob("v" + "[0-9]" * 10)) if folder.is_dir() else []


def current(path: str | Path) -> int:
    """The newest version."""
    found = versions(path)
    if not found:
        raise SubscriptionError(f"there is no catalogue of subscriptions at {path}: publish() makes one")
    return found[-1]


def pinned(path: str | Path, moment: int) -> int:
    """The version for a micro-batch, told by its time: the one that is current when the first of its tasks asks.

    All its tasks, and all its repetitions after a crash, get the same.
    """
    pin = Path(path) / _PINS / str(moment)
    with contextlib.suppress(FileNotFoundError):
        return int(pin.read_text())
    pin.parent.mkdir(exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=pin.parent, prefix=".")
    with os.fdopen(handle, "w") as file:
        file.write(str(current(path)))
    with contextlib.suppress(FileExistsError):  # another task was first
        os.link(draft, pin)  # the name appears with its content, and only once
    Path(draft).unlink()
    return int(pin.read_text())


@lru_cache(maxsize=2)
def opened(path: str, version: int) -> Opened:
    """A version, mapped into memory; kept open in this process until the next but one."""
    folder = Path(path) / _name(version)
    try:
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
    except FileNotFoundError:
        raise SubscriptionError(
            f"version {version} of the catalogue {path} is gone: publish with a larger `keep`"
        ) from None
    rows = _rows(folder)
    return Opened(about, Index.open(folder / INDEX), rows["id"], rows["owner"])


def _checked(row: int, one: Subscription) -> tuple[Subscription, Filter]:
    if one.id is None:
        raise SubscriptionError(f"row {row}: a subscription needs an id")
    try:
        wanted = one.filter if isinstance(one.filter, Filter) else read(one.filter, Dialect(one.dialect))
    except ValueError as error:
        raise SubscriptionError(f"subscription {one.id!r} (row {row}): {error}") from None
    return one, wanted


def _refuse_equal(given: list[tuple[Subscription, Filter]]) -> None:
    seen: dict[object, int] = {}
    for row, (one, _) in enumerate(given, 1):
        if (first := seen.setdefault(one.id, row)) != row:
            raise SubscriptionError(f"subscription {one.id!r} is there twice, in rows {first} and {row}")


def _ids(ids: list[str | int], kind: Any = None) -> Any:
    try:
        found = pa.array(ids, kind) if ids or kind is not None else pa.array([], pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise SubscriptionError("the ids of subscriptions must be all texts or all integers") from None
    if not (pa.types.is_string(found.type) or pa.types.is_int64(found.type)):
        raise SubscriptionError(f"the ids of subscriptions must be texts or integers, not {found.type}")
    return found


def _looked_at(filters: list[Filter]) -> list[str] | None:
    if any(isinstance(dimension, Anywhere) for filter in filters for box in filter.boxes for dimension in box):
        return None
    return sorted(frozenset().union(*(filter.fields() for filter in filters)))


def _written(path: Path, index: Index[int], rows: Any, about: About, keep: int) -> int:
    path.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=path, prefix="."))
    index.save(draft / INDEX)
    with pa.OSFile(str(draft / SUBSCRIPTIONS), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_batch(rows)
    version = max(versions(path), default=0)
    while True:
        version += 1
        (draft / ABOUT).write_bytes(msgspec.json.encode(replace(about, version=version)))
        draft.chmod(0o755)
        try:
            draft.rename(path / _name(version))
        except OSError:  # somebody else has just published that version
            if not (path / _name(version)).exists():
                raise
            continue
        _forget(path, keep)
        return version


def _forget(path: Path, keep: int) -> None:
    """Remove old versions, but none that a recent micro-batch may have to use again. Who has them open keeps them."""
    pins = sorted((path / _PINS).glob("[0-9]*"), key=lambda pin: int(pin.name)) if (path / _PINS).is_dir() else []
    for pin in pins[:-_PINS_KEPT]:
        pin.unlink(missing_ok=True)
    used = {int(pin.read_text()) for pin in pins[-_PINS_KEPT:]}
    old = [path / _name(version) for version in versions(path)[: -max(1, keep)] if version not in used]
    for folder in [*old, *(draft for draft in path.glob(".*") if time.time() - draft.stat().st_mtime > _ABANDONED)]:
        shutil.rmtree(folder, ignore_errors=True)


def _rows(folder: Path) -> Any:
    with pa.memory_map(str(folder / SUBSCRIPTIONS)) as file:
        return pa.ipc.open_file(file).get_batch(0)


def _name(version: int) -> str:
    return f"v{version:010d}"
