"""`PATH('//item/cpu', clock >= 700)`: some element of a nested event, at any depth, satisfies a condition.

An event is a tree: objects are elements, each with a name except for the event, which is the root; objects in a list
are several elements of the same name; all other fields are attributes. A *selector* describes the position of elements:
`/auction/item` a chain of names below the root, `//item` any depth, `*` any single name, `/auction//cpu` any depth
below an auction. A selector is a pattern over steps as LIKE is a pattern over characters, so covering is exact.

A selector without `*` and `//` names a single path, and `PATH('/a/b', …)` is then `a.b HAS (…)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise, takewhile
from typing import Final

from fieldfare.filters.constraint import Constraint
from fieldfare.filters.elements import LEVELS, Selection, computed, has, objects_at
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.expressions import Expression
from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.filters.literals import literal
from fieldfare.filters.valueset import TRUE

MAX_STEPS: Final = 64
"""steps of a selector; deeper elements are not found"""
MAX_PATHS: Final = 2
"""PATHs within each other: the inner PATH looks at everything below the elements of the outer PATH"""
ANY: Final = "*"
_SELECTOR: Final = re.compile(r"(?://?[^/]+)+")
_STEP: Final = re.compile(r"(//?)([^/]+)")


@dataclass(frozen=True, slots=True)
class Step:
    """The next name on the way down, or `ANY`; with a gap, more names may come before."""

    name: str
    gap: bool = False


@dataclass(frozen=True)
class Selector:
    """The positions of elements in a tree. Selectors are equal if they select the same; make one with `selector`.

    >>> selector("//cpu").covers(selector("//item/cpu")), selector("//item/cpu").covers(selector("//cpu"))
    (True, False)
    """

    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """The selector as written in a filter."""
        return "".join(("//" if step.gap else "/") + step.name for step in self.steps)

    @property
    def path(self) -> str | None:
        """The dotted path, if the selector selects a single path."""
        plain = all(step.name != ANY and not step.gap for step in self.steps)
        return ".".join(step.name for step in self.steps) if plain else None

    def selects(self, names: Iterable[str]) -> bool:
        """Tell whether the element at a chain of names is selected: a machine with a bit for each number of steps."""
        moves, anyhow, gaps = self._machine
        states = 1
        for name in names:
            states = (states & (moves.get(name, 0) | anyhow)) << 1 | states & gaps
        return bool(states >> len(self.steps))

    @cached_property
    def _machine(self) -> tuple[dict[str, int], int, int]:
        """The states that a name leaves, the states that any name leaves, and the states that may wait."""
        moves: dict[str, int] = {}
        for place, step in enumerate(self.steps):
            moves[step.name] = moves.get(step.name, 0) | 1 << place
        return moves, moves.get(ANY, 0), sum(1 << place for place, step in enumerate(self.steps) if step.gap)

    def covers(self, other: Selector) -> bool:
        """Tell whether this selector selects all elements that the other selects.

        Gaps cut the selector into blocks. Each block must be found among the steps of the other selector, behind the
        block before; the first block at the start, if no gap precedes, and the last at the end. A gap of the other
        selector may stand for many unknown names, so a block cannot reach across a gap; or for no name, so a gap keeps
        no distance. Only the leading `*` of a block may lie anywhere: they give the least distance from the block
        before.
        """
        theirs, at = other.steps, 0
        blocks = self._blocks
        for block in blocks:
            fixed = not block[0].gap
            stars = 0 if fixed else sum(1 for _ in takewhile(lambda step: step.name == ANY, block))
            core = block[stars:]
            end = len(theirs) - len(core)
            first = max(at + stars, end) if block is blocks[-1] else at + stars
            starts = range(first, 1 if fixed else end + 1)
            at = next((start + len(core) for start in starts if _fits(core, theirs[start:], fixed)), -1)
            if at < 0:
                return False
        return True

    @cached_property
    def _blocks(self) -> list[tuple[Step, ...]]:
        cuts = [0, *(place for place, step in enumerate(self.steps) if place and step.gap), len(self.steps)]
        return [self.steps[start:end] for start, end in pairwise(cuts)]

    def overlaps(self, other: Selector) -> bool:
        """Tell whether both can select the same element: try all pairs of step counts after the same names."""
        queue = [(0, 0)]
        made = set(queue)
        for i, j in queue:
            if i < len(self.steps) and j < len(other.steps):
                mine, its = self.steps[i], other.steps[j]
                ways = [(i + 1, j + 1)] if mine.name == its.name or ANY in (mine.name, its.name) else []
                ways += [(i, j + 1)] * mine.gap + [(i + 1, j)] * its.gap  # a selector may wait in a gap
                queue += [way for way in ways if way not in made]
                made.update(ways)
        return (len(self.steps), len(other.steps)) in made


def _fits(core: Sequence[Step], theirs: Sequence[Step], fixed: bool) -> bool:
    """Tell whether the first steps of another selector lie in a block; gaps may stand only before an unfixed block."""
    return len(core) <= len(theirs) and all(
        mine.name in (ANY, its.name) and not (its.gap and (place or fixed))
        for place, (mine, its) in enumerate(zip(core, theirs, strict=False))
    )


def selector(text: str) -> Selector:
    """Return the selector of a text such as `/auction//cpu`; a dot is a slash. ValueError if the text is none.

    >>> selector("/a/*//b").text
    '/a//*/b'
    """
    if not _SELECTOR.fullmatch(text):
        raise ValueError(f"{text!r} is not a selector such as '/auction/item' or '//item/cpu'")
    steps: list[Step] = []
    for slashes, dotted in _STEP.findall(text):
        for place, name in enumerate(dotted.split(".")):
            if not name or (ANY in name and name != ANY):
                raise ValueError(f"a step of a selector is a name, or * for any: {name!r} in {text!r} is not")
            if "[" in name:
                raise ValueError(f"the condition is the second argument: PATH('//cpu', clock > 1), not {text!r}")
            steps.append(Step(name, gap=not place and slashes == "//"))
    if len(steps) > MAX_STEPS:
        raise ValueError(f"the selector has {len(steps)} steps, more than {MAX_STEPS}")
    return Selector(_normal(steps))


def _normal(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Move every gap in front of the `*` beside the gap: the meaning is the same at each of these places."""
    result: list[Step] = []
    for step in steps:
        first = len(result)
        while first and result[first - 1].name == ANY:
            first -= 1
        moved = step.gap and first < len(result)
        if moved:
            result[first] = Step(ANY, gap=True)
        result.append(replace(step, gap=False) if moved else step)
    return tuple(result)


