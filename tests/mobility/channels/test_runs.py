"""Random runs, judged by the checker. `python -m tools.mobility.channels 1000` does many more."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tools.mobility.channels import KINDS, TYPES, random_run_of, violations, world

from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.messages import Attach
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.simulation import checker
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.trace import Delivered

SEEDS = 2


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_doubled_or_out_of_order(kind: str, seed: int) -> None:
    run, domain = random_run_of(kind, 1000 + seed, events=25)
    assert violations(run, domain) == []


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("ordered", [True, False])
def test_order_holds_when_everybody_answers_everybody(ordered: bool, moves: bool) -> None:
    dice, moved = Random(1), Counter[str]()

    def hear(client: str, message: Message) -> None:
        if isinstance(message, Deliver) and message.sequence < 12 and dice.random() < 0.3:
            network.publish(client, {"type": dice.choice(TYPES)})
            if moves and dice.random() < 0.3:
                at = network.where(client) or ""
                moved[client] += 1
                attach = Attach(received=network.taken.get(client), source=at, moves=moved[client])
                network.move(client, dice.choice(access), attach)

    domain = Domain(("r0", "r1", "r2"), types=tuple(TYPES), ordered=ordered)
    network, _, access = world(domain, 4, links=Wire(exponential(1.0)), seed=2, on_message=hear)
    clients = [f"c{i}" for i in range(5)]
    for i, client in enumerate(clients):
        network.attach(client, access[i % 4])
        network.subscribe(client, "all", "TRUE")
    network.drain()
    for client in clients:
        network.publish(client, {"type": dice.choice(TYPES)})
    network.drain()
    published = sum(network.work[name].published for name in access)
    assert published > 50
    assert sum(isinstance(record, Delivered) for record in network.trace) == published * len(clients)
    assert checker.causal(network.trace) == checker.fifo(network.trace) == checker.safety(network.trace) == []
    assert not ordered or checker.total(network.trace) == []
