"""The printer of event patterns: the pattern of a filter, if there is a pattern.

A branch of a filter is a pattern, several branches are the alternatives of a `$or`. A set of values is listed by its
content or, if that is impossible, by its complement. The caller must check whether the pattern means the filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from fieldfare.filters import functions, intervals, valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.elements import Has
from fieldfare.filters.expressions import Call, Field, Literal
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Cut, Intervals
from fieldfare.filters.languages.ruler.leaves import LEAF, LEAFLESS, leaf
from fieldfare.filters.patterns import MANY, ONE, Pattern
from fieldfare.filters.strings import StringSet
from fieldfare.filters.valueset import Atom, ValueSet

Leaves: TypeAlias = dict[str, list[Any]]
"""the alternatives at each path"""
_MOST_PREFIXES: Final = 64
_WORDS: Final = ((Atom.NULL, None), (Atom.TRUE, True), (Atom.FALSE, False))


class _Inexpressible(Exception):  # a way out, turned into a ValueError where the constraint is known
    """Raised for a set of values without a pattern."""


def document(filter: Filter) -> dict[str, Any]:  # as in every language
    """Return a pattern with the meaning of the filter, or raise a ValueError that names the obstacle."""
    if filter.is_empty or filter.is_full:
        raise ValueError(f"no pattern matches {'nothing' if filter.is_empty else 'everything'}")
    patterns: list[dict[str, Any]] = []
    for branch in filter.branches:
        pattern = _nested(_leaves(branch))
        if pattern not in patterns:
            patterns.append(pattern)
    return patterns[0] if len(patterns) == 1 else {"$or": patterns}


def _leaves(branch: Branch) -> Leaves:
    found: Leaves = {}
    lists = [dimension.path for dimension in branch if isinstance(dimension, Has)]
    for dimension, wanted in branch.items():
        if isinstance(dimension, str) and any(dimension.startswith(f"{path}.") for path in lists):
            continue  # a consequence of the condition on the elements
        try:
            for path, alternatives in _said(dimension, wanted):
                if found.setdefault(path, alternatives) is not alternatives:
                    raise _Inexpressible("a pattern names a field once")
        except _Inexpressible as reason:
            said = Filter([Branch({dimension: wanted})])
            raise ValueError(f"no pattern can express {said}: {reason}") from None
    return found


def _said(dimension: Dimension, wanted: Constraint) -> Iterator[tuple[str, list[Any]]]:
    """Yield the paths of a constraint with their alternatives."""
    if isinstance(dimension, str):
        yield dimension, _alternatives(wanted)
        return
    if wanted.values == valueset.TRUE:
        match dimension:
            case Has(path, Filter(branches=(branch,))):
                for below, alternatives in _leaves(branch).items():
                    yield f"{path}.{below}", alternatives
                return
            case Call(functions.CIDR, (Field(path), Literal(network))):
                yield path, [{"cidr": network}]
                return
    raise _Inexpressible("patterns compare single fields with constants")


def _nested(leaves: Leaves) -> dict[str, Any]:
    """Nest paths as objects in objects; names below a path that is a leaf keep their dots."""
    nested: dict[str, Any] = {}
    groups: dict[str, Leaves] = {}
    for path, alternatives in leaves.items():
        step, dot, rest = path.partition(".")
        if not dot or step in leaves:
            nested[path] = alternatives
        else:
            groups.setdefault(step, {})[rest] = alternatives
    return nested | {step: _nested(below) for step, below in groups.items()}


def _alternatives(wanted: Constraint) -> list[Any]:
    """Return the alternatives of a constraint, by the conditions on lists: some element, or objects only.

    The single values may come from other branches of the filter, since a branch is as large as possible.
    """
    if wanted.is_plain:
        raise _Inexpressible("in a pattern a list matches if an element does, which is ANY")
    if wanted.every == LEAFLESS.every and not wanted.some:
        return [{"exists": False}]
    if len(wanted.some) != 1 or wanted.every != ELEMENTS:
        raise _Inexpressible("of a list, a pattern can only demand some element")
    (values,) = wanted.some
    if values == LEAF:
        return [{"exists": True}]
    try:
        return _checked(list(_listed(values)), values)
    except _Inexpressible as reason:
        try:
            return _checked([{"anything-but": _excluded(list(_listed(LEAF - values)))}], values)
        except _Inexpressible:
            raise reason from None


def _checked(alternatives: list[Any], values: ValueSet) -> list[Any]:
    """Return the alternatives if they mean the set: the listing of a set of strings is a guess."""
    if leaf(alternatives, "").values != values:
        raise _Inexpressible("its string patterns are combined")
    return alternatives


def _excluded(alternatives: list[Any]) -> Any:
    """Return the operand of `anything-but`: single values, or the texts of a single operator."""
    operators = {next(iter(item)) if isinstance(item, dict) else None for item in alternatives}
    if operators == {None}:
        return alternatives
    texts = [text for item in alternatives if isinstance(item, dict) for text in item.values()]
    if len(operators) != 1 or not all(isinstance(text, str) for text in texts):
        raise _Inexpressible("what it leaves out is of several kinds")
    return {operators.pop(): texts}


def _listed(values: ValueSet) -> Iterator[Any]:
    """Yield the values in the set, as alternatives."""
    if not (values - LEAF).is_empty or values.atoms & Atom.NAN or not (values.times.is_empty and values.bytes.is_empty):
        raise _Inexpressible("patterns know the values of JSON only")
    yield from (word for bit, word in _WORDS if values.atoms & bit)
    for low, high in values.numbers.pieces():
        yield _numeric(low, high)
    yield from _texts(values.strings)


def _numeric(low: Cut | None, high: Cut | None) -> Any:
    single = intervals.point(low, high)
    if single is not None and not _is_infinite(single[0]):
        return single[0]
    terms: list[Any] = []
    if low is not None:
        terms += [">" if low[1] else ">=", low[0]]
    if high is not None:
        terms += ["<=" if high[1] else "<", high[0]]
    if not terms or any(_is_infinite(term) for term in terms):
        raise _Inexpressible("patterns have no infinity")
    return {"numeric": terms}


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)  # an integer may be too large for `isinf`


def _texts(strings: StringSet) -> Iterator[Any]:
    if isinstance(strings, Intervals):
        for low, high in strings.pieces():
            yield from _prefixes(low, high)
        return
    for fits, _, rest in strings.paths():  # patterns that must not match mostly belong to another path
        if len(fits) > 1 or rest.is_full is not bool(fits):
            raise _Inexpressible("its string patterns are combined")
        yield from map(_pattern, fits) if fits else _texts(rest)


def _prefixes(low: Cut | None, high: Cut | None) -> Iterator[Any]:
    """Yield an interval of strings as a single string, or as adjacent prefixes: from 'x' to 'z' is 'x…' and 'y…'."""
    text: str | None = "" if low is None else low[0]
    if high == (f"{text}\0", 0):
        yield text
        return
    if low is None and high is None:
        yield {"wildcard": "*"}
        return
    for _ in range(_MOST_PREFIXES):
        if text is None or (high is not None and text >= high[0]):
            return
        yield {"prefix": text}
        text = intervals.after_prefix(text)
    raise _Inexpressible("patterns do not order strings")


def _pattern(pattern: Pattern) -> dict[str, Any]:
    if ONE in pattern.tokens:
        raise _Inexpressible("no operator stands for a single character")
    text = "".join(token for token in pattern.tokens if isinstance(token, str))
    wild = [index for index, token in enumerate(pattern.tokens) if token is MANY]
    if pattern.ignore_case:
        match wild:
            case []:
                return {"equals-ignore-case": text}
            case [0]:
                return {"suffix": {"equals-ignore-case": text}}
            case [last] if last == len(pattern.tokens) - 1:
                return {"prefix": {"equals-ignore-case": text}}
        raise _Inexpressible("wildcards cannot ignore case")
    if wild == [0]:
        return {"suffix": text}
    escaped = (
        "*" if token is MANY else f"\\{token}" if token in ("*", "\\") else str(token) for token in pattern.tokens
    )
    return {"wildcard": "".join(escaped)}
