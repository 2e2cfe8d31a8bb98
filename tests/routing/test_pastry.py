"""The overlay as a whole, against the functions that see all names; and one node by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.routing.messages import Send
from fieldfare.routing.pastry import Announce, Gone, Join, OverlayMessage, PastryNode, Peers, Repair, State, Welcome
from fieldfare.routing.ring import Ring, key_of, node_id

SMALL = Ring(bits=8, digit_bits=2, identify=int)
"""names are ids here, so that tests choose who sits where"""
VECTOR = Ring(bits=6, digit_bits=2, identify=lambda name: int(name, 4))


class Overlay:
    """Nodes, and messages under way between them. Between two nodes they keep their order, otherwise chance decides."""

    def __init__(self, peers: Callable[[str], Peers], random: Random) -> None:
        self.peers, self.random = peers, random
        self.nodes: dict[str, PastryNode] = {}
        self.links: dict[tuple[str, str], list[OverlayMessage]] = {}
        self.carried = 0

    def send(self, sender: str, sends: Iterable[Send]) -> None:
        for send in sends:
            assert isinstance(send.message, OverlayMessage)
            assert send.to != sender
            self.links.setdefault((sender, send.to), []).append(send.message)

    def join(self, names: Iterable[str]) -> None:
        """All at once, each by way of a node that was there before."""
        there = sorted(self.nodes)
        for name in names:
            self.nodes[name] = PastryNode(self.peers(name))
            if there:
                self.send(name, self.nodes[name].join(self.random.choice(there)))
            there = there or [name]

    def fail(self, names: Iterable[str]) -> None:
        for name in names:
            del self.nodes[name]

    def leave(self, name: str) -> None:
        self.send(name, self.nodes.pop(name).leave())

    def settle(self) -> None:
        """Carry messages until there are no more, and nobody has a leaf that is dead."""
        while True:
            while self.links:
                self._carry(self.random.choice([*self.links]))
            for node in self.nodes.values():
                for leaf in node.peers.leaves:
                    if leaf not in self.nodes:
                        self.send(node.peers.name, node.receive(Gone(leaf), node.peers.name))
            if not self.links:
                return

    def _carry(self, link: tuple[str, str]) -> None:
        self.carried += 1
        assert self.carried < 1_000_000, "the protocol does not come to an end"
        sender, to = link
        message = self.links[link].pop(0)
        if not self.links[link]:
            del self.links[link]
        if to in self.nodes:
            self.send(to, self.nodes[to].receive(message, sender))
        elif sender in self.nodes:
            self.send(sender, self.nodes[sender].receive(Gone(to), sender))
            if isinstance(message, Join) and message.joiner != sender:
                self.send(sender, self.nodes[sender].receive(message, sender))

    def path(self, start: str, key: int) -> list[str]:
        """The nodes on the way to the owner. A dead one is found out when it is tried."""
        path = [start]
        while (hop := self.nodes[path[-1]].peers.next_hop(key)) is not None:
            if hop in self.nodes:
                assert hop not in path
                path.append(hop)
            else:
                self.send(path[-1], self.nodes[path[-1]].receive(Gone(hop), path[-1]))
                self.settle()
        return path


def check(overlay: Overlay, ring: Ring, keys: Iterable[int]) -> None:
    """All leaves are right; all ways end at the owner, who knows its replicas."""
    keys = list(keys)
    for name, node in overlay.nodes.items():
        half = node.peers.half
        assert (node.peers.smaller, node.peers.larger) == ring.leaves(overlay.nodes, name, half), name
        for key in keys:
            owner = overlay.path(name, key)[-1]
            assert owner == ring.owner(overlay.nodes, key)
            replicas = overlay.nodes[owner].peers.replicas(key, half + 1)
            # the owner may hold in its table, as one more, a node that it has not tried since it died
            assert set(replicas) - {*overlay.nodes} or replicas == ring.closest(overlay.nodes, key, half + 1)


def in_a_row(ring: Ring, names: Iterable[str], failed: set[str]) -> int:
    """The length of the longest row of failed neighbours on the ring; not all may have failed."""
    order = sorted(names, key=ring.id)
    longest = run = 0
    for name in order + order:
        run = run + 1 if name in failed else 0
        longest = max(longest, run)
    return longest


names = st.integers(0, 255).map(str)
changes = st.lists(
    st.tuples(st.sampled_from(["join", "join", "fail", "leave"]), st.lists(names, min_size=1, max_size=12, unique=True)),
    max_size=8,
)


@given(changes, st.integers(1, 4), st.integers(0, 2), st.lists(st.integers(0, 255), min_size=1, max_size=5), st.integers())
def test_after_joins_and_failures_all_leaves_are_right_and_all_ways_end_at_the_owner(
    changes: list[tuple[str, list[str]]], half: int, backups: int, keys: list[int], seed: int
) -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half, backups), Random(seed))
    for change, chosen in changes:
        if change == "join":
            overlay.join(name for name in chosen if name not in overlay.nodes)
        else:
            gone: set[str] = set()
            for name in chosen:  # any number, but fewer than `half` in a row
                # the nodes that are there, by turns: names drawn at random would seldom be among them
                name = sorted(overlay.nodes)[int(name) % len(overlay.nodes)] if overlay.nodes else name
                more = gone | {name}
                if more < {*overlay.nodes} and in_a_row(SMALL, overlay.nodes, more) < half:
                    gone = more
            for name in sorted(gone):
                overlay.leave(name) if change == "leave" else overlay.fail([name])
        overlay.settle()
        check(overlay, SMALL, keys)
