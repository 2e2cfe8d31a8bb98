"""`Tree`: the structure of a Routing Tree, the same at all brokers, with as much of its past as events in flight need.

Every node but the root has a label; a path from the root is a conjunction. The interfaces at nodes are no part of the
tree: see `placements`. A tree changes by operations of the optimizer: a node is added below another, perhaps over some
of its children, or a leaf is removed. The meaning of a node's path never changes while the node exists.

An event in flight names nodes by their places among their siblings as of some version, so every node keeps its former
lists of children until they are forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from fieldfare.filters.branch import Dimension
from fieldfare.routing.prefix.labels import ALPHABET, Label, Order


class Term(NamedTuple):
    """An optimizer's time in charge. Two may begin the same round without knowing; their names tell them apart."""

    round: int = 0
    by: str = ""


class TreeVersion(NamedTuple):
    """The version of a tree: the term of its optimizer, and the optimizer's count."""

    term: Term = Term()
    number: int = 0


ROOT: Final = 0
START: Final = TreeVersion()
_DIGEST: Final = 8


class TreeNode:
    """A node of a tree, with its label, its children and their past."""

    __slots__ = (
        "born", "changed", "children", "digest", "gone", "kids", "label", "parent", "past", "place", "shifted", "split"
    )  # fmt: skip

    def __init__(self, label: Label | None, parent: int, born: TreeVersion) -> None:
        self.label = label
        self.parent = parent
        self.place = 0
        """position among the parent's children"""
        self.born = born
        self.gone: TreeVersion | None = None
        """the version that removed the node"""
        self.children: list[int] = []
        self.changed = born
        """the version of the last change of the children"""
        self.shifted = born
        """the version of the last removal of a child, which moved other children"""
        self.past: list[tuple[TreeVersion, tuple[int, ...]]] = []
        """former lists of children, each with the version that ended the list, by version"""
        self.kids: dict[Label, int] = {}
        self.split: dict[Dimension, list[int]] = {}
        """children that may be split, which are pairwise disjoint, by dimension"""
        self.digest: bytes | None = None


