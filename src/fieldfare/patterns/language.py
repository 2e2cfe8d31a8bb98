"""The language for people: a text with definitions, an expression and clauses.

    small: [type = 'payment' AND amount < 10]
    large: [type = 'payment' AND amount > 500]
    at least 3 small followed by large within 1 hour
    for each card
    where large.amount > 10 * avg(small.amount)
    select card as card, count(small) as tries

Definitions name filters, in the native language or in another: `name: cesql [...]`, `name: ruler [{...}]`. The
reference is docs/reference/patterns.md. Errors name the place in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from fieldfare.filters.dialects import Dialect, read
from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.patterns import expression as e
from fieldfare.patterns.definition import Pattern, pattern
from fieldfare.patterns.durations import PATTERN
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.parser import MAX_DEPTH, MAX_TEXT, parse_core
from fieldfare.patterns.tree import atoms

_DEFINITION: Final = re.compile(r"\s*([^\W\d]\w*)\s*:\s*(native|cesql|ruler|cloudevents)?\s*(?=\[)", re.IGNORECASE)
_CLAUSE: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?<![\w.])(for\s+each|where|select|after\s+match|allow|in\s+windows\s+of|limit|once)(?![\w.])",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<duration>{PATTERN})|(?P<number>\d+)|(?P<word>[^\W\d]\w*)|(?P<sign>[()\[\]{{}},*+?]))", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\s*(\d{1,9})")
_KEYWORDS: Final = frozenset({
    "followed", "by", "then", "not", "and", "or", "within", "any", "of", "at", "least", "exactly", "most", "core",
})  # fmt: skip
_CLAUSES: Final = {
    "for each": "for_each", "where": "where", "select": "select", "after match": "after_match", "allow": "disorder",
    "in windows of": "windows", "limit": "limit", "once": "once",
}  # fmt: skip


def parse_pattern(text: str, filters: Mapping[str, Filter | str] | None = None) -> Pattern:
    """Return the pattern of a text; `filters` are names that the text need not define.

    >>> found = parse_pattern("a: [price > 5] b: [price < 1] a followed by b within 1 hour for each symbol")
    >>> print(found.text)
    a: [price > 5]
    b: [price < 1]
    core ([a] ; [b <= {b, T1}])_{T1=+1h}
    for each symbol
    """
    if not isinstance(text, str):
        raise TypeError(f"a pattern is parsed from a str, not from {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise FilterSyntaxError(text, MAX_TEXT, f"the pattern is longer than {MAX_TEXT} characters")
    known = {name: e.event(name, filter).filters[name] for name, filter in (filters or {}).items()}
    at = _definitions(text, known)
    clauses = _clauses(text, at)
    end = min((start for start, _ in clauses.values()), default=len(text))
    reader = _Reader(text, at, end, known)
    options: dict[str, Any] = {}
    for keyword, (start, body) in clauses.items():
        options[_CLAUSES[keyword]] = _option(text, keyword, start, body)
    expression = reader.whole()
    try:
        return pattern(expression, **options)
    except FilterSyntaxError as error:  # in a condition or a selection: the place in the whole text
        place = text.find(error.text, end)
        raise FilterSyntaxError(text, max(place, 0) + error.position, error.problem) from None
    except FilterTooComplex:
        raise
    except ValueError as error:
        raise FilterSyntaxError(text, at + len(text[at:]) - len(text[at:].lstrip()), str(error)) from None


def _definitions(text: str, known: dict[str, Filter]) -> int:
    """Read the definitions at the beginning of a text; return the place behind."""
    at = 0
    while (found := _DEFINITION.match(text, at)) is not None:
        name, dialect = found[1], (found[2] or "native").lower()
        if name.lower() in _KEYWORDS:
            raise FilterSyntaxError(text, found.start(1), f"{name!r} is a word of the language: choose another name")
        if name in known:
            raise FilterSyntaxError(text, found.start(1), f"the name {name} is defined twice")
        known[name], at = _filter(text, found.end(), dialect)
        if re.fullmatch(r"T\d+", name):
            raise FilterSyntaxError(text, found.start(1), f"{name} names a timer: choose another name")
    return at


def _filter(text: str, start: int, dialect: str = "native") -> tuple[Filter, int]:
    """Return the filter in brackets that begin at a place, and the place behind."""
    depth, at = 0, start
    for found in re.compile(r"'(?:[^']|'')*'|\"(?:\\.|[^\"])*\"|[\[\]]").finditer(text, start):
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        if not depth:
            at = found.end()
            break
    else:
        raise FilterSyntaxError(text, start, "the filter that starts here has no closing bracket")
    body = text[start + 1 : at - 1]
    try:
        return (e.event("a", body).filters["a"] if dialect == "native" else read(body, Dialect(dialect))), at
    except FilterSyntaxError as error:
        raise FilterSyntaxError(text, start + 1 + error.position, error.problem) from None
    except ValueError as error:
        raise FilterSyntaxError(text, start + 1, str(error)) from None


def _clauses(text: str, at: int) -> dict[str, tuple[int, str]]:
    """Return the clauses behind the expression: by keyword, place of the keyword and body."""
    marks = [found for found in _CLAUSE.finditer(text, at) if found[1]]
    clauses: dict[str, tuple[int, str]] = {}
    for place, found in enumerate(marks):
        keyword = " ".join(found[1].lower().split())
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        if keyword in clauses:
            raise FilterSyntaxError(text, found.start(1), f"there are two clauses {keyword!r}")
        clauses[keyword] = found.start(1), text[found.end(1) : end]
    return clauses


def _option(text: str, keyword: str, start: int, body: str) -> Any:
    """Return the value of a clause as `pattern` takes values."""

    def wrong(problem: str) -> NoReturn:
        raise FilterSyntaxError(text, start, problem)

    body = body.strip()
    match keyword:
        case "for each":
            keys = re.findall(r'\s*(?:([^\W\d][\w.]*)|"((?:[^"]|"")+)")\s*(?:,|and\s|$)', body, re.IGNORECASE)
            if not keys or re.sub(r'\s*(?:[^\W\d][\w.]*|"(?:[^"]|"")+")\s*(?:,|and\s|$)', "", body):
                wrong("for each names fields of events: for each card, merchant")
            return [plain or quoted.replace('""', '"') for plain, quoted in keys]
        case "select":
            return _selected(body, wrong)
        case "after match":
            return re.sub(r"\s+(event|row)\b", "", " ".join(body.split()))
        case "allow":
            found = re.fullmatch(rf"({PATTERN})\s+of\s+disorder", body, re.IGNORECASE)
            return found[1] if found else wrong("write: allow 5 seconds of disorder")
        case "in windows of":
            return body if re.fullmatch(PATTERN, body, re.IGNORECASE) else wrong("write: in windows of 10 minutes")
        case "limit":
            return int(body) if re.fullmatch(r"\d{1,9}", body) else wrong("write: limit 100")
        case "once":
            return True if not body else wrong(f"nothing is expected behind once, found {body[:20]!r}")
    return body or wrong("where needs a condition: where b.price > a.price")


def _selected(body: str, wrong: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    start = depth = 0
    quoted = ""
    parts = []
    for at, sign in enumerate(body):
        quoted = "" if sign == quoted else quoted or (sign if sign in "'\"" else "")
        depth += 0 if quoted else (sign == "(") - (sign == ")")
        if sign == "," and not depth and not quoted:
            parts.append(body[start:at])
            start = at + 1
    for part in (*parts, body[start:]):
        match = re.fullmatch(r"\s*(.+?)\s+as\s+([^\W\d]\w*)\s*", part, re.IGNORECASE | re.DOTALL)
        if match is not None and match[2] not in found:
            found[match[2]] = match[1]
        else:
            wrong(f"write: select count(a) as tries, sum(a.price) as total; not {part.strip()[:40]!r}")
    return found


class _Reader:
    """A recursive descent through the expression."""

    def __init__(self, text: str, start: int, end: int, known: Mapping[str, Filter]) -> None:
        self._text, self._at, self._end, self._known = text, start, end, known
        self._unnamed = 0
        self._depth = 0

    # Tokens

    def _look(self) -> re.Match[str] | None:
        found = _TOKEN.match(self._text, self._at, self._end)
        if found is None and self._text[self._at : self._end].strip():
            rest = self._text[self._at :]
            place = self._at + len(rest) - len(rest.lstrip())
            raise FilterSyntaxError(self._text, place, f"{self._text[place]!r} is not expected here")
        return found

    def _place(self) -> int:
        found = self._look()
        return len(self._text[: self._end].rstrip()) if found is None else found.start(found.lastgroup or 0)

    def _fail(self, wanted: str) -> NoReturn:
        found = self._look()
        shown = repr(found[found.lastgroup or 0]) if found is not None else "the end"
        raise FilterSyntaxError(self._text, self._place(), f"expected {wanted}, found {shown}")

    def _next(self, *words: str) -> bool:
        """Step over some words or a sign, if all come next."""
        at = self._at
        for word in words:
            found = self._look()
            if found is None or found[found.lastgroup or 0].lower() != word:
                self._at = at
                return False
            self._at = found.end()
        return True

    def _take(self, kind: str, wanted: str) -> str:
        found = self._look()
        if found is None or found.lastgroup != kind:
            self._fail(wanted)
        self._at = found.end()
        return found[kind]

    # Expressions

    def whole(self) -> Expression:
        """Return the expression up to the first clause."""
        if self._next("core"):
            return self._core()
        result = self._either()
        if self._look() is not None:
            self._fail("followed by, then, and, or, within, a clause or the end")
        return result

    def _core(self) -> Expression:
        body = self._text[self._at : self._end]
        try:
            tree = parse_core(body)
        except FilterSyntaxError as error:
            raise FilterSyntaxError(self._text, self._at + error.position, error.problem) from None
        names = {name for atom in atoms(tree) for name in (*atom.names, *atom.within)}
        timers = max([int(name[1:]) for name in names if re.fullmatch(r"T\d{1,6}", name)], default=0)
        return Expression(tree, {name: filter for name, filter in self._known.items() if name in names}, timers)

    def _either(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FilterTooComplex(f"the pattern is nested more than {MAX_DEPTH} levels deep")
        result = self._both()
        while self._next("or"):
            result |= self._both()
        self._depth -= 1
        return result

    def _both(self) -> Expression:
        result = self._sequence()
        while self._next("and"):
            result &= self._sequence()
        return result

    def _sequence(self) -> Expression:
        if self._next("not"):
            self._fail("an event before not: a followed by not b within 1 hour")
        result = self._step()
        if self._next("within"):
            result = result.within(self._duration())
        while True:
            if self._next("followed", "by"):
                result = self._following(result)
            elif self._next("then"):
                result = result.then(self._step())
            else:
                return result

    def _following(self, left: Expression) -> Expression:
        """Return the left with the step that follows, or with a step that must not follow."""
        forbidden: Expression | None = None
        while self._next("not"):
            other = self._step()
            if self._next("within"):
                left = left.not_followed_by(other, self._duration())
                forbidden = None
            else:
                forbidden = other if forbidden is None else forbidden | other
            if not self._next("followed", "by"):
                if forbidden is None:
                    return left
                self._fail("within and a duration behind not, or followed by and an event")
        step = self._step()
        within = self._duration() if self._next("within") else None
        return left.followed_by(step, within=within, without=forbidden)

    def _duration(self) -> str:
        return self._take("duration", "a duration such as 1 hour")

    def _number(self) -> int:
        found = _NUMBER.match(self._text, self._at, self._end)  # no token: `3 d` may be three events named d
        if found is None:
            self._fail("a number")
        self._at = found.end()
        return int(found[1])

    def _step(self) -> Expression:
        low, high, counted = 0, None, True
        if self._next("at", "least"):
            low = self._number()
        elif self._next("at", "most"):
            low, high = 0, self._number()
        elif self._next("exactly"):
            low = high = self._number()
        else:
            counted = False
        place = self._place()
        result = self._part()
        try:
            return result.repeated(low, high) if counted else self._quantified(result)
        except ValueError as error:
            raise FilterSyntaxError(self._text, place, str(error)) from None

    def _quantified(self, result: Expression) -> Expression:
        bounds: dict[str, tuple[int, int | None]] = {"+": (1, None), "*": (0, None), "?": (0, 1)}
        for sign, (low, high) in bounds.items():
            if self._next(sign):
                return result.repeated(low, high, greedy=not self._next("?"))
        if not self._next("{"):
            return result
        low = self._number()
        high = low
        if self._next(","):
            found = self._look()
            high = None if found is not None and found["sign"] == "}" else self._number()
        if not self._next("}"):
            self._fail("'}'")
        return result.repeated(low, high, greedy=not self._next("?"))

    def _part(self) -> Expression:
        place = self._place()
        if self._next("("):
            result = self._either()
            if not self._next(")"):
                self._fail("')'")
            return result
        if self._next("["):
            filter, self._at = _filter(self._text, self._at - 1)
            self._unnamed += 1
            return e.event(f"e{self._unnamed}", filter)
        if self._next("any", "of"):
            parts = self._list()
            return self._made(place, lambda: e.any_of(*parts))
        found = self._look()
        if found is not None and found.lastgroup == "number":
            count = self._number()
            if not self._next("of"):
                self._fail("of and a list: 2 of (a, b, c)")
            parts = self._list()
            return self._made(place, lambda: e.some_of(count, *parts))
        name = self._take("word", "an event")
        if name.lower() in _KEYWORDS:
            raise FilterSyntaxError(self._text, place, f"expected an event, found {name!r}")
        if name not in self._known:
            known = f"known are {', '.join(self._known)}" if self._known else f"define one: {name}: [price > 5]"
            raise FilterSyntaxError(self._text, place, f"no event is named {name}; {known}")
        return e.event(name, self._known[name])

    def _list(self) -> list[Expression]:
        if not self._next("("):
            self._fail("'(' and a list of events")
        parts = [self._either()]
        while self._next(","):
            parts.append(self._either())
        if not self._next(")"):
            self._fail("',' or ')'")
        return parts

    def _made(self, place: int, make: Any) -> Expression:
        try:
            made: Expression = make()
        except ValueError as error:
            raise FilterSyntaxError(self._text, place, str(error)) from None
        return made
