"""Plans of random runs: all actions of clients and operators and all faults of a run, as plain values.

A plan is drawn from a seed. The text of a plan is a Python expression for the plan, so a failing run can be kept.
The numbers of clients, nodes and links count modulo the existing ones, so a plan without a part is a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.topologies import Topology, from_edges

EVENTS: Final = tuple(Event({"x": x, "y": y}) for x, y in product(range(4), repeat=2))
FILTERS: Final[tuple[Filter, ...]] = tuple(
    parse(text)
    for text in (
        "TRUE",
        *(f"{field} BETWEEN {low} AND {high}" for field in "xy" for low in range(4) for high in range(low, 4)),
        "x < 2 AND y > 0",
        "x = 0 AND y BETWEEN 1 AND 2",
        "x > 0 AND y = 2",
        "x = 1 OR y = 1",
    )
)
IDS: Final = ("one", "two")


class Publish(NamedTuple):
    """A client publishes events at once."""

    client: int
    events: tuple[int, ...]


class Subscribe(NamedTuple):
    """A client subscribes, perhaps under an id in use."""

    client: int
    id: str
    filter: int


class Unsubscribe(NamedTuple):
    """A client ends a subscription."""

    client: int
    id: str


class Advertise(NamedTuple):
    """A client advertises, besides the first advertisement."""

    client: int
    id: str
    filter: int


class Unadvertise(NamedTuple):
    """A client ends an advertisement."""

    client: int
    id: str


class Move(NamedTuple):
    """A client goes to a node; with `keep` the former connection lasts until the new node answers."""

    client: int
    node: int
    keep: bool = False


class Detach(NamedTuple):
    """A client goes away, until the next move or settlement."""

    client: int


class BreakLine(NamedTuple):
    """The connection of a client breaks, with the frames on the way; the client comes back at once."""

    client: int


class Cut(NamedTuple):
    """Frames of a link vanish, in one direction or both, until the network heals."""

    link: int
    forth: bool = True
    back: bool = True


class BreakLink(NamedTuple):
    """A link breaks, with the frames on the way, and can be made again."""

    link: int


class Part(NamedTuple):
    """Some nodes are parted from the others, by the bits of a number."""

    nodes: int


class Heal(NamedTuple):
    """Cuts and partitions end, and frames pass everywhere."""


class Kill(NamedTuple):
    """A node is killed in a later step, at a stage of the write, and starts again later.

    For the stages in the middle of a write, only steps with entries of the log count.
    """

    node: int
    steps: int = 0
    stage: Stage = Stage.ALL
    kept: int = 0
    seconds: float = 0.0


class Maintain(NamedTuple):
    """A node writes a checkpoint and deletes unneeded entries."""

    node: int


class SlowDisk(NamedTuple):
    """The disk of a node gets slow, or fast again."""

    node: int
    seconds: float


class FullDisk(NamedTuple):
    """The disk of a node gets full; after some seconds there is room again."""

    node: int
    seconds: float


class FlipBit(NamedTuple):
    """A bit of the log of a node flips."""

    node: int


class Jump(NamedTuple):
    """The wall clock of a node jumps."""

    node: int
    seconds: float


class Lose(NamedTuple):
    """Everything settles, then a leaf of the tree fails for good, and the clients there go to another node."""

    leaf: int
    refuge: int


class Settle(NamedTuple):
    """All faults are mended, all clients come back, and the network comes to rest."""


Act: TypeAlias = (
    Publish
    | Subscribe
    | Unsubscribe
    | Advertise
    | Unadvertise
    | Move
    | Detach
    | BreakLine
    | Cut
    | BreakLink
    | Part
    | Heal
    | Kill
    | Maintain
    | SlowDisk
    | FullDisk
    | FlipBit
    | Jump
    | Lose
    | Settle
)


class Step(NamedTuple):
    """An act, some seconds after the step before."""

    pause: float
    act: Act


class Plan(NamedTuple):
    """The nodes, clients and steps of a run from beginning to end."""

    seed: int
    """of delays"""
    strategy: str
    parents: tuple[int, ...]
    """of all nodes but the first, modulo the nodes before"""
    steps: tuple[Step, ...]
    hierarchical: bool = False
    replicas: int = 0
    forgetful: bool = False
    """whether brokers remember events so shortly that the numbers of messages alone must prevent duplicates"""
    clients: int = 1
    """clients at each node"""
    lag: float = 0.0
    """seconds until a client acknowledges, at most"""
    apart: bool = False
    """whether each node has an index of its own, and not a part of one for all nodes, which is faster"""

    def topology(self) -> Topology:
        """Return the tree of nodes."""
        edges = [(f"b{i}", f"b{parent % i}") for i, parent in enumerate(self.parents, start=1)]
        tree = from_edges(edges, ["b0"])
        return tree.hierarchical("b0") if self.hierarchical else tree


PAUSES: Final = (0.0, 0.0, 0.001, 0.01, 0.03, 0.1, 0.4)
"""of steps, in seconds: shorter and longer than a frame on a link takes"""


class _Dice(Random):
    """Draws clients and nodes, a few more often: faults do most harm together."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._few = {kind: [self.randrange(64) for _ in range(2)] for kind in ("client", "node")}
        self._focus = self.choice((0.3, 0.6, 0.95))

    def client(self) -> int:
        return self._one("client")

    def node(self) -> int:
        return self._one("node")

    def _one(self, kind: str) -> int:
        return self.choice(self._few[kind]) if self.random() < self._focus else self.randrange(64)


