"""The nodes of a parsed filter in the native language; every node knows the span of text it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fieldfare.events.values import Scalar
from fieldfare.filters.errors import FilterSyntaxError

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


def check_depth(tree: Tree, text: str) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels, without recursion."""
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
