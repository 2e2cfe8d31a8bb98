"""CloudEvents SQL as a tree: `parse` reads a text, `to_text` writes a text.

The tree is the meaning of a CESQL 1.0 text without the spelling: attribute names are in lower case, function names in
upper case, `<>` is `!=`, parentheses are gone, and `a AND b AND c` is a `Logic` of three operands. Every node knows its
span of the source, which does not count when two trees are compared.

Where the published texts leave a choice:

- AND, OR and XOR have the same precedence and are read from left to right, as section 3.6 of the specification says: `a
  OR b AND c` is `(a OR b) AND c`. (The ANTLR grammar of the specification reads right to left.) NOT binds tighter than
  all else: `NOT x LIKE 'a'` is `(NOT x) LIKE 'a'`.
- In a string, a backslash escapes only the delimiter; before any other character a backslash stands for itself. A
  backslash always takes the next character along, so no string can end in an odd number of backslashes.
- Keywords are reserved: an attribute named `in` cannot be addressed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from importlib import resources
from typing import Final, TypeAlias, cast
from typing import Literal as OneOf

from lark import Lark, Token, Transformer_NonRecursive, v_args
from lark.exceptions import UnexpectedInput, VisitError
from lark.tree import Meta

from fieldfare.filters.errors import FilterSyntaxError, syntax_error
from fieldfare.filters.patterns import MANY, ONE, Pattern, pattern

Value: TypeAlias = bool | int | str
LogicOp: TypeAlias = OneOf["AND", "OR", "XOR"]
CompareOp: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]
MathOp: TypeAlias = OneOf["+", "-", "*", "/", "%"]

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
MAX_DEPTH: Final = 64
"""levels of nodes in a tree; a walk over a tree may therefore recurse"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The span of a node in the source, without parentheses around the node."""

    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant: a bool, a 32-bit integer or a string."""

    value: Value

    def __eq__(self, other: object) -> bool:  # Python calls True == 1
        return isinstance(other, Literal) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """The value of an attribute of the event; the name is in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """A test of presence, `EXISTS name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The negation of an operand, `NOT operand`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """`-operand`; a signed number is a `Literal`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """Two or more operands joined by the same operator, evaluated from left to right."""

    op: LogicOp
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A comparison or a calculation with two operands."""

    op: CompareOp | MathOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Like(Node):
    """`operand [NOT] LIKE pattern`; see `like_pattern` for the meaning of the pattern."""

    operand: Expr
    pattern: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Node):
    """`operand [NOT] IN (items)`, with at least one item."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(args)`; the name is in upper case, and the function need not exist."""

    function: str
    args: tuple[Expr, ...]


