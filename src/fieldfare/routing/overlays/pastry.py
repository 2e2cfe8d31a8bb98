"""An overlay in the manner of Pastry: any node reaches the owner of any key in a few hops, knowing few nodes.

A node knows its *leaves*, the next nodes on either side on the ring, and a *table*: for each number of digits and each
next digit a few nodes that share so many digits with it and then have that one. A message for a key goes to nodes that
share more and more digits with the key, and at last to a leaf. Leaves make the way right, the table makes it short.

`Peers` is what one node knows, an immutable value. `PastryNode` keeps it up to date by messages. Whoever runs the node
sends what it asks to send. When a message cannot be sent, or a neighbour falls silent, he says `Gone` to the node; a
`Join` that could not be sent he then says to the node again, which knows another way.
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
    """The nodes that one node knows, and by them the way to each key.

    >>> ring = Ring(bits=6, digit_bits=2, identify=lambda name: int(name, 4))
    >>> peers = Peers("123", ring, half=1).learn(["121", "130", "200", "311", "022"])
    >>> peers.smaller, peers.larger, peers.next_hop(int("333", 4))
    (('121',), ('130',), '311')
    """

    name: str
    ring: Ring = RING
    half: int = 8
    """how many leaves on either side; routing survives when fewer nodes in a row fail at once"""
    backups: int = 2
    """how many more nodes than the first one to keep in each cell of the table"""
    proximity: Callable[[str], float] | None = None
    """how far away another node is, in whatever sense; the nearest one is the first in its cell"""
    smaller: tuple[str, ...] = ()
    """the leaves with the next smaller ids, nearest first"""
    larger: tuple[str, ...] = ()
    """the leaves with the next larger ids, nearest first"""
    table: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    """by row, the number of shared digits, and column, the next digit"""

    @property
    def id(self) -> int:
        """The node's own place on the ring."""
        return self.ring.id(self.name)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes next to this one on both sides."""
        return tuple(dict.fromkeys(self.smaller + self.larger))

    @property
    def known(self) -> tuple[str, ...]:
        """All nodes that this one knows; itself not among them."""
        return tuple(
            dict.fromkeys((*self.smaller, *self.larger, *(name for cell in self.table.values() for name in cell)))
        )

    def cell(self, id: int) -> tuple[int, int]:
        """The row and column where another id belongs."""
        row = self.ring.shared(self.id, id)
        return row, self.ring.digit(id, row)

    def learn(self, names: Iterable[str]) -> Peers:
        """With those of the nodes that are of use."""
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
        """Without a node; others that are known take its places."""
        if name not in self.known:
            return self
        return replace(self, smaller=(), larger=(), table={}).learn({*self.known} - {name})

    def _preference(self, name: str) -> tuple[float, int]:
        """Orders the nodes of a cell. Without proximity each node prefers others, lest all lean on the same one."""
        return self.proximity(name) if self.proximity else 0.0, self.ring.id(name) ^ self.id

    def next_hop(self, key: int) -> str | None:
        """The next node on the way to the owner of a key; None: it is this one.

        Among leaves it is the nearest one; else one that shares more digits with the key; else the nearest one known.
        But always it is nearer to the key than this one: Pastry would also take one farther away that shares more
        digits, and may then go round in circles while nodes disagree. So at any time the next hops for a key make up a
        forest, and a tree when all leaves are right.
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
        """The n nodes nearest to a key, nearest first; the owner knows them for n up to `half` + 1."""
        return self.ring.closest((self.name, *self.leaves), key, n)


REMEMBERED: Final = 1000
"""how many nodes that are gone a node remembers"""


class PastryNode:
    """One node of the overlay: messages in, messages out.

    A leaf that is new to a node hears so and tells what it knows better; a leaf that is lost is reported to the others.
    With that alone all leaves come right again after nodes have joined, or fewer than `half` in a row have failed.
    """

    def __init__(self, peers: Peers) -> None:
        """Begin with what is known; usually nothing."""
        self.peers = peers
        self._via: str | None = None
        """the node through which it is joining, until it is welcome"""
        self.gone: dict[str, None] = {}
        """the last ones that were gone and not heard since, lest nodes tell each other of the dead for ever"""

    def join(self, via: str) -> list[Send]:
        """Enter the overlay, through any node that is in it."""
        self._via = via
        return [Send(via, Join(self.peers.name))]

    def leave(self) -> list[Send]:
        """Leave the overlay in good order."""
        return [Send(name, Gone(self.peers.name)) for name in self.peers.known]

    def receive(self, message: OverlayMessage, sender: str) -> list[Send]:
        """Take a message; give those that follow from it."""
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
        if join.joiner == self.peers.name:  # it could not be sent: there may be another way
            return [Send(self.peers.known[0], join)] if self._via is not None and self.peers.known else []
        if self._via is not None and self._via != join.joiner:
            return [Send(self._via, join)]  # we know hardly anybody yet
        self.peers = self.peers.forget(join.joiner)  # in an earlier life
        peers, id = self.peers, self.peers.ring.id(join.joiner)
        shared = peers.ring.shared(peers.id, id)
        rows = [name for (row, _), cell in peers.table.items() if join.row <= row <= shared for name in cell]
        names = tuple(dict.fromkeys((*join.names, *rows, peers.name)))
        if (hop := peers.next_hop(id)) is not None:
            return [Send(hop, Join(join.joiner, max(join.row, shared + 1), names))]
        return [Send(join.joiner, Welcome(tuple(dict.fromkeys((*names, *peers.leaves)))))]

    def _learn(self, sender: str, names: Iterable[str], *, welcome: bool = False) -> list[Send]:
        """Learn, and make oneself known to new leaves; at the beginning to everyone.

        Those who are leaves no longer hear of the nearer ones in their stead: else nodes that join at once, side by
        side, might never meet. What is said of a node that was gone may be old: the node itself is asked.
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
        """Forget a node, and ask for others in its places: among leaves the other leaves, in the table its row.

        For the table only if no backup is left.
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
        """Tell a node better leaves than it has, and whom to put in the place of one that is gone."""
        peers, ring = self.peers, self.peers.ring
        smaller, larger = ring.leaves((*leaves, *peers.known, peers.name), sender, peers.half)
        names = {*smaller, *larger} - {*leaves}
        if gone is not None:
            place = ring.id(gone)
            row = ring.shared(ring.id(sender), place)
            names |= {name for name in peers.known if ring.shared(ring.id(name), place) > row}
        return [Send(sender, State(tuple(sorted(names))))] if names else []
