"""Errors of the filter languages: the problem and the place, shown under the line.

The languages parse with lark; `syntax_error` turns an exception of lark into a sentence that helps the author.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, cast

from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

_SHOWN: Final = 76
"""characters of a long line that the message shows around the place"""
_FOUND: Final = 24
"""characters of a long token that the message quotes"""
_HABITS: Final = {
    "==": "=", "===": "=", "≠": "!=", "=<": "<=", "≤": "<=", "=>": ">=", "≥": ">=",
    "&&": "AND", "&": "AND", "||": "OR", "|": "OR", "!": "NOT",
}  # fmt: skip
"""operators of other languages, with the operator of the filter languages"""
_SIGNS: Final = frozenset("".join(_HABITS))


class FilterSyntaxError(ValueError):
    """A filter text that cannot be parsed. `position` is the 0-based offset into `text` where `problem` is.

    >>> print(FilterSyntaxError("price < AND", 8, "expected a value, found 'AND'"))
    line 1, column 9: expected a value, found 'AND'
      price < AND
              ^
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        super().__init__(text, position, problem)  # all three, so that the error survives pickling
        self.text = text
        self.position = position
        self.problem = problem

    @property
    def line(self) -> int:
        """The number of the line with the problem, from 1."""
        return self.text.count("\n", 0, self.position) + 1

    @property
    def column(self) -> int:
        """The column of the problem in characters, from 1."""
        return self.position - self._line_start + 1

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.position) + 1

    def __str__(self) -> str:
        line = self.text[self._line_start :].partition("\n")[0]
        # A long line is cut around the place.
        cut = max(0, min(self.column - 1 - _SHOWN // 2, len(line) - _SHOWN))
        left, right = "…" if cut else "", "…" if len(line) > cut + _SHOWN else ""
        shown = "".join(char if char.isprintable() else " " for char in line[cut : cut + _SHOWN])  # tabs move the caret
        caret = " " * (len(left) + self.column - 1 - cut) + "^"
        return f"line {self.line}, column {self.column}: {self.problem}\n  {left}{shown}{right}\n  {caret}"


def syntax_error(text: str, unexpected: UnexpectedInput, names: Mapping[str, str]) -> FilterSyntaxError:
    """Return the error for an exception of lark, in words.

    Args:
        text: the filter text.
        unexpected: the exception of lark.
        names: a name for each terminal, in the order to list them. Terminals may share a name; terminals without a
            name are not listed.
    """
    position, found = _found(text, unexpected)
    if isinstance(unexpected, UnexpectedCharacters) and found in ("'", '"'):
        return FilterSyntaxError(text, position, "the string that starts here has no closing quote")
    start, signs = _signs(text, position)
    if signs in _HABITS:
        return FilterSyntaxError(text, start, f"write {_HABITS[signs]} instead of {signs}")
    possible = _possible(unexpected)
    wanted = list(dict.fromkeys(name for terminal, name in names.items() if terminal in possible))
    what = f"{found!r}" if found else "the end"
    problem = f"expected {_either(wanted)}, found {what}" if wanted else f"{what} is not expected here"
    return FilterSyntaxError(text, position, problem)


def _found(text: str, unexpected: UnexpectedInput) -> tuple[int, str]:
    """Return the position of the problem and the token or character at that position ("" at the end)."""
    if isinstance(unexpected, UnexpectedCharacters):
        position = cast(int, unexpected.pos_in_stream)  # lark declares it None
        return position, text[position]
    if isinstance(unexpected, UnexpectedToken) and unexpected.token.type != "$END":
        found = str(unexpected.token)
        return unexpected.token.start_pos or 0, found if len(found) <= _FOUND else found[:_FOUND] + "…"
    return len(text.rstrip()), ""


def _signs(text: str, position: int) -> tuple[int, str]:
    """Return the whole sign around a character and its start: lark may have consumed the first half of the sign."""
    start = end = position
    while end < len(text) and text[end] in _SIGNS:
        end += 1
    while end > position and start and text[start - 1] in _SIGNS:
        start -= 1
    return start, text[start:end]


def _possible(unexpected: UnexpectedInput) -> Collection[str]:
    """Return the terminals that the parser would have accepted."""
    parser = getattr(unexpected, "interactive_parser", None)
    if parser is not None:
        return cast("set[str]", parser.accepts())  # tried out; the sets below may promise too much
    if isinstance(unexpected, UnexpectedCharacters):
        return unexpected.allowed or ()
    return unexpected.expected if isinstance(unexpected, (UnexpectedToken, UnexpectedEOF)) else ()


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


class FilterTooComplex(ValueError):
    """A filter that exceeds a limit of size or nesting."""


class FilterOverBudget(FilterTooComplex):
    """A filter that takes more work than the budget allows; see `budget`."""


class FilterDocumentError(ValueError):
    """A filter document, such as JSON, without a meaning. `path` is a JSON pointer to the place of `problem`.

    >>> print(FilterDocumentError("/detail/price/0/numeric", "expected an operator and a number"))
    at /detail/price/0/numeric: expected an operator and a number
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)  # both, so that the error survives pickling
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"at {self.path}: {self.problem}"
