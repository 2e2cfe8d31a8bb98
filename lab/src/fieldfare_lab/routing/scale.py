"""The growth of simulation time with the network: from ten brokers to a thousand.

With n brokers there are 100 n subscriptions and 100 n events. Interest is local, as in every large network that works:
with interest in everything everywhere, every event would visit every broker, whatever the strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, random_tree
from fieldfare.tables.network_index import NetworkIndex
from fieldfare_lab.results import Claim, Result, Settings, curves_of
from fieldfare_lab.routing.interests import Interests

EACH = 100
"""number of subscriptions, and of events, for each broker"""


def _network(topology: Topology) -> Network[Broker]:
    index = NetworkIndex()
    return Network(lambda name: Broker(name, COVERING, remember=5.0, index=index), topology, record=False)


def scaling(
    settings: Settings, sizes: tuple[int, ...] = (10, 100, 1000), step: Callable[[str], None] = lambda _: None
) -> Result:
    """Measure CPU time and messages for subscriptions and for events, with each number of brokers."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        step(f"{size:,} brokers")
        topology = random_tree(size, seed=settings.seed)
        network = _network(topology)
        interests = Interests(settings.seed, topology, symbols=100, locality=0.98)
        start = settings.clock()
        for i in range(EACH * size):
            broker = interests.rng.choice(topology.brokers)
            client = f"{broker}/c{i}"
            network.attach(client, broker)
            network.subscribe(client, "s", interests.filter(broker))
            if i % 100 == 0:
                network.drain()
        network.drain()
        middle, told = settings.clock(), network.total_traffic().admin
        for i in range(EACH * size):
            broker = interests.rng.choice(topology.brokers)
            client = f"{broker}/p"
            network.attach(client, broker)
            network.at(network.now + i / 1000, network.publish, client, interests.event(broker))
            if i % 1000 == 999:
                network.drain()
        network.drain()
        end = settings.clock()
        hops = network.total_traffic().events
        rows.append({
            "brokers": size, "what": "covering", "fill": middle - start, "run": end - middle, "told": told,
            "hops": hops, "delivered": network.total_work().delivered,
            "rate": EACH * size / max(end - middle, 1e-9), "hop": 1e6 * (end - middle) / max(hops, 1),
            "tell": 1e6 * (middle - start) / max(told, 1),
        })  # fmt: skip
    titles = {
        "fill": "CPU s for all subscriptions", "told": "filter updates", "tell": "CPU µs a filter update",
        "run": "CPU s for all events", "hops": "event messages", "delivered": "deliveries",
        "hop": "CPU µs an event message",
        "rate": "events simulated a CPU second",
    }  # fmt: skip
    curves = tuple(
        curves_of(rows, title=title, x="brokers", line="what", value=value) for value, title in titles.items()
    )
    total = rows[-1]["fill"] + rows[-1]["run"]
    return Result(
        "scaling", "Larger networks", f"random trees, covering; {EACH} subscriptions and {EACH} events a broker",
        curves,
        (Claim(f"{sizes[-1]:,} brokers take minutes (less than ten)", total < 600, f"{total:,.0f} s of CPU time"),),
    )  # fmt: skip
