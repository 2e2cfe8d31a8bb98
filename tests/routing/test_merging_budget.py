"""Merging with a budget at brokers: statistics make better mergers, and unwanted events correct bad ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NamedTuple

import pytest

from fieldfare import Event, parse
from fieldfare.filters.distributions import Distributions
from fieldfare.filters.statistics import Statistics, Uniform
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import IMPERFECT, by_name
from fieldfare.simulation.checker import check
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import line
from fieldfare.tables.merging import feedback
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.updates import TableUpdate


class Outcome(NamedTuple):
    table: int
    """filters that the neighbour knows in the end"""
    wanted: int
    unwanted: int


def quotes(dice: Random, count: int) -> list[Event]:
    return [
        Event({"price": round(dice.lognormvariate(3, 0.6), 2), "size": int(dice.paretovariate(1.2) * 100)})
        for _ in range(count)
    ]


def outcome(budget: float, statistics: Statistics) -> Outcome:
    """Two brokers: subscribers with ranges here, and events from there, as far as the filters sent there match."""
    dice = Random(5)
    strategy = replace(IMPERFECT, merging=replace(IMPERFECT.merging, budget=budget, statistics=statistics))  # type: ignore[type-var]
    here, there = Broker("here", strategy), Broker("there", strategy)
    sends = here.receive(m.Connect(), "there", 0.0)
    there.receive(m.Connect(), "here", 0.0)
    wanted = []
    for number in range(80):
        price, size = round(dice.lognormvariate(3, 0.9), 2), int(dice.paretovariate(0.7) * 100)
        wanted.append(
            parse(f"price BETWEEN {price} AND {price * 1.08:.2f} AND size BETWEEN {size} AND {int(size * 1.5)}")
        )
        sends += here.receive(m.Subscribe("one", wanted[-1]), f"client {number}", 0.0)
    for send in sends:
        there.receive(send.message, "here", 0.0)
    delivered = 0
    for number, event in enumerate(events := quotes(dice, 1000), 1):
        for send in there.receive(m.Publish(event, number), "publisher", 1.0):
            delivered += len(here.receive(send.message, "there", 1.0))
        if here.wakes is not None:
            for send in here.tick(1.0):
                there.receive(send.message, "here", 1.0)
    assert delivered == sum(filter.matches(event) for event in events for filter in wanted)
    counts = here.forwards["there"]
    return Outcome(there.entries, counts.wanted, counts.unwanted)


def test_statistics_let_fewer_unwanted_events_pass_with_no_larger_table() -> None:
    known = Distributions.of(quotes(Random(77), 1500))
    blind, informed = outcome(0.25, Uniform()), outcome(0.25, known)
    assert informed.wanted == blind.wanted
    assert informed.table < 0.8 * blind.table
    assert informed.unwanted < blind.unwanted
    for one in (blind, informed):
        assert one.unwanted <= 0.25 * (one.wanted + one.unwanted) + 2 * feedback.WINDOW


class Optimist(Uniform):
    def share(self, *_: object) -> float:
        return 1.0


def test_wrong_statistics_are_corrected_by_unwanted_events() -> None:
    wrong = outcome(0.1, Optimist())
    assert wrong.unwanted <= 0.1 * (wrong.wanted + wrong.unwanted) + 4 * feedback.WINDOW


@pytest.mark.parametrize("name", ["imperfect", "imperfect+ads", "imperfect+tree"])
def test_a_network_that_narrows_its_filters_all_the_time_breaks_no_rule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "WINDOW", 2)
    dice, strategy = Random(3), by_name(name)
    strategy = replace(strategy, merging=replace(strategy.merging, statistics=Optimist()))  # type: ignore[type-var]
    network: Network[Broker] = Network(lambda broker: Broker(broker, strategy), line(3), seed=1)
    narrowed: list[str] = []
    relieve = NeighbourMerger.relieve

    def noted(merger: NeighbourMerger[str], neighbour: str) -> TableUpdate:
        narrowed.append(neighbour)
        return relieve(merger, neighbour)

    monkeypatch.setattr(NeighbourMerger, "relieve", noted)
    for number in range(60):
        client, broker = f"c{number % 6}", list(network.brokers)[number % 3]
        if number < 6:
            network.attach(client, broker)
            network.advertise(client, "all", parse("TRUE"))
        low = dice.randrange(6)
        network.subscribe(client, str(number % 3), parse(f"x BETWEEN {low} AND {low + 1} AND y BETWEEN {low} AND 9"))
        network.drain()
        for _ in range(4):
            network.publish(client, {"x": dice.randrange(8), "y": dice.randrange(10)})
        network.drain()
    assert len(narrowed) > 4
    assert check(network.trace, advertisements="ads" in name, order=strategy.order) == []
