"""The printer of filters: text of the native language that parses to an equal filter.

A set is written the shorter way: by its content, `price > 5`, or by its complement, `price != 5`. Every piece of a set
can be written, and so can every filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import itemgetter
from typing import Any, Final, NamedTuple

from fieldfare.events.values import Kind
from fieldfare.filters import intervals, strings, valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.expressions import Arithmetic, Compare, Field, Literal
from fieldfare.filters.intervals import Cut
from fieldfare.filters.literals import literal, name
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import Atom, ValueSet

_LISTS: Final = ValueSet(atoms=Atom.LIST)
_KIND_WORDS: Final = {Kind.NUMBER: "NUMBER", Kind.STRING: "STRING", Kind.TIME: "TIMESTAMP", Kind.BYTES: "BYTES"}
_ATOM_WORDS: Final = {Atom.NULL: "NULL", Atom.NAN: "NAN", Atom.LIST: "LIST", Atom.OBJECT: "OBJECT"}
_OUTCOMES: Final = {
    valueset.one_of([-1]): "<",
    valueset.one_of([0]): "=",
    valueset.one_of([1]): ">",
    valueset.one_of([-1, 0]): "<=",
    valueset.one_of([0, 1]): ">=",
    valueset.PRESENT - valueset.one_of([0]): "!=",
}


class Phrase(NamedTuple):
    """A piece of text that states a condition on a subject."""

    text: str
    compound: bool = False
    """needs parentheses beside OR or behind NOT"""
    opposite: str | None = None
    """the predicate "exists, but not so", if the language has such a predicate"""
    loose: bool = False
    """joined by OR, so that parentheses are needed beside AND"""


def render(branches: Sequence[Branch]) -> str:
    """Return the text of a union of branches."""
    return _either(_branches(branches)).text if branches else "FALSE"


def in_order(branches: Sequence[Branch]) -> list[Branch]:
    """Return the branches in the order of their texts."""
    texts = [phrase.text for phrase in _branches(branches)]
    return [branch for _, branch in sorted(zip(texts, branches, strict=True), key=itemgetter(0))]


def _branches(branches: Sequence[Branch]) -> list[Phrase]:
    """Return the phrase of each branch; constraints that branches share are printed once."""
    written: dict[tuple[Dimension, int], Phrase] = {}
    phrases: list[Phrase] = []
    for branch in branches:
        parts: list[Phrase] = []
        for dimension, wanted in branch.items():
            key = dimension, id(wanted)
            if key not in written:
                written[key] = _constraint(dimension, wanted)
            parts.append(written[key])
        phrases.append(_all(parts) if parts else Phrase("TRUE"))
    return phrases


def _all(parts: Sequence[Phrase]) -> Phrase:
    if len(parts) == 1:
        return parts[0]
    return Phrase(" AND ".join(f"({part.text})" if part.loose else part.text for part in parts), True)


def _either(parts: Sequence[Phrase]) -> Phrase:
    if len(parts) == 1:
        return parts[0]
    return Phrase(" OR ".join(f"({part.text})" if part.compound else part.text for part in parts), True, None, True)


def _not(part: Phrase) -> Phrase:
    return Phrase(f"NOT ({part.text})" if part.compound else f"NOT {part.text}")


def _constraint(dimension: Dimension, wanted: Constraint) -> Phrase:
    if isinstance(dimension, Compare) and wanted.is_plain:
        return _comparison(dimension, wanted.values)
    subject = name(dimension) if isinstance(dimension, str) else dimension.text
    if not wanted.is_plain:
        return _quantified(subject, wanted)
    # A sum is no condition, although its value may be compared: `x + y = TRUE`.
    if not isinstance(dimension, (str, Arithmetic)) and wanted.values in (valueset.TRUE, ~valueset.TRUE):
        return Phrase(subject) if wanted.values == valueset.TRUE else Phrase(f"NOT {subject}")
    return _set(subject, wanted.values)


def _comparison(dimension: Compare, values: ValueSet) -> Phrase:
    left, right = dimension.left.text, dimension.right.text
    if Literal in (type(dimension.left), type(dimension.right)) or left > right:  # an operator would differ
        return _set(dimension.text, values)
    if isinstance(dimension.right, Field):
        right = f"${right}"
    for outcome, operator in _OUTCOMES.items():
        if values == outcome:
            return Phrase(f"{left} {operator} {right}")
        if values == ~outcome:
            return Phrase(f"NOT {left} {operator} {right}")
    return _set(dimension.text, values)


def _quantified(subject: str, wanted: Constraint) -> Phrase:
    """Return the phrase of a constraint on lists: by quantifiers, by the complement, or by values and lists apart."""
    said = _by_quantifiers(subject, wanted)
    if said is not None:
        return said
    opposite = wanted.complement()
    denied = _by_quantifiers(subject, opposite[0]) if len(opposite) == 1 else None
    if denied is not None:
        return _not(denied)
    lists = _all([Phrase(f"{subject} IS LIST"), *_quantifiers(subject, wanted)])
    singles = wanted.values - _LISTS
    return lists if singles.is_empty else _either([_set(subject, singles), lists])


def _by_quantifiers(subject: str, wanted: Constraint) -> Phrase | None:
    """Return quantifiers alone, if they express the condition on single values too; else None."""
    singles = reduce(ValueSet.__and__, wanted.some, wanted.every)
    return _all(_quantifiers(subject, wanted)) if singles == wanted.values - _LISTS and not wanted.is_plain else None


def _quantifiers(subject: str, wanted: Constraint) -> list[Phrase]:
    every = [] if wanted.every == ELEMENTS else [_quantifier("ALL", subject, wanted.every)]
    return [*every, *sorted(_quantifier("ANY", subject, hit) for hit in wanted.some)]


def _quantifier(word: str, subject: str, elements: ValueSet) -> Phrase:
    """Return ANY or ALL with a condition. A list is no element, so a condition may admit lists, if that is shorter."""
    if elements.is_empty:  # there is no such element, only the empty list
        return Phrase(f"{word} {subject} IS MISSING")
    inner = min(_set(subject, elements), _set(subject, elements | _LISTS), key=lambda phrase: len(phrase.text))
    return Phrase(f"{word} ({inner.text})" if inner.compound else f"{word} {inner.text}")


def _set(subject: str, values: ValueSet) -> Phrase:
    """Return the phrase "the subject lies in the set": by the values inside or outside, whichever is shorter."""
    if values == valueset.PRESENT:
        return Phrase(f"EXISTS {subject}")
    inside = list(_pieces(subject, values))
    if len(inside) == 1:
        return inside[0]
    if values.atoms & Atom.MISSING:
        outside = list(_pieces(subject, ~values))
        return _not(_either(outside)) if 0 < len(outside) <= len(inside) else _either(inside)
    outside = list(_pieces(subject, valueset.PRESENT - values))
    if len(outside) == 1 and outside[0].opposite is not None:
        return Phrase(outside[0].opposite)
    if len(outside) < len(inside) - 1:
        return Phrase(f"EXISTS {subject} AND {_not(_either(outside)).text}", True)
    return _either(inside)


def _pieces(subject: str, values: ValueSet) -> Iterator[Phrase]:
    """Yield predicates whose union is the set."""
    if values.atoms & Atom.MISSING:
        yield Phrase(f"{subject} IS MISSING")
    whole_numbers = values.numbers.is_full and values.atoms & Atom.NAN
    for bit, word in _ATOM_WORDS.items():
        if values.atoms & bit and not (bit == Atom.NAN and whole_numbers):
            yield _is(subject, word)
    listed: list[Any] = [value for bit, value in ((Atom.FALSE, False), (Atom.TRUE, True)) if values.atoms & bit]
    others: list[Phrase] = []
    for kind, part in values.kinds():
        if part.is_full and (kind is not Kind.NUMBER or whole_numbers):
            others.append(_is(subject, _KIND_WORDS[kind]))
        elif isinstance(part, Language):
            others.extend(_language(subject, part))
        else:
            for low, high in part.pieces():
                single = intervals.point(low, high)
                if single is not None:
                    listed.append(single[0])
                else:
                    others.append(_range(subject, kind, low, high))
    if len(listed) == 1:
        value = literal(listed[0])
        yield Phrase(f"{subject} = {value}", opposite=f"{subject} != {value}")
    elif listed:
        yield _with_not(subject, "IN", f"({', '.join(map(literal, listed))})")
    yield from others


def _is(subject: str, word: str) -> Phrase:
    return Phrase(f"{subject} IS {word}", opposite=f"{subject} IS NOT {word}")


def _with_not(subject: str, operator: str, operand: str) -> Phrase:
    return Phrase(f"{subject} {operator} {operand}", opposite=f"{subject} NOT {operator} {operand}")


def _language(subject: str, language: Language) -> Iterator[Phrase]:
    for fits, fails, leaf in language.paths():
        said = [_like(subject, p) for p in fits if not strings.contains(strings.matching(p), leaf)]
        said += [Phrase(_like(subject, p).opposite or "") for p in fails if strings.overlap(strings.matching(p), leaf)]
        if not leaf.is_full:
            said.append(_either(list(_pieces(subject, ValueSet(strings=leaf)))))
        elif not fits:  # NOT LIKE is true of values that are no strings
            said.insert(0, _is(subject, "STRING"))
        yield _all(said)


def _like(subject: str, pattern: Pattern) -> Phrase:
    tokens = pattern.tokens
    inner = [token for token in tokens if isinstance(token, str)]
    if not pattern.ignore_case:
        if tokens[0] is MANY and len(inner) == len(tokens) - 1:
            return _with_not(subject, "ENDS WITH", literal("".join(inner)))
        if tokens[0] is MANY and tokens[-1] is MANY and len(inner) == len(tokens) - 2:
            return _with_not(subject, "CONTAINS", literal("".join(inner)))
    return _with_not(subject, "ILIKE" if pattern.ignore_case else "LIKE", literal(pattern.text))


def _range(subject: str, kind: Kind, low: Cut | None, high: Cut | None) -> Phrase:
    """Return the phrase of an interval, given by its cuts."""
    if kind is Kind.STRING and low is not None and high == _after_prefix(low):
        return _with_not(subject, "STARTS WITH", literal(low[0]))
    if kind is Kind.NUMBER:
        if low is None and high is None:
            return _with_not(subject, "BETWEEN", "-INFINITY AND INFINITY")
        if low is not None and high is not None and (low[1], high[1]) == (0, 1):
            return _with_not(subject, "BETWEEN", f"{literal(low[0])} AND {literal(high[0])}")
    parts: list[Phrase] = []
    if low is not None:
        value, above = _shown(low)
        parts.append(Phrase(f"{subject} {'>' if above else '>='} {literal(value)}"))
    if high is not None:
        value, above = _shown(high)
        parts.append(Phrase(f"{subject} {'<=' if above else '<'} {literal(value)}"))
    return _all(parts)


def _shown(cut: Cut) -> Cut:
    """Return the cut as people write cuts: just above 'a' rather than just below the successor of 'a'."""
    value, above = cut
    if isinstance(value, (str, bytes)) and value[-1:] in ("\0", b"\0"):
        return value[:-1], 1
    if isinstance(value, datetime) and value.microsecond % 1000 == 1:
        return value - timedelta(microseconds=1), 1
    return value, above


def _after_prefix(low: Cut) -> Cut | None:
    following = intervals.after_prefix(low[0]) if low[0] else None
    return None if following is None else (following, 0)
