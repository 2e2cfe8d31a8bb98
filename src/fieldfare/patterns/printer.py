"""The printer of the core language, with as few parentheses as possible: equal trees, equal texts."""

from __future__ import annotations

from fieldfare.events.values import format_timestamp
from fieldfare.patterns.durations import format_duration
from fieldfare.patterns.stamps import moment
from fieldfare.patterns.tree import (
    After,
    Alternation,
    Atom,
    Concatenation,
    Parallel,
    Repetition,
    Sequence,
    Timing,
    Tree,
    Within,
)

_SIGNS = {Alternation: (0, " | "), Parallel: (1, " || "), Sequence: (2, " ; "), Concatenation: (3, " ")}


def print_core(tree: Tree) -> str:
    """Return the text of a tree, which `parse_core` reads back.

    >>> print_core(Sequence(Atom(("A",)), Repetition(Atom(("B",), ("B", "C")))))
    '[A] ; [B <= {B, C}]*'
    """
    return _text(tree, 0)


def _text(tree: Tree, least: int) -> str:
    """Return the text of a tree, in parentheses if the operator binds less tightly than wanted."""
    match tree:
        case Atom():
            return _atom(tree)
        case Repetition():
            return _text(tree.body, 4) + _bounds(tree)
        case Timing():
            at = format_timestamp(moment(tree.when.time)) if not isinstance(tree.when, After) else ""
            when = f"+{format_duration(tree.when.duration)}" if isinstance(tree.when, After) else f"@{at}"
            left, right = _text(tree.left, 2 * tree.strong), _text(tree.right, 3 * tree.strong)
            return f"({left}{' ;' if tree.strong else ','} {right})_{{{tree.timer}={when}}}"
        case Within():
            return f"({_text(tree.body, 0)})_{{<={format_duration(tree.duration)}}}"
        case _:
            level, sign = _SIGNS[type(tree)]
            text = _text(tree.left, level) + sign + _text(tree.right, level + 1)
            return f"({text})" if level < least else text


def _atom(atom: Atom) -> str:
    domain = ", ".join(atom.domain)
    return f"[{'!' * atom.negated}{', '.join(atom.names)}{f' <= {{{domain}}}' if domain else ''}]"


def _bounds(tree: Repetition) -> str:
    match tree.low, tree.high:
        case 0, None:
            sign = "*"
        case 1, None:
            sign = "+"
        case 0, 1:
            sign = "?"
        case low, None:
            sign = f"{{{low},}}"
        case _:
            sign = f"{{{tree.low}}}" if tree.low == tree.high else f"{{{tree.low},{tree.high}}}"
    return sign + {None: "", True: ">", False: "<"}[tree.greedy]
