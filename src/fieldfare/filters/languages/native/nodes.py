"""The nodes of a parsed filter in the native language; every node knows its span of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fieldfare.events.values import Scalar
from fieldfare.filters.errors import FilterSyntaxError

MAX_DEPTH: Final = 100
"""levels of nodes in a tree; a walk over a tree may therefore recurse"""


@dataclass(slots=True)
class Node:
    """A piece of the text of a filter, from `start` to `end`."""

    start: int
    end: int


@dataclass(slots=True)
class Constant(Node):
    """A literal value in the text of a filter."""

    value: Scalar


@dataclass(slots=True)
class Name(Node):
    """The name of a field, as a dotted path."""

    path: str


@dataclass(slots=True)
class Parameter(Node):
    """A value that the caller gives when the filter is parsed."""

    name: str


@dataclass(slots=True)
class ParameterList(Node):
    """A list of values that the caller gives when the filter is parsed: `:name` or `myloc` behind IN."""

    name: str


@dataclass(slots=True)
class Operation(Node):
    """An arithmetic operation, `left op right`."""

    op: str
    left: Tree
    right: Tree


@dataclass(slots=True)
class Call(Node):
    """A call of a function, `function(arguments)`."""

    function: str
    arguments: list[Tree]


@dataclass(slots=True)
class Has(Node):
    """`path HAS (condition)`: an element of the list, or the object, satisfies the condition."""

    path: str
    condition: Tree


@dataclass(slots=True)
class Path(Node):
    """`PATH(selector, condition)`: a selected element satisfies the condition, if there is a condition."""

    selector: Tree
    condition: Tree | None


@dataclass(slots=True)
class Comparison(Node):
    """A comparison of two values, `left op right`."""

    op: str
    left: Tree
    right: Tree


@dataclass(slots=True)
class Between(Node):
    """A range test, `operand BETWEEN low AND high`."""

    operand: Tree
    low: Tree
    high: Tree
    negated: bool


@dataclass(slots=True)
class In(Node):
    """A test against a list, `operand IN (items)`."""

    operand: Tree
    items: list[Tree]
    negated: bool


@dataclass(slots=True)
class TextTest(Node):
    """`operand LIKE text`, or ILIKE, STARTS WITH, ENDS WITH, CONTAINS."""

    op: str
    operand: Tree
    text: Tree
    negated: bool


@dataclass(slots=True)
class Is(Node):
    """A test of the type of a value, `operand IS type`."""

    operand: Tree
    type: str
    negated: bool


@dataclass(slots=True)
class Exists(Node):
    """A test of presence, `EXISTS operand`."""

    operand: Tree


@dataclass(slots=True)
class Quantified(Node):
    """`ANY condition` or `ALL condition`, on the elements of a single field."""

    quantifier: str
    condition: Tree


@dataclass(slots=True)
class Not(Node):
    """The negation of a condition, `NOT condition`."""

    condition: Tree


@dataclass(slots=True)
class And(Node):
    """The conjunction of several conditions."""

    parts: list[Tree]


@dataclass(slots=True)
class Or(Node):
    """The disjunction of several conditions."""

    parts: list[Tree]


Tree: TypeAlias = (
    Constant | Name | Parameter | ParameterList | Operation | Call | Has | Path | Comparison | Between | In | TextTest
    | Is | Exists | Quantified | Not | And | Or
)  # fmt: skip


def check_depth(tree: Tree, text: str) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels, without recursion."""
    level, nodes = 1, [tree]
    while nodes:
        if level > MAX_DEPTH:
            raise FilterSyntaxError(text, nodes[0].start, f"nested more than {MAX_DEPTH} levels deep")
        level, nodes = level + 1, [child for node in nodes for child in _children(node)]


def parameters(tree: Tree) -> frozenset[str]:
    """Return the names of all parameters in a tree."""
    found, nodes = set(), [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (Parameter, ParameterList)):
            found.add(node.name)
        nodes += _children(node)
    return frozenset(found)


def _children(tree: Tree) -> Sequence[Tree]:
    match tree:
        case Constant() | Name() | Parameter() | ParameterList():
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
