"""The canonical form of a pattern: parts with the same meaning have the same text, for all writers.

Sequences and concatenations lean to the left, alternatives and the sides of `||` stand in the order of the texts,
doubled alternatives are gone, and names stand for filters: e1, e2, ... in the order of the tree, T1, T2, ... for
timers. The type of composite events is a hash of the text, so every node finds the detector of a part.

Two patterns with the same canonical text detect the same events. The converse is not claimed: as with covering, a
missed equality costs a detector, and a wrong equality would be a wrong answer. So the order of alternatives is kept
where an event could be in two alternatives, and where a repetition has a preference, because both depend on the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final

from fieldfare.filters.filter import Filter
from fieldfare.patterns import tree as t
from fieldfare.patterns.composite import composite_type
from fieldfare.patterns.conditions import ANY, Condition, Reference, Selection, parse_conditions, parse_selection
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.printer import print_core

_WORD: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"])*\"|[^\W\d][\w.]*(?!\w*\s*\()")


def canonical(pattern: Pattern) -> Pattern:
    """Return the canonical form of a pattern.

    >>> from fieldfare.patterns import parse_pattern
    >>> one = parse_pattern("a: [x = 1] b: [x = 2] c: [x = 3] c or (a followed by b)")
    >>> two = parse_pattern("p: [x = 1] q: [x = 2] r: [x = 3] (p followed by q) or r")
    >>> canonical(one).text == canonical(two).text
    True
    >>> print(canonical(one).text)
    e1: [x = 1]
    e2: [x = 2]
    e3: [x = 3]
    core [e1] ; [e2] | [e3]
    """
    return canonical_names(pattern)[0]


def canonical_names(pattern: Pattern) -> tuple[Pattern, dict[str, str]]:
    """Return the canonical form, and the old name of each name (of several with the same filter, the first)."""
    filters = dict(pattern.filters)
    names = {name: name for name in pattern.names}
    references = [one.references for one in pattern.conditions] + [one.references for one in pattern.selections]
    bound = any(one.name != ANY for some in references for one in some)
    by_filter: dict[Filter, str] = {}
    if not pattern.policy.target and not (bound and _ambiguous(pattern)):
        for name in pattern.names:
            names[name] = by_filter.setdefault(filters[name], f"e{_digest(filters[name])}")
    renamed = {new: filters[old] for old, new in reversed(names.items())}
    form = normal(_renamed(pattern.tree, names), renamed)
    last = {name: f"e{number}" for number, name in enumerate(t.names(form), 1)} if by_filter else {}
    form = _numbered(_renamed(form, last), {}, iter(range(1, 1 << 30)))
    new = {old: last.get(name, name) for old, name in names.items()}
    filters = {last.get(name, name): filter for name, filter in renamed.items()}
    keys = tuple(sorted(pattern.keys))
    conditions = sorted({one.text: one for one in (_condition(one, new, keys) for one in pattern.conditions)}.items())
    selections = [_selection(one, new, keys) for one in pattern.selections]
    made = replace(
        pattern,
        expression=Expression(form, {name: filters[name] for name in t.names(form)}),
        keys=keys,
        conditions=tuple(one for _, one in conditions),
        selections=tuple(sorted(selections, key=lambda one: one.name)),
    )
    return made, {name: old for old, name in reversed(new.items())}


def expression_type(pattern: Pattern) -> str:
    """Return the type of the composite events of a pattern in canonical form, by which detectors are known."""
    return composite_type(canonical(pattern).text)


def normal(tree: t.Tree, filters: Mapping[str, Filter]) -> t.Tree:
    """Return a tree of the same meaning, with a fixed order for unordered parts."""
    match tree:
        case t.Atom():
            return _atom(tree, filters)
        case t.Repetition(body=body, low=1, high=1, greedy=None):
            return normal(body, filters)
        case t.Within(body=t.Within(body=body, duration=inner), duration=outer):
            return normal(t.Within(body, min(inner, outer)), filters)
        case t.Repetition() | t.Within():
            return replace(tree, body=normal(tree.body, filters))
        case t.Sequence() | t.Concatenation():
            first, *more = (normal(part, filters) for part in _flat(tree, type(tree)))
            for part in more:
                first = type(tree)(first, part)
            return first
        case t.Alternation():
            return _alternatives([normal(part, filters) for part in _flat(tree, t.Alternation)], filters)
        case t.Parallel():
            sides = [normal(tree.left, filters), normal(tree.right, filters)]
            left, right = sorted(sides, key=print_core) if _free(sides, filters) else sides
            return t.Parallel(left, right)
        case t.Timing():
            return replace(tree, left=normal(tree.left, filters), right=normal(tree.right, filters))


def disjoint(one: Iterable[str], other: Iterable[str], filters: Mapping[str, Filter]) -> bool:
    """Tell whether no event can have a name of both parts; in doubt an event can."""
    others = [filters[name] for name in other]
    return not any(filters[name].overlaps(filter) for name in one for filter in others)


def _flat(tree: t.Tree, kind: type[t.Tree]) -> list[t.Tree]:
    if not isinstance(tree, kind):
        return [tree]
    return [part for child in t.children(tree) for part in _flat(child, kind)]


def _atom(atom: t.Atom, filters: Mapping[str, Filter]) -> t.Atom:
    """Return an atom with sorted names and domain; the domain counts for the set, the first name has the event."""
    names = _sorted(atom.names, filters)
    if atom.negated:
        return t.Atom(names, _sorted(atom.domain, filters), True)
    domain = tuple(sorted({*atom.names, *atom.within}))
    return t.Atom(names, () if set(domain) == set(names) else domain)


def _sorted(names: tuple[str, ...], filters: Mapping[str, Filter]) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(names))
    known = [name for name in distinct if name in filters]  # a timer's event is in no other set
    apart = all(disjoint([a], [b], filters) for a, b in combinations(known, 2))
    return tuple(sorted(distinct)) if apart else distinct


def _alternatives(parts: list[t.Tree], filters: Mapping[str, Filter]) -> t.Tree:
    if not any(map(_prefers, parts)):
        parts = list(dict.fromkeys(parts))
    if _free(parts, filters):
        parts = sorted(parts, key=print_core)
    first, *more = parts
    for part in more:
        first = t.Alternation(first, part)
    return first


def _free(parts: list[t.Tree], filters: Mapping[str, Filter]) -> bool:
    """Tell whether the order of parts has no influence."""
    if any(map(_prefers, parts)):
        return False
    names = [set(t.names(part)) for part in parts]
    timers = [some - filters.keys() for some in names]
    return all(a.isdisjoint(b) for a, b in combinations(timers, 2)) and all(
        disjoint(a & filters.keys(), b & filters.keys(), filters) for a, b in combinations(names, 2)
    )


def _prefers(tree: t.Tree) -> bool:
    if isinstance(tree, t.Repetition) and tree.greedy is not None:
        return True
    return any(map(_prefers, t.children(tree)))


# Names


def _ambiguous(pattern: Pattern) -> bool:
    """Tell whether an event may have two names, which conditions and selections would tell apart."""
    return not all(disjoint([a], [b], pattern.filters) for a, b in combinations(pattern.names, 2))


def _digest(filter: Filter) -> str:
    return composite_type(str(filter))[3:]


def _renamed(tree: t.Tree, names: Mapping[str, str]) -> t.Tree:
    match tree:
        case t.Atom():
            own, domain = (
                tuple(dict.fromkeys(names.get(name, name) for name in some)) for some in (tree.names, tree.domain)
            )
            return t.Atom(own, domain, tree.negated)
        case t.Repetition() | t.Within():
            return replace(tree, body=_renamed(tree.body, names))
        case _:
            return replace(tree, left=_renamed(tree.left, names), right=_renamed(tree.right, names))


def _numbered(tree: t.Tree, timers: Mapping[str, str], numbers: Iterable[int]) -> t.Tree:
    """Return a tree with timers numbered in the order of the text."""
    match tree:
        case t.Atom():
            return _renamed(tree, timers)
        case t.Repetition() | t.Within():
            return replace(tree, body=_numbered(tree.body, timers, numbers))
        case t.Timing():
            left, timer = _numbered(tree.left, timers, numbers), f"T{next(iter(numbers))}"
            right = _numbered(tree.right, {**timers, tree.timer: timer}, numbers)
            return replace(tree, left=left, right=right, timer=timer)
        case _:
            left = _numbered(tree.left, timers, numbers)
            return replace(tree, left=left, right=_numbered(tree.right, timers, numbers))


def renamed_text(text: str, references: Iterable[Reference], names: Mapping[str, str]) -> str:
    """Return the text of a condition or selection with other names of events.

    >>> renamed_text("b.price > 1.1 * avg(a.price)", [Reference("last", "b", "price")], {"a": "e1", "b": "e2"})
    'e2.price > 1.1 * avg(e1.price)'
    """
    keys = {one.path for one in references if one.name == ANY}

    def other(found: re.Match[str]) -> str:
        word = found[0]
        head, dot, path = word.partition(".")
        return word if word[0] in "'\"" or word in keys or head not in names else f"{names[head]}{dot}{path}"

    return _WORD.sub(other, text)


def _condition(one: Condition, names: Mapping[str, str], keys: tuple[str, ...]) -> Condition:
    text = renamed_text(one.text, one.references, names)
    return parse_conditions(f"({text})", list(names.values()), keys)[0] if text != one.text else one


def _selection(one: Selection, names: Mapping[str, str], keys: tuple[str, ...]) -> Selection:
    text = renamed_text(one.text, one.references, names)
    return parse_selection(one.name, text, list(names.values()), keys) if text != one.text else one
