"""`TreeUpdate`: how a tree becomes the next version of itself, as a list of operations with a checksum of the result.

An update follows one version and no other. Whoever has missed one, or has heard of a version that the optimizer of a
later term has not, asks for the whole tree instead (`whole`), which any broker that has it can give.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.labels import Order, label_of
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion


class AddNode(msgspec.Struct, frozen=True, tag=True, array_like=True, omit_defaults=True):
    """A new node below another, in place of the first of those children that go below it; or behind all children."""

    id: int
    parent: int
    filter: Filter
    whole: bool = False
    over: tuple[int, ...] = ()


class RemoveNode(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A leaf is gone."""

    id: int


Operation: TypeAlias = AddNode | RemoveNode


class TreeUpdate(msgspec.Struct, frozen=True):
    """From one version to the next."""

    base: TreeVersion | None
    """the version it follows; None: it is the whole tree"""
    version: TreeVersion
    operations: tuple[Operation, ...]
    digest: bytes
    """of the tree when it is done"""
    order: tuple[str, ...] = ()
    """of a whole tree: the attributes that come first"""


class UpdateGap(ValueError):
    """An update that does not follow what is known: ask for the whole tree."""


def apply(tree: Tree, update: TreeUpdate) -> Tree:
    """The tree after an update: the same one, or a new one if the update is a whole tree; old updates are ignored."""
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
    """Do one operation."""
    match operation:
        case AddNode(id, parent, filter, whole, over):
            tree.add(id, parent, label_of(filter, whole), over, version)
        case RemoveNode(id):
            tree.remove(id, version)


def whole(tree: Tree) -> TreeUpdate:
    """All of a tree, for somebody who knows nothing."""
    added = []
    for id in tree.preorder():
        label, parent = tree.label(id), tree[id].parent
        added.append(AddNode(id, parent, label.filter, label.whole))
    return TreeUpdate(None, tree.version, tuple(added), tree.digest, tree.order.first)


def height(tree: Tree) -> int:
    """The longest path."""
    depths = {ROOT: 0}
    for id in tree.preorder():
        depths[id] = depths[tree[id].parent] + 1
    return max(depths.values())
