"""`TreeUpdate`: the step from a version of a tree to the next, as a list of operations with a checksum of the result.

An update follows a single version and no other. A broker that has missed an update, or knows a version which the
optimizer of a later term does not, requests the whole tree instead (`whole`).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.labels import Order, label_of
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion


class AddNode(msgspec.Struct, frozen=True, tag=True, array_like=True, omit_defaults=True):
    """A new node, in place of the first of the children below it; or behind all children of its parent."""

    id: int
    parent: int
    filter: Filter
    whole: bool = False
    over: tuple[int, ...] = ()


class RemoveNode(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The removal of a leaf."""

    id: int


Operation: TypeAlias = AddNode | RemoveNode


class TreeUpdate(msgspec.Struct, frozen=True):
    """The operations from a version of a tree to the next."""

    base: TreeVersion | None
    """the version before the update; None: the update is the whole tree"""
    version: TreeVersion
    operations: tuple[Operation, ...]
    digest: bytes
    """checksum of the tree after the update"""
    order: tuple[str, ...] = ()
    """the first attributes of the order, for a whole tree"""


class UpdateGap(ValueError):
    """An update does not follow the known version: the whole tree is needed."""


def apply(tree: Tree, update: TreeUpdate) -> Tree:
    """Return the tree after an update: the same tree, or a new tree if the update is a whole tree.

    Old updates are ignored.
    """
    if update.version <= tree.version:
        return tree
    if update.base is None:
        tree = Tree(update.version, Order(update.order))
    elif update.base != tree.version:
        raise UpdateGap(f"the update to {update.version} follows {update.base}, not {tree.version}")
    try:
        for operation in update.operations:
            perform(tree, operation, update.version)
    except (ValueError, KeyError) as error:
        tree.distrust()
        raise UpdateGap(f"the update to {update.version} cannot be made: {error}") from None
    if update.base is not None:
        tree.reach(update.version)
    if tree.digest != update.digest:
        tree.distrust()
        raise UpdateGap(f"after the update to {update.version} the tree is not what it should be")
    return tree


def perform(tree: Tree, operation: Operation, version: TreeVersion) -> None:
    """Perform a single operation on a tree."""
    match operation:
        case AddNode(id, parent, filter, whole, over):
            tree.add(id, parent, label_of(filter, whole), over, version)
        case RemoveNode(id):
            tree.remove(id, version)


def whole(tree: Tree) -> TreeUpdate:
    """Return the whole tree as an update, for a broker without a tree."""
    added = []
    for id in tree.preorder():
        label, parent = tree.label(id), tree[id].parent
        added.append(AddNode(id, parent, label.filter, label.whole))
    return TreeUpdate(None, tree.version, tuple(added), tree.digest, tree.order.first)


def height(tree: Tree) -> int:
    """Return the length of the longest path."""
    depths = {ROOT: 0}
    for id in tree.preorder():
        depths[id] = depths[tree[id].parent] + 1
    return max(depths.values())
