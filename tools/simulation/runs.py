"""Random runs of a small network, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from fieldfare.protocol.messages import Deliver, Message
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.protocol import Machine
from fieldfare.simulation.topologies import Topology, random_tree
from tools.simulation.flooding import Flooding

FILTERS = ["TRUE", "a < 5", "a > 3", "a = 4", "a > 2 AND b < 3", "b = 1 OR a = 1", "a BETWEEN 2 AND 6"]


def random_run(
    seed: int,
    make: Callable[[str], Machine] = Flooding,
    *,
    links: Wire = Wire(exponential(0.3)),  # noqa: B008
    events: int = 25,
    faults: bool = True,
    crashes: bool = False,
    topology: Callable[[int, int], Topology] = random_tree,
    **options: Any,
) -> Network[Any]:
    """Clients come and go, publish and answer; links break and are mended; brokers crash and come back as they were."""
    dice = Random(seed)

    def answer(client: str, message: Message) -> None:
        if isinstance(message, Deliver) and message.sequence < 5 and dice.random() < 0.2:
            network.publish(client, event())

    def event() -> dict[str, int]:
        return {"a": dice.randrange(8), "b": dice.randrange(5)}

    network = Network(make, topology(dice.randint(1, 5), seed), links=links, seed=seed, on_message=answer, **options)
    network.drain()
    brokers = list(network.brokers)
    clients = [f"c{number}" for number in range(5)]
    for client in clients:
        network.attach(client, dice.choice(brokers))
        network.advertise(client, "first", dice.choice(["TRUE", *FILTERS]))

    saved: dict[str, bytes] = {}

    def change() -> None:
        client, id = dice.choice(clients), dice.choice(["x", "y", "z"])
        match dice.randrange(14 if crashes else 12):
            case 0 | 1 | 2 | 3:
                network.subscribe(client, id, dice.choice(FILTERS))
            case 4 | 5:
                network.unsubscribe(client, id)
            case 6 | 7:
                network.advertise(client, id, dice.choice(FILTERS))
            case 8:
                network.unadvertise(client, id)
            case 9:
                network.leave(client)
            case 10 if faults:
                network.partition(dice.sample(brokers, dice.randint(0, len(brokers))))
            case 11 if faults:
                network.heal()
            case 12 | 13:
                broker = dice.choice(brokers)
                if network.is_up(broker):
                    saved[broker] = network.brokers[broker].snapshot()
                    network.crash(broker)
                else:
                    network.restart(broker, saved[broker])

    time = network.now
    for _ in range(events):
        time += dice.choice([0.0, 0.05, 0.3, 5.0])
        network.at(time, change)
        network.at(time + dice.random(), lambda: network.publish(dice.choice(clients), event()))
    network.drain()
    return network
