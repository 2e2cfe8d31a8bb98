"""Sessions that move between nodes that are killed at any moment: nothing lost, nothing twice, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.node.test_durable_broker import Client, World, acknowledge, change
from tests.routing.runs import Step as Happening
from tests.routing.runs import parents, tree
from tools.samples import FILTERS, UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.handover_state import SessionMoving
from fieldfare.node.state import Publication, Session
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import STRATEGIES, Strategy


class Roaming(World):
    """A world whose clients go from node to node."""

    def __init__(self, strategy: Strategy, links: Sequence[tuple[str, str, m.Role]], *, forgetful: bool) -> None:
        self.tickets = 0
        self.at: dict[str, str] = {}
        """where each client believes its session to be"""
        self.claims: dict[str, str] = {}
        """where clients wait for their sessions"""
        self.known: dict[str, int] = {}
        """how often sessions have moved, as their clients know"""
        self.moves = 0
        super().__init__(strategy, links, forgetful=forgetful)
        sides = {(a, b): _behind(links, a, b) for a, b in self.channels}
        for (here, neighbour), names in sides.items():
            self.run(here, lambda broker, _, one=neighbour, names=names: broker.envelopes.set_reachable(one, names))  # type: ignore[misc]

    def come(self, client: Client) -> None:
        self.claims[client.name] = client.home
        self.claim(client)

    def move(self, client: Client, to: str, *, make: bool) -> None:
        """Go somewhere else; whoever makes before he breaks stays connected for as long as he can."""
        self.moves += 1
        if not make:
            client.here = False
        before = self.claims.get(client.name)
        if before is not None and before != to and self.moves % 2:
            self.run(before, lambda broker, _: broker.handovers.arrivals.cancel(client.name))
        self.claims[client.name] = to
        self.claim(client)

    def claim(self, client: Client, die: int = 0) -> None:
        name, to = client.name, self.claims[client.name]
        self.tickets += 1
        answer: list[Session | None] = []
        identity = f"{name}@" if client.name in self.at else ""
        fresh = f"t{self.tickets}" if identity else f"{name}@"

        def job(broker: DurableBroker, now: float) -> None:
            answer.append(
                broker.handovers.claim(
                    name, fresh, now, at=self.at.get(name, ""), identity=identity, moves=self.known.get(name, 0)
                )
            )

        if not self.run(to, job, die) or answer[0] is None:
            return
        assert answer[0].identity == f"{name}@"
        del self.claims[name]
        self.at[name] = client.home = to
        self.known[name] = answer[0].moves
        client.here = True
        self.say(to)
        again = {**dict(list(client.said.items())[-2:]), **client.unsafe}
        for number, event in sorted(again.items(), key=lambda item: item[0]):
            self.say_publish(client, number, [event])

    def run(self, name: str, action: Callable[[DurableBroker, float], object], die: int = 0, torn: int = 0) -> bool:
        """As before; and whoever is told that his session goes has to follow it."""
        closing: dict[str, str] = {}

        def job(broker: DurableBroker, now: float) -> None:
            action(broker, now)
            closing.update(broker.step.closing)

        alive = super().run(name, job, die, torn)
        for session in closing if alive else ():
            client = self.clients[session]
            if client.home == name and client.here:
                client.here = False
                self.claims.setdefault(session, name)
        return alive

    def crash(self, name: str) -> None:
        before = {one.name for one in self.clients.values() if one.here}
        super().crash(name)
        for one in self.clients.values():
            if one.name in before and not one.here:
                self.claims.setdefault(one.name, one.home)

    def say_publish(self, client: Client, number: int, events: Sequence[Event], die: int = 0, torn: int = 0) -> None:
        answers: list[object] = []
        publication = Publication(client.name, number, events)
        if client.here and self.run(
            client.home, lambda broker, now: answers.extend(broker.publish([publication], now)), die, torn
        ):
            (answer,) = answers
            assert isinstance(answer, int | SessionMoving), answer
            if isinstance(answer, int):
                client.unsafe = {n: event for n, event in client.unsafe.items() if n > answer}

    def arrive(self, which: int, die: int = 0) -> bool:
        going = [
            (name, session)
            for name, broker in self.brokers.items()
            for session, departure in broker.handovers.departures.items()
            if departure.ready
        ]
        waiting = [self.clients[name] for name in self.claims]
        if going and which % 3 == 0:
            self.carry(*going[which % len(going)], which, die)
            return True
        busy = super().arrive(which, die)
        if going and not busy:
            self.carry(*going[which % len(going)], which, die)
        elif waiting and (not busy or which % 7 == 1):
            self.claim(waiting[which % len(waiting)], die)
        return busy or bool(going) or bool(waiting)

    def carry(self, name: str, session: str, which: int, die: int) -> None:
        limit = 1 + which % 3
        moving = self.brokers[name].handovers
        if not moving.departures[session].frozen:
            self.run(name, lambda broker, now: broker.handovers.departures.freeze(session, now), die)
            return
        waiting = moving.departures.next_deliveries(session, limit)
        entries = {entry.position: entry for entry in self.disks[name].log}
        self.run(
            name, lambda broker, now: broker.handovers.departures.send_deliveries(session, waiting, entries, now), die
        )

    def settle(self) -> None:
        for client in self.clients.values():
            if not client.here:
                self.claims.setdefault(client.name, client.home)
        for i in range(50_000):
            if not self.arrive(i):
                return
        raise AssertionError("no rest")


def _behind(links: Sequence[tuple[str, str, m.Role]], here: str, neighbour: str) -> set[str]:
    """All that is reached through a neighbour."""
    near: dict[str, set[str]] = {}
    for a, b, _ in links:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    found, todo = {neighbour}, [neighbour]
    while todo:
        new = near[todo.pop()] - found - {here}
        found |= new
        todo += new
    return found


steps = st.lists(st.builds(Happening, st.integers(0, 17), st.integers(0, 63), st.integers(0, 63)), max_size=50)


@pytest.mark.parametrize("name", ["covering", "merging", "simple", "flooding", "covering+ads"])
@few(20)
@given(
    parents=parents, forgetful=st.booleans(),
    wanted=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=8), happenings=steps,
)  # fmt: skip
def test_sessions_move_and_nothing_is_lost(
    *,
    name: str,
    parents: Sequence[int],
    wanted: Sequence[tuple[int, int]],
    happenings: Sequence[Happening],
    forgetful: bool,
) -> None:
    run(name, parents, wanted, happenings, forgetful=forgetful)


def run(
    name: str,
    parents: Sequence[int],
    wanted: Sequence[tuple[int, int]],
    happenings: Sequence[Happening],
    *,
    forgetful: bool,
    make: type[Roaming] = Roaming,
) -> Roaming:
    """Let things happen, and see to it that everybody got what he asked for."""
    world = make(STRATEGIES[name], tree(parents, "peer"), forgetful=forgetful)
    clients, nodes = list(world.clients.values()), list(world.brokers)
    if STRATEGIES[name].advertisements is not None:
        for client in clients:
            change(world, client, m.Advertise("all", parse("TRUE")))
        world.settle()
    asked: dict[str, list[Filter]] = {}
    for who, what in wanted:
        client, filter = clients[who % len(clients)], FILTERS[what % len(FILTERS)]
        asked.setdefault(client.name, []).append(filter)
        change(world, client, m.Subscribe(f"s{what}", filter))
    world.settle()
    events: dict[tuple[str, int], Event] = {}
    for step in happenings:
        client = clients[step.who % len(clients)]
        die = max(0, step.what % 10 - 5)  # mostly 0
        match step.kind:
            case 0 | 1 | 2 | 3:
                several = [UNIVERSE[(step.what + i) % len(UNIVERSE)] for i in range(1 + step.kind % 3)]
                world.publish(client, several, die, step.who)
                for i, event in enumerate(reversed(several)):
                    events[client.name, client.count - i] = event
            case 4 | 5 | 6 | 7:
                world.move(client, nodes[step.what % len(nodes)], make=step.kind > 5)
            case 8:
                world.crash(client.home)
            case 9:
                world.flap(*list(world.channels)[step.what % len(world.channels)])
            case 10 if client.here:
                client.here = False
                world.run(client.home, lambda broker, now, one=client: broker.sessions.detach(one.name, now))  # type: ignore[misc]
            case 11 if client.here and world.brokers[client.home].handovers.status(client.name) == "here":
                acknowledge(world, client, die)
            case 12:
                world.run(client.home, lambda broker, _: broker.checkpoint(), die)
            case _:
                world.arrive(step.what, die)
    world.settle()
    for client in clients:
        mine = asked.get(client.name, [])
        due = {id for id, event in events.items() if any(filter.matches(event) for filter in mine)}
        assert sorted(client.got) == sorted(due)
        assert not client.unsafe
        for publisher in {publisher for publisher, _ in client.got}:
            numbers = [number for other, number in client.got if other == publisher]
            assert numbers == sorted(numbers)
    for client in clients:
        acknowledge(world, client)
    world.settle()
    for home, disk in world.disks.items():
        assert not disk.rows.get("outbox")
        assert not any(disk.rows.get(kind) for kind in ("arrival", "departure", "parked", "replayed"))
        broker = world.brokers[home]
        assert broker.low_water() == broker.position + 1 == len(disk.log) + 1
    return world


def test_what_stands_in_the_log_is_remembered_until_it_comes_again() -> None:
    """A node is killed between log and rows, writes a checkpoint, and is killed again before its neighbour repeats."""
    happenings = [
        Happening(*step)
        for step in (
            (2, 33, 46), (6, 51, 10), (8, 7, 31), (4, 23, 57), (13, 43, 18), (11, 48, 8), (13, 37, 23), (9, 63, 31),
            (12, 19, 3), (13, 47, 11), (8, 12, 39),
        )
    ]  # fmt: skip
    run("identity", [0, 2], [(29, 60)], happenings, forgetful=False)
