"""Texts of Sigma: wildcards, escapes, and the modifiers that make other texts of a text.

A text is a tuple of characters and wildcards, as in `filters.patterns`: `*` is `MANY`, `?` is `ONE`. A backslash
before `*`, `?` or a backslash takes away the meaning of these; before any other character a backslash is a backslash.
"""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from fieldfare.filters.patterns import MANY, ONE, Token

Text: TypeAlias = tuple[Token, ...]
MAX_DASHES: Final = 3
"""dashes of a text that `windash` varies: each makes five texts of one"""
_DASHES: Final = "-/\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}"
_UTF16: Final = {"wide": "utf-16-le", "utf16le": "utf-16-le", "utf16be": "utf-16-be", "utf16": "utf-16-le"}


def read(written: str) -> Text:
    r"""Return the text that a rule writes.

    >>> read(r"a\b*") == ("a", "\\", "b", MANY), read(r"\*\\?") == ("*", "\\", ONE)
    (True, True)
    """
    return tuple(_tokens(written))


def _tokens(written: str) -> Iterator[Token]:
    chars = iter(written)
    for char in chars:
        if char == "\\":
            escaped = next(chars, "")
            if escaped in ("*", "?", "\\"):
                yield escaped
            else:
                yield char
                if escaped:
                    yield escaped
        else:
            yield MANY if char == "*" else ONE if char == "?" else char


def plain(text: Text) -> str | None:
    """Return the characters of a text without wildcards, or None."""
    return "".join(map(str, text)) if all(isinstance(token, str) for token in text) else None


def windash(text: Text) -> list[Text]:
    """Return the text with each dash of an option in all the forms that Windows takes.

    >>> ["".join(map(str, one)) for one in windash(read("x -a"))]
    ['x -a', 'x /a', 'x –a', 'x —a', 'x ―a']
    """
    places = [place for place, token in enumerate(text) if token in ("-", "/") and _begins_option(text, place)]
    if len(places) > MAX_DASHES:
        raise ValueError(f"more than {MAX_DASHES} dashes to vary")
    ways = ((dashes if place in places else (text[place],)) for place, dashes in enumerate([_DASHES] * len(text)))
    return [tuple(one) for one in itertools.product(*ways)]


def _begins_option(text: Text, place: int) -> bool:
    r"""Tell whether a dash stands before a word and not behind one: the regular expression `\B[-/]\b`."""
    before = text[place - 1] if place else " "
    after = text[place + 1] if place + 1 < len(text) else " "
    return not _in_word(before) and _in_word(after)


def _in_word(token: Token) -> bool:
    return isinstance(token, str) and (token.isalnum() or token == "_")  # noqa: S105


def base64(text: Text, offsets: Sequence[int] = (0,)) -> list[Text]:
    """Return the base64 text of a text; with offsets, the parts that do not depend on the neighbours of the text."""
    characters = plain(text)
    if characters is None:
        raise ValueError("a text with wildcards has no base64 form")
    data = characters.encode()
    if len(offsets) == 1:
        return [tuple(b64encode(data).decode())]
    found: list[Text] = []
    for offset in offsets:
        encoded = b64encode(b" " * offset + data).decode()
        last = {0: None, 1: -3, 2: -2}[(offset + len(data)) % 3]
        found.append(tuple(encoded[{0: 0, 1: 2, 2: 3}[offset] : last]))
    return found


def wide(text: Text, encoding: str) -> list[Text]:
    """Return the text in UTF-16, a character for each byte: `base64` is then the base64 of these bytes."""
    made: list[Token] = list("\ufeff") if encoding == "utf16" else []
    for token in text:
        if not isinstance(token, str):
            made.append(token)
        elif not token.isascii():
            raise ValueError("only ASCII texts can be made wide")
        else:
            made.extend(token.encode(_UTF16[encoding]).decode("ascii"))
    return [tuple(made)]


def expand(text: Text, values: Mapping[str, Sequence[str]]) -> list[Text]:
    """Return the text with each `%name%` replaced by each value of the name."""
    ends = [place for place, token in enumerate(text) if token == "%"]  # noqa: S105
    names = ["".join(map(str, text[start + 1 : end])) for start, end in zip(ends[::2], ends[1::2], strict=False)]
    missing = [name for name in names if name not in values]
    if missing or len(ends) % 2:
        raise ValueError(f"the schema has no values for the placeholder {f'%{missing[0]}%' if missing else '%'}")
    parts: list[Sequence[Text]] = []
    last = 0
    for start, end, name in zip(ends[::2], ends[1::2], names, strict=True):
        parts += [(text[last:start],), [tuple(value) for value in values[name]]]
        last = end + 1
    ways = itertools.product(*parts, (text[last:],))
    return [tuple(itertools.chain.from_iterable(one)) for one in ways]


TRANSFORMATIONS: Final[dict[str, Callable[[Text], list[Text]]]] = {
    "windash": windash,
    "base64": base64,
    "base64offset": lambda text: base64(text, (0, 1, 2)),
    **{name: lambda text, name=name: wide(text, name) for name in _UTF16},  # type: ignore[misc]  # a default binds
    "contains": lambda text: [(MANY, *text, MANY)],
    "startswith": lambda text: [(*text, MANY)],
    "endswith": lambda text: [(MANY, *text)],
}
"""the modifiers that make texts of a text; `expand` needs a schema too"""
