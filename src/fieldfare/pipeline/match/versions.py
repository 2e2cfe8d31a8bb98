"""Versions of a catalogue and their pins, as objects: on a disk and in a bucket, without locks and renames.

    versions/v0000000001.json     a version: to create this object is to publish
    files/v0000000001-…/          the files of the version, written before
    fates/v0000000001             "held" by a micro-batch, or "gone": the first writer decides
    uses/v0000000001              the time of the last use by a micro-batch: of the last change of this object
    gone/v0000000001              the files were deleted
    pins/1795119846708000         the version of the micro-batch of this time: the first writer decides

To delete a version, a writer creates the fate as `gone`. If that succeeds, no micro-batch holds the version, and later
micro-batches must take a newer version. A held version is deleted when the last use is more than a day ago and many
pins are newer. The small objects of a deleted version stay for another day, so that no slow writer takes the number
again. Two assumptions on time are made: clocks of machines and storage differ by less than an hour, and no program
pauses for a day between two steps.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from fieldfare.objects import Object, Objects

_HELD: Final = b"held"
_GONE: Final = b"gone"
_PINS_KEPT: Final = 1000
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_NUMBERED: Final = re.compile(r"(?:.*/)?v(\d{10})(?:\.json|-\w+)?")


class _Published(msgspec.Struct):
    folder: str


_known: dict[str, int] = {}
"""the newest version that this process has seen at a place"""
_touched: defaultdict[str, dict[int, float]] = defaultdict(dict)
"""when this process has last said that it uses a version"""
_trimmed: dict[str, float] = {}
"""when this process has last deleted old pins; this clock may begin when the machine starts, so "never" is not 0"""


def name(version: int) -> str:
    """Return the name of a version; names sort as the numbers do."""
    return f"v{version:010d}"


def about_name(version: int) -> str:
    """Return the name of the object by which a version exists."""
    return f"versions/{name(version)}.json"


def newest(place: Objects) -> int:
    """Return the number of the newest version; 0 without any."""
    known = _known.get(place.place, 0)
    found = numbers(place.listed("versions", after=about_name(known) if known else None))
    if not found and known:  # nothing new, or the catalogue was deleted
        found = [known] if place.find(about_name(known)) else numbers(place.listed("versions"))
    last = max(found, default=0)
    _known[place.place] = last
    return last


def present(place: Objects) -> list[int]:
    """Return the numbers of the versions with files, in order."""
    gone = {*numbers(place.listed("gone"))}
    return [number for number in numbers(place.listed("versions")) if number not in gone]


def publish(place: Objects, version: int, about: bytes) -> bool:
    """Let a version appear; False if another writer has taken the number."""
    return place.create(about_name(version), about)


def pinned(place: Objects, moment: int, version: int) -> int | None:
    """Pin the newest version to a micro-batch, and return the pinned version, perhaps an older pin's.

    None if the version was deleted a moment ago: then there is a newer version.
    """
    if not _hold(place, version):
        return None
    if not place.create(_pin(moment), str(version).encode()):
        return pin(place, moment)
    if time.monotonic() - _trimmed.get(place.place, -_DAY) > _HOUR:  # now and then, for perhaps nobody publishes
        _trimmed[place.place] = time.monotonic()
        _trim(place)
    return version


def pin(place: Objects, moment: int) -> int | None:
    """Return the pinned version of a micro-batch; None without a pin."""
    try:
        return int(place.read(_pin(moment)))
    except FileNotFoundError:
        return None


def forget(place: Objects, keep: int) -> None:
    """Delete the files of old versions, unless a recent micro-batch may need the version again."""
    before = _trim(place) - _HOUR  # a use is said again only now and then
    uses, gone = (_by_number(place, kind) for kind in ("uses", "gone"))
    decided = {*_by_number(place, "fates")}
    for number in numbers(place.listed("versions"))[: -max(1, keep)]:
        if number in gone:
            if _age(gone[number]) > _DAY:
                _bury(place, number)
        elif number not in decided:
            if place.create(_fate(number), _GONE):
                _delete(place, number)
        elif number not in uses or uses[number].at.timestamp() < before:
            place.put(_fate(number), _GONE)
            _delete(place, number)
    _tidy(place)


def _delete(place: Objects, version: int) -> None:
    """Delete the files of a version with the fate `gone`; mapped files stay readable."""
    place.delete_folder(_folder(place, version))
    place.put(f"gone/{name(version)}", b"")


def _folder(place: Objects, version: int) -> str:
    """Return the folder with the files of a version; "" for a number without a version."""
    try:
        return msgspec.json.decode(place.read(about_name(version)), type=_Published).folder
    except FileNotFoundError:
        return ""


def _by_number(place: Objects, kind: str) -> dict[int, Object]:
    return {number: one for one in place.listed(kind) for number in numbers([one])}


def numbers(names: Iterable[Object | str]) -> list[int]:
    """Return the numbers of versions in names of objects, in order."""
    texts = (one if isinstance(one, str) else one.name for one in names)
    return sorted(int(found[1]) for text in texts if (found := _NUMBERED.fullmatch(text)))


def _hold(place: Objects, version: int) -> bool:
    """Hold a version for micro-batches, and note the use now and then; False if the version is gone."""
    touched = _touched[place.place]
    if time.monotonic() - touched.get(version, -_DAY) < _HOUR / 2 and place.find(f"uses/{name(version)}"):
        return True
    place.put(f"uses/{name(version)}", b"")  # first: a fate without a use is one of a version that is gone
    if not place.create(_fate(version), _HELD) and place.read(_fate(version)) != _HELD:
        return False
    touched.clear()
    touched[version] = time.monotonic()
    return True


def _fate(version: int) -> str:
    return f"fates/{name(version)}"


def _trim(place: Objects) -> float:
    """Delete pins that are a day old if many are newer; return the time of the oldest pin to keep."""
    pins = sorted(place.listed("pins"), key=lambda one: one.at)
    limit = time.time() - _DAY
    many = pins[-_PINS_KEPT].at.timestamp() if len(pins) >= _PINS_KEPT else 0.0
    place.delete(*(one.name for one in pins[:-_PINS_KEPT] if one.at.timestamp() < limit))
    return min(limit, many)


def _bury(place: Objects, version: int) -> None:
    """Delete the last traces of a version, the one that blocks its number last but one."""
    place.delete(*(f"{kind}/{name(version)}" for kind in ("uses", "fates")), about_name(version))
    place.delete(f"gone/{name(version)}")


def _tidy(place: Objects) -> None:
    """Delete drafts that nobody will finish: of writers that were killed."""
    last: dict[str, float] = {}
    for one in place.listed("files"):
        folder = one.name.rpartition("/")[0]
        last[folder] = max(last.get(folder, 0), one.at.timestamp())
    for folder, at in last.items():
        if time.time() - at > _DAY and _folder(place, numbers([folder])[0]) != folder:
            place.delete_folder(folder)


def _age(one: Object) -> float:
    return time.time() - one.at.timestamp()


def _pin(moment: int) -> str:
    return f"pins/{moment}"
