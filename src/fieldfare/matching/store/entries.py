"""Entries: filters in a form that kernels can check.

A filter becomes an *entry* or several, each a conjunction of predicates "the key of column c lies in this range, or in
this set, or does not". A constraint without an exact form makes an entry that is only necessary and is marked for
verification.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import EMPTY, Intervals, after_prefix, point
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import Language, StringSet
from fieldfare.filters.valueset import Atom, ValueSet
from fieldfare.matching.match.substrings import Substring
from fieldfare.matching.store.clues import best_clue
from fieldfare.matching.store.columns import Attribute, Columns
from fieldfare.matching.store.keys import (
    ALONE,
    ATOM_TAGS,
    BYTES_TAG,
    LIST_TAG,
    NOT_RANGE,
    NOT_SET,
    NULL_TAG,
    NUMBER,
    NUMBER_TAG,
    PREFIX,
    RANGE,
    SET,
    STRING,
    STRING_TAG,
    SUFFIX,
    TAG,
    TIME,
    TIME_TAG,
    key_range,
)

MAX_ENTRIES: Final = 16
"""alternatives of a branch that become entries of their own; a branch with more is verified"""


class Predicate(NamedTuple):
    """The key of a column lies in [low, high], or in `keys`; or, for the NOT_ kinds, does not."""

    column: int
    kind: int
    low: int
    high: int
    keys: tuple[int, ...] = ()
    open: int = 0
    """OPEN_LOW, OPEN_HIGH: the range of values was open at that end, which keys need not know, but decoding does; and
    ALONE, for filters with several entries"""


class Entry(NamedTuple):
    """A conjunction of predicates: necessary for a branch and, without the mark for verification, sufficient."""

    predicates: tuple[Predicate, ...]
    verify: bool
    substring: Substring | None = None
    """a text that a field must contain, if that is the best clue; the substring then stands for the whole entry"""


def entries_of(columns: Columns, wanted: Filter) -> list[Entry]:
    """Return the entries of a filter: the branches, and the alternatives of constraints on several kinds.

    Either all branches with a possible clue are found by substrings, or none.
    """
    forms = forms_of(columns, wanted)
    rarer = all(not clued or _are_rarer(columns, clued, plain) for plain, clued in forms)
    return [entry for plain, clued in forms for entry in (clued if clued and rarer else plain)]


def forms_of(columns: Columns, wanted: Filter) -> list[tuple[list[Entry], list[Entry]]]:
    """Return the entries of each branch, without substrings, and with substrings if a clue is possible."""
    several = len(wanted.branches) > 1
    return [_branch(columns, branch, several=several) for branch in wanted.branches]


def _branch(columns: Columns, branch: Branch, *, several: bool) -> tuple[list[Entry], list[Entry]]:
    sides: list[list[Entry]] = []
    verify = False
    count = 1
    for dimension, wanted in branch.items():
        if not isinstance(dimension, str):
            verify = True
            continue
        ways = _constraint(columns, dimension, wanted)
        if count * len(ways) > MAX_ENTRIES:
            verify = True
            if wanted.values.atoms & Atom.MISSING:
                continue
            ways = [Entry((_present(columns, columns.attribute(dimension)),), True)]
        count *= len(ways)
        sides.append(ways)
    if several or count > 1:
        sides = [[_alone(ways[0])] if len(ways) == 1 else ways for ways in sides]
    plain = [
        Entry(tuple(p for way in choice for p in way.predicates), verify or any(way.verify for way in choice))
        for choice in itertools.product(*sides)
    ]
    clue = best_clue(branch) if any(entry.verify for entry in plain) else ()
    exact = len(clue) == 1 and len(branch) == 1 and _is_containing(branch, clue[0])
    return plain, [Entry((), not exact, substring) for substring in clue]


def decided_by_keys(columns: Columns, branch: Branch) -> bool:
    """Tell whether the entries of a branch with these fields alone need no verification."""
    count = 1
    for dimension, wanted in branch.items():
        ways = _constraint(columns, str(dimension), wanted)
        count *= len(ways)
        if count > MAX_ENTRIES or any(way.verify for way in ways):
            return False
    return True


def _alone(way: Entry) -> Entry:
    return way._replace(predicates=tuple(p._replace(open=p.open | ALONE) for p in way.predicates))


def _are_rarer(columns: Columns, clued: list[Entry], plain: list[Entry]) -> bool:
    """Guess whether the texts occur in fewer events than satisfy the predicates; there are no statistics of texts."""
    share = sum(2.0 ** -min(12, 2 + len(entry.substring.text)) for entry in clued if entry.substring)
    return all(share < min((_share(columns, p) for p in entry.predicates), default=1.0) for entry in plain)


def _share(columns: Columns, predicate: Predicate) -> float:
    """Guess the share of events that satisfy a predicate, from the constants known so far."""
    column = columns.columns[predicate.column]
    keys = len(predicate.keys) if predicate.kind == SET else int(predicate.low == predicate.high)
    if column.role == TAG or not keys or predicate.kind not in (RANGE, SET):
        return 1.0
    return keys / max(1, len(columns.texts(column))) if column.role in (STRING, PREFIX, SUFFIX) else 0.0


def _constraint(columns: Columns, path: str, wanted: Constraint) -> list[Entry]:
    """Return alternatives whose union is the constraint. Events with a list in the field are always verified."""
    attribute = columns.attribute(path)
    values = wanted.values
    if not values.atoms and len(kinds := _kinds(values)) == 1:  # most constraints: values of a single kind
        return list(_including(columns, attribute, values, kinds))
    if not wanted.is_plain:
        values = values - ValueSet(atoms=Atom.LIST)
        if values.is_empty:
            return [Entry((_tags(columns, attribute, SET, {LIST_TAG}),), True)]
    outside = ~values
    if values.atoms & Atom.MISSING or _parts(outside) < _parts(values):
        return [_excluding(columns, attribute, outside)]
    return list(_including(columns, attribute, values, _kinds(values)))


def _present(columns: Columns, attribute: Attribute) -> Predicate:
    """Return the predicate of presence. An entry has at least this predicate for every attribute that must exist."""
    return Predicate(columns.column(attribute, TAG), RANGE, NULL_TAG, BYTES_TAG)


def _tags(columns: Columns, attribute: Attribute, kind: int, tags: Iterable[int]) -> Predicate:
    keys = tuple(sorted(tags))
    column = columns.column(attribute, TAG)
    if keys[-1] - keys[0] == len(keys) - 1:
        return Predicate(column, RANGE if kind == SET else NOT_RANGE, keys[0], keys[-1])
    return Predicate(column, kind, 0, 0, keys)


def _including(
    columns: Columns, attribute: Attribute, values: ValueSet, kinds: list[tuple[int, StringSet]]
) -> Iterator[Entry]:
    """Yield an alternative or more for each kind that has values in the set."""
    tags = {tag for atom, tag in ATOM_TAGS.items() if values.atoms & atom} if values.atoms else set()
    verified: set[int] = set()
    for tag, part in kinds:
        if part.is_full:
            tags.add(tag)
        elif tag == STRING_TAG:
            ways = list(_strings(columns, attribute, part))
            if ways:
                yield from ways
            else:
                verified.add(tag)
        elif tag == BYTES_TAG or not isinstance(part, Intervals):
            verified.add(tag)
        else:
            yield from _ordered(columns, attribute, NUMBER if tag == NUMBER_TAG else TIME, part)
    if tags:
        yield Entry((_tags(columns, attribute, SET, tags),), False)
    if verified:
        yield Entry((_tags(columns, attribute, SET, verified),), True)


def _ordered(columns: Columns, attribute: Attribute, role: int, part: Intervals) -> Iterator[Entry]:
    """Yield the entries of numbers or times: points as a set, every interval as a range."""
    column = columns.column(attribute, role)
    keys: list[int] = []
    for low, high in part.pieces():
        first, last, exact, how = key_range(role, low, high)
        if exact and point(low, high) is not None:
            keys.append(last if low is None else first)  # the very first value: minus infinity, or the first time
        else:
            yield Entry((Predicate(column, RANGE, first, last, (), how),), not exact)
    if keys:
        yield Entry((_one_of(column, keys),), False)


def _strings(columns: Columns, attribute: Attribute, part: StringSet) -> Iterator[Entry]:
    """Yield the entries of constants, prefixes and suffixes; nothing if the set has other parts."""
    if isinstance(part, Language):
        yield from _patterns(columns, attribute, part)
        return
    texts, prefixes = [], []
    for low, high in part.pieces():
        single = point(low, high)
        if single is not None:
            texts.append(single[0])
        elif low is not None and low[0] and high == (after_prefix(low[0]), 0):
            prefixes.append(low[0])
        else:
            return
    for text in prefixes:
        column, key = columns.slice(attribute, len(text), text)
        yield Entry((Predicate(column, RANGE, key, key),), False)
    if texts:
        column = columns.column(attribute, STRING)
        yield Entry((_one_of(column, [attribute.strings.setdefault(t, len(attribute.strings)) for t in texts]),), False)


def _patterns(columns: Columns, attribute: Attribute, part: Language) -> Iterator[Entry]:
    """Yield an entry of the prefixes and suffixes of patterns that must match; only a lone suffix is exact."""
    paths = list(part.paths())
    if len(paths) != 1 or not paths[0][0]:
        return
    fits, fails, leaf = paths[0]
    predicates: list[Predicate] = []
    for pattern in fits:
        predicates.extend(_affixes(columns, attribute, pattern))
    lone = len(fits) == 1 and not fails and leaf.is_full and _is_suffix(fits[0])
    if predicates:
        yield Entry(tuple(predicates), not lone)


def _affixes(columns: Columns, attribute: Attribute, pattern: Pattern) -> Iterator[Predicate]:
    if pattern.ignore_case:
        return
    for length, text in ((1, _leading(pattern.tokens)), (-1, _leading(pattern.tokens[::-1])[::-1])):
        if text:
            column, key = columns.slice(attribute, length * len(text), text)
            yield Predicate(column, RANGE, key, key)


def _excluding(columns: Columns, attribute: Attribute, outside: ValueSet) -> Entry:
    """Return an entry for everything but `outside`, as a conjunction of negated predicates."""
    predicates: list[Predicate] = []
    verify = False
    tags = {tag for atom, tag in ATOM_TAGS.items() if outside.atoms & atom}
    for tag, part in _kinds(outside):
        if part.is_full:
            tags.add(tag)
        elif tag == STRING_TAG:
            denied = list(_strings(columns, attribute, part))
            verify |= not denied or any(entry.verify or len(entry.predicates) > 1 for entry in denied)
            predicates += [_denied(e.predicates[0]) for e in denied if not e.verify and len(e.predicates) == 1]
        elif tag == BYTES_TAG or not isinstance(part, Intervals):
            verify = True
        else:
            for entry in _ordered(columns, attribute, NUMBER if tag == NUMBER_TAG else TIME, part):
                verify |= entry.verify
                predicates += [] if entry.verify else [_denied(entry.predicates[0])]
    if outside.atoms & Atom.MISSING:
        predicates.append(_present(columns, attribute))
    if tags:
        predicates.append(_tags(columns, attribute, NOT_SET, tags))
    return Entry(tuple(predicates), verify)


def _is_containing(branch: Branch, clue: Substring) -> bool:
    """Tell whether a branch demands a substring of a field, and nothing else."""
    part = branch.on(clue.path).values.strings
    (fits, fails, leaf), *_ = part.paths() if isinstance(part, Language) else [((), (), EMPTY)]
    plain = branch.on(clue.path).is_plain and not clue.folded
    return plain and len(fits) == 1 and not fails and leaf.is_full and fits[0].tokens == (MANY, *clue.text, MANY)


def _parts(values: ValueSet) -> int:
    return (values.atoms & ~Atom.MISSING).bit_count() + sum(1 for _ in values.kinds())


def _kinds(values: ValueSet) -> list[tuple[int, StringSet]]:
    parts: tuple[tuple[int, StringSet], ...] = (
        (NUMBER_TAG, values.numbers),
        (STRING_TAG, values.strings),
        (TIME_TAG, values.times),
        (BYTES_TAG, values.bytes),
    )
    return [one for one in parts if not one[1].is_empty]


def _one_of(column: int, keys: list[int]) -> Predicate:
    if len(keys) == 1:
        return Predicate(column, RANGE, keys[0], keys[0])
    return Predicate(column, SET, 0, 0, tuple(sorted(keys)))


def _denied(predicate: Predicate) -> Predicate:
    return predicate._replace(kind=NOT_RANGE if predicate.kind == RANGE else NOT_SET)


def _leading(tokens: tuple[Any, ...]) -> str:
    return "".join(itertools.takewhile(lambda token: isinstance(token, str), tokens))


def _is_suffix(pattern: Pattern) -> bool:
    return pattern.tokens[0] is MANY and all(isinstance(token, str) for token in pattern.tokens[1:])
