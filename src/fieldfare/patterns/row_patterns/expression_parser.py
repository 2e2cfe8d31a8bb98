"""The parser of expressions in MEASURES and DEFINE: a subset of SQL, with the functions of row patterns.

Operators from the tightest: `* / %`, `+ - ||`, comparisons with BETWEEN, IN, LIKE and IS, NOT, AND, OR.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

from fieldfare.patterns.row_patterns.functions import FUNCTIONS, type_named
from fieldfare.patterns.row_patterns.syntax import (
    AGGREGATES,
    FIRST,
    LAST,
    NEXT,
    PREV,
    Aggregate,
    Call,
    Classifier,
    Column,
    Expression,
    Literal,
    MatchNumber,
    Navigation,
)
from fieldfare.patterns.row_patterns.tokens import Token, Tokens, variable

MAX_DEPTH: Final = 50
"""levels of parentheses, functions and operators before an operand"""
_COMPARISONS: Final = {"=": "equal", "<>": "not_equal", "!=": "not_equal", "<": "less", "<=": "less_equal",
                       ">": "greater", ">=": "greater_equal"}  # fmt: skip
_UNITS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400}
_RESERVED: Final = frozenset(
    {
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "IN",
        "LIKE",
        "IS",
        "AS",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "SELECT",
        "EXISTS",
        "DISTINCT",
        "ORDER",
        "PARTITION",
        "MEASURES",
        "PATTERN",
        "DEFINE",
        "SUBSET",
        "AFTER",
    }
)


class ExpressionParser:
    """A recursive descent over tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._depth = 0

    def parse(self) -> Expression:
        """Read as far as operators bind operands together."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._tokens.fail(f"the expression is nested deeper than {MAX_DEPTH} levels")
        found = self._joined("OR", "or", lambda: self._joined("AND", "and", self._negated))
        self._depth -= 1
        return found

    def _joined(self, word: str, function: str, operand: object) -> Expression:
        left: Expression = operand()  # type: ignore[operator]
        while self._tokens.comes(word):
            at = self._tokens.take().at
            left = Call(function, (left, operand()), at)  # type: ignore[operator]
        return left

    def _negated(self) -> Expression:
        nots = []
        while self._tokens.comes("NOT"):
            nots.append(self._tokens.take().at)
        found = self._compared()
        for at in reversed(nots):
            found = Call("not", (found,), at)
        return found

    def _compared(self) -> Expression:
        left = self._sum()
        while True:
            tokens, at = self._tokens, self._tokens.now.at
            if tokens.now.kind == "sign" and tokens.now.word in _COMPARISONS:
                left = Call(_COMPARISONS[tokens.take().word], (left, self._sum()), at)
            elif tokens.accept("IS"):
                left = self._is(left, at)
            elif tokens.now.word in {"BETWEEN", "IN", "LIKE"} or (
                tokens.comes("NOT") and tokens.ahead().word in {"BETWEEN", "IN", "LIKE"}
            ):
                negated = tokens.accept("NOT")
                found = self._tested(left, at)
                left = Call("not", (found,), at) if negated else found
            else:
                return left

    def _tested(self, left: Expression, at: int) -> Expression:
        tokens = self._tokens
        if tokens.accept("BETWEEN"):
            low = self._sum()
            tokens.expect("AND")
            return Call(
                "and", (Call("greater_equal", (left, low), at), Call("less_equal", (left, self._sum()), at)), at
            )
        if tokens.accept("LIKE"):
            return Call("like", (left, self._sum()), at)
        tokens.expect("IN")
        tokens.expect("(")
        self._refuse_query()
        items = self._list()
        found: Expression = Call("equal", (left, items[0]), at)
        for item in items[1:]:
            found = Call("or", (found, Call("equal", (left, item), at)), at)
        return found

    def _is(self, left: Expression, at: int) -> Expression:
        tokens = self._tokens
        negated = tokens.accept("NOT")
        if tokens.accept("NULL"):
            found = Call("is_null", (left,), at)
        elif tokens.accept("DISTINCT", "FROM"):
            found = Call("distinct", (left, self._sum()), at)
        elif tokens.comes("TRUE") or tokens.comes("FALSE"):
            wanted = Literal(pa.scalar(tokens.take().word == "TRUE"))
            found = Call("not", (Call("distinct", (left, wanted), at),), at)
        else:
            tokens.fail(f"expected NULL, TRUE, FALSE or DISTINCT FROM, found {tokens.found}")
        return Call("not", (found,), at) if negated else found

    def _sum(self) -> Expression:
        left = self._product()
        while self._tokens.now.word in {"+", "-", "||"}:
            token = self._tokens.take()
            function = {"+": "add", "-": "subtract", "||": "concat"}[token.word]
            left = Call(function, (left, self._product()), token.at)
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while self._tokens.now.word in {"*", "/", "%"}:
            token = self._tokens.take()
            function = {"*": "multiply", "/": "divide", "%": "modulo"}[token.word]
            left = Call(function, (left, self._signed()), token.at)
        return left

    def _signed(self) -> Expression:
        minus = None
        while self._tokens.now.word in {"+", "-"}:
            token = self._tokens.take()
            if token.word == "-":
                minus = token.at if minus is None else None
        found = self._primary()
        return found if minus is None else Call("negate", (found,), minus)

    def _primary(self) -> Expression:
        tokens, token = self._tokens, self._tokens.now
        if token.kind == "number":
            return _number(tokens, tokens.take())
        if token.kind == "string":
            return Literal(pa.scalar(tokens.take().text), token.at)
        if tokens.accept("("):
            self._refuse_query()
            found = self.parse()
            tokens.expect(")")
            return found
        if token.kind == "name":
            special = self._special(token)
            if special is not None:
                return special
        if token.kind == "name" and token.word in _RESERVED:
            tokens.fail(f"expected a value, found {tokens.found}")
        name = tokens.name("a value")
        if tokens.comes("(") and name.kind == "name":
            return self._call(name)
        if tokens.accept("."):
            if tokens.comes("*"):
                tokens.fail(f"{name.text}.* may stand in count() only", name.at)
            column = tokens.name("a column")
            return Column(column.text, variable(name), name.at, column.kind == "quoted")
        return Column(name.text, None, name.at, name.kind == "quoted")

    def _special(self, token: Token) -> Expression | None:
        """Read a literal with a name, CASE, CAST or a function with a prefix, if one comes."""
        tokens, after = self._tokens, self._tokens.ahead()
        if token.word in {"TRUE", "FALSE", "NULL"} and after.word not in {"(", "."}:
            tokens.take()
            return Literal(pa.scalar({"TRUE": True, "FALSE": False}.get(token.word)), token.at)
        if token.word in {"DATE", "TIMESTAMP"} and after.kind == "string":
            return self._time()
        if token.word == "INTERVAL" and after.kind in {"string", "number"}:
            return self._interval()
        if token.word in {"RUNNING", "FINAL"} and after.kind == "name":
            tokens.take()
            name = tokens.take()
            if not tokens.comes("(") or (name.word not in {FIRST, LAST} and name.text.lower() not in AGGREGATES):
                tokens.fail(f"{token.word} stands before FIRST, LAST and aggregates only", token.at)
            return self._call(name, token.word)
        if token.word == "CASE":
            return self._case()
        if token.word == "CAST" and after.word == "(":
            tokens.take()
            tokens.take()
            value = self.parse()
            tokens.expect("AS")
            kind = type_named(tokens)
            tokens.expect(")")
            return Call("cast", (value,), token.at, kind)
        if token.word == "EXISTS" and after.word == "(":
            tokens.fail("subqueries are not supported")
        return None

    def _refuse_query(self) -> None:
        if self._tokens.now.word in {"SELECT", "WITH", "VALUES"} and self._tokens.ahead().word not in {")", ".", ","}:
            self._tokens.fail("subqueries are not supported")

    def _call(self, name: Token, semantics: str = "") -> Expression:
        tokens = self._tokens
        tokens.expect("(")
        if name.word in {FIRST, LAST, PREV, NEXT}:
            return self._navigation(name, semantics)
        if name.text.lower() in AGGREGATES:
            return self._aggregate(name, semantics)
        if name.word == "CLASSIFIER":
            of = None if tokens.comes(")") else variable(tokens.name("a pattern variable"))
            tokens.expect(")")
            return Classifier(of, name.at)
        if name.word == "MATCH_NUMBER":
            tokens.expect(")")
            return MatchNumber(name.at)
        function = name.text.lower()
        if function not in FUNCTIONS:
            tokens.fail(f"the function {name.text}() is not supported", name.at)
        arguments = () if tokens.accept(")") else tuple(self._list())
        low, high = FUNCTIONS[function]
        if not low <= len(arguments) <= high:
            wanted = f"{low}" if low == high else f"{low} to {high}" if high < 99 else f"at least {low}"
            tokens.fail(f"{function}() takes {wanted} arguments, not {len(arguments)}", name.at)
        return Call(function, arguments, name.at)

    def _list(self) -> list[Expression]:
        items = [self.parse()]
        while self._tokens.accept(","):
            items.append(self.parse())
        self._tokens.expect(")")
        return items

    def _navigation(self, name: Token, semantics: str) -> Expression:
        tokens = self._tokens
        argument = self.parse()
        offset = 1 if name.word in {PREV, NEXT} else 0
        if tokens.accept(","):
            offset = tokens.integer("a number of rows")
        tokens.expect(")")
        return Navigation(name.word, argument, offset, semantics, name.at)

    def _aggregate(self, name: Token, semantics: str) -> Expression:
        tokens, function = self._tokens, name.text.lower()
        if tokens.comes("DISTINCT"):
            tokens.fail(f"{function}(DISTINCT ...) is not supported in row patterns")
        if function == "count":
            if tokens.accept(")") or tokens.accept("*", ")"):
                return Aggregate(function, None, None, semantics, name.at)
            if tokens.ahead().word == "." and tokens.ahead(2).word == "*" and tokens.ahead(3).word == ")":
                of = variable(tokens.name("a pattern variable"))
                tokens.expect(".", "*", ")")
                return Aggregate(function, None, of, semantics, name.at)
        argument = self.parse()
        tokens.expect(")")
        return Aggregate(function, argument, None, semantics, name.at)

    def _case(self) -> Expression:
        tokens = self._tokens
        at = tokens.expect("CASE").at
        subject = None if tokens.comes("WHEN") else self.parse()
        parts: list[Expression] = []
        while tokens.accept("WHEN"):
            condition = self.parse()
            parts.append(condition if subject is None else Call("equal", (subject, condition), at))
            tokens.expect("THEN")
            parts.append(self.parse())
        if not parts:
            tokens.expect("WHEN")
        parts.append(self.parse() if tokens.accept("ELSE") else Literal(pa.scalar(None), at))
        tokens.expect("END")
        return Call("case", tuple(parts), at)

    def _time(self) -> Expression:
        kind, written = self._tokens.take(), self._tokens.take()
        try:
            if kind.word == "DATE":
                return Literal(pa.scalar(datetime.date.fromisoformat(written.text)), kind.at)
            moment = datetime.datetime.fromisoformat(written.text)
        except ValueError:
            self._tokens.fail(f"{written.text!r} is no {kind.word.lower()}", written.at)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return Literal(pa.scalar(moment, pa.timestamp("us")), kind.at)

    def _interval(self) -> Expression:
        at = self._tokens.take().at
        count = self._tokens.take()
        unit = self._tokens.name("a unit of time, such as MINUTE")
        seconds = _UNITS.get(unit.word) or _UNITS.get(unit.word.removesuffix("S"))
        if seconds is None:
            self._tokens.fail(f"the unit {unit.text} is not supported: write {', '.join(_UNITS)}", unit.at)
        try:
            micros = int(Decimal(count.text) * seconds * 1_000_000)
        except ArithmeticError:
            self._tokens.fail(f"{count.text!r} is no number", count.at)
        return Literal(pa.scalar(micros, pa.duration("us")), at)


def _number(tokens: Tokens, token: Token) -> Expression:
    if token.text.isdigit():
        if int(token.text) >= 1 << 63:
            tokens.fail("the number is beyond 64 bits", token.at)
        return Literal(pa.scalar(int(token.text), pa.int64()), token.at)
    return Literal(pa.scalar(float(token.text), pa.float64()), token.at)
