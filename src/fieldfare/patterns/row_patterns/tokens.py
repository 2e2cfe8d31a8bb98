"""The words and signs of a MATCH_RECOGNIZE clause, each with the place in the text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from fieldfare.filters.errors import FilterSyntaxError

MAX_TEXT: Final = 1 << 16
"""characters of a text"""
_SPACE: Final = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)+", re.DOTALL)
_TOKEN: Final = re.compile(
    r"(?P<name>[^\W\d]\w*)"
    r'|(?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)'
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<sign>\{-|-\}|<>|!=|<=|>=|\|\||[-(){},.*+?|^$=<>/%;])"
)


class Token(NamedTuple):
    """A token: `word` is the name in capitals or the sign, for comparison; `text` the value as written, unquoted."""

    kind: str
    text: str
    word: str
    at: int


def tokens_of(text: str) -> list[Token]:
    """Return all tokens of a text, with one of kind "end" at the end.

    >>> [token.word for token in tokens_of("a.x >= 'it''s' -- why")]
    ['A', '.', 'X', '>=', '', '']
    """
    if not isinstance(text, str):
        raise TypeError(f"a clause is parsed from a str, not from {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise FilterSyntaxError(text, MAX_TEXT, f"the clause is longer than {MAX_TEXT} characters")
    found: list[Token] = []
    at = 0
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if at >= len(text):
            found.append(Token("end", "", "", len(text.rstrip())))
            return found
        match = _TOKEN.match(text, at)
        if match is None:
            quoted = text[at] in "'\"`"
            problem = (
                "the text that starts here has no closing quote" if quoted else f"{text[at]!r} is not expected here"
            )
            raise FilterSyntaxError(text, at, problem)
        found.append(_token(match))
        at = match.end()


def _token(match: re.Match[str]) -> Token:
    kind, written, at = match.lastgroup or "", match[0], match.start()
    if kind in ("quoted", "string"):
        quote = written[0]
        return Token(kind, written[1:-1].replace(quote * 2, quote), "", at)
    return Token(kind, written, "" if kind == "number" else written.upper(), at)


class Tokens:
    """The tokens of a text, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens_of(text)
        self._place = 0

    @property
    def now(self) -> Token:
        """The next token, which is not yet taken."""
        return self._tokens[self._place]

    def ahead(self, steps: int = 1) -> Token:
        """Return a token after the next one."""
        return self._tokens[min(self._place + steps, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Step forward; the end stays the end."""
        token = self.now
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def comes(self, *words: str) -> bool:
        """Tell whether words or signs come next, in this order."""
        return all(self.ahead(steps).word == word for steps, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take words or signs if they come next, in this order."""
        if not self.comes(*words):
            return False
        for _ in words:
            self.take()
        return True

    def expect(self, *words: str) -> Token:
        """Take words or signs that must come next; return the first."""
        first = self.now
        for word in words:
            if self.now.word != word:
                self.fail(f"expected {word}, found {self.found}")
            self.take()
        return first

    def name(self, what: str) -> Token:
        """Take a name, quoted or not; an error says what was expected."""
        if self.now.kind not in ("name", "quoted"):
            self.fail(f"expected {what}, found {self.found}")
        return self.take()

    def integer(self, what: str) -> int:
        """Take a whole number that is not negative."""
        if self.now.kind != "number" or not self.now.text.isdigit():
            self.fail(f"expected {what}, found {self.found}")
        return int(self.take().text)

    @property
    def found(self) -> str:
        """The next token as errors name tokens."""
        return "the end" if self.now.kind == "end" else repr(self.now.text)

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        """Raise the error for a problem at a place, by default at the next token."""
        raise FilterSyntaxError(self.text, self.now.at if at is None else at, problem)


def variable(token: Token) -> str:
    """Return the name of a pattern variable: in capitals, unless it is quoted."""
    return token.text if token.kind == "quoted" else token.word
