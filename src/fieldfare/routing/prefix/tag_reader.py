"""Interfaces from tags: a broker finds the recipients of an event without a look at its content.

The broker follows the places in the tag through its own tree and collects the interfaces at the nodes.

The tree may be younger than the tag. Then the tree is read as of the version of the tag, but interfaces stand where
they belong today: a filter at a younger node was, for the tag, at the nearest older node above. So interfaces at
younger nodes below a selected node count as if they stood there. (The paper ignores younger nodes and loses events: the
interface is no longer where the tag would find the interface.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from fieldfare.routing.prefix.tag import Tag, decode, head, numbers
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion


class Interfaces(Protocol):
    """The interfaces of a broker at the nodes of a tree."""

    @property
    def count(self) -> int:
        """The number of interfaces with filters."""

    def at(self, id: int) -> frozenset[str]:
        """Return the interfaces at a node."""

    def below(self, id: int) -> frozenset[str]:
        """Return the interfaces at a node and at all nodes below."""


def forward(tree: Tree, tag: Tag, interfaces: Interfaces) -> set[str] | None:
    """Return the recipients of an event by its tag.

    None if the tree cannot read the tag, so that the content decides.
    """
    version = tree.view(tag.version, tag.since)
    if version is None:
        return None
    now = version == tree.version
    nodes, everyone = tree.nodes, interfaces.count
    found: set[str] = set()
    way: list[int] = []
    for depth, place in ((0, 0), *tag.steps):
        del way[depth:]
        children = (ROOT,) if not way else nodes[way[-1]].children if now else tree.children(way[-1], version)
        if len(way) < depth or place >= len(children):
            return None  # no tag of this tree
        id = children[place]
        way.append(id)
        if depth == tag.limit:
            found |= interfaces.below(id)
        else:
            found |= interfaces.at(id)
            for younger in () if now else _younger(tree, id, version):
                found |= interfaces.at(younger)
        if len(found) == everyone:
            break
    return found


def read(tree: Tree, data: bytes, interfaces: Interfaces) -> set[str] | None:
    """Return the recipients by a tag in wire form; None for an unreadable tag, a ValueError for bytes that are no tag.

    If the tag has the version of the tree, a single pass over the bytes suffices.
    """
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
    waiting: list[tuple[list[int], int, int]] = []  # siblings for later
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
    """Yield the nodes below that are younger than a version, with only younger nodes in between."""
    work = [id]
    while work:
        node = tree[work.pop()]
        if node.changed > version:
            younger = [child for child in node.children if tree[child].born > version]
            yield from younger
            work += younger
