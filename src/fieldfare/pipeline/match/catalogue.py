"""Subscriptions in bulk: versions of an index, in files that never change and that all workers of a machine map.

    versions/v0000000001.json                  the number of subscriptions, the fields of their filters, the files
    files/v0000000001-…/index.ff               the engine's snapshot, with row numbers as ids, of
    files/v0000000001-…/subscriptions.arrow    id, owner and filter of each subscription

A catalogue is a folder, or a URL such as `s3://bucket/subscriptions`, and then each machine has copies (see `copies`).
A version appears whole or not at all; the highest version is the current version. `versions` has the
steps, and the pins, which give a micro-batch one version. No function here needs Spark.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterable
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
from fieldfare.objects import Objects, absolute
from fieldfare.pipeline.match import copies
from fieldfare.pipeline.match import versions as steps

INDEX: Final = "index.ff"
SUBSCRIPTIONS: Final = "subscriptions.arrow"
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
    folder: str = ""
    """the folder of the files"""
    digests: dict[str, str] = {}
    """the SHA-256 of each file"""


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
    return _published(Objects(path), lambda base: made(_kind(path, base, given)), keep)


def amend(
    path: str | Path, add: Iterable[Subscription] = (), remove: Iterable[str | int] = (), *, keep: int = 8
) -> int:
    """Write a new version from the current version; an added subscription replaces the subscription of the same id.

    Changes of other writers at the same time are not lost.
    """
    given = _given(add)
    removed = set(remove)
    current(path)  # says so if there is none
    return _published(Objects(path), lambda base: _amended(path, base, given, removed), keep)


def is_catalogue(path: str | Path) -> bool:
    """Is there a catalogue at a path?"""
    return steps.newest(Objects(path)) > 0


def versions(path: str | Path) -> list[int]:
    """Return the numbers of the readable versions, in ascending order."""
    return steps.present(Objects(path))


def current(path: str | Path) -> int:
    """Return the number of the newest version."""
    found = steps.newest(Objects(path))
    if not found:
        raise SubscriptionError(f"there is no catalogue of subscriptions at {path}: publish() makes one")
    return found


def pinned(path: str | Path, moment: int) -> int:
    """Return the version for a micro-batch, whose name is a time: the current version at the first call.

    All tasks of the batch, and all repetitions after a crash, get the same version: for a day, and until there are many
    newer pins.
    """
    place = Objects(path)
    version = steps.pin(place, moment)
    while version is None:
        version = steps.pinned(place, moment, current(path))
    return version


def opened(path: str, version: int) -> Opened:
    """Open a version, mapped into memory; the process keeps the last two versions open, even if deleted."""
    place = absolute(path)
    try:
        about = _about(place, version)
    except SubscriptionError:  # the whole catalogue was deleted
        if (place, version) in _last:
            return _last[place, version]
        raise
    found = _mapped(place, about.folder, msgspec.json.encode(about))
    _last[place, version] = found
    while len(_last) > _OPEN:
        del _last[next(iter(_last))]
    return found


_OPEN: Final = 2
_last: dict[tuple[str, int], Opened] = {}


@lru_cache(maxsize=_OPEN)
def _mapped(path: str, folder: str, described: bytes) -> Opened:
    about = msgspec.json.decode(described, type=About)
    rows = _rows(path, about)
    return Opened(about, Index.open(_file(path, about, INDEX)), rows["id"], rows["owner"])


def _about(path: str | Path, version: int) -> About:
    try:
        return msgspec.json.decode(Objects(path).read(steps.about_name(version)), type=About)
    except FileNotFoundError:
        raise _gone(path, version) from None


def _gone(path: str | Path, version: int) -> SubscriptionError:
    return SubscriptionError(f"version {version} of the catalogue {path} is gone: publish with a larger `keep`")


def _file(path: str | Path, about: About, name: str) -> Path:
    """Return the path of a file of a version, or of a copy."""
    try:
        found = copies.local(Objects(path), f"{about.folder}/{name}", about.digests[name])
        found.stat()
    except FileNotFoundError:
        raise _gone(path, about.version) from None
    return found


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
    about = _about(path, base) if base else None
    before = None if about is None else _rows(path, about)["id"].type
    if not given:
        return before or pa.string()
    kind = pa.string() if isinstance(given[0][0].id, str) else pa.int64()
    if about is not None and before != kind and about.count:
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
    fields = looked_at([filter for _, filter in given])
    return lambda kind: _Content(index, _batch(given, kind), fields)


def _kernels(filters: int) -> str:
    """Wait for compiled kernels if there are many filters: a snapshot made without them has no index for workers."""
    wait = filters >= _MANY and backend.meaning("auto") == "auto" and find_spec("numba") is not None
    return "numba" if wait else "auto"


def _amended(
    path: str | Path, base: int, given: list[tuple[Subscription, Filter]], removed: set[str | int]
) -> _Content:
    """The content of a version after a change."""
    before = _about(path, base)
    kind = _kind(path, base, given)
    old = _rows(path, before)
    for id in removed if before.count else ():
        if isinstance(id, str) != pa.types.is_string(old["id"].type):
            raise SubscriptionError(
                f"{id!r} cannot be removed: the ids in the catalogue {path} are {_called(old['id'].type)}"
            )
    index: Index[int] = Index.open(_file(path, before, INDEX))
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
    mine, known = looked_at([filter for _, filter in given]), before.fields
    fields = None if mine is None or known is None else sorted({*known, *mine})
    return _Content(index, pa.record_batch(joined), fields)


def _batch(given: list[tuple[Subscription, Filter]], kind: Any) -> Any:
    return pa.record_batch(
        {
            "id": pa.array([one.id for one, _ in given], kind),
            "owner": pa.array([one.owner for one, _ in given], pa.string()),
            "filter": pa.array([str(filter) for _, filter in given], pa.string()),
        }
    )


def looked_at(filters: list[Filter]) -> list[str] | None:
    """Return the fields that filters look at; None for all fields, if a filter searches everywhere."""
    if any(isinstance(dimension, Anywhere) for filter in filters for box in filter.boxes for dimension in box):
        return None
    return sorted(frozenset().union(*(filter.fields() for filter in filters)))


def _published(place: Objects, make: Callable[[int], _Content], keep: int) -> int:
    """Write a version made from the newest version (0: none), and make it again if another writer was quicker."""
    while True:
        base = steps.newest(place)
        try:
            content = make(base)
        except (OSError, SubscriptionError):
            if steps.newest(place) == base:
                raise
            continue  # that version may have been forgotten while it was read
        if _written(place, base + 1, content):
            steps.forget(place, keep)
            return base + 1


def _written(place: Objects, version: int, content: _Content) -> bool:
    """Let a version appear; False if another writer has taken its number."""
    folder = f"files/{steps.name(version)}-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory(prefix="fieldfare-") as scratch:
        index, rows = Path(scratch) / INDEX, Path(scratch) / SUBSCRIPTIONS
        content.index.save(index)
        with pa.OSFile(str(rows), "wb") as file, pa.ipc.new_file(file, content.rows.schema) as writer:
            writer.write_batch(content.rows)
        for file in (index, rows):
            place.put(f"{folder}/{file.name}", file)
        digests = {file.name: copies.digest_of(file) for file in (index, rows)}
    about = About(version, len(content.index), content.fields, folder, digests)
    if steps.publish(place, version, msgspec.json.encode(about)):
        return True
    place.delete_folder(folder)
    return False


def _rows(path: str | Path, about: About) -> Any:
    with pa.memory_map(str(_file(path, about, SUBSCRIPTIONS))) as file:
        return pa.ipc.open_file(file).get_batch(0)