def draw(seed: int, strategies: tuple[str, ...] = tuple(STRATEGIES)) -> Plan:
    """Draw a plan from a seed."""
    dice = _Dice(seed)
    strategy = dice.choice(strategies)
    nodes = dice.choice((1, 2, 2, 3, 3, 3, 4))
    replicas = int(nodes > 1 and dice.random() < 0.3)
    wild = dice.random() < 0.2  # disks and clocks have faults, too
    steps: list[Step] = []
    for _ in range(dice.randint(1, 3)):
        steps += [Step(dice.choice(PAUSES), _registration(dice)) for _ in range(dice.randint(1, 4))]
        if replicas and nodes > 2 and dice.random() < 0.15:
            steps.append(Step(0.0, Lose(dice.node(), dice.node())))
        steps.append(Step(0.0, Settle()))
        for _ in range(dice.randint(1, 12)):
            acts = dice.choice(_ARCS)(dice) if dice.random() < 0.12 else [_act(dice, wild=wild)]
            steps += [Step(dice.choice(PAUSES), act) for act in acts if len(acts) == 1 or dice.random() < 0.9]
    return Plan(
        seed,
        strategy,
        tuple(dice.randrange(4) for _ in range(nodes - 1)),
        tuple(steps),
        hierarchical=not replicas and dice.random() < 0.3,
        replicas=replicas,
        forgetful=not replicas and dice.random() < 0.5,
        clients=dice.choice((1, 1, 2)),
        lag=dice.choice((0.0, 0.0, 0.2, 2.0, 100.0)),
        apart=dice.random() < 0.1,
    )


def _registration(dice: _Dice) -> Act:
    client, id, filter = dice.client(), dice.choice(IDS), dice.choice((0, dice.randrange(64)))
    return Advertise(client, id, filter) if dice.random() < 0.1 else Subscribe(client, id, filter)


def _act(dice: _Dice, *, wild: bool) -> Act:
    (kind,) = dice.choices(*(_WILD if wild else _TAME))
    return kind(dice)


def _kill(dice: _Dice, node: int | None = None) -> Act:
    stage, kept = Stage(dice.randrange(4)), dice.randrange(4)
    return Kill(
        dice.node() if node is None else node,
        dice.choice((0, 0, 1, 3)),
        stage,
        kept,
        dice.choice((0.0, 0.05, 0.5, 3.0)),
    )


def _publish(dice: _Dice, client: int | None = None) -> Act:
    return Publish(
        dice.client() if client is None else client, tuple(dice.randrange(16) for _ in range(dice.randint(1, 3)))
    )


def _waiting(dice: _Dice) -> list[Act]:
    """Events wait for a client who is away, moves, and is away again when the session arrives at a node that dies."""
    client, node = dice.client(), dice.node()
    return [Detach(client), _publish(dice), Move(client, node), Detach(client), _publish(dice), _kill(dice, node)]


def _crowded(dice: _Dice) -> list[Act]:
    """Filters and events wait for a link together, and come to a node that dies with a part of them written."""
    link, client = dice.randrange(64), dice.client()
    apart = [Cut(link), Subscribe(client, dice.choice(IDS), dice.randrange(64)), _publish(dice, client), _publish(dice)]
    return [*apart, _kill(dice), Heal()]


def _errant(dice: _Dice) -> list[Act]:
    """A client looks for its session while nodes die."""
    client, node = dice.client(), dice.node()
    return [_kill(dice, node), Move(client, dice.node()), _publish(dice), Move(client, node), _kill(dice)]


_ARCS: Final = (_waiting, _crowded, _errant)
_Drawing: TypeAlias = Callable[[_Dice], Act]
_CHANCES: Final[dict[_Drawing, int]] = {
    _publish: 40,
    lambda dice: Move(dice.client(), dice.node(), dice.random() < 0.3): 14,
    _kill: 14,
    lambda dice: BreakLink(dice.randrange(64)): 5,
    lambda dice: Cut(dice.randrange(64), *dice.choice(((True, True), (True, False), (False, True)))): 3,
    lambda _: Heal(): 3,
    lambda dice: Part(dice.randrange(16)): 2,
    lambda dice: Detach(dice.client()): 6,
    lambda dice: BreakLine(dice.client()): 4,
    lambda dice: Maintain(dice.node()): 6,
    lambda dice: SlowDisk(dice.node(), dice.choice((0.0, 0.01, 0.3))): 4,
    _registration: 4,
    lambda dice: Unsubscribe(dice.client(), dice.choice(IDS)): 2,
    lambda dice: Unadvertise(dice.client(), dice.choice(IDS)): 1,
}
_FAULTS: Final[dict[_Drawing, int]] = {
    lambda dice: FullDisk(dice.node(), dice.choice((0.2, 1.0))): 4,
    lambda dice: FlipBit(dice.node()): 4,
    lambda dice: Jump(dice.node(), dice.choice((-3600.0, -1.0, 0.5, 3600.0))): 6,
}
_TAME: Final = (list(_CHANCES), list(_CHANCES.values()))
_WILD: Final = ([*_CHANCES, *_FAULTS], [*_CHANCES.values(), *_FAULTS.values()])
