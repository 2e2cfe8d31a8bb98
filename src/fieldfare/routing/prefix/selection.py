"""Tags from events: an event meets a Routing Tree once, at the broker where the event enters the network.

An event selects a node if the event satisfies all labels on the path to the node. The walk follows each child with a
satisfied label and writes down the place of the child among its siblings: the list of places is the tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from fieldfare.events.event import fields_of
from fieldfare.filters.branch import satisfied
from fieldfare.routing.prefix import tag as tags
from fieldfare.routing.prefix.tag import Tag
from fieldfare.routing.prefix.tree import ROOT, Tree

Selected: TypeAlias = tuple[int, int, int]
"""a selected node: its id, its depth, and its place among its siblings"""
Below: TypeAlias = Mapping[int, list[tuple[int, int]]]
"""by node: its selected children, with their places"""


def select(tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
    """Return the nodes which an event selects, in preorder, without the root."""
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
    """Return the tag of selected nodes. An older tree can read the tag if it has all the nodes, at the same places."""
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
    """Return the tag of selected nodes in wire form, in a single pass."""
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
    """Return the tag of an event by a walk through the tree."""
    return tag_of(tree, select(tree, event, limit), limit)
