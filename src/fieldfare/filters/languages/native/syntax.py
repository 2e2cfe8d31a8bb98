"""The parser of the native language: from text to a tree of nodes with their spans."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, Final, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from fieldfare.events.values import Scalar, parse_timestamp
from fieldfare.filters.errors import FilterSyntaxError, syntax_error
from fieldfare.filters.languages.native.nodes import (
    And,
    Between,
    Call,
    Comparison,
    Constant,
    Exists,
    Has,
    In,
    Is,
    Name,
    Not,
    Operation,
    Or,
    Parameter,
    ParameterList,
    Path,
    Quantified,
    TextTest,
    Tree,
    check_depth,
)
from fieldfare.filters.literals import MAX_DIGITS

MYLOC: Final = "myloc"
"""name of the parameter that `IN myloc` stands for: the places that count as here"""
MAX_TEXT: Final = 1 << 20
"""characters of the text of a filter"""


_STRING: Final = r"'(?:[^']|'')*'"
_VALUE: Final = re.compile(rf"{_STRING}|[\d.eE+-]+")
_PLAIN: Final = re.compile(
    rf"""(?: \s* AND (?![\w.]) \s* )?
    (?P<name> [\w.]+ ) \s*
    (?: (?P<op> [=!<>]+ ) \s* (?P<value> {_VALUE.pattern} )
    | BETWEEN \s+ (?P<low> \S+ ) \s+ AND \s+ (?P<high> {_VALUE.pattern} )
    | IN \s* \( (?P<items> (?: [^')] | {_STRING} )* ) \)
    | (?P<test> \w+ ) (?: \s+ WITH )? \s* (?P<text> {_STRING} ) )""",
    re.VERBOSE | re.IGNORECASE,
)
"""the next predicate of a PLAIN or SIMPLE token: the grammar has checked the token, the expression only splits it"""

TERMINALS: Final = {
    "SIMPLE": "a condition", "NAME": "a field", "QUOTED": "a field", "NUMBER": "a value",
    "STRING": "a value", "PLACEHOLDER": "a value", "PARAMETER": "a value", "MYLOC": "myloc",
    "TIMESTAMP": "a value", "BYTES": "a value", "CONSTANT": "a value", "FUNCTION": "a function",
    "COMPARE": "a comparison", "TEXT_OPERATOR": "LIKE", "IS": "IS",
    "_IN": "IN", "_BETWEEN": "BETWEEN", "_AND": "AND", "_OR": "OR", "NOT": "NOT", "EXISTS": "EXISTS", "HAS": "HAS",
    "QUANTIFIER": "ANY or ALL", "PLUS": "an operator", "MINUS": "an operator", "TIMES": "an operator", "LPAR": "'('",
    "RPAR": "')'", "COMMA": "','", "TYPE": "NULL or a type", "$END": "the end",
}  # fmt: skip


def _number(text: str) -> int | float:
    digits = text.removeprefix("-")
    return int(text) if digits.isdigit() and len(digits) <= MAX_DIGITS else float(text)


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def _predicate(found: re.Match[str], offset: int) -> Tree:
    """Return the node of a predicate in a PLAIN token that begins at the offset."""

    def constant(text: str, start: int) -> Constant:
        value: Scalar = _unquoted(text) if text[0] == "'" else _number(text)
        return Constant(offset + start, offset + start + len(text), value)

    name, op, value, low, high, items, test, text = found.groups()
    start, end = offset + found.start(1), offset + found.end()
    field = Name(start, start + len(name), name)
    if op:
        return Comparison(start, end, op, field, constant(value, found.start(3)))
    if low:
        return Between(start, end, field, constant(low, found.start(4)), constant(high, found.start(5)), False)
    if test:
        return TextTest(start, end, test.upper(), field, constant(text, found.start(8)), False)
    listed: list[Tree] = [constant(item[0], found.start(6) + item.start()) for item in _VALUE.finditer(items)]
    return In(start, end, field, listed, False)


@v_args(inline=True)
class _Builder(Transformer[Token, Tree]):
    """The builder of nodes, called by the parser at each reduction."""

    def start(self, tree: Tree) -> Tree:
        return tree

    def plain(self, token: Token) -> Tree:
        start = cast(int, token.start_pos)
        parts = [_predicate(found, start) for found in _PLAIN.finditer(token)]
        return parts[0] if len(parts) == 1 else And(parts[0].start, parts[-1].end, parts)

    def number(self, token: Token) -> Tree:
        return Constant(*_span(token), _number(token))

    def string(self, token: Token) -> Tree:
        return Constant(*_span(token), _unquoted(token))

    def field(self, token: Token) -> Tree:
        return Name(*_span(token), str(token))

    def quoted(self, token: Token) -> Tree:
        return Name(*_span(token), _unquoted(token))

    def placeholder(self, token: Token) -> Tree:
        return Name(*_span(token), _unquoted(token[1:]) if token[1] == '"' else str(token[1:]))

    def parameter(self, token: Token) -> Tree:
        return Parameter(*_span(token), str(token[1:]))

    def timestamp(self, token: Token) -> Tree:
        try:
            return Constant(*_span(token), parse_timestamp(token[token.index("'") + 1 : -1]))
        except ValueError as error:
            raise _Bad(token, str(error)) from None

    def bytes_(self, token: Token) -> Tree:
        try:
            return Constant(*_span(token), bytes.fromhex(token[2:-1]))
        except ValueError:
            raise _Bad(token, "bytes are written as pairs of hexadecimal digits, such as X'00ff'") from None

    def constant(self, token: Token) -> Tree:
        values: dict[str, Scalar] = {"TRUE": True, "FALSE": False, "NULL": None, "INFINITY": float("inf")}
        return Constant(*_span(token), values[token.upper()])

    def negative(self, sign: Token, operand: Tree) -> Tree:
        start = cast(int, sign.start_pos)
        if isinstance(operand, Constant) and isinstance(operand.value, (int, float)) and operand.value is not True:
            return Constant(start, operand.end, -operand.value)
        return Operation(start, operand.end, "-", Constant(start, start, 0), operand)

    def arithmetic(self, left: Tree, op: Token, right: Tree) -> Tree:
        return Operation(left.start, right.end, str(op), left, right)

    def call(self, function: Token, *rest: Tree | Token | None) -> Tree:
        *arguments, close = rest
        given = [cast(Tree, argument) for argument in arguments if argument is not None]
        start, end = cast(int, function.start_pos), _end(close)
        if function.upper() != "PATH":
            return Call(start, end, str(function), given)
        if len(given) not in (1, 2):
            raise _Bad(function, "PATH takes a selector and a condition, such as PATH('//item/cpu', clock >= 700)")
        return Path(start, end, given[0], given[1] if len(given) > 1 else None)

    def has(self, path: Token, _has: Token, condition: Tree, close: Token) -> Tree:
        named = _unquoted(path) if path[0] == '"' else str(path)
        return Has(cast(int, path.start_pos), _end(close), named, condition)

    def group(self, _open: Token, inner: Tree, _close: Token) -> Tree:
        return inner

    def comparison(self, left: Tree, op: Token, right: Tree) -> Tree:
        return Comparison(left.start, right.end, str(op), left, right)

    def between(self, operand: Tree, negation: Token | None, low: Tree, high: Tree) -> Tree:
        return Between(operand.start, high.end, operand, low, high, negation is not None)

    def in_(self, operand: Tree, negation: Token | None, *rest: Tree | Token) -> Tree:
        *items, close = rest
        return In(operand.start, _end(close), operand, [cast(Tree, item) for item in items], negation is not None)

    def in_parameter(self, operand: Tree, negation: Token | None, given: Token) -> Tree:
        name = str(given[1:]) if given[0] == ":" else MYLOC
        listed = ParameterList(*_span(given), name)
        return In(operand.start, listed.end, operand, [listed], negation is not None)

    def text_test(self, operand: Tree, negation: Token | None, op: Token, text: Tree) -> Tree:
        return TextTest(operand.start, text.end, op.upper().split()[0], operand, text, negation is not None)

    def is_(self, operand: Tree, _is: Token, negation: Token | None, word: Token) -> Tree:
        return Is(operand.start, cast(int, word.end_pos), operand, word.upper(), negation is not None)

    def exists(self, word: Token, operand: Tree) -> Tree:
        return Exists(cast(int, word.start_pos), operand.end, operand)

    def quantified(self, word: Token, condition: Tree) -> Tree:
        return Quantified(cast(int, word.start_pos), condition.end, word.upper(), condition)

    def not_(self, word: Token, condition: Tree) -> Tree:
        return Not(cast(int, word.start_pos), condition.end, condition)

    def and_(self, *parts: Tree) -> Tree:
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else [part])]
        return And(parts[0].start, parts[-1].end, flat)

    def or_(self, *parts: Tree) -> Tree:
        return Or(parts[0].start, parts[-1].end, list(parts))


class _Bad(Exception):
    """A token of the right form without a meaning."""

    def __init__(self, token: Token, problem: str) -> None:
        super().__init__(problem)
        self.position = cast(int, token.start_pos)
        self.problem = problem


def _span(token: Token) -> tuple[int, int]:
    return cast(int, token.start_pos), cast(int, token.end_pos)


def _end(token: Any) -> int:
    return cast(int, token.end_pos)


@cache
def _parser() -> Lark:
    grammar = resources.files(__package__).joinpath("native.lark").read_text()
    return Lark(grammar, parser="lalr", transformer=_Builder(), maybe_placeholders=True)


def parse_tree(text: str) -> Tree:
    """Return the tree of the text of a filter, or raise a `FilterSyntaxError`."""
    if len(text) > MAX_TEXT:
        raise FilterSyntaxError(text, MAX_TEXT, f"the filter is longer than {MAX_TEXT} characters")
    try:
        tree = cast(Tree, _parser().parse(text))
    except UnexpectedInput as error:
        raise syntax_error(text, error, TERMINALS) from None
    except _Bad as error:
        raise FilterSyntaxError(text, error.position, error.problem) from None
    except VisitError as error:  # an exception of a callback, wrapped by lark
        raise FilterSyntaxError(text, getattr(error.orig_exc, "position", 0), str(error.orig_exc)) from None
    check_depth(tree, text)
    return tree
