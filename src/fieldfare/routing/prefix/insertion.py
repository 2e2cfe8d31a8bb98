"""The place of a path of labels in a tree: `insert` of the paper without a change of the tree.

The five cases, for the first remaining label `c` and the children `k` of a node on the same attribute:

1. some `k` overlaps `c` in part: the shared part goes below `k`, the rest stays here (a *split*);
2. `k` is `c`: go on below `k` without `c`;
3. `k` holds `c`: go on below `k`;
4. `c` holds some `k`: a new node `c` here, over those `k`;
5. none of these: a new node `c` here.

Where a new node is needed, the plan has a `Graft`: the optimizer makes the node; a broker, which may not, notes its
interface at the node above (`insertR`). Below a new node there are no other nodes, so grafts are chains.

Splits multiply along the attributes of a path. A path with too many splits is kept *whole*: a chain of labels that are
compared by equality and never split. Whole paths are as exact, and only share less with others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.filters import valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.routing.prefix.labels import Label, Path
from fieldfare.routing.prefix.tree import ROOT, Tree

SPLITS: Final = 64
"""limit of splits; a path with more splits is kept whole"""


class Graft(NamedTuple):
    """A chain of new nodes."""

    at: int
    """the node below which the chain hangs"""
    over: tuple[int, ...]
    """children of this node that move below the first node of the chain"""
    chain: Path


class Plan(NamedTuple):
    """The nodes for a path: existing nodes and new ones. Their paths are disjoint, except for whole paths."""

    ends: tuple[int, ...]
    grafts: tuple[Graft, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The deepest existing nodes that together select all events of the path, and perhaps more."""
        return tuple(dict.fromkeys((*self.ends, *(graft.at for graft in self.grafts))))


def plan(tree: Tree, path: Path, splits: int = SPLITS) -> Plan:
    """Return the place of a path: whole if a whole chain exists, else split, or whole if there are too many splits."""
    whole = _whole(tree, path)
    if not whole.grafts:
        return whole
    return _split(tree, path, splits) or whole


def _whole(tree: Tree, path: Path) -> Plan:
    at = ROOT
    chain = tuple(label._replace(whole=True) for label in path)
    for place, label in enumerate(chain):
        kid = tree[at].kids.get(label)
        if kid is None:
            return Plan((), (Graft(at, (), chain[place:]),))
        at = kid
    return Plan((at,))


def _split(tree: Tree, path: Path, splits: int) -> Plan | None:
    """Return the plan with splits; None if there are too many."""
    ends: list[int] = []
    grafts: list[Graft] = []
    work = [(ROOT, path)]
    while work:
        at, left = work.pop()
        if not left:
            ends.append(at)
            continue
        first, rest = left[0], left[1:]
        kid = tree[at].kids.get(first)
        if kid is not None:
            work.append((kid, rest))
            continue
        over: list[int] = []
        values = first.constraint.values
        for other in () if first.whole else tree[at].split.get(first.dimension, ()):
            theirs = tree.label(other).constraint.values
            if not theirs.overlaps(values):
                continue
            if theirs >= values:
                work.append((other, rest if theirs == values else (_part(first, values), *rest)))
                values = valueset.EMPTY
                break
            if values >= theirs:
                over.append(other)
                continue
            splits -= 1
            if splits < 0:
                return None
            work.append((other, (_part(first, values & theirs), *rest)))
            values -= theirs
        if len(over) == 1 and tree.label(over[0]).constraint.values == values:
            work.append((over[0], rest))  # the remaining part has a node already
        elif not values.is_empty:
            part = first if first.whole else _part(first, values)
            grafts.append(Graft(at, tuple(over), (part, *rest)))
    return Plan(tuple(ends), tuple(grafts))


def _part(label: Label, values: valueset.ValueSet) -> Label:
    return label._replace(constraint=Constraint(values))
