"""Subscriptions in bulk: versions of an index, each an immutable directory that every worker of a machine maps.

    catalogue/
      v0000000001/index.ff              the engine's snapshot; its ids are row numbers in
      v0000000001/subscriptions.arrow   id, owner and filter of each subscription
      v0000000001/about.json            the number of subscriptions, and the fields of their filters
      pins/…                            links to the version of a micro-batch, for its repetition after a crash
      lock                              held for the moment in which a version or a pin appears

A version appears by a rename, whole or not at all; the highest version is the current version. No function here needs
Spark.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from fieldfare.filters import Filter
from fieldfare.filters.dialects import Dialect, read
from fieldfare.filters.paths import Path as Anywhere
from fieldfare.matching import backend
from fieldfare.matching.index import Index

INDEX: Final = "index.ff"
SUBSCRIPTIONS: Final = "subscriptions.arrow"
ABOUT: Final = "about.json"
_PINS: Final = "pins"
_LOCK: Final = "lock"
_PINS_KEPT: Final = 1000
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_LARGEST: Final = 2**63
_MANY: Final = 5_000
"""filters that scans take much longer for than the compilation of kernels takes once"""


class SubscriptionError(ValueError):
    """A subscription that cannot be used; the message names its id and row."""


class Subscription(NamedTuple):
    """A subscription: a filter with an id and perhaps an owner."""

    id: str | int
    filter: str | Filter
    owner: str | None = None
    dialect: Dialect = Dialect.NATIVE


class About(msgspec.Struct, frozen=True):
    """A summary of a version."""

    version: int
    count: int
    fields: list[str] | None
    """the paths in the filters; None if a filter looks at all fields"""


@dataclass(frozen=True)
class Opened:
    """A version, mapped into memory: its index gives row numbers, and the arrays give id and owner of a row."""

    about: About
    index: Index[int]
    ids: Any
    owners: Any


@dataclass(frozen=True)
class _Content:
    """The content of a version that is not written yet."""

    index: Index[int]
    rows: Any
    fields: list[str] | None


def write_version(path: str | Path, subscriptions: Iterable[Subscription], *, keep: int = 8) -> int:
    """Write a new version with exactly these subscriptions, delete all but the last few, and return the number.

    Ids that were integers stay integers, and texts stay texts: the columns of a running stream depend on the type.
    """
    given = _given(subscriptions)
    made = _made(given)
    return _published(Path(path), lambda base: made(_kind(path, base, given)), keep)


def amend(
    path: str | Path, add: Iterable[Subscription] = (), remove: Iterable[str | int] = (), *, keep: int = 8
) -> int:
    """Write a new version from the current version; an added subscription replaces the subscription of the same id.

    Changes of other writers at the same time are not lost.
    """
    given = _given(add)
    removed = set(remove)
    current(path)  # says so if there is none
    return _published(Path(path), lambda base: _amended(Path(path), base, given, removed), keep)


def is_catalogue(path: str | Path) -> bool:
    """Is there a catalogue at a path?"""
    return bool(versions(path))


def versions(path: str | Path) -> list[int]:
    """Return the numbers of the versions on disk, in ascending order."""
    folder = Path(path)
    return sorted(int(found.name[1:]) for found in folder.glob("v" + "[0-9]" * 10)) if folder.is_dir() else []


def current(path: str | Path) -> int:
    """Return the number of the newest version."""
    found = versions(path)
    if not found:
        raise SubscriptionError(f"there is no catalogue of subscriptions at {path}: publish() makes one")
    return found[-1]


def pinned(path: str | Path, moment: int) -> int:
    """Return the version for a micro-batch, whose name is a time: the current version at the first call.

    All tasks of the batch, and all repetitions after a crash, get the same version: for a day, and until there are many
    newer pins.
    """
    pin = Path(path) / _PINS / str(moment)
    with contextlib.suppress(FileNotFoundError):
        return _version(pin)
    with _alone(Path(path)) as lock:  # so that nobody forgets the version before the pin is there
        with contextlib.suppress(FileNotFoundError):  # another task was first
            return _version(pin)
        version = current(path)
        pin.parent.mkdir(exist_ok=True)
        pin.symlink_to(Path("..") / _name(version))
        if time.time() - lock.stat().st_mtime > _HOUR:  # now and then, for perhaps nobody publishes
            lock.touch()
            _still_pinned(Path(path))
    return version


def opened(path: str, version: int) -> Opened:
    """Open a version, mapped into memory; the process keeps the last two versions open, even if deleted."""
    stamp, found = _mapped(path, version)
    if _stamp(path, version) not in {stamp, None}:  # the catalogue was deleted, and another made at its path
        _mapped.cache_clear()
        _, found = _mapped(path, version)
    return found


@lru_cache(maxsize=2)
def _mapped(path: str, version: int) -> tuple[tuple[int, int] | None, Opened]:
    folder = Path(path) / _name(version)
    stamp = _stamp(path, version)
    about = _about(path, version)
    rows = _rows(folder)
    return stamp, Opened(about, Index.open(folder / INDEX), rows["id"], rows["owner"])


def _about(path: str | Path, version: int) -> About:
    try:
        return msgspec.json.decode((Path(path) / _name(version) / ABOUT).read_bytes(), type=About)
    except FileNotFoundError:
        raise SubscriptionError(
            f"version {version} of the catalogue {path} is gone: publish with a larger `keep`"
        ) from None


def _stamp(path: str, version: int) -> tuple[int, int] | None:
    """Return a mark that differs for another version of the same number; None for a deleted version."""
    with contextlib.suppress(FileNotFoundError):
        found = (Path(path) / _name(version) / ABOUT).stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _given(subscriptions: Iterable[Subscription]) -> list[tuple[Subscription, Filter]]:
    """Return the subscriptions with parsed filters, in the order of the arguments."""
    given = [_checked(row, one) for row, one in enumerate(subscriptions, 1)]
    seen: dict[object, int] = {}
    for row, (one, _) in enumerate(given, 1):
        if (first := seen.setdefault(one.id, row)) != row:
            raise SubscriptionError(f"subscription {one.id!r} is there twice, in rows {first} and {row}")
    if len({isinstance(one.id, str) for one, _ in given}) > 1:
        raise SubscriptionError("the ids of subscriptions must be all texts or all integers")
    return given


def _checked(row: int, one: Subscription) -> tuple[Subscription, Filter]:
    if one.id is None:
        raise SubscriptionError(f"row {row}: a subscription needs an id")
    if not isinstance(one.id, str) and (type(one.id) is not int or not -_LARGEST <= one.id < _LARGEST):
        raise SubscriptionError(f"row {row}: the id of a subscription is a text or an integer of 64 bits, not {one.id}")
    try:
        wanted = one.filter if isinstance(one.filter, Filter) else read(one.filter, Dialect(one.dialect))
    except ValueError as error:
        raise SubscriptionError(f"subscription {one.id!r} (row {row}): {error}") from None
    return one, wanted


def _kind(path: str | Path, base: int, given: list[tuple[Subscription, Filter]]) -> Any:
    """Return the type of the ids: the type in the version before, unless that version is empty."""
    before = _rows(Path(path) / _name(base))["id"].type if base else None
    if not given:
        return before or pa.string()
    kind = pa.string() if isinstance(given[0][0].id, str) else pa.int64()
    if before not in {None, kind} and _about(path, base).count:
        raise SubscriptionError(
            f"the ids in the catalogue {path} are {_called(before)}, and running streams depend on it; "
            f"these are {_called(kind)}: publish them at another path"
        )
    return kind


def _called(kind: Any) -> str:
    return "texts" if pa.types.is_string(kind) else "integers"


def _made(given: list[tuple[Subscription, Filter]]) -> Callable[[Any], _Content]:
    """Return the content of a version with only these subscriptions, once the type of their ids is known."""
    index: Index[int] = Index(enumerate(filter for _, filter in given), kernels=_kernels(len(given)))
    fields = _looked_at([filter for _, filter in given])
    return lambda kind: _Content(index, _batch(given, kind), fields)


def _kernels(filters: int) -> str:
    """Wait for compiled kernels if there are many filters: a snapshot made without them has no index for workers."""
    wait = filters >= _MANY and backend.meaning("auto") == "auto" and find_spec("numba") is not None
    return "numba" if wait else "auto"


def _amended(path: Path, base: int, given: list[tuple[Subscription, Filter]], removed: set[str | int]) -> _Content:
    """The content of a version after a change."""
    before = _about(path, base)
    kind = _kind(path, base, given)
    old = _rows(path / _name(base))
    for id in removed if before.count else ():
        if isinstance(id, str) != pa.types.is_string(old["id"].type):
            raise SubscriptionError(
                f"{id!r} cannot be removed: the ids in the catalogue {path} are {_called(old['id'].type)}"
            )
    index: Index[int] = Index.open(path / _name(base) / INDEX)
    place = {id: number for number, id in enumerate(old["id"].to_pylist()) if id is not None}
    gone = {one.id for one, _ in given} | removed
    for id in gone:
        if (number := place.get(id)) is not None:
            index.remove(number)
    first = old.num_rows
    if len(index) < first // 2 or kind != old["id"].type:  # mostly gaps by now, or nothing but gaps: number them anew
        owners = old["owner"].to_pylist()
        left = [(Subscription(id, "", owners[n]), index.filter(n)) for id, n in place.items() if id not in gone]
        return _made([*left, *given])(kind)
    index.add_many((first + number, filter) for number, (_, filter) in enumerate(given))
    kept = pa.array([None if id in gone else id for id in old["id"].to_pylist()], kind)
    rows, new = old.set_column(0, "id", kept), _batch(given, kind)
    joined = {name: pa.concat_arrays([rows[name], new[name]]) for name in new.schema.names}
    looked_at, known = _looked_at([filter for _, filter in given]), before.fields
    fields = None if looked_at is None or known is None else sorted({*known, *looked_at})
    return _Content(index, pa.record_batch(joined), fields)


def _batch(given: list[tuple[Subscription, Filter]], kind: Any) -> Any:
    return pa.record_batch(
        {
            "id": pa.array([one.id for one, _ in given], kind),
            "owner": pa.array([one.owner for one, _ in given], pa.string()),
            "filter": pa.array([str(filter) for _, filter in given], pa.string()),
        }
    )


def _looked_at(filters: list[Filter]) -> list[str] | None:
    if any(isinstance(dimension, Anywhere) for filter in filters for box in filter.boxes for dimension in box):
        return None
    return sorted(frozenset().union(*(filter.fields() for filter in filters)))


def _published(path: Path, make: Callable[[int], _Content], keep: int) -> int:
    """Write a version made from the newest version (0: none), and make it again if another writer was quicker."""
    path.mkdir(parents=True, exist_ok=True)
    while True:
        base = _newest(path)
        try:
            content = make(base)
        except (OSError, SubscriptionError):
            if _newest(path) == base:
                raise
            continue  # that version may have been forgotten while it was read
        if _written(path, base, content, keep):
            return base + 1


def _newest(path: Path) -> int:
    return max(versions(path), default=0)


def _written(path: Path, base: int, content: _Content, keep: int) -> bool:
    """Let the version after `base` appear; False if `base` is not the newest version any more."""
    with tempfile.TemporaryDirectory(dir=path, prefix=".") as name:  # if it is renamed, there is nothing to clean up
        draft = Path(name)
        content.index.save(draft / INDEX)
        with pa.OSFile(str(draft / SUBSCRIPTIONS), "wb") as file, pa.ipc.new_file(file, content.rows.schema) as writer:
            writer.write_batch(content.rows)
        about = About(base + 1, len(content.index), content.fields)
        (draft / ABOUT).write_bytes(msgspec.json.encode(about))
        draft.chmod(0o755)
        with _alone(path):
            if _newest(path) != base:
                return False
            draft.rename(path / _name(base + 1))
            _forget(path, keep)
            return True


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[Path]:
    """Lock the catalogue against other writers and pins; the lock ends with its process. Yield the file."""
    lock = path / _LOCK
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lock


def _forget(path: Path, keep: int) -> None:
    """Delete old versions, except those that a recent micro-batch may need again; open versions stay readable."""
    used = _still_pinned(path)
    old = [path / _name(version) for version in versions(path)[: -max(1, keep)] if version not in used]
    for folder in [*old, *(draft for draft in path.glob(".*") if _abandoned(draft))]:
        shutil.rmtree(folder, ignore_errors=True)


def _still_pinned(path: Path) -> set[int]:
    """Return the versions of recent micro-batches; a pin is deleted if the pin is a day old and many are newer.

    The number alone does not decide: a stream that is down shares the catalogue with streams that go on.
    """
    folder = path / _PINS
    pins = sorted((pin.lstat().st_mtime, pin) for pin in folder.iterdir()) if folder.is_dir() else []
    over = [pin for at, pin in pins[:-_PINS_KEPT] if time.time() - at > _DAY]
    for pin in over:
        pin.unlink()
    return {_version(pin) for _, pin in pins[len(over) :]}


def _abandoned(draft: Path) -> bool:
    """Tell whether a draft is too old to be finished by its writer."""
    with contextlib.suppress(FileNotFoundError):  # finished just now
        return time.time() - draft.stat().st_mtime > _DAY
    return False


def _rows(folder: Path) -> Any:
    with pa.memory_map(str(folder / SUBSCRIPTIONS)) as file:
        return pa.ipc.open_file(file).get_batch(0)


def _name(version: int) -> str:
    return f"v{version:010d}"


def _version(pin: Path) -> int:
    return int(pin.readlink().name[1:])
