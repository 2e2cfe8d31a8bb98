"""The syntax of the native language: text to a small tree that remembers where everything stood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError

from fieldfare.events.values import Scalar, parse_timestamp
from fieldfare.filters.errors import FilterSyntaxError, syntax_error
from fieldfare.filters.literals import MAX_DIGITS

MAX_TEXT: Final = 1 << 20
"""characters in a filter"""
MAX_DEPTH: Final = 100
"""levels of nodes in a tree; whatever walks one can therefore recurse"""


@dataclass(slots=True)
class Node:
    """A piece of a filter's text, from `start` to `end`."""

    start: int
    end: int


@dataclass(slots=True)
class Constant(Node):
    """A literal value."""

    value: Scalar


@dataclass(slots=True)
class Name(Node):
    """A field."""

    path: str


@dataclass(slots=True)
class Parameter(Node):
    """A value given when the filter is parsed."""

    name: str


@dataclass(slots=True)
class Operation(Node):
    """`left op right`, arithmetic."""

    op: str
    left: Tree
    right: Tree


@dataclass(slots=True)
class Call(Node):
    """`function(arguments)`."""

    function: str
    arguments: list[Tree]


@dataclass(slots=True)
class Has(Node):
    """`path HAS (condition)`: an element of the list, or the object, satisfies the condition."""

    path: str
    condition: Tree


@dataclass(slots=True)
class Path(Node):
    """`PATH(selector, condition)`: an element that is selected satisfies the condition, if there is one."""

    selector: Tree
    condition: Tree | None


@dataclass(slots=True)
class Comparison(Node):
    """`left op right`."""

    op: str
    left: Tree
    right: Tree


@dataclass(slots=True)
class Between(Node):
    """`operand BETWEEN low AND high`."""

    operand: Tree
    low: Tree
    high: Tree
    negated: bool


@dataclass(slots=True)
class In(Node):
    """`operand IN (items)`."""

    operand: Tree
    items: list[Tree]
    negated: bool


@dataclass(slots=True)
class TextTest(Node):
    """`operand LIKE text` and its relatives."""

    op: str
    operand: Tree
    text: Tree
    negated: bool


@dataclass(slots=True)
class Is(Node):
    """`operand IS type`."""

    operand: Tree
    type: str
    negated: bool


@dataclass(slots=True)
class Exists(Node):
    """`EXISTS operand`."""

    operand: Tree


@dataclass(slots=True)
class Quantified(Node):
    """`ANY condition` or `ALL condition`, about the elements of one field."""

    quantifier: str
    condition: Tree


@dataclass(slots=True)
class Not(Node):
    """`NOT condition`."""

    condition: Tree


@dataclass(slots=True)
class And(Node):
    """All of several conditions."""

    parts: list[Tree]


@dataclass(slots=True)
class Or(Node):
    """One of several conditions."""

    parts: list[Tree]


Tree: TypeAlias = (
    Constant | Name | Parameter | Operation | Call | Has | Path | Comparison | Between | In | TextTest | Is | Exists
    | Quantified | Not | And | Or
)  # fmt: skip

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
"""the next predicate of a PLAIN or SIMPLE token: the grammar has checked it, this only takes it apart"""

TERMINALS: Final = {
    "SIMPLE": "a condition", "NAME": "a field", "QUOTED": "a field", "NUMBER": "a value",
    "STRING": "a value", "PLACEHOLDER": "a value", "PARAMETER": "a value", "TIMESTAMP": "a value", "BYTES": "a value",
    "CONSTANT": "a value", "FUNCTION": "a function", "COMPARE": "a comparison", "TEXT_OPERATOR": "LIKE", "IS": "IS",
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
    """A predicate of the terminal PLAIN, which begins at the offset."""

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
    """Makes the tree while the parser reduces."""

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
    """A token that reads well but means nothing."""

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
    """The tree of a filter's text, or a `FilterSyntaxError`."""
    if len(text) > MAX_TEXT:
        raise FilterSyntaxError(text, MAX_TEXT, f"the filter is longer than {MAX_TEXT} characters")
    try:
        tree = cast(Tree, _parser().parse(text))
    except UnexpectedInput as error:
        raise syntax_error(text, error, TERMINALS) from None
    except _Bad as error:
        raise FilterSyntaxError(text, error.position, error.problem) from None
    except VisitError as error:  # what a callback raised, wrapped by lark
        raise FilterSyntaxError(text, getattr(error.orig_exc, "position", 0), str(error.orig_exc)) from None
    _check_depth(tree, text)
    return tree


def _check_depth(tree: Tree, text: str) -> None:
    level, nodes = 1, [tree]
    while nodes:
        if level > MAX_DEPTH:
            raise FilterSyntaxError(text, nodes[0].start, f"nested more than {MAX_DEPTH} levels deep")
        level, nodes = level + 1, [child for node in nodes for child in _children(node)]


def _children(tree: Tree) -> Sequence[Tree]:
    match tree:
        case Constant() | Name() | Parameter():
            return ()
        case Comparison() | Operation():
            return (tree.left, tree.right)
        case And() | Or():
            return tree.parts
        case Not() | Quantified() | Has():
            return (tree.condition,)
        case Path():
            return (tree.selector,) if tree.condition is None else (tree.selector, tree.condition)
        case Between():
            return (tree.operand, tree.low, tree.high)
        case In():
            return (tree.operand, *tree.items)
        case TextTest():
            return (tree.operand, tree.text)
        case Is() | Exists():
            return (tree.operand,)
        case Call():
            return tree.arguments
