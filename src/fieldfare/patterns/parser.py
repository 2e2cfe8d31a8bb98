"""The parser of the core language: from a text to a tree, or to an error that names the place.

    [A]                          the next A                     [A, B]        the next A or B
    [A <= {A, C}]                ... where C ends the run       [!A <= {P}]   the next P, which is no A
    X Y                          X, then Y, perhaps overlapping
    X ; Y                        X, then Y, wholly after X
    X*   X+   X?   X{2,5}        repetition; a further `>` prefers many, `<` prefers few
    X || Y      X | Y            both, in any order; either
    (X, Y)_{T=+90s}              Y may name the time event T, 90 seconds after X
    (X, Y)_{T=@2026-01-01T00:00:00Z}      ... or at a time
    (X ; Y)_{T=+90s}             ... and Y is wholly after X
    (X)_{<=1h}                   X within one hour

The signs of the literature are read as well: `⊆`, `¬` and `∥`. Operators from the tightest: repetition, juxtaposition,
`;`, `||`, `|`; all associate to the left.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from fieldfare.events.values import parse_timestamp
from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.patterns.durations import parse_duration
from fieldfare.patterns.stamps import SECOND, microseconds
from fieldfare.patterns.tree import (
    After,
    Alternation,
    At,
    Atom,
    Concatenation,
    Parallel,
    Repetition,
    Sequence,
    Timing,
    Tree,
    Within,
)

MAX_DEPTH: Final = 50
"""levels of parentheses"""
MAX_TEXT: Final = 1 << 16
"""characters of a text"""
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<open>\)\s*_\s*\{)|(?P<sign><=|⊆|\|\||∥|[\[\](){},;*+?|!¬<>]))"
)
_SUBSCRIPT: Final = re.compile(r"\s*(?:(?P<within><=|≤)|(?P<timer>[^\W\d]\w*)\s*=\s*(?P<how>[+@]))\s*(?P<time>[^}]*)\}")
_SAME: Final = {"⊆": "<=", "∥": "||", "¬": "!"}


def parse_core(text: str) -> Tree:
    """Return the tree of an expression of the core language.

    >>> parse_core("[A] ; [B <= {B, C}]")
    Sequence(left=Atom(names=('A',), ...), right=Atom(names=('B',), domain=('B', 'C'), ...))
    """
    if not isinstance(text, str):
        raise TypeError(f"a pattern is parsed from a str, not from {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise FilterSyntaxError(text, MAX_TEXT, f"the pattern is longer than {MAX_TEXT} characters")
    return _Parser(text).whole()


class _Parser:
    """A recursive descent through a text; `_sign` is the next token and `_at` the place of the token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._depth = 0
        self._next()

    def _next(self) -> str:
        """Step to the next token, and return the token before."""
        before = getattr(self, "_sign", "")
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            rest = self._text[self._end :]
            self._at = self._end + len(rest) - len(rest.lstrip())
            if rest.strip():
                raise FilterSyntaxError(self._text, self._at, f"{self._text[self._at]!r} is not expected here")
            self._sign = self._kind = ""
            return before
        self._kind = found.lastgroup or ""
        self._at, self._end = found.span(self._kind)
        self._sign = _SAME.get(found[self._kind], found[self._kind])
        if self._kind == "open":
            self._sign = ")_{"
        return before

    def _fail(self, wanted: str) -> NoReturn:
        found = repr(self._sign) if self._sign else "the end"
        raise FilterSyntaxError(self._text, self._at, f"expected {wanted}, found {found}")

    def _expect(self, sign: str) -> None:
        if self._sign != sign:
            self._fail(f"'{sign}'")
        self._next()

    def whole(self) -> Tree:
        """Return the tree of the whole text."""
        tree = self._alternation()
        if self._sign:
            self._fail("an operator or the end")
        return tree

    def _alternation(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterTooComplex(f"the pattern is nested more than {MAX_DEPTH} levels deep")
        tree = self._parallel()
        while self._sign == "|":
            self._next()
            tree = Alternation(tree, self._parallel())
        self._depth -= 1
        return tree

    def _parallel(self) -> Tree:
        tree = self._sequence()
        while self._sign == "||":
            self._next()
            tree = Parallel(tree, self._sequence())
        return tree

    def _sequence(self) -> Tree:
        tree = self._concatenation()
        while self._sign == ";":
            self._next()
            tree = Sequence(tree, self._concatenation())
        return tree

    def _concatenation(self) -> Tree:
        tree = self._repetition()
        while self._sign in ("[", "("):
            tree = Concatenation(tree, self._repetition())
        return tree

    def _repetition(self) -> Tree:
        tree = self._part()
        while self._sign in ("*", "+", "?", "{"):
            sign = self._next()
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (0, None))
            if sign == "{":
                low, high = self._bounds()
            greedy = {">": True, "<": False}.get(self._sign)
            if greedy is not None:
                self._next()
            tree = Repetition(tree, low, high, greedy)
        return tree

    def _bounds(self) -> tuple[int, int | None]:
        place = self._at
        low = high = self._number()
        unbounded = False
        if self._sign == ",":
            self._next()
            unbounded = self._sign == "}"
            high = low if unbounded else self._number()
        self._expect("}")
        if high < max(low, 1):
            raise FilterSyntaxError(self._text, place, f"no repetition has between {low} and {high} parts")
        return low, None if unbounded else high

    def _number(self) -> int:
        if self._kind != "number":
            self._fail("a number")
        return int(self._next()[:9])

    def _part(self) -> Tree:
        if self._sign == "[":
            return self._atom()
        if self._sign != "(":
            self._fail("'[' or '('")
        self._next()
        left = self._alternation()
        if self._sign == ",":
            self._next()
            right = self._alternation()
            if self._sign != ")_{":
                self._fail("')_{', a name and a time: (X, Y)_{T=+90s}")
            return self._timing(left, right)
        if self._sign == ")_{":
            found = _SUBSCRIPT.match(self._text, self._end)
            if isinstance(left, Sequence) and found is not None and found["timer"] is not None:
                return self._timing(left.left, left.right, strong=True)
            return self._timing(left, None)
        if self._sign != ")":
            self._fail("')'")
        self._next()
        return left

    def _timing(self, left: Tree, right: Tree | None, *, strong: bool = False) -> Tree:
        """Return a timing or a limit, at the token `)_{`."""
        found = _SUBSCRIPT.match(self._text, self._end)
        if found is None:
            wanted = "<= and a duration: (X)_{<=1h}" if right is None else "a name and a time: (X, Y)_{T=+90s}"
            raise FilterSyntaxError(self._text, self._end, f"expected {wanted}")
        if (found["within"] is None) != (right is not None):
            operands = "a limit has one operand, (X)_{<=1h}, a timing two, (X, Y)_{T=+90s}"
            raise FilterSyntaxError(self._text, self._end, operands)
        try:
            tree = self._timed(left, right, found, strong)
        except ValueError as error:
            raise FilterSyntaxError(self._text, found.start("time"), str(error)) from None
        self._end = found.end()
        self._next()
        return tree

    def _timed(self, left: Tree, right: Tree | None, found: re.Match[str], strong: bool) -> Tree:
        time = found["time"].strip()
        if right is None:
            return Within(left, parse_duration(time))
        if found["how"] == "+":
            return Timing(left, right, found["timer"], After(parse_duration(time)), strong)
        at = int(time) * SECOND if time.isdigit() else microseconds(parse_timestamp(time))
        return Timing(left, right, found["timer"], At(at), strong)

    def _atom(self) -> Tree:
        self._next()
        negated = self._sign == "!"
        if negated:
            self._next()
        names = self._names()
        domain: tuple[str, ...] = ()
        if negated and (len(names) > 1 or self._sign != "<="):
            self._fail("'<=' and a domain behind one negated name: [!A <= {P}]")
        if self._sign == "<=":
            self._next()
            braces = self._sign == "{"
            if braces:
                self._next()
            domain = self._names() if braces else (self._name(),)
            if braces:
                self._expect("}")
        self._expect("]")
        return Atom(names, () if domain == names and not negated else domain, negated)

    def _names(self) -> tuple[str, ...]:
        names = [self._name()]
        while self._sign == ",":
            self._next()
            names.append(self._name())
        return tuple(dict.fromkeys(names))

    def _name(self) -> str:
        if self._kind != "name":
            self._fail("a name")
        return self._next()