Expr: TypeAlias = Literal | Attribute | Exists | Not | Negate | Logic | Binary | Like | In | Call


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of a node, from left to right."""
    match expr:
        case Literal() | Attribute() | Exists():
            return ()
        case Not() | Negate() | Like():
            return (expr.operand,)
        case Binary():
            return expr.left, expr.right
        case Logic():
            return expr.operands
        case In():
            return expr.operand, *expr.items
        case Call():
            return expr.args


def parse(text: str, most: int = MAX_DEPTH) -> Expr:
    """Return the tree of a CESQL text of at most `most` levels, or raise a `FilterSyntaxError` with the place.

    >>> parse("Hop < 3")
    Binary(op='<', left=Attribute(name='hop'), right=Literal(value=3))
    """
    try:
        expr = _Build(text).transform(_grammar().parse(text))
    except UnexpectedInput as unexpected:
        raise syntax_error(text, unexpected, _NAMES) from None
    except VisitError as error:
        raise error.orig_exc from None
    _check_depth(expr, text, most)
    return expr


_NAMES: Final = {
    **dict.fromkeys(("INTEGER", "STRING", "TRUE", "FALSE", "NAME", "FUNCTION", "_EXISTS"), "a value"),
    **dict.fromkeys(("COMPARE", "ADD", "MULTIPLY", "LIKE", "IN", "_AND", "_OR", "_XOR"), "an operator"),
    "IDENTIFIER": "the name of an attribute",
    "PATTERN": "a pattern in quotes",
    "_LIST": "a list in parentheses",
    "COMMA": "','",
    "RPAR": "')'",
    "$END": "the end",
}


@functools.cache
def _grammar() -> Lark:
    grammar = resources.files(__package__).joinpath("cesql.lark").read_text("utf-8")
    # ASCII, or the Kelvin sign would be a letter k.
    return Lark(grammar, parser="lalr", propagate_positions=True, g_regex_flags=re.ASCII)


_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,10})")


def read_integer(text: str) -> int | None:
    """Return the 32-bit integer of a decimal text, or None."""
    match = _NUMBER.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and INT32_MIN <= number <= INT32_MAX else None


@v_args(meta=True)
class _Build(Transformer_NonRecursive[Token, Expr]):
    """The builder of nodes from trees of lark, a method for each rule; not recursive, as `_check_depth` runs later."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def integer(self, meta: Meta, parts: list[Token]) -> Expr:
        value = read_integer(parts[0])
        if value is None:
            raise FilterSyntaxError(self.text, meta.start_pos, "the number does not fit in 32 bits")
        return Literal(value, **_span(meta))

    def string(self, meta: Meta, parts: list[Token]) -> Expr:
        return Literal(_unquote(parts[0]), **_span(meta))

    def true(self, meta: Meta, _: list[Token]) -> Expr:
        return Literal(True, **_span(meta))

    def false(self, meta: Meta, _: list[Token]) -> Expr:
        return Literal(False, **_span(meta))

    def attribute(self, meta: Meta, parts: list[Token]) -> Expr:
        return Attribute(parts[0].lower(), **_span(meta))

    def exists(self, meta: Meta, parts: list[Token]) -> Expr:
        return Exists(parts[0].lower(), **_span(meta))

    def not_(self, meta: Meta, parts: list[Expr]) -> Expr:
        return Not(parts[0], **_span(meta))

    def negate(self, meta: Meta, parts: list[Expr]) -> Expr:
        return Negate(parts[0], **_span(meta))

    def conjunction(self, meta: Meta, parts: list[Expr]) -> Expr:
        return Logic("AND", tuple(parts), **_span(meta))

    def disjunction(self, meta: Meta, parts: list[Expr]) -> Expr:
        return Logic("OR", tuple(parts), **_span(meta))

    def exclusion(self, meta: Meta, parts: list[Expr]) -> Expr:
        return Logic("XOR", tuple(parts), **_span(meta))

    def binary(self, meta: Meta, parts: tuple[Expr, Token, Expr]) -> Expr:
        left, op, right = parts
        return Binary(cast("CompareOp | MathOp", "!=" if op == "<>" else str(op)), left, right, **_span(meta))

    def like(self, meta: Meta, parts: tuple[Expr, Token, Token]) -> Expr:
        operand, keyword, pattern = parts
        return Like(operand, _unquote(pattern), _negated(keyword), **_span(meta))

    def in_(self, meta: Meta, parts: list[Expr | Token]) -> Expr:
        operand, keyword, *items = parts
        return In(
            cast(Expr, operand),
            cast("tuple[Expr, ...]", tuple(items)),
            _negated(cast(Token, keyword)),
            **_span(meta),
        )

    def call(self, meta: Meta, parts: list[Expr | Token]) -> Expr:
        name, *args = parts
        return Call(cast(Token, name).upper(), cast("tuple[Expr, ...]", tuple(args)), **_span(meta))


def _span(meta: Meta) -> dict[str, int]:
    return {"start": meta.start_pos, "end": meta.end_pos}


def _negated(keyword: Token) -> bool:
    return keyword[0] in "nN"


