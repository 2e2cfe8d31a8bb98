"""`Tag`: the Forwarding Prefix Tree of an event, by which brokers forward the event.

A tag is the part of the Routing Tree that the event selects, written as steps in preorder: the depth, and the place
among the siblings. On the wire a step is a single number: the distance to the sibling before, whether there is a step
below, and whether there is a sibling behind. Most steps take a single byte.

The tree of any version of the same term from number `since` on can read the tag: in all these versions the tag is the
same. With a `limit` the tag names nodes down to this depth only, and all nodes below the limit count as selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from fieldfare.routing.prefix.tree import Term, TreeVersion

Step: TypeAlias = tuple[int, int]
"""a selected node: its depth, 1 for a child of the root, and its place among its siblings"""


class Tag(NamedTuple):
    """The steps of an event through a tree, with the version of the tree."""

    version: TreeVersion
    since: int
    limit: int | None
    steps: tuple[Step, ...]


def encode(tag: Tag) -> bytes:
    """Return the tag as bytes.

    >>> tag = Tag(TreeVersion(Term(2, "oslo"), 9), 7, None, ((1, 0), (2, 4), (1, 3)))
    >>> encode(tag).hex(" "), decode(encode(tag)) == tag
    ('04 6f 73 6c 6f 03 09 07 00 03 10 08', True)
    """
    data = begin(tag.version, tag.since, tag.limit)
    places: list[int] = []
    for at, ((depth, place), more) in enumerate(zip(tag.steps, _more(tag.steps), strict=True)):
        if depth > len(places):
            places.append(-1)
        del places[depth:]
        below = at + 1 < len(tag.steps) and tag.steps[at + 1][0] > depth
        write(data, (place - places[-1] - 1) << 2 | below << 1 | more)
        places[-1] = place
    return bytes(data)


def begin(version: TreeVersion, since: int, limit: int | None) -> bytearray:
    """Return the bytes before the steps of a tag."""
    data = bytearray(stamp(version))
    for number in (since, 0 if limit is None else limit + 1):
        write(data, number)
    return data


def stamp(version: TreeVersion) -> bytes:
    """Return the common first bytes of all tags of a version."""
    name = version.term.by.encode()
    data = bytearray()
    write(data, len(name))
    data += name
    for number in (version.term.round + 1, version.number):
        write(data, number)
    return bytes(data)


def _more(steps: Sequence[Step]) -> list[bool]:
    """Tell for each step whether a sibling follows."""
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
    """The fields before the steps of a tag."""

    version: TreeVersion
    since: int
    limit: int | None
    end: int
    """position of the first step"""


def head(data: bytes) -> Head:
    """Read the fields before the steps; a ValueError for bytes that are no tag."""
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
    """Read a tag; a ValueError for bytes that are no tag."""
    version, since, limit, end = head(data)
    steps: list[Step] = []
    places, more = [-1], [True]  # by depth: the last sibling, and whether another follows
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
    """Append a number in as few bytes as possible: seven bits a byte, lowest first."""
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Read a number; return it with the position behind."""
    number = shift = 0
    for end in range(at, len(data)):
        byte = data[end]
        if byte < 128:
            return number | byte << shift, end + 1
        number |= (byte & 127) << shift
        shift += 7
    raise ValueError("a tag is cut off")


def numbers(data: bytes, start: int) -> Iterator[int]:
    """Yield the numbers of the steps as written."""
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
