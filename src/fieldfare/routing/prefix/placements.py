"""`Placements`: the interfaces of a broker at the nodes of the tree, which is all that a broker adds to the tree.

Every box of a filter stands at nodes that together select all its events. Nodes which the optimizer has made for the
box select nothing else; until then the box stands higher up (`insertR`), and some unwanted events arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from fieldfare.filters.branch import Branch
from fieldfare.routing.prefix import updates
from fieldfare.routing.prefix.flat_tree import InterfaceMasks
from fieldfare.routing.prefix.insertion import plan
from fieldfare.routing.prefix.tag import Tag
from fieldfare.routing.prefix.tag_reader import forward, read
from fieldfare.routing.prefix.tagger import LARGE, Tagger
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion
from fieldfare.routing.prefix.updates import TreeUpdate

PLACING: Final = 1024
"""limit of splits for the placement of a box: higher than for an insertion, because nodes come between others later"""

_NONE: Final[frozenset[str]] = frozenset()


class Placements:
    """The interfaces of a broker, on its copy of the tree."""

    def __init__(self, tree: Tree, splits: int = PLACING, large: int = LARGE) -> None:
        """Make placements without interfaces. From `large` nodes on, compiled code is worth its start-up time."""
        self.tree = tree
        self._large = large
        self._entry = Tagger(large)
        self._splits = splits
        self._wants: dict[Branch, Counter[str]] = {}
        self._nodes: dict[Branch, tuple[int, ...]] = {}
        self._boxes: dict[int, set[Branch]] = {}
        self._loose: set[Branch] = set()
        """boxes without nodes of their own"""
        self._all: Counter[str] = Counter()
        """number of boxes of each interface"""
        self._at: dict[int, frozenset[str]] = {}
        self._below: dict[int, frozenset[str]] = {}
        self._masks = InterfaceMasks()

    # Filters

    def add(self, box: Branch, interface: str) -> None:
        """Add a box of an interface; an interface may add the same box several times."""
        known = box in self._wants
        self._wants.setdefault(box, Counter())[interface] += 1
        self._all[interface] += 1
        if known:
            self._stale(self._nodes[box])
        else:
            self._place(box)

    def remove(self, box: Branch, interface: str) -> None:
        """Undo an addition of a box."""
        wants = self._wants[box]
        _less(wants, interface)
        _less(self._all, interface)
        self._stale(self._nodes[box])
        if not wants:
            self._take(box)
            del self._wants[box]

    def _place(self, box: Branch) -> None:
        found = plan(self.tree, self.tree.order.path(box), self._splits)
        if found.grafts:
            self._loose.add(box)
        self._nodes[box] = found.nodes
        for id in found.nodes:
            self._boxes.setdefault(id, set()).add(box)
        self._stale(found.nodes)

    def _take(self, box: Branch) -> None:
        nodes = self._nodes.pop(box)
        self._stale(nodes)
        self._loose.discard(box)
        for id in nodes:
            self._boxes[id].discard(box)
            if not self._boxes[id]:
                del self._boxes[id]

    def _stale(self, nodes: Iterable[int]) -> None:
        """Forget the remembered interfaces of some nodes and of all nodes above."""
        for start in nodes:
            self._masks.stale.add(start)
            self._at.pop(start, None)
            id = start
            while self._below.pop(id, None) is not None and id != ROOT:
                id = self.tree[id].parent

    # The tree

    def apply(self, update: TreeUpdate) -> bool:
        """Apply an update; tell whether the version changed. An `UpdateGap` means that the whole tree is needed."""
        before, version = self.tree, self.tree.version
        gone = [operation.id for operation in update.operations if isinstance(operation, updates.RemoveNode)]
        moved = {box for id in gone for box in self._boxes.get(id, ())} | self._loose
        try:
            self.tree = updates.apply(before, update)
        finally:
            if self.tree is not before:
                # The nodes may have the ids of other nodes: two optimizers may begin the same round.
                self._entry = Tagger(self._large)
                self._move(self._wants)
            elif before.version != version:  # after success and after a failure half-way
                self._move(moved)
        return self.tree.version != version

    def _move(self, boxes: Iterable[Branch]) -> None:
        """Place boxes anew in the present tree."""
        listed = list(boxes)
        self._at.clear()
        self._below.clear()
        for box in listed:
            self._take(box)
        for box in listed:
            self._place(box)

    def forget(self, before: TreeVersion) -> None:
        """Forget versions before a given version, because their events are no longer in flight."""
        self.tree.forget(before)

    # Events

    @property
    def count(self) -> int:
        """The number of interfaces with boxes."""
        return len(self._all)

    @property
    def interfaces(self) -> AbstractSet[str]:
        """The names of the interfaces with boxes."""
        return self._all.keys()

    @property
    def taken(self) -> Collection[int]:
        """The nodes of the tree at which at least one interface of the broker stands."""
        return self._boxes.keys()

    def at(self, id: int) -> frozenset[str]:
        """Return the interfaces at a node."""
        found = self._at.get(id)
        if found is None:
            boxes = self._boxes.get(id, ())
            found = self._at[id] = frozenset().union(*(self._wants[box] for box in boxes)) if boxes else _NONE
        return found

    def below(self, id: int) -> frozenset[str]:
        """Return the interfaces at a node and below, remembered for all nodes below too."""
        work = [] if id in self._below else [id]
        while work:
            missing = [child for child in self.tree[work[-1]].children if child not in self._below]
            if missing:
                work.extend(missing)
            else:
                one = work.pop()
                self._below[one] = self.at(one).union(*(self._below[child] for child in self.tree[one].children))
        return self._below[id]

    def enter(self, event: Mapping[str, object], limit: int | None = None) -> Tag:
        """Return the tag of an event that enters the network here, down to a depth."""
        return self._entry.tag(self.tree, event, limit)

    def write(self, event: Mapping[str, object], limit: int | None = None) -> bytes:
        """Return the tag of an event in wire form, down to a depth."""
        return self._entry.write(self.tree, event, limit)

    def read(self, tag: Tag) -> set[str] | None:
        """Return the recipients of an event by its tag; None for an unreadable tag."""
        return forward(self.tree, tag, self)

    def read_bytes(self, tag: bytes) -> set[str] | None:
        """Return the recipients by a tag in wire form; a ValueError for bytes that are no tag."""
        kernels, tree = self._entry.kernels, self.tree
        if kernels is not None and tree.size >= self._large and tree.version.term.round >= 0:
            stamp, flat = self._entry.stamp(tree), self._entry.flat(tree)
            if tag.startswith(stamp) and self._masks.follow(flat, self):
                arrays = flat.rows, flat.kids, self._masks.values
                data = np.frombuffer(tag, np.uint8)
                newest = tree.version.number
                found = kernels.read_tag(data, len(stamp), newest, *arrays, self._masks.everyone)
                if found >= 0:
                    return set(self._masks.names(found))
        return read(tree, tag, self)

    def forward(self, tag: Tag, event: Mapping[str, object]) -> set[str]:
        """Return the recipients of an event. Its content is used only if the tag is unreadable."""
        found = self.read(tag)
        return self.anew(event) if found is None else found

    def anew(self, event: Mapping[str, object]) -> set[str]:
        """Return the recipients of an event by its content."""
        found = set(self.at(ROOT))
        for id, _, _ in self._entry.select(self.tree, event):
            found |= self.at(id)
        return found

    @property
    def loose(self) -> int:
        """The number of boxes without nodes of their own."""
        return len(self._loose)


def _less(counts: Counter[str], one: str) -> None:
    counts[one] -= 1
    if not counts[one]:
        del counts[one]