def _check_depth(expr: Expr, text: str, most: int) -> None:
    level, nodes = 1, [expr]
    while nodes:
        if level > most:
            raise FilterSyntaxError(text, nodes[0].start, f"nested more than {most} levels deep")
        level, nodes = level + 1, [child for node in nodes for child in children(node)]


def _unquote(quoted: str) -> str:
    quote = quoted[0]
    return re.sub(r"\\(.)", lambda pair: quote if pair[1] == quote else pair[0], quoted[1:-1], flags=re.DOTALL)


def _quote(value: str) -> str:
    for quote in "'", '"':
        body = value.replace(quote, "\\" + quote)
        if re.fullmatch(
            rf"([^{quote}\\]|\\.)*+", body, re.DOTALL
        ):  # fails where a backslash of the value is in the way
            return quote + body + quote
    raise ValueError(f"CESQL has no way to write the string {value!r}")


@functools.lru_cache(maxsize=4096)
def like_pattern(text: str) -> Pattern:
    r"""Return the pattern of a LIKE text: `\%` and `\_` are plain characters, any other backslash stands for itself.

    >>> like_pattern(r"100\%_of%").matches("100% of 7")
    True
    """
    tokens = re.findall(r"\\[%_]|.", text, re.DOTALL)
    return pattern(*(_WILD.get(token, token[-1]) for token in tokens))


_WILD: Final = {"%": MANY, "_": ONE}


def to_text(expr: Expr) -> str:
    """Return the CESQL text of a tree, with as few parentheses as possible: `parse(to_text(tree)) == tree`.

    >>> to_text(parse("((a + 1)*2) <> B or (not(exists c))"))
    '(a + 1) * 2 != b OR NOT EXISTS c'
    """
    match expr:
        case Literal(value):
            return _quote(value) if isinstance(value, str) else str(value).upper()
        case Attribute(name):
            return name
        case Exists(name):
            return f"EXISTS {name}"
        case Not(operand):
            return f"NOT {_within(operand, _PREFIXED)}"
        case Negate(operand):
            inner = _within(operand, _PREFIXED)
            return f"- {inner}" if inner[0].isdigit() else f"-{inner}"  # "-1" would be a literal
        case Logic(op, (first, *rest)):
            # What comes first may be a run of another operator, since all are read from left to right.
            runs = isinstance(first, Logic) and first.op != op
            texts = [to_text(first) if runs else _within(first, _COMPARISON)]
            return f" {op} ".join(texts + [_within(operand, _COMPARISON) for operand in rest])
        case Binary(op, left, right):
            level = _level(expr)
            return f"{_within(left, level)} {op} {_within(right, level + 1)}"
        case Like(operand, pattern, negated):
            return f"{_within(operand, _TEST)} {'NOT ' * negated}LIKE {_quote(pattern)}"
        case In(operand, items, negated):
            return f"{_within(operand, _TEST)} {'NOT ' * negated}IN ({_listed(items)})"
        case Call(function, args):
            return f"{function}({_listed(args)})"
    raise TypeError(f"not a CESQL expression: {expr!r}")


_LOGIC, _COMPARISON, _SUM, _PRODUCT, _TEST, _PREFIXED, _VALUE = range(7)  # how tightly a node holds together


def _level(expr: Expr) -> int:
    match expr:
        case Logic():
            return _LOGIC
        case Binary(op):
            return _SUM if op in ("+", "-") else _PRODUCT if op in ("*", "/", "%") else _COMPARISON
        case Like() | In():
            return _TEST
        case Not() | Negate():
            return _PREFIXED
        case _:
            return _VALUE


def _within(expr: Expr, level: int) -> str:
    """Return the text of an operand, in parentheses if the level of the operand is too low."""
    return to_text(expr) if _level(expr) >= level else f"({to_text(expr)})"


def _listed(items: tuple[Expr, ...]) -> str:
    return ", ".join(map(to_text, items))
