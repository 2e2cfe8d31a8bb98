"""`Optimizer`: the owner of the structure of a Routing Tree. Boxes go in and out, updates come out.

The optimizer keeps a master tree, which every box changes at once, and publishes the changes when the master differs
too much from the brokers' tree (`wdiff`), or after some time. Brokers need not wait: until the optimizer has made nodes
for a box, brokers place the box further up.

There may be several optimizers, each for the boxes with certain first attributes (`part`), with independent trees. Each
may have a standby that hears the same boxes and updates. A takeover begins a new term with the last known tree:
superfluous nodes go, missing nodes are made. A broker with another tree notices that the first update of the term does
not follow its version, and requests the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from fieldfare.filters.branch import Branch
from fieldfare.routing.prefix import updates
from fieldfare.routing.prefix.difference import Difference
from fieldfare.routing.prefix.insertion import SPLITS, plan
from fieldfare.routing.prefix.labels import Path
from fieldfare.routing.prefix.tree import ROOT, START, Term, Tree, TreeVersion
from fieldfare.routing.prefix.updates import AddNode, Operation, RemoveNode, TreeUpdate, perform


class Optimizer:
    """The master of a tree, or of a part of the filters."""

    def __init__(
        self,
        tree: Tree | None = None,
        boxes: Iterable[Branch] = (),
        *,
        term: Term = START.term,
        splits: int = SPLITS,
        threshold: float = 0.3,
        patience: float | None = None,
        now: float = 0.0,
    ) -> None:
        """Begin a term with a tree, which becomes the master, and the present boxes.

        An update is due when the weighted difference exceeds the threshold, or when a change is unpublished for
        `patience` seconds.
        """
        self.tree = tree or Tree()
        if TreeVersion(term) < self.tree.version:
            raise ValueError(f"a term {term} cannot follow {self.tree.version}")
        self.term = term
        self.threshold = threshold
        self.patience = patience
        self._splits = splits
        self._base = self.tree.version
        self._next = TreeVersion(term, self._base.number + 1 if self._base.term == term else 0)
        self._published = now
        self._free = max(1, term.round << 32)
        """id of the next node, which no other term gives"""
        self._counts: dict[Branch, int] = {}
        self._ends: dict[Branch, tuple[int, ...]] = {}
        self._users: dict[int, int] = {}
        """number of boxes that end at a node"""
        self._log: dict[int, Operation] = {}
        """unpublished operations, in order"""
        self._added: dict[int, int] = {}
        """position in the log of an addition that a removal may cancel"""
        self._logged = 0
        self.difference = Difference(self.tree)
        for box in boxes:
            self.add(box)
        for id in [*self.tree.preorder()][::-1]:
            if self.tree[id].gone is None:
                self._prune(id)

    # Boxes

    def add(self, box: Branch) -> None:
        """Add a subscription of a box; the first subscription makes nodes."""
        self._counts[box] = self._counts.get(box, 0) + 1
        if self._counts[box] > 1:
            return
        found = plan(self.tree, self.tree.order.path(box), self._splits)
        ends = list(found.ends)
        for at, over, chain in found.grafts:
            ends.append(self._graft(at, over, chain))
        self._ends[box] = tuple(ends)
        for id in ends:
            self._users[id] = self._users.get(id, 0) + 1

    def remove(self, box: Branch) -> None:
        """Remove a subscription of a box; the last removal prunes nodes."""
        self._counts[box] -= 1
        if self._counts[box]:
            return
        del self._counts[box]
        for id in self._ends.pop(box):
            self._users[id] -= 1
            if not self._users[id]:
                del self._users[id]
                self._prune(id)

    def has(self, box: Branch) -> bool:
        """Tell whether a box has subscriptions."""
        return box in self._counts

    def ends(self, box: Branch) -> tuple[int, ...]:
        """Return the nodes at which the paths of a box end."""
        return self._ends[box]

    def _graft(self, at: int, over: tuple[int, ...], chain: Path) -> int:
        for label in chain:
            self._perform(AddNode(self._free, at, label.filter, label.whole, over))
            at, over = self._free, ()
            self._free += 1
        return at

    def _prune(self, id: int) -> None:
        """Remove a useless leaf, and the useless nodes above."""
        while id != ROOT and id not in self._users and not self.tree[id].children:
            parent = self.tree[id].parent
            self._perform(RemoveNode(id))
            id = parent

    def _perform(self, operation: Operation) -> None:
        number = self._logged = self._logged + 1
        match operation:
            case AddNode(id, parent, over=over):
                self.difference.before_add(id, parent, over)
                if not over:
                    self._added[id] = number
                else:
                    self._keep(over, parent)
                self._log[number] = operation
            case RemoveNode(id):
                self.difference.before_remove(id)
                if id in self._added:
                    del self._log[self._added.pop(id)]
                else:
                    self._log[number] = operation
        perform(self.tree, operation, self._next)

    def _keep(self, over: Iterable[int], parent: int) -> None:
        """Keep the additions of nodes in the log that a later addition relies on."""
        for one in over:
            self._added.pop(one, None)
        while parent != ROOT:
            self._added.pop(parent, None)
            parent = self.tree[parent].parent

    # Updates

    @property
    def version(self) -> TreeVersion:
        """The last published version, or the version at the beginning."""
        return self._base

    @property
    def due_at(self) -> float | None:
        """The time at which the age of a change makes an update due; None without changes."""
        return self._published + self.patience if self._log and self.patience is not None else None

    def due(self, now: float) -> bool:
        """Tell whether an update should be published now."""
        if self._base.term != self.term:
            return True
        if not self._log:
            return False
        late = self.due_at is not None and now >= self.due_at
        return late or self.difference.value > self.threshold

    def publish(self, now: float) -> TreeUpdate | None:
        """Return all changes since the last update; None without changes, unless a new term must be announced."""
        if not self._log and self._base.term == self.term:
            return None
        update = TreeUpdate(self._base, self._next, tuple(self._log.values()), self.tree.digest)
        self.tree.reach(self._next)
        self.tree.forget(self._next)
        self._base, self._next = self._next, TreeVersion(self.term, self._next.number + 1)
        self._log.clear()
        self._added.clear()
        self._published = now
        self.difference.reset()
        return update

    def whole(self, now: float) -> tuple[TreeUpdate | None, TreeUpdate]:
        """Return the whole tree, for a broker that missed an update.

        And first an update for all brokers, if there is one.
        """
        update = self.publish(now)
        return update, updates.whole(self.tree)


def part(path: Path, parts: int) -> int:
    """Return the part of a path, by the hash of its first attribute."""
    first = path[0].dimension if path else ""
    return crc32((first if isinstance(first, str) else first.text).encode()) % parts
