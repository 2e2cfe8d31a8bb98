"""The overlay as a whole, against the functions that see all names; and one node by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.protocol.messages import Send
from fieldfare.protocol.overlay_messages import Announce, Gone, Join, OverlayMessage, Repair, State, Welcome
from fieldfare.routing.overlays.pastry import PastryNode, Peers
from fieldfare.routing.overlays.ring import Ring, key_of, node_id

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

    def drain(self) -> None:
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
                self.drain()
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
            assert overlay.nodes[owner].peers.replicas(key, half + 1) == ring.closest(overlay.nodes, key, half + 1)


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
    st.tuples(
        st.sampled_from(["join", "join", "fail", "leave"]), st.integers(1, 40), st.randoms(use_true_random=False)
    ),
    min_size=1,
    max_size=6,
)


@few(15)
@given(changes, st.integers(1, 4), st.integers(0, 2), st.integers())
def test_after_joins_and_failures_all_leaves_are_right_and_all_ways_end_at_the_owner(
    changes: list[tuple[str, int, Random]], half: int, backups: int, seed: int
) -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half, backups), Random(seed))
    for change, size, random in changes:
        if change == "join":
            overlay.join({str(random.randrange(256)) for _ in range(size)} - {*overlay.nodes})
        else:
            for name in some(overlay.nodes, size, half, random):
                overlay.leave(name) if change == "leave" else overlay.fail([name])
        overlay.drain()
        check(overlay, SMALL, random.sample(range(256), 4))


def some(names: Iterable[str], size: int, half: int, random: Random) -> list[str]:
    """So many of the nodes, or as many as there are with fewer than `half` in a row."""
    names = sorted(names)
    chosen: set[str] = set()
    for name in random.sample(names, min(size, len(names))):
        if len(chosen) + 1 < len(names) and in_a_row(SMALL, names, chosen | {name}) < half:
            chosen.add(name)
    return sorted(chosen)


@given(
    st.dictionaries(names, st.sets(names, max_size=20), min_size=1, max_size=20), st.integers(0, 255), st.integers(1, 3)
)
def test_each_hop_is_nearer_whatever_the_nodes_know(known: dict[str, set[str]], key: int, half: int) -> None:
    for name, others in known.items():
        hop = Peers(name, SMALL, half).learn(others).next_hop(key)
        if hop is not None:
            assert SMALL.rank(hop, key) < SMALL.rank(name, key)
        elif others:  # and it does not stop before one that it kept
            assert SMALL.owner({name, *Peers(name, SMALL, half).learn(others).known}, key) == name


@given(names, st.sets(names), st.integers(0, 255), st.integers(1, 3), st.integers(0, 2))
def test_a_node_keeps_its_leaves_and_whom_it_needs_in_its_table(
    name: str, others: set[str], key: int, half: int, backups: int
) -> None:
    others -= {name}
    peers = Peers(name, SMALL, half, backups).learn(others)
    assert (peers.smaller, peers.larger) == SMALL.leaves(others, name, half)
    for row in range(4):
        for column in range(4):
            here = {other for other in others if peers.cell(int(other)) == (row, column)}
            cell = peers.table.get((row, column), ())
            assert {*cell} <= here
            assert len(cell) == min(len(here), backups + 1)
            for other in cell:
                assert SMALL.shared(int(name), int(other)) == row
                assert SMALL.digit(int(other), row) == column
    one_by_one = Peers(name, SMALL, half, backups)
    for other in sorted(others):
        one_by_one = one_by_one.learn([other])
    assert one_by_one == peers


def test_the_first_hop_of_the_book() -> None:
    everyone = ["012", "021", "102", "121", "122", "130", "200", "213", "311", "320", "331", "332"]
    assert Peers("123", VECTOR, half=2).learn({*everyone} - {"320", "331", "332"}).next_hop(int("333", 4)) == "311"
    # of several in the cell the first one may be another; proximity decides
    near = Peers("123", VECTOR, half=2, proximity=lambda name: 0.0 if name == "311" else 1.0).learn(everyone)
    assert near.next_hop(int("333", 4)) == "311"
    assert near.table[0, 3][0] == "311"


def test_a_key_among_the_leaves_goes_straight_to_its_owner() -> None:
    peers = Peers("123", VECTOR, half=2).learn(["120", "121", "130", "132", "200", "333"])
    assert peers.next_hop(int("131", 4)) == "130"
    assert peers.next_hop(int("123", 4)) is None
    assert peers.next_hop(int("122", 4)) == "121"  # as near as this one, and lower
    assert Peers("123", VECTOR).next_hop(0) is None


def test_without_a_node_that_shares_more_digits_any_nearer_one_will_do() -> None:
    peers = Peers("123", VECTOR, half=1).learn(["122", "130", "211"])
    assert peers.next_hop(int("303", 4)) == "211"


def test_a_backup_takes_the_place_of_the_first_in_a_cell() -> None:
    peers = Peers("0", SMALL, half=1, backups=1).learn(["1", "255", "128", "129", "130"])
    assert peers.table[0, 2] == ("128", "129")
    assert peers.forget("128").table[0, 2] == ("129",)
    assert peers.forget("77") is peers


def test_a_leaf_takes_the_place_of_the_last_in_a_cell() -> None:
    peers = Peers("0", SMALL, half=2, backups=0).learn(["255", "254", "1", "2"])
    first, second = peers.table[0, 3][0], ({"255", "254"} - {*peers.table[0, 3]}).pop()
    assert peers.forget(first).table[0, 3] == (second,)


def test_an_empty_cell_is_filled_from_other_nodes_of_the_row() -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half=1, backups=0), Random(0))
    overlay.join(str(id) for id in (0, 1, 255, 64, 128, 129, 130, 131, 192))
    overlay.drain()
    node = overlay.nodes["0"]
    (first,) = node.peers.table[0, 2]
    overlay.fail([first])
    overlay.send("0", node.receive(Gone(first), "0"))
    overlay.drain()
    assert node.peers.table[0, 2][0] in overlay.nodes


def test_a_new_node_is_known_to_all_whom_it_knows() -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half=1), Random(0))
    overlay.join(str(id) for id in (0, 16, 32, 48, 64, 192))
    overlay.drain()
    overlay.join(["128"])
    overlay.drain()
    assert len(overlay.nodes["128"].peers.known) > 2
    for name in overlay.nodes["128"].peers.known:
        assert overlay.nodes[name].peers.table[0, 2] == ("128",)


def test_a_node_that_was_thought_dead_comes_back() -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half=2), Random(0))
    overlay.join(str(id) for id in range(0, 250, 10))
    overlay.drain()
    overlay.send("100", overlay.nodes["100"].receive(Gone("110"), "100"))
    assert overlay.nodes["100"].peers.next_hop(110) != "110"
    overlay.drain()  # the others still have it, say so, and it is asked
    assert not overlay.nodes["100"].gone
    check(overlay, SMALL, range(0, 256, 7))


def test_a_node_may_come_back_under_its_name() -> None:
    overlay = Overlay(lambda name: Peers(name, SMALL, half=2), Random(0))
    overlay.join(str(id) for id in range(0, 250, 10))
    overlay.drain()
    overlay.fail(["110"])
    overlay.join(["110"])  # before anyone has noticed
    overlay.drain()
    check(overlay, SMALL, range(0, 256, 7))
    overlay.fail(["110"])
    overlay.drain()
    overlay.join(["110"])
    overlay.drain()
    check(overlay, SMALL, range(0, 256, 7))


@pytest.mark.parametrize("digit_bits", [2, 4])
def test_hops_grow_with_the_logarithm_of_the_number_of_nodes(digit_bits: int) -> None:
    ring, size = Ring(digit_bits=digit_bits), 120
    overlay = Overlay(lambda name: Peers(name, ring, half=4), Random(1))
    for node in range(size):
        overlay.join([f"node {node}"])
        overlay.drain()
    paths = [overlay.path(name, key_of(f"{name} {topic}")) for name in overlay.nodes for topic in range(5)]
    assert all(path[-1] == ring.owner(overlay.nodes, key_of(f"{path[0]} {n % 5}")) for n, path in enumerate(paths))
    assert sum(len(path) - 1 for path in paths) / len(paths) <= math.log(size, 2**digit_bits) + 1
    assert max(len(node.peers.known) for node in overlay.nodes.values()) < size * 3 / 4


@pytest.mark.parametrize(
    "message", [Join("a", 1, ("b",)), Welcome(("a",)), Announce(("a", "b")), State(()), Repair("a", ("b",)), Gone("a")]
)
def test_messages_have_a_wire_form(message: OverlayMessage) -> None:
    decoder: msgspec.msgpack.Decoder[OverlayMessage] = msgspec.msgpack.Decoder(OverlayMessage)
    assert decoder.decode(msgspec.msgpack.encode(message)) == message


def test_ids_and_keys_are_spread_and_stay_the_same() -> None:
    assert node_id("a") != key_of("a")
    assert node_id("a") == 0x7A51A21D244FD498F58CF3F623344ED9
    assert len({node_id(str(n)) >> 124 for n in range(200)}) == 16
    with pytest.raises(ValueError, match="no whole number of digits"):
        Ring(digit_bits=3)


def test_the_ring_has_no_end() -> None:
    assert SMALL.owner(["10", "250"], 0) == "250"
    assert SMALL.owner(["10", "250"], 2) == "10"  # of two equally near the lower
    assert SMALL.closest(["10", "250", "100"], 255, 2) == ["250", "10"]
    assert SMALL.leaves(["10", "250", "100", "0"], "0", 1) == (("250",), ("10",))
