"""`match`: an event meets the tree, once; and `forward`: who is to get it, by its tag alone.

A node is selected if the event satisfies all labels on its path. The walk follows every child whose label is satisfied
and writes down its place: that is the tag. A later broker walks its own tree by the places and collects interfaces.

Its tree may be younger than the tag. It is then read as of the tag's version; but interfaces stand where they belong
today. A filter that is at a younger node now was, for the tag, at the nearest node above that is old enough. So what
stands at younger nodes below a selected node counts as if it stood there. (To ignore them, as the paper does, loses
events: the interface is no longer where the tag would find it.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from fieldfare.events.event import fields_of
from fieldfare.filters.branch import satisfied
from fieldfare.routing.prefix.fpt import Fpt, Step
from fieldfare.routing.prefix.tree import ROOT, Tree, Version


class Interfaces(Protocol):
    """What a broker knows of its links: which of them stand where."""

    @property
    def count(self) -> int:
        """How many want anything at all."""

    def at(self, id: int) -> Iterable[str]:
        """The interfaces at a node."""

    def below(self, id: int) -> frozenset[str]:
        """Those at a node and all nodes below it."""


class Selected(NamedTuple):
    """A node that an event selects."""

    id: int
    step: Step


def select(tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
    """The nodes that an event selects, in preorder, the root not among them."""
    fields = fields_of(event)
    nodes = tree.nodes
    found: list[Selected] = []
    work = [Selected(ROOT, Step(0, 0))]
    while work:
        one = work.pop()
        depth = one.step.depth
        if depth:
            found.append(one)
        if depth != limit:
            children = nodes[one.id].children
            work += [
                Selected(children[place], Step(depth + 1, place))
                for place in range(len(children) - 1, -1, -1)
                if (label := nodes[children[place]].label) is not None
                and satisfied(label.dimension, label.constraint, fields, "overlaps")
            ]
    return found


def tag(tree: Tree, selected: Sequence[Selected], limit: int | None = None) -> Fpt:
    """What the event takes along. An older tree can read it if it has all the nodes, at the same places."""
    nodes = tree.nodes
    since = nodes[ROOT].shifted
    for id, step in selected:
        node = nodes[id]
        since = max(since, node.born if step.depth == limit else node.shifted)
    return Fpt(since, tree.version, limit, tuple(one.step for one in selected))


def match(tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Fpt:
    """The tag of an event."""
    return tag(tree, select(tree, event, limit), limit)


def forward(tree: Tree, fpt: Fpt, interfaces: Interfaces) -> set[str] | None:
    """Who is to get an event with a tag; None if the tree cannot read the tag, and the event must be matched anew."""
    version = tree.view(fpt.since, fpt.version)
    if version is None:
        return None
    found: set[str] = set()
    way: list[int] = []
    for depth, place in ((0, 0), *fpt.steps):
        del way[depth:]
        children = tree.children(way[-1], version) if way else (ROOT,)
        if len(way) < depth or place >= len(children):
            return None  # no tag of this tree
        id = children[place]
        way.append(id)
        if depth == fpt.limit:
            found |= interfaces.below(id)
        else:
            found.update(interfaces.at(id))
            for younger in _younger(tree, id, version):
                found.update(interfaces.at(younger))
        if len(found) == interfaces.count:
            break
    return found


def _younger(tree: Tree, id: int, version: Version) -> Iterator[int]:
    """The nodes below that came after a version and have none but such between."""
    work = [id]
    while work:
        node = tree[work.pop()]
        if node.changed > version:
            younger = [child for child in node.children if tree[child].born > version]
            yield from younger
            work += younger