class Tree:
    """The nodes, by ids that the optimizer gives."""

    def __init__(self, version: TreeVersion = START, order: Order = ALPHABET) -> None:
        """Make a tree of the root alone; `order` is the order of labels on every path."""
        self.order = order
        self.nodes: dict[int, TreeNode] = {ROOT: TreeNode(None, ROOT, version)}
        self.known = [version]
        """the versions whose lists of children are still known"""
        self.size = 0
        """number of nodes beside the root"""
        self._born: list[tuple[TreeVersion, int]] = []
        """added nodes, by version"""
        self._gone: list[tuple[TreeVersion, int]] = []
        """removed nodes, by version"""
        self._dated: list[tuple[TreeVersion, int]] = []
        """nodes with a past, by version"""

    def __getitem__(self, id: int) -> TreeNode:
        return self.nodes[id]

    def label(self, id: int) -> Label:
        """Return the label of a node that is not the root."""
        label = self.nodes[id].label
        assert label is not None
        return label

    @property
    def version(self) -> TreeVersion:
        """The latest version of the tree."""
        return self.known[-1]

    def preorder(self) -> Iterator[int]:
        """Iterate over all present nodes except the root: parents before children, siblings in order."""
        work = self.nodes[ROOT].children[::-1]
        while work:
            id = work.pop()
            yield id
            work.extend(reversed(self.nodes[id].children))

    def path(self, id: int) -> list[Label]:
        """Return the labels on the path to a node, from the root down."""
        labels = []
        while id != ROOT:
            node = self.nodes[id]
            labels.append(self.label(id))
            id = node.parent
        return labels[::-1]

    def depth(self, id: int) -> int:
        """Return the distance of a node from the root."""
        depth = 0
        while id != ROOT:
            id = self.nodes[id].parent
            depth += 1
        return depth

    # Changes

    def add(self, id: int, parent: int, label: Label, over: Sequence[int], version: TreeVersion) -> None:
        """Add a node behind its siblings, or in place of the first of the children `over` which the node is placed."""
        if id in self.nodes:
            raise ValueError(f"there is a node {id} already")
        above = self.nodes[parent]
        node = TreeNode(label, parent, version)
        if above.gone is not None or any(one not in self.nodes or self.nodes[one].parent != parent for one in over):
            raise ValueError(f"node {parent} has no such children")
        self._touch(parent, version)
        if over:
            place = above.children.index(over[0])
            moved = set(over)
            above.children = [other for other in above.children if other not in moved]
            above.children.insert(place, id)
            above.shifted = version
            for child in over:
                self._forget_kid(above, child)
                self.nodes[child].parent = id
                self._note_kid(node, child)
            node.children = list(over)
            self.nodes[id] = node
            self._number(node)
            self._number(above)
        else:
            node.place = len(above.children)
            above.children.append(id)
            self.nodes[id] = node
        self._born.append((version, id))
        self._note_kid(above, id)
        self.size += 1

    def remove(self, id: int, version: TreeVersion) -> None:
        """Remove a leaf; events in flight can still name the leaf."""
        node = self.nodes[id]
        if id == ROOT or node.children or node.gone is not None:
            raise ValueError(f"node {id} is no leaf")
        self._touch(node.parent, version)
        above = self.nodes[node.parent]
        above.children.remove(id)
        above.shifted = version
        self._number(above)
        self._forget_kid(above, id)
        node.gone = version
        self._gone.append((version, id))
        self.size -= 1

    def _number(self, above: TreeNode) -> None:
        for place, child in enumerate(above.children):
            self.nodes[child].place = place

    def _touch(self, id: int, version: TreeVersion) -> None:
        """Save the children of a node for events in flight before a change, and clear the digests above."""
        node = self.nodes[id]
        if node.changed < version:
            node.past.append((version, tuple(node.children)))
            node.changed = version
            self._dated.append((version, id))
        while node.digest is not None:
            node.digest = None
            node = self.nodes[node.parent]

    def _note_kid(self, above: TreeNode, id: int) -> None:
        label = self.label(id)
        above.kids[label] = id
        if not label.whole:
            above.split.setdefault(label.dimension, []).append(id)

    def _forget_kid(self, above: TreeNode, id: int) -> None:
        label = self.label(id)
        del above.kids[label]
        if not label.whole:
            above.split[label.dimension].remove(id)
            if not above.split[label.dimension]:
                del above.split[label.dimension]

    # Versions

    def reach(self, version: TreeVersion) -> None:
        """Mark a version as complete, after all its changes."""
        self.known.append(version)

    def distrust(self) -> None:
        """Mark the tree as different from the tree of others with the same version: no tag can be read by it."""
        self.known = [self.known[-1]._replace(term=Term(-1))]

    def view(self, version: TreeVersion, since: int) -> TreeVersion | None:
        """Return the latest known version that reads a tag with a version and `since`; None if there is none.

        Only versions of the same term surely follow each other: two optimizers may go on from the same version.
        """
        place = bisect_right(self.known, version)
        best = self.known[place - 1] if place else None
        if best is None or best.term != version.term or best.number < since or best.term.round < 0:
            return None
        return best

    def children(self, id: int, version: TreeVersion) -> Sequence[int]:
        """Return the children of a node as of a known version."""
        node = self.nodes[id]
        if node.changed <= version:
            return node.children
        return node.past[_until(node.past, version)][1]

    def news(self, since: TreeVersion) -> tuple[list[int], list[int]] | None:
        """Return the nodes added and removed after a version; None if the version is not known."""
        if since not in self.known:
            return None
        came = [id for _, id in self._born[_until(self._born, since) :] if self.nodes[id].gone is None]
        return came, [id for _, id in self._gone[_until(self._gone, since) :]]

    def forget(self, before: TreeVersion) -> None:
        """Forget versions before a given version, whose events are no longer in flight. The latest version stays."""
        self.known = [version for version in self.known if version >= before] or self.known[-1:]
        old = self.known[0]
        for _, id in self._dated[: _until(self._dated, old)]:
            node = self.nodes[id]
            node.past = node.past[_until(node.past, old) :]
        for _, id in self._gone[: _until(self._gone, old)]:
            del self.nodes[id]
        self._born = self._born[_until(self._born, old) :]
        self._dated = self._dated[_until(self._dated, old) :]
        self._gone = self._gone[_until(self._gone, old) :]

    @property
    def digest(self) -> bytes:
        """A checksum of the structure; only changed nodes are computed anew."""
        work = [ROOT]
        while work:
            node = self.nodes[work[-1]]
            missing = [child for child in node.children if self.nodes[child].digest is None]
            if missing and node.digest is None:
                work.extend(missing)
                continue
            id = work.pop()
            if node.digest is None:
                said = repr(self.order.first) if node.label is None else f"{node.label.whole:d}{node.label.filter}"
                check = blake2b(f"{id} {said}".encode(), digest_size=_DIGEST)
                for child in node.children:
                    check.update(self.nodes[child].digest or b"")
                node.digest = check.digest()
        found = self.nodes[ROOT].digest
        assert found is not None
        return found


def _until(dated: Sequence[tuple[TreeVersion, object]], version: TreeVersion) -> int:
    """Return the number of entries, sorted by version, that are not younger than a version."""
    return bisect_right(dated, version, key=lambda entry: entry[0])
