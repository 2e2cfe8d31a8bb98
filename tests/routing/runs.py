"""Random runs of a small network: what hypothesis draws is read as a topology and a list of things that happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from tests.routing.harness import Net, meaning
from tools.samples import FILTERS, UNIVERSE

from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker
from fieldfare.routing.table_routes import TableRoutes

Link = tuple[str, str, Role]


class Step(NamedTuple):
    """Something that happens; the numbers say to whom and what, modulo what there is."""

    kind: int
    who: int
    what: int


steps = st.lists(st.builds(Step, st.integers(0, 15), st.integers(0, 63), st.integers(0, 63)), max_size=40)
parents = st.lists(st.integers(0, 5), min_size=1, max_size=4)
shapes = st.sampled_from(["peer", "hierarchical", "hybrid"])


def tree(parents: Sequence[int], shape: str) -> list[Link]:
    """Each broker but the first is linked to an earlier one; in a hybrid, the first two and their like are peers."""
    links = []
    for i, parent in enumerate(parents, start=1):
        up = parent % i
        peers = shape == "peer" or (shape == "hybrid" and up == 0)
        links.append((f"b{i}", f"b{up}", Role.PEER if peers else Role.PARENT))
    return links


def run(
    make: Callable[[str, int], Broker],
    links: Sequence[Link],
    steps: Sequence[Step],
    *,
    advertise: bool = False,
    change: bool = False,
    mend: bool = True,
    check: Callable[[Net], None] = lambda _: None,
) -> Net:
    """Let things happen, with a check after each. Links come and go and brokers crash if `change`.

    In the end all links are up if they are to be mended, else those without which the network would fall apart.
    """
    names = sorted({name for a, b, _ in links for name in (a, b)})
    net = Net(make, links, names)
    clients = [f"{name}.{i}" for name in names for i in (0, 1)]
    down: list[Link] = []
    up = list(links)
    for step in steps:
        client = clients[step.who % len(clients)]
        filter = FILTERS[step.what % len(FILTERS)]
        id = str(step.what % 3)
        match step.kind:
            case 0 | 1 | 2:
                net.subscribe(client, id, filter)
            case 3 | 4:
                net.unsubscribe(client, id)
            case 5:
                net.leave(client)
            case 6 | 7:
                net.publish(client, UNIVERSE[step.what % len(UNIVERSE)])
            case 8 if advertise:
                net.unadvertise(client, id)
            case 9 | 10 if advertise:
                net.advertise(client, id, filter)
            case 8 if change and up:
                down.append(up.pop(step.what % len(up)))
                net.disconnect(*down[-1][:2])
            case 9 if change and down:
                up.append(down.pop(step.what % len(down)))
                net.connect(*up[-1])
            case 10 if change:
                broker = names[step.who % len(names)]
                lost = [link for link in up if broker in link[:2]]
                up = [link for link in up if link not in lost]
                down += lost
                net.crash(broker, keep=step.what % 2 == 0)
            case _:
                for _ in range(1 + step.who % 3):
                    busy = net.busy()
                    if busy:
                        net.arrive(busy[step.what % len(busy)])
        check(net)
    for link in down:
        if mend or not _joined(up, link):
            net.connect(*link)
            up.append(link)
    net.drain()
    check(net)
    return net


def _joined(links: Sequence[Link], link: Link) -> bool:
    """Is there a way between the ends of a link without it?"""
    reached = {link[0]}
    for _ in links:
        reached |= {end for a, b, _ in links for end in (a, b) if a in reached or b in reached}
    return link[1] in reached


def told_at_least(net: Net) -> None:
    """The remote invariant: when all has arrived, a neighbour will send at least what is wanted of it."""
    for (broker, neighbour), told in net.told.items():
        routes = net.brokers[broker].routes
        assert isinstance(routes, TableRoutes)
        if routes.roles[neighbour] is not Role.CHILD:
            assert meaning(told) >= net.wanted_of(broker, neighbour), (broker, neighbour)


def settled(net: Net, *, exact: bool = True) -> None:
    """At rest, a neighbour knows what is wanted of it, and if `exact` nothing else."""
    for broker, neighbour in net.told:
        routes = net.brokers[broker].routes
        if routes.roles[neighbour] is Role.CHILD:
            assert not net.known_of(neighbour, broker)
            continue
        known, wanted = net.known_of(neighbour, broker), net.wanted_of(broker, neighbour)
        assert known == wanted if exact else known >= wanted, (broker, neighbour)


def delivers_exactly(net: Net) -> None:
    """At rest, every event reaches exactly those that want it, in the order of its publisher."""
    before = set(net.published)
    for broker in net.brokers:
        for event in UNIVERSE:
            net.publish(f"{broker}.0", event)
    net.drain()
    for id, (event, wanted) in net.published.items():
        if id in before:
            continue
        promised = not _advertises(net) or any(f.matches(event) for f in net.promising.get(id[0], {}).values())
        got = {client for client, events in net.delivered.items() if id in events}
        assert got == (wanted if promised else frozenset()), (id, event)


def in_order(net: Net) -> None:
    """Each client heard of a publisher's events in the order in which they were published."""
    for events in net.delivered.values():
        for publisher in {publisher for publisher, _ in events}:
            numbers = [number for other, number in events if other == publisher]
            assert numbers == sorted(numbers)


def empty_in_the_end(net: Net) -> None:
    """When everybody has left, nothing remains."""
    for client in {*net.wanting, *net.promising}:
        net.leave(client)
    net.drain()
    for name, broker in net.brokers.items():
        assert broker.entries == 0, name
    assert not any(net.told.values())


def _advertises(net: Net) -> bool:
    return next(iter(net.brokers.values())).strategy.advertisements is not None


__all__ = [
    "Step", "delivers_exactly", "empty_in_the_end", "in_order", "m", "parents", "run", "settled", "shapes", "steps",
    "told_at_least", "tree",
]  # fmt: skip
