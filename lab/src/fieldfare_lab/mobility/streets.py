"""A small city: cells with an antenna each, streets, and a tunnel without radio; and drives through the city.

The city is a square of 4 x 4 cells, `a1` to `d4`. Streets lie 100 apart, two in each cell in each direction, so that no
crossing is on the border of two cells. A drive is a list of moments, from crossing to crossing; between two moments the
speed is constant, so position and speed at any time are a little arithmetic.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple, TypeAlias

Point: TypeAlias = tuple[float, float]

SIDE: Final = 4
"""number of cells in a row and in a column"""
CELL: Final = 200
BLOCK: Final = 100
SIZE: Final = SIDE * CELL
TUNNEL: Final[tuple[Point, Point]] = ((350, 450), (650, 450))
"""mouths of the tunnel; cell c3 lies between the mouths"""
_STREETS: Final = range(BLOCK // 2, SIZE, BLOCK)


class Moment(NamedTuple):
    """A crossing of a drive, with the time of arrival."""

    time: float
    x: float
    y: float
    below: bool = False
    """whether the way to the next crossing is the tunnel"""

    @property
    def place(self) -> Point:
        """Return the coordinates of the crossing."""
        return self.x, self.y


Drive: TypeAlias = tuple[Moment, ...]


def cells() -> list[str]:
    """Return the names of all cells, row by row."""
    return [f"{column}{row + 1}" for row in range(SIDE) for column in "abcd"]


def centre(cell: str) -> Point:
    """Return the place of a cell's antenna.

    >>> centre("a1"), centre("d2")
    ((100.0, 100.0), (700.0, 300.0))
    """
    return ("abcd".index(cell[0]) + 0.5) * CELL, (int(cell[1]) - 0.5) * CELL


def cell_at(place: Point) -> str:
    """Return the name of the cell that contains a place."""
    return f"{'abcd'[int(place[0] // CELL)]}{int(place[1] // CELL) + 1}"


def around(cell: str) -> list[str]:
    """Return a cell and all cells that touch the cell.

    >>> around("a1")
    ['a1', 'b1', 'a2', 'b2']
    """
    x, y = centre(cell)
    return [other for other in cells() if max(abs(centre(other)[0] - x), abs(centre(other)[1] - y)) <= CELL]


def drive(dice: Random, seconds: float, speeds: tuple[float, float], *, tunnel: bool = True) -> Drive:
    """Make a random drive without U-turns, and outside the tunnel at the start and at the end."""
    here: Point = (dice.choice(_STREETS), dice.choice(_STREETS))
    before, time = here, 0.0
    moments: list[Moment] = []
    while time < seconds:
        speed = dice.uniform(*speeds)
        ways = [place for place in _next(here) if place != before]
        through = [mouth for mouth in TUNNEL if here in TUNNEL and mouth not in (here, before)]
        below = tunnel and time > 0 and bool(through) and time + _length(here, through[0]) / speed < seconds - 1
        there = through[0] if below else dice.choice(ways)
        moments.append(Moment(time, here[0], here[1], below))
        time += _length(here, there) / speed
        before, here = here, there
    return (*moments, Moment(time, here[0], here[1]))


def _next(place: Point) -> Iterator[Point]:
    """The crossings next to a crossing; above the tunnel there is no street."""
    x, y = place
    for other in ((x + BLOCK, y), (x - BLOCK, y), (x, y + BLOCK), (x, y - BLOCK)):
        if 0 < other[0] < SIZE and 0 < other[1] < SIZE and not is_tunnel(place, other):
            yield other


def is_tunnel(a: Point, b: Point) -> bool:
    """Tell whether the way between two crossings is part of the tunnel."""
    (west, y), (east, _) = TUNNEL
    return a[1] == b[1] == y and west <= min(a[0], b[0]) and max(a[0], b[0]) <= east


def streets() -> list[tuple[Point, Point]]:
    """Return all streets as pairs of neighbouring crossings."""
    crossings = [(float(x), float(y)) for x in _STREETS for y in _STREETS]
    return [(place, other) for place in crossings for other in _next(place) if place < other]


def position(way: Drive, time: float) -> Point:
    """Return the position on a drive at a time."""
    a, b = _stretch(way, time)
    share = min(1.0, (time - a.time) / (b.time - a.time))
    return a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share


def speed(way: Drive, time: float) -> float:
    """Return the speed on a drive at a time."""
    a, b = _stretch(way, time)
    return _length(a.place, b.place) / (b.time - a.time)


def contacts(way: Drive) -> list[tuple[float, str]]:
    """Return the changes of antenna on a drive: time and cell; the cell is "" in the tunnel."""
    found: list[tuple[float, str]] = []

    def reach(time: float, cell: str) -> None:
        if not found or found[-1][1] != cell:
            found.append((time, cell))

    for a, b in pairwise(way):
        reach(a.time, "" if a.below else cell_at(a.place))
        if not a.below and cell_at(a.place) != cell_at(b.place):  # the border is half way
            reach((a.time + b.time) / 2, cell_at(b.place))
    return found


def _stretch(way: Sequence[Moment], time: float) -> tuple[Moment, Moment]:
    after = bisect_right(way, time, key=lambda moment: moment.time)
    place = min(max(after, 1), len(way) - 1)
    return way[place - 1], way[place]


def _length(a: Point, b: Point) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])
