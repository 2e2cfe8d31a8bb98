"""Copies of sessions at other nodes: one that fails for good takes none of its clients' events with it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.node.test_durable_broker import Client, Disk, acknowledge, change
from tests.node.test_handover import Roaming, run, steps
from tests.routing.runs import Step as Happening
from tests.routing.runs import parents
from tools.samples import FILTERS, UNIVERSE

from fieldfare.events.event import Event
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.replica_state import ReplicaPart
from fieldfare.node.stored_deliveries import stored_deliveries
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import event_id
from fieldfare.routing.strategies import STRATEGIES, Strategy

LINKS = [("hub", "a", m.Role.PEER), ("hub", "b", m.Role.PEER), ("hub", "c", m.Role.PEER)]


class Copied(Roaming):
    """A world in which each session has a keeper."""

    def broker(self, name: str, disk: Disk | None = None, first: int = 1) -> DurableBroker:
        if disk is None:
            return DurableBroker(self.make(name), replicas=1, life=self.life())
        return DurableBroker(
            self.make(name), disk.rows, disk.log[first - 1 :], replicas=1, now=self.now, life=self.life()
        )

    def arrive(self, which: int, die: int = 0) -> bool:
        due = [(name, *pair) for name, one in self.brokers.items() for pair in one.replicas.due()]
        if due and which % 2:
            self.copy(*due[which % len(due)], die)
            return True
        busy = super().arrive(which, die)
        if due and not busy:
            self.copy(*due[which % len(due)], die)
        return busy or bool(due)

    def copy(self, name: str, session: str, keeper: str, die: int) -> None:
        ticket, waiting = self.brokers[name].replicas.next_deliveries(session, keeper, 2)
        entries = {entry.position: entry for entry in self.disks[name].log}
        sent = ReplicaPart(
            session, keeper, ticket, stored_deliveries(waiting, entries), waiting[-1][0] if len(waiting) == 2 else None
        )
        self.run(name, lambda broker, _: broker.replicas.send_part(sent), die)


class Kept(Copied):
    """And in which a node may fail for good."""

    def __init__(self, strategy: Strategy, *, forgetful: bool) -> None:
        self.dead: set[str] = set()
        super().__init__(strategy, LINKS, forgetful=forgetful)

    def say(self, name: str) -> None:
        """As a real client does: what is doubtful and was there before is not new."""
        broker = self.brokers[name]
        for client in self.clients.values():
            if client.home == name and client.here and client.name in broker.sessions:
                doubt = broker.sessions[client.name].doubt
                for number, pending in broker.deliveries.next(client.name, 1000, self.now):
                    publisher, _, sequence = event_id(self.disks[name].log[pending.position - 1])
                    if number > client.done:
                        client.done = number
                        last = max((n for who, n in client.got if who == publisher), default=-1)
                        if number > doubt or sequence > last:
                            client.got.append((publisher, sequence))
        super().say(name)

    def arrive(self, which: int, die: int = 0) -> bool:
        for pair in [pair for pair in self.channels if self.dead & set(pair)]:
            self.channels[pair].clear()
        return super().arrive(which, die)

    def fail(self, name: str) -> None:
        """A node is gone, and its clients go elsewhere, where their sessions are taken over."""
        self.dead.add(name)
        for client in self.clients.values():
            if client.home == name or self.claims.get(client.name) == name:
                client.here = False
                self.claims[client.name] = "b" if name != "b" else "c"

    def take_over(self, client: Client) -> None:
        to = self.claims[client.name]
        self.tickets += 1
        ticket = f"t{self.tickets}"
        self.run(to, lambda broker, now: broker.handovers.arrivals.take_over(client.name, "hub", ticket, now))


@few(15)
@given(
    wanted=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=6),
    happenings=st.lists(
        st.builds(Happening, st.integers(0, 9), st.integers(0, 63), st.integers(0, 63)), min_size=10, max_size=40
    ),
    forgetful=st.booleans(),
)
def test_what_a_dead_node_had_comes_from_a_keeper(
    *, wanted: Sequence[tuple[int, int]], happenings: Sequence[Happening], forgetful: bool
) -> None:
    world = Kept(STRATEGIES["covering"], forgetful=forgetful)
    clients = list(world.clients.values())
    mine = [client for client in clients if client.home == "a"]
    others = [client for client in clients if client.home != "a"]
    for who, what in wanted:
        client = mine[who % len(mine)]
        change(world, client, m.Subscribe(f"s{what}", FILTERS[what % len(FILTERS)]))
    world.settle()
    asked = {client.name: world.brokers["a"].broker.clients.get(client.name).subscriptions for client in mine}
    events: dict[tuple[str, int], Event] = {}
    for step in happenings:
        client = others[step.who % len(others)]
        die = max(0, step.what % 10 - 5)
        match step.kind:
            case 0 | 1 | 2 | 3:
                several = [UNIVERSE[(step.what + i) % len(UNIVERSE)] for i in range(1 + step.kind % 3)]
                world.publish(client, several, die, step.who)
                for i, event in enumerate(reversed(several)):
                    events[client.name, client.count - i] = event
            case 4 if mine[step.who % len(mine)].here:
                acknowledge(world, mine[step.who % len(mine)], die)
            case 5:
                world.crash(["hub", "a", "b"][step.what % 3])
            case 6:
                world.run("hub", lambda broker, _: broker.checkpoint(), die)
            case 7:
                name = mine[step.who % len(mine)].name
                world.run("a", lambda broker, _, name=name: broker.replicas.mark_changed(name))  # type: ignore[misc]
            case 8:
                away = mine[step.who % len(mine)]
                away.here = False
                world.run("a", lambda broker, now, name=away.name: broker.sessions.detach(name, now))  # type: ignore[misc]
            case _:
                world.arrive(step.what, die)
    for i in range(50_000):  # nobody is safe before his keeper has all
        if not world.arrive(i):
            break
    world.fail("a")
    for step in happenings[:5]:
        client = others[step.who % len(others)]
        world.publish(client, [UNIVERSE[step.what % len(UNIVERSE)]])
        events[client.name, client.count] = UNIVERSE[step.what % len(UNIVERSE)]
    for client in mine:
        world.claim(client)
    for i in range(200):
        world.arrive(i)
    for client in mine:
        if client.name in world.claims:
            world.take_over(client)
    world.settle()
    for client in mine:
        due = {id for id, event in events.items() if any(one.matches(event) for one in asked[client.name].values())}
        assert sorted(client.got) == sorted(due)
        for publisher in {publisher for publisher, _ in client.got}:
            numbers = [number for other, number in client.got if other == publisher]
            assert numbers == sorted(numbers)


@given(
    parents=parents,
    wanted=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=6),
    happenings=steps,
    forgetful=st.booleans(),
)
def test_sessions_with_keepers_move(
    *,
    parents: Sequence[int],
    wanted: Sequence[tuple[int, int]],
    happenings: Sequence[Happening],
    forgetful: bool,
) -> None:
    run("covering", parents, wanted, happenings, forgetful=forgetful, make=Copied)
