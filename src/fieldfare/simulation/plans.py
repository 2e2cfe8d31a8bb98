"""Plans of random runs: all actions of clients and operators and all faults of a run, as plain values.

A plan is drawn from a seed. The text of a plan is a Python expression for the plan, so a failing run can be kept:
`read` returns the plan of a text.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final, NamedTuple

import msgspec

from fieldfare.core.channel_map import ChannelMap
from fieldfare.filters import parse
from fieldfare.routing.publisher_policies import POLICIES
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.actions import (
    channels,
    clients,
    clocks,
    disks,
    links,
    members,
    nodes,
    parameters,
    patterns,
    versions,
)
from fieldfare.simulation.actions.act import Act, Drawing
from fieldfare.simulation.actions.arcs import ARCS, UNSYNCED, WITH_REPLICAS
from fieldfare.simulation.actions.clients import TYPES
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.domains import Domains
from fieldfare.simulation.topologies import Topology, from_edges

FAMILIES: Final = (clients, parameters, links, nodes, disks, clocks, members, versions, channels, patterns)
"""modules of actions; a family may have `CHANCES`, drawn in all runs, and `WILD`, `UNSYNCED`, `SHARED`, `COPIED` and
`MIXED`, in some"""
OLD: Final = (clients, links, nodes, disks, clocks, versions)
"""families that use nothing of the newest version alone, for `MIXED` runs: with nodes of two versions"""
PAUSES: Final = (0.0, 0.0, 0.001, 0.01, 0.03, 0.1, 0.4)
"""between steps, in seconds: shorter and longer than a frame on a link takes"""
LONGER: Final = {0.5: 3.0, 3.0: 20.0}
"""seconds of kills, where clients are impatient"""
SHORT: Final = (0.0, 0.003, 0.01, 0.03)
"""the same where a frame on a link has not arrived before the next step"""


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
    members: int = 0
    """members of the session `shared`, which begin at the first node"""
    key: str = ""
    """field by which the members share the events"""
    copies: bool = False
    """whether the members are devices, each with a copy of every event"""
    synced: bool = True
    """whether the disks keep all writes in a power failure"""
    publishers: str = "safe"
    """policy for the advertisements of publishers that move"""
    apart: bool = False
    """whether each node has an index of its own, and not a part of one for all nodes, which is faster"""
    here: int = 0
    """steps up to which places count as here"""
    ahead: int = 0
    """steps up to which neighbours are asked for the events of further places"""
    homes: tuple[int, ...] = ()
    """homes of the channels of some types, modulo the nodes; with homes, events have types"""
    borders: tuple[int, ...] = ()
    """nodes, modulo all but the first, with which another domain begins; the nodes below belong to it"""
    private: bool = False
    """whether only the events of channels cross the borders"""
    impatient: bool = False
    """whether clients have a replica holder take over from a node that is only silent, and comes back"""
    patterns: tuple[int, ...] = ()
    """patterns that stand in nodes from the beginning, modulo the known texts"""

    def channels(self) -> ChannelMap:
        """Return the channels of the first types, as many as there are homes."""
        nodes = len(self.parents) + 1
        return ChannelMap({type: f"b{home % nodes}" for type, home in zip(TYPES, self.homes, strict=False)})

    def domains(self) -> Domains:
        """Return the domain of each node, named by its first node; none without borders."""
        if not self.borders or not self.parents:
            return Domains()
        first = {1 + border % len(self.parents) for border in self.borders}
        of = {"b0": "d0"}
        for i, parent in enumerate(self.parents, start=1):
            of[f"b{i}"] = f"d{i}" if i in first else of[f"b{parent % i}"]
        types = ", ".join(f"'{type}'" for type, _ in zip(TYPES, self.homes, strict=False))
        return Domains(of, parse(f"type IN ({types})")) if self.private else Domains(of)

    def topology(self) -> Topology:
        """Return the tree of nodes."""
        edges = [(f"b{i}", f"b{parent % i}") for i, parent in enumerate(self.parents, start=1)]
        tree = from_edges(edges, ["b0"])
        return tree.hierarchical("b0") if self.hierarchical else tree


def _table(*kinds: str, families: tuple[object, ...] = FAMILIES) -> tuple[list[Drawing], list[int]]:
    """Return the ways to draw an action in all families, and their weights."""
    found: dict[Drawing, int] = {}
    for family, kind in product(families, kinds):
        found.update(getattr(family, kind, {}))
    return list(found), list(found.values())


_TAME: Final = _table("CHANCES")
_WILD: Final = _table("CHANCES", "WILD")
_UNSYNCED: Final = _table("CHANCES", "UNSYNCED")
_SHARED: Final = {False: _table("CHANCES", "SHARED"), True: _table("CHANCES", "WILD", "SHARED")}
_COPIED: Final = {
    False: _table("CHANCES", "SHARED", "COPIED"),
    True: _table("CHANCES", "WILD", "SHARED", "COPIED"),
}
_MIXED: Final = _table("CHANCES", "MIXED", families=OLD)
_CROSSING: Final = tuple(name for name, strategy in STRATEGIES.items() if strategy.crosses_borders)


def draw(seed: int, strategies: tuple[str, ...] = tuple(STRATEGIES)) -> Plan:
    """Draw a plan from a seed."""
    dice = Dice(seed)
    strategy = dice.choice(strategies)
    count = dice.choice((1, 2, 2, 3, 3, 3, 4))
    mixed = dice.random() < 0.1
    synced = mixed or dice.random() > 0.1
    replicas = dice.choice((1, 1, 2)) if count > 1 and synced and dice.random() < 0.3 else 0
    sharing = dice.choice((0, 0, 0, 2, 3)) if synced and not mixed else 0
    copies = sharing > 0 and dice.random() < 0.5
    table = _UNSYNCED if not synced else _WILD if dice.random() < 0.2 else _TAME
    shared = _COPIED if copies else _SHARED
    table = _MIXED if mixed else shared[table is _WILD] if sharing else table
    arcs = WITH_REPLICAS if replicas else ARCS if synced else UNSYNCED
    register = clients.register if mixed else _register
    steps: list[Step] = []
    for _ in range(dice.randint(1, 3)):
        steps += [Step(dice.choice(PAUSES), register(dice)) for _ in range(dice.randint(1, 4))]
        steps += [Step(0.0, members.subscribe_shared(dice))] if sharing else []
        if replicas and count > 2 and dice.random() < 0.15:
            steps.append(Step(0.0, nodes.lose(dice)))
        steps.append(Step(0.0, nodes.Settle()))
        for _ in range(dice.randint(1, 12)):
            acts = dice.choice(arcs)(dice) if dice.random() < 0.12 else [dice.choices(*table)[0](dice)]
            steps += [Step(dice.choice(PAUSES), act) for act in acts if len(acts) == 1 or dice.random() < 0.9]
    plan = Plan(
        seed,
        strategy,
        tuple(dice.randrange(4) for _ in range(count - 1)),
        tuple(steps),
        hierarchical=not replicas and dice.random() < 0.3,
        replicas=replicas,
        forgetful=not replicas and dice.random() < 0.5,
        clients=dice.choice((1, 1, 2)),
        lag=dice.choice((0.0, 0.0, 0.2, 2.0, 100.0)),
        members=sharing,
        key=dice.choice(("", "x")) if sharing and not copies else "",
        copies=copies,
        synced=synced,
        apart=dice.random() < 0.1,
        publishers=dice.choice(list(POLICIES)),
        here=dice.choice((0, 0, 1)),
        ahead=dice.choice((0, 1, 2)),
        homes=(dice.randrange(4), dice.randrange(4)) if synced and not mixed and dice.random() < 0.3 else (),
    )
    if synced and not mixed and dice.random() < 0.3:
        plan = plan._replace(patterns=tuple(dice.randrange(60) for _ in range(dice.randint(1, 3))))
    plan = with_moves(plan, dice) if plan.homes and dice.random() < 0.7 else plan
    plan = federated(plan, dice) if plan.homes and count > 1 and dice.random() < 0.4 else plan
    return with_detections(plan, dice) if synced and not mixed and dice.random() < 0.3 else plan


def impatient(plan: Plan) -> Plan | None:
    """Return a plan with replicas and impatient clients, if that can be: the plan is of clients and nodes alone."""
    if not plan.parents or not plan.synced or plan.members or plan.patterns or plan.homes:
        return None
    steps = tuple(
        Step(pause, msgspec.structs.replace(act, seconds=LONGER.get(act.seconds, act.seconds)))
        if isinstance(act, nodes.Kill)
        else Step(pause, act)
        for pause, act in plan.steps
    )
    replicas = plan.replicas or 1 + plan.seed % 2
    return plan._replace(steps=steps, replicas=replicas, impatient=True, hierarchical=False, forgetful=False)


def federated(plan: Plan, dice: Dice) -> Plan:
    """Return a plan with domains: sessions stay in theirs, and no node fails for good."""
    losing, sharing = (nodes.Lose,), vars(members).values()
    steps = [one for one in plan.steps if not isinstance(one.act, losing) and type(one.act) not in sharing]
    borders = tuple(dice.randrange(4) for _ in range(dice.choice((1, 1, 2, 3))))
    none: dict[str, Any] = {"members": 0, "key": "", "copies": False, "hierarchical": False, "publishers": "safe"}
    strategy = plan.strategy if STRATEGIES[plan.strategy].crosses_borders else dice.choice(_CROSSING)
    return plan._replace(steps=tuple(steps), borders=borders, private=dice.random() < 0.5, strategy=strategy, **none)


def with_moves(plan: Plan, dice: Dice) -> Plan:
    """Return a plan with some moves of channels between the other steps."""
    steps = list(plan.steps)
    for _ in range(dice.randint(1, 4)):
        place, many = dice.randint(0, len(steps)), dice.random() < 0.4
        acts = channels.busy(dice) if many else [channels.move(dice)]
        steps[place:place] = [Step(dice.choice(SHORT if many else PAUSES), act) for act in acts]
    return plan._replace(steps=tuple(steps))


def with_detections(plan: Plan, dice: Dice) -> Plan:
    """Return a plan with subscriptions to patterns, and journeys of the subscribers, between the other steps."""
    steps = list(plan.steps)
    for _ in range(dice.randint(1, 3)):
        client = dice.client()
        place = dice.randint(0, len(steps))
        steps.insert(place, Step(dice.choice(PAUSES), patterns.subscribe(dice, client)))
        for act in patterns.journey(dice, client):
            place = dice.randint(place + 1, len(steps))
            steps.insert(place, Step(dice.choice(PAUSES), act))
    return plan._replace(steps=tuple(steps))


def _register(dice: Dice) -> Act:
    """Draw an action that fills the time before a rest: filters, and values for their parameters."""
    return dice.choice((clients.register, clients.register, parameters.subscribe, parameters.state))(dice)


def text(plan: Plan) -> str:
    """Return a plan as an expression of several lines, without the values that are usual.

    >>> print(text(Plan(7, "covering", (0,), (Step(0.1, clients.Publish(0, (3,))), Step(0.0, nodes.Settle())))))
    Plan(7, 'covering', (0,), (
        Step(0.1, Publish(client=0, events=(3,))),
        Step(0.0, Settle()),
    ))
    """
    steps = "".join(f"    Step({step.pause!r}, {_act(step.act)}),\n" for step in plan.steps)
    values = plan._asdict()
    unusual = {name: values[name] for name, usual in Plan._field_defaults.items() if values[name] != usual}
    more = "".join(f", {name}={value!r}" for name, value in unusual.items())
    return f"Plan({plan.seed!r}, {plan.strategy!r}, {plan.parents!r}, (\n{steps}){more})"


def _act(act: Act) -> str:
    fields = msgspec.structs.fields(act)
    values = [(field.name, getattr(act, field.name), field.default) for field in fields]
    return f"{type(act).__name__}({', '.join(f'{name}={value!r}' for name, value, usual in values if value != usual)})"


def read(text: str) -> Plan:
    """Return the plan of a text, as printed for a failing run.

    >>> read("Plan(0, 'covering', (0,), (Step(0.1, Publish(0, (3,))),))").steps[0].act
    Publish(client=0, events=(3,), ttl=0.0)
    """
    acts = {name: kind for family in FAMILIES for name, kind in vars(family).items() if isinstance(kind, type)}
    plan: Plan = eval(text, {**acts, "Plan": Plan, "Step": Step, "Stage": Stage})  # noqa: S307 - the text is ours
    return plan
