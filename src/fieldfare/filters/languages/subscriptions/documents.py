"""The filters of the CloudEvents Subscriptions API, as decoded JSON: `{"prefix": {"type": "com.example."}}`.

The dialects `exact`, `prefix` and `suffix` compare attributes as strings, `all`, `any` and `not` combine filters, and
`sql` is CESQL. The dialect `fieldfare` is an addition: the native language, for all fields and not only attributes. A
list, as in the `filters` of a subscription, is a conjunction; the empty list is always true. A missing attribute
neither equals a text nor begins or ends with a text, so that `not` is true of a missing attribute.

Attributes are compared as CESQL casts them: the integer 5 is the string "5", a timestamp is its RFC 3339 text in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from fieldfare.filters import patterns, valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages import native
from fieldfare.filters.languages.cesql.expression import read, string_of
from fieldfare.filters.languages.cesql.translation import translate
from fieldfare.filters.languages.subscriptions.attributes import on_attributes
from fieldfare.filters.languages.subscriptions.printer import ATTRIBUTE, render
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.patterns import MANY, Token
from fieldfare.filters.predicates import conjunction

__all__ = ["parse", "render"]

MAX_DEPTH: Final = 64
"""levels of filters within filters"""

_AFFIXES: Final[dict[str, tuple[tuple[Token, ...], tuple[Token, ...]]]] = {
    "exact": ((), ()),
    "prefix": ((), (MANY,)),
    "suffix": ((MANY,), ()),
}
"""tokens before and after the text of each dialect"""
_DIALECTS: Final = ", ".join([*_AFFIXES, "all", "any", "not", "sql", "fieldfare"])


def parse(document: object) -> Filter:
    """Return the filter of a filter object, or of a list of them. A document that no event can match is refused.

    >>> print(parse([{"prefix": {"type": "com.example."}}, {"not": {"exact": {"source": "/test"}}}]))
    NOT source = '/test' AND type STARTS WITH 'com.example.'
    """
    try:
        result = on_attributes(_document(document))
    except TooComplex as error:
        raise FilterTooComplex(f"the string patterns of an attribute cannot be combined: {error}") from None
    if result.is_empty:
        raise FilterDocumentError("/", "nothing can match")
    return result


# --- documents as filters on texts ------------------------------------------------------------------------------------


def _document(document: object) -> Filter:
    """Return the filter of a filter object, or of a list."""
    return _list(document, "", True) if isinstance(document, list) else _filter(document, "", True)


def _filter(document: object, path: str, wanted: bool) -> Filter:
    """Return the events for which a filter object is `wanted`, true or false: negation goes down to the comparisons."""
    if path.count("/") > 2 * MAX_DEPTH:
        raise FilterDocumentError(path, f"nested more than {MAX_DEPTH} levels deep")
    if not isinstance(document, Mapping) or len(document) != 1:
        problem = f"expected an object with one of {_DIALECTS}, found {_shown(document)}"
        raise FilterDocumentError(path or "/", problem)
    [(dialect, content)] = document.items()
    below = f"{path}/{dialect}"
    match dialect:
        case "exact" | "prefix" | "suffix":
            before, after = _AFFIXES[dialect]
            texts = _texts(content, below)
            return _joined([_like(name, (*before, *text, *after), wanted) for name, text in texts], wanted)
        case "all":
            return _list(_filled(content, below), below, wanted)
        case "any":
            return _list(_filled(content, below), below, wanted, some=True)
        case "not":
            return _filter(content, below, not wanted)
        case "sql":
            meaning = _text(content, below, "a CESQL expression", lambda text: translate(read(text)))
            return meaning if wanted else ~meaning
        case "fieldfare":
            meaning = _text(content, below, "a filter", native.parse)
            return meaning if wanted else ~meaning
    raise FilterDocumentError(path or "/", f"there is no dialect {dialect!r}; there are {_DIALECTS}")


def _list(documents: Sequence[object], path: str, wanted: bool, *, some: bool = False) -> Filter:
    filters = [_filter(document, f"{path}/{place}", wanted) for place, document in enumerate(documents)]
    return _joined(filters, wanted is not some)


def _like(name: str, tokens: Sequence[Token], wanted: bool) -> Filter:
    fitting = valueset.like(patterns.pattern(*tokens))
    return Filter.where(string_of(name), Constraint(fitting if wanted else ~fitting))


def _joined(filters: Sequence[Filter], by_and: bool) -> Filter:
    return conjunction(filters) if by_and else Filter(branch for part in filters for branch in part.boxes)


def _text(document: object, path: str, what: str, meaning: Callable[[str], Filter]) -> Filter:
    if not isinstance(document, str):
        raise FilterDocumentError(path, f"expected {what} as a string, found {_shown(document)}")
    try:
        return meaning(document)
    except FilterSyntaxError as error:
        raise FilterDocumentError(path, str(error)) from error


def _texts(document: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes with the strings to compare."""
    if not isinstance(document, Mapping) or not document:
        raise FilterDocumentError(path, f"expected an object of attributes and strings, found {_shown(document)}")
    for name, text in document.items():
        if not isinstance(name, str) or not ATTRIBUTE.fullmatch(name):
            raise FilterDocumentError(path, f"{name!r} is no name of an attribute, of a-z and 0-9 and other than data")
        if not isinstance(text, str) or not text:
            problem = f"expected a string that is not empty, found {_shown(text)}"
            raise FilterDocumentError(f"{path}/{name}", problem)
        yield name, text


def _filled(document: object, path: str) -> Sequence[object]:
    if not isinstance(document, list) or not document:
        raise FilterDocumentError(path, f"expected a list of filters, at least one, found {_shown(document)}")
    return document


def _shown(value: object) -> str:
    """Describe a value of a document in words."""
    match value:
        case str():
            return repr(value) if value else "an empty string"
        case Mapping():
            return f"an object with {', '.join(map(repr, value))}" if value else "an empty object"
        case list():
            return "a list" if value else "an empty list"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
