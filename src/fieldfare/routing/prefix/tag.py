"""`Tag`: the Forwarding Prefix Tree of an event, the tag by which brokers forward it.

It is the part of the Routing Tree that the event selects, written as steps in preorder: how deep, and which of the
children. On a wire a step is one number: how far it is behind its sibling before it, is there anything below it, is
there a sibling behind it? Most steps take one byte.

The tag can be read by the tree of any version of its term from number `since` on: in all of them it is the same. With a
`limit` it names nodes down to that depth only, and everything below those is selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from fieldfare.routing.prefix.tree import Term, TreeVersion

Step: TypeAlias = tuple[int, int]
"""a node that the event selects: its depth, 1 being a child of the root, and which of its parent's children it is"""


class Tag(NamedTuple):
    """A tag."""

    version: TreeVersion
    since: int
    limit: int | None
    steps: tuple[Step, ...]


def encode(fpt: Tag) -> bytes:
    """The tag as bytes.

    >>> tag = Tag(TreeVersion(Term(2, "oslo"), 9), 7, None, ((1, 0), (2, 4), (1, 3)))
    >>> encode(tag).hex(" "), decode(encode(tag)) == tag
    ('04 6f 73 6c 6f 03 09 07 00 03 10 08', True)
    """
    data = begin(fpt.version, fpt.since, fpt.limit)
    places: list[int] = []
    for at, ((depth, place), more) in enumerate(zip(fpt.steps, _more(fpt.steps), strict=True)):
        if depth > len(places):
            places.append(-1)
        del places[depth:]
        below = at + 1 < len(fpt.steps) and fpt.steps[at + 1][0] > depth
        write(data, (place - places[-1] - 1) << 2 | below << 1 | more)
        places[-1] = place
    return bytes(data)


def begin(version: TreeVersion, since: int, limit: int | None) -> bytearray:
    """What comes before the steps, as bytes."""
    data = bytearray(stamp(version))
    for number in (since, 0 if limit is None else limit + 1):
        write(data, number)
    return data


def stamp(version: TreeVersion) -> bytes:
    """How all tags of a version begin."""
    name = version.term.by.encode()
    data = bytearray()
    write(data, len(name))
    data += name
    for number in (version.term.round + 1, version.number):
        write(data, number)
    return bytes(data)


def _more(steps: Sequence[Step]) -> list[bool]:
    """For each step: is there a sibling behind it?"""
    found: list[bool] = []
    later: list[int] = []
    for depth, _ in reversed(steps):
        while later and later[-1] > depth:
            later.pop()
        found.append(bool(later) and later[-1] == depth)
        if not found[-1]:
            later.append(depth)
    return found[::-1]


class Head(NamedTuple):
    """What comes before the steps."""

    version: TreeVersion
    since: int
    limit: int | None
    end: int
    """where the steps begin"""


def head(data: bytes) -> Head:
    """The beginning of a tag; ValueError if there is none in the data."""
    size, at = _read(data, 0)
    if len(data) < at + size:
        raise ValueError("a tag is cut off")
    by = data[at : at + size].decode()
    term, at = _read(data, at + size)
    count, at = _read(data, at)
    since, at = _read(data, at)
    limit, at = _read(data, at)
    return Head(TreeVersion(Term(term - 1, by), count), since, limit - 1 if limit else None, at)


def decode(data: bytes) -> Tag:
    """The tag that was written; ValueError if there is none in the data."""
    version, since, limit, end = head(data)
    steps: list[Step] = []
    places, more = [-1], [True]  # by depth: the last sibling, and is there another one?
    for number in numbers(data, end):
        if not places:
            raise ValueError("a tag goes on behind its end")
        place = places[-1] + 1 + (number >> 2)
        steps.append((len(places), place))
        places[-1] = place
        more[-1] = number & 1 == 1
        if number & 2:
            places.append(-1)
            more.append(True)
        while more and not more[-1]:
            places.pop()
            more.pop()
    if steps and places:
        raise ValueError("a tag is cut off")
    return Tag(version, since, limit, tuple(steps))


def write(data: bytearray, number: int) -> None:
    """Write a number, in as few bytes as it needs."""
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """A number, and what is behind it."""
    number = shift = 0
    for end in range(at, len(data)):
        byte = data[end]
        if byte < 128:
            return number | byte << shift, end + 1
        number |= (byte & 127) << shift
        shift += 7
    raise ValueError("a tag is cut off")


def numbers(data: bytes, start: int) -> Iterator[int]:
    """The steps of a tag as they are written."""
    number = shift = 0
    for byte in data[start:]:
        if byte > 127:
            number |= (byte & 127) << shift
            shift += 7
        elif shift:
            yield number | byte << shift
            number = shift = 0
        else:  # as most are
            yield byte
    if shift:
        raise ValueError("a tag is cut off")
