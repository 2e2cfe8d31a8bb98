"""`match`: an event meets the tree, once; and `forward`: who is to get it, by its tag alone.

A node is selected if the event satisfies all labels on its path. The walk follows every child whose label is satisfied
and writes down its place: that is the tag. A later broker walks its own tree by the places and collects interfaces.

Its tree may be younger than the tag. It is then read as of the tag's version; but interfaces stand where they belong
today. A filter that is at a younger node now was, for the tag, at the nearest node above that is old enough. So what
stands at younger nodes below a selected node counts as if it stood there. (To ignore them, as the paper does, loses
events: the interface is no longer where the tag would find it.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from fieldfare.events.event import fields_of
from fieldfare.filters.branch import satisfied
from fieldfare.routing.prefix import tag as tags
from fieldfare.routing.prefix.tag import Tag, decode, head, numbers
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion


class Interfaces(Protocol):
    """What a broker knows of its links: which of them stand where."""

    @property
    def count(self) -> int:
        """How many want anything at all."""

    def at(self, id: int) -> frozenset[str]:
        """The interfaces at a node."""

    def below(self, id: int) -> frozenset[str]:
        """Those at a node and all nodes below it."""


Selected: TypeAlias = tuple[int, int, int]
"""a node that an event selects: its id, its depth, and its place among its siblings"""
Below: TypeAlias = Mapping[int, list[tuple[int, int]]]
"""by node: those of its children that an event selects, with their places"""


def select(tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
    """The nodes that an event selects, in preorder, the root not among them."""
    fields = fields_of(event)
    nodes = tree.nodes
    found: list[Selected] = []
    work = [(ROOT, 0, 0)]
    while work:
        one = work.pop()
        id, depth, _ = one
        if depth:
            found.append(one)
        if depth != limit:
            children = nodes[id].children
            work += [
                (children[place], depth + 1, place)
                for place in range(len(children) - 1, -1, -1)
                if (label := nodes[children[place]].label) is not None
                and satisfied(label.dimension, label.constraint, fields, "overlaps")
            ]
    return found


def tag_of(tree: Tree, selected: Sequence[Selected], limit: int | None = None) -> Tag:
    """What the event takes along. An older tree can read it if it has all the nodes, at the same places."""
    nodes, version = tree.nodes, tree.version
    since = nodes[ROOT].shifted
    for id, depth, _ in selected:
        needed = nodes[id].born if depth == limit else nodes[id].shifted
        since = max(since, needed)
    return Tag(
        version,
        since.number if since.term == version.term else 0,
        limit,
        tuple([(depth, place) for _, depth, place in selected]),
    )


def write(tree: Tree, below: Below, limit: int | None = None) -> bytes:
    """The tag as it is on a wire, in one go."""
    nodes, steps = tree.nodes, bytearray()
    since = nodes[ROOT].shifted
    siblings, before, depth = sorted(below.get(ROOT, ()), reverse=True) if limit != 0 else [], -1, 1
    waiting: list[tuple[list[tuple[int, int]], int, int]] = []
    """siblings that come later, the place of the one before, and their depth"""
    while siblings:
        place, id = siblings.pop()
        down = depth != limit and id in below
        needed = nodes[id].born if depth == limit else nodes[id].shifted
        if needed is not since and needed > since:
            since = needed
        tags.write(steps, (place - before - 1) << 2 | down << 1 | bool(siblings))
        before = place
        if down:
            if siblings:
                waiting.append((siblings, before, depth))
            siblings, before, depth = sorted(below[id], reverse=True), -1, depth + 1
        elif not siblings and waiting:
            siblings, before, depth = waiting.pop()
    number = since.number if since.term == tree.version.term else 0
    return bytes(tags.begin(tree.version, number, limit) + steps)


def match(tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Tag:
    """The tag of an event."""
    return tag_of(tree, select(tree, event, limit), limit)


def forward(tree: Tree, fpt: Tag, interfaces: Interfaces) -> set[str] | None:
    """Who is to get an event with a tag; None if the tree cannot read the tag, and the event must be matched anew."""
    version = tree.view(fpt.version, fpt.since)
    if version is None:
        return None
    now = version == tree.version
    nodes, everyone = tree.nodes, interfaces.count
    found: set[str] = set()
    way: list[int] = []
    for depth, place in ((0, 0), *fpt.steps):
        del way[depth:]
        children = (ROOT,) if not way else nodes[way[-1]].children if now else tree.children(way[-1], version)
        if len(way) < depth or place >= len(children):
            return None  # no tag of this tree
        id = children[place]
        way.append(id)
        if depth == fpt.limit:
            found |= interfaces.below(id)
        else:
            found |= interfaces.at(id)
            for younger in () if now else _younger(tree, id, version):
                found |= interfaces.at(younger)
        if len(found) == everyone:
            break
    return found


def read(tree: Tree, data: bytes, interfaces: Interfaces) -> set[str] | None:
    """The same from a tag as it is on a wire, in one go if the tree is the tag's; ValueError if it is none."""
    version, since, limit, end = head(data)
    view = tree.view(version, since)
    if view is None:
        return None
    if view != tree.version:
        return forward(tree, decode(data), interfaces)
    nodes, everyone, at = tree.nodes, interfaces.count, interfaces.at
    found = set(interfaces.below(ROOT) if limit == 0 else at(ROOT))
    if len(found) == everyone:
        return found
    children, place, depth = nodes[ROOT].children, -1, 1
    waiting: list[tuple[list[int], int, int]] = []  # siblings that come later
    whole = end == len(data)
    for number in numbers(data, end):
        place += 1 + (number >> 2)
        if whole or place >= len(children):
            return None  # no tag of this tree
        id = children[place]
        here = interfaces.below(id) if depth == limit else at(id)
        if here:
            found |= here
            if len(found) == everyone:
                return found
        if number & 2:
            if number & 1:
                waiting.append((children, place, depth))
            children, place, depth = nodes[id].children, -1, depth + 1
        elif not number & 1:
            if waiting:
                children, place, depth = waiting.pop()
            else:
                whole = True
    return found if whole else None


def _younger(tree: Tree, id: int, version: TreeVersion) -> Iterator[int]:
    """The nodes below that came after a version and have none but such between."""
    work = [id]
    while work:
        node = tree[work.pop()]
        if node.changed > version:
            younger = [child for child in node.children if tree[child].born > version]
            yield from younger
            work += younger