@dataclass(frozen=True)
class Path(Selection):
    """True if some selected element matches the filter. Make one with `path`."""

    selector: Selector
    filter: Filter

    def __post_init__(self) -> None:
        self._above(computed(self.filter), LEVELS)
        if self.paths >= MAX_PATHS:
            raise FilterTooComplex(f"PATHs are nested more than {MAX_PATHS} deep")
        object.__setattr__(self, "paths", self.paths + 1)

    @cached_property
    def text(self) -> str:
        """The expression in the native language."""
        condition = "" if self.filter.is_full else f", {self.filter}"
        return f"PATH({literal(self.selector.text)}{condition})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return true or false; UNCERTAIN if an interval decides."""
        return self._among(
            chain.from_iterable(objects_at(fields, path) for path in places(fields) if self.selects(path))
        )

    def fields(self) -> Iterator[str]:
        """Yield no path: PATH may read any field."""
        return iter(())

    def selects(self, path: str) -> bool:
        """Tell whether the selector selects the objects at a path."""
        names = path.split(".")
        return len(names) <= MAX_STEPS and self.selector.selects(names)

    def implies(self, other: Expression) -> bool:
        """Tell whether the other PATH selects at least the same elements with a wider condition."""
        return isinstance(other, Path) and other.selector.covers(self.selector) and other.filter.covers(self.filter)


def places(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths at which an event may have elements, each once: all objects, and lists, which may hold objects.

    The flat fields have the objects of each path together, from all lists on the way. For an event with dots in its
    names, an object is implied by the fields below.
    """
    implied: set[str] = set()
    for path, value in fields.items():
        if path.count(".") >= MAX_STEPS:
            above, dot = ".".join(path.split(".", MAX_STEPS)[:MAX_STEPS]), "."
        else:
            above, dot, _ = path.rpartition(".")
            if isinstance(value, (tuple, list, Mapping)):
                yield path
        while dot and above not in fields and above not in implied:
            implied.add(above)
            yield above
            above, dot, _ = above.rpartition(".")


def path(where: Selector | str, condition: Filter = EVERYTHING) -> Filter:
    """Return the filter `PATH(where, condition)`.

    >>> from fieldfare.filters import parse
    >>> print(path("//item/cpu", parse("manufacturer = 'AMD' AND clock >= 700")))
    PATH('//item/cpu', clock >= 700 AND manufacturer = 'AMD')
    >>> print(path("/item/cpu", parse("clock >= 700")))
    ANY item.cpu.clock >= 700 AND item.cpu HAS (clock >= 700)
    """
    chosen = selector(where) if isinstance(where, str) else where
    if chosen.path is not None:
        return has(chosen.path, condition)
    found = (Filter.where(Path(chosen, Filter([branch])), Constraint(TRUE)) for branch in condition.branches)
    return Filter(branch for part in found for branch in part.branches)
