"""A Pastry overlay: a node reaches the owner of any key in a few hops, although the node knows few others.

A node knows its *leaves*, the next nodes on either side of the ring, and a *table*: for each number of shared digits
and each next digit a few nodes whose ids share so many digits and then have the digit. A message for a key goes to
nodes with more and more digits of the key, and at last to a leaf. Leaves make the way right, the table makes the way
short.

`Peers` is the knowledge of a node, an immutable value. `PastryNode` keeps the value up to date by messages. The caller
sends the messages. When a message cannot be sent, or a neighbour falls silent, the caller passes `Gone` to the node; a
`Join` that could not be sent the caller passes to the node again, which chooses another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fieldfare.protocol.messages import Send
from fieldfare.protocol.overlay_messages import Announce, Gone, Join, OverlayMessage, Repair, State, Welcome
from fieldfare.routing.overlays.ring import Ring

RING: Final = Ring()


@dataclass(frozen=True, slots=True)
class Peers:
    """The nodes which a node knows, and the way to each key.

    >>> ring = Ring(bits=6, digit_bits=2, identify=lambda name: int(name, 4))
    >>> peers = Peers("123", ring, half=1).learn(["121", "130", "200", "311", "022"])
    >>> peers.smaller, peers.larger, peers.next_hop(int("333", 4))
    (('121',), ('130',), '311')
    """

    name: str
    ring: Ring = RING
    half: int = 8
    """number of leaves on either side; routing survives the failure of fewer nodes in a row"""
    backups: int = 2
    """number of spare nodes in each cell of the table"""
    proximity: Callable[[str], float] | None = None
    """returns the distance to another node, in any unit; the nearest node is the first in its cell"""
    smaller: tuple[str, ...] = ()
    """the leaves with the next smaller ids, nearest first"""
    larger: tuple[str, ...] = ()
    """the leaves with the next larger ids, nearest first"""
    table: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    """nodes by row, the number of shared digits, and column, the next digit"""

    @property
    def id(self) -> int:
        """The node's own id on the ring."""
        return self.ring.id(self.name)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nearest nodes on both sides of the ring."""
        return tuple(dict.fromkeys(self.smaller + self.larger))

    @property
    def known(self) -> tuple[str, ...]:
        """All known nodes, without the node itself."""
        return tuple(
            dict.fromkeys((*self.smaller, *self.larger, *(name for cell in self.table.values() for name in cell)))
        )

    def cell(self, id: int) -> tuple[int, int]:
        """Return the row and column of another id in the table."""
        row = self.ring.shared(self.id, id)
        return row, self.ring.digit(id, row)

    def learn(self, names: Iterable[str]) -> Peers:
        """Return the peers with the useful nodes among some names."""
        new = {*names} - {self.name} - {*self.leaves}
        table = dict(self.table)
        for name in new:
            place = self.cell(self.ring.id(name))
            cell = table.get(place, ())
            if name not in cell:
                table[place] = tuple(sorted((*cell, name), key=self._preference)[: self.backups + 1])
        smaller, larger = self.ring.leaves({*self.leaves, *new}, self.name, self.half)
        return replace(self, smaller=smaller, larger=larger, table=table)

    def forget(self, name: str) -> Peers:
        """Return the peers without a node; other known nodes take its places."""
        if name not in self.known:
            return self
        return replace(self, smaller=(), larger=(), table={}).learn({*self.known} - {name})

    def _preference(self, name: str) -> tuple[float, int]:
        """Return the sort key of a node in its cell. Without proximity each node prefers others, to spread the load."""
        return self.proximity(name) if self.proximity else 0.0, self.ring.id(name) ^ self.id

    def next_hop(self, key: int) -> str | None:
        """Return the next node on the way to the owner of a key; None for the owner itself.

        Among leaves the nearest; else a node with more digits of the key; else the nearest known node. The next hop is
        always nearer to the key than the node itself. (Pastry would also take a farther node with more digits, and may
        then go in circles while nodes disagree.) So at any time the next hops for a key form a forest, and a tree when
        all leaves are right.
        """
        own = self.ring.rank(self.name, key)
        if self._among_leaves(key):
            candidates: Iterable[str] = self.leaves
        else:
            for name in self.table.get(self.cell(key), ()):
                if self.ring.rank(name, key) < own:
                    return name
            candidates = self.known
        nearest = self.ring.owner((self.name, *candidates), key)
        return None if nearest == self.name else nearest

    def _among_leaves(self, key: int) -> bool:
        if not self.smaller:
            return True
        ahead, ring = self.ring.ahead, self.ring
        first, last = ring.id(self.smaller[-1]), ring.id(self.larger[-1])
        return ahead(self.id, key) <= ahead(self.id, last) or ahead(key, self.id) <= ahead(first, self.id)

    def replicas(self, key: int, n: int) -> list[str]:
        """Return the n nodes nearest to a key, nearest first; the owner knows them for n up to `half` + 1."""
        return self.ring.closest((self.name, *self.leaves), key, n)


REMEMBERED: Final = 1000
"""number of failed nodes which a node remembers"""


class PastryNode:
    """A node of the overlay, as a function of messages.

    A new leaf gets an announcement and returns better leaves if it knows any; a lost leaf is reported to the others.
    With these two rules all leaves come right again after joins, or after the failure of fewer than `half` nodes in a
    row.
    """

    def __init__(self, peers: Peers) -> None:
        """Make a node with some knowledge; usually with none."""
        self.peers = peers
        self._via: str | None = None
        """the node through which this node joins, until its welcome"""
        self.gone: dict[str, None] = {}
        """the last nodes that failed and were silent since, so that nodes do not tell each other of the dead for
        ever"""

    def join(self, via: str) -> list[Send]:
        """Enter the overlay through any node of the overlay."""
        self._via = via
        return [Send(via, Join(self.peers.name))]

    def leave(self) -> list[Send]:
        """Leave the overlay in good order, with a message to all known nodes."""
        return [Send(name, Gone(self.peers.name)) for name in self.peers.known]

    def receive(self, message: OverlayMessage, sender: str) -> list[Send]:
        """Process a message and return the messages to send."""
        match message:
            case Join():
                return self._pass_on(message)
            case Welcome(names=names):
                self._via = None
                return self._learn(sender, names, welcome=True)
            case Announce(leaves=leaves):
                return self._learn(sender, leaves) + self._advise(sender, leaves)
            case State(names=names):
                return self._learn(sender, names)
            case Repair(gone=gone, leaves=leaves):
                # Perhaps only a link is down. If the node is gone, this is how to find out.
                check = self._announce([gone] if gone in self.peers.leaves else [])
                return check + self._learn(sender, leaves) + self._advise(sender, leaves, gone)
            case Gone(name=name):
                return self._forget(name)

    def _pass_on(self, join: Join) -> list[Send]:
        if join.joiner == self.peers.name:  # the message could not be sent: try another way
            return [Send(self.peers.known[0], join)] if self._via is not None and self.peers.known else []
        if self._via is not None and self._via != join.joiner:
            return [Send(self._via, join)]  # this node knows too few others yet
        self.peers = self.peers.forget(join.joiner)  # in an earlier life
        peers, id = self.peers, self.peers.ring.id(join.joiner)
        shared = peers.ring.shared(peers.id, id)
        rows = [name for (row, _), cell in peers.table.items() if join.row <= row <= shared for name in cell]
        names = tuple(dict.fromkeys((*join.names, *rows, peers.name)))
        if (hop := peers.next_hop(id)) is not None:
            return [Send(hop, Join(join.joiner, max(join.row, shared + 1), names))]
        return [Send(join.joiner, Welcome(tuple(dict.fromkeys((*names, *peers.leaves)))))]

    def _learn(self, sender: str, names: Iterable[str], *, welcome: bool = False) -> list[Send]:
        """Learn names, and announce the node to new leaves; after a welcome, to all known nodes.

        Former leaves hear of the nearer nodes in their stead: otherwise nodes that join at the same time, side by side,
        might never meet. News of a node that was gone may be old: the node itself is asked.
        """
        self.gone.pop(sender, None)
        before = self.peers.leaves
        doubtful = [name for name in names if name in self.gone]
        self.peers = self.peers.learn({sender, *names}.difference(doubtful))
        gained = [name for name in self.peers.leaves if name not in before]
        dropped = [name for name in before if name not in self.peers.leaves]
        hear = {*doubtful, *(self.peers.known if welcome else gained)}
        return self._announce(hear) + [Send(name, State(tuple(gained))) for name in dropped]

    def _announce(self, names: Iterable[str]) -> list[Send]:
        return [Send(name, Announce(self.peers.leaves)) for name in sorted(names)]

    def _forget(self, name: str) -> list[Send]:
        """Forget a node, and ask for replacements.

        The other leaves for a leaf, the row for a table entry without a backup.
        """
        if name not in self.peers.known:
            return []
        self.gone[name] = None
        if len(self.gone) > REMEMBERED:
            del self.gone[next(iter(self.gone))]
        lost_leaf = name in self.peers.leaves
        self.peers = self.peers.forget(name)
        peers = self.peers
        place = peers.cell(peers.ring.id(name))
        if lost_leaf:
            ask: Iterable[str] = peers.leaves
        elif place not in peers.table:
            ask = [cell[0] for (row, _), cell in peers.table.items() if row == place[0]]
        else:
            ask = ()
        return [Send(other, Repair(name, peers.leaves)) for other in ask]

    def _advise(self, sender: str, leaves: tuple[str, ...], gone: str | None = None) -> list[Send]:
        """Send a node better leaves than its own, and replacements for a node that is gone."""
        peers, ring = self.peers, self.peers.ring
        smaller, larger = ring.leaves((*leaves, *peers.known, peers.name), sender, peers.half)
        names = {*smaller, *larger} - {*leaves}
        if gone is not None:
            place = ring.id(gone)
            row = ring.shared(ring.id(sender), place)
            names |= {name for name in peers.known if ring.shared(ring.id(name), place) > row}
        return [Send(sender, State(tuple(sorted(names))))] if names else []
