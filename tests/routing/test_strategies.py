"""Every strategy, in random networks and with every order of arrival, must do what one broker for all would do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from tests.examples import few
from tests.routing.runs import (
    Step,
    delivers_exactly,
    empty_in_the_end,
    in_order,
    parents,
    run,
    settled,
    shapes,
    steps,
    told_at_least,
    tree,
)  # fmt: skip

from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy

PLAIN = [strategy for strategy in STRATEGIES.values() if strategy.advertisements is None]
ADVERTISED = [strategy for strategy in STRATEGIES.values() if strategy.advertisements is not None]
EXACT = {"simple", "identity", "covering", "merging", "book-merging", "prefix"}


@pytest.mark.parametrize("strategy", PLAIN, ids=lambda strategy: strategy.name)
@few(10)
@given(parents=parents, shape=shapes, steps=steps)
def test_delivers_to_exactly_those_who_asked(
    strategy: Strategy, parents: Sequence[int], shape: str, steps: Sequence[Step]
) -> None:
    filtered = strategy.table is not None
    net = run(
        lambda name, life: Broker(name, strategy, life=life), tree(parents, shape), steps,
        check=told_at_least if filtered else lambda _: None,
    )  # fmt: skip
    if filtered:
        settled(net, exact=strategy.name in EXACT)
    delivers_exactly(net)
    in_order(net)
    if filtered:
        empty_in_the_end(net)


@pytest.mark.parametrize("strategy", ADVERTISED, ids=lambda strategy: strategy.name)
@few(10)
@given(parents=parents, shape=shapes, steps=steps)
def test_delivers_what_was_advertised(
    strategy: Strategy, parents: Sequence[int], shape: str, steps: Sequence[Step]
) -> None:
    net = run(lambda name, life: Broker(name, strategy, life=life), tree(parents, shape), steps, advertise=True)
    delivers_exactly(net)
    in_order(net)
    empty_in_the_end(net)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
@few(10)
@given(parents=parents, shape=shapes, steps=steps)
def test_links_may_come_and_go(strategy: Strategy, parents: Sequence[int], shape: str, steps: Sequence[Step]) -> None:
    net = run(
        lambda name, life: Broker(name, strategy, life=life), tree(parents, shape), steps, change=True, advertise=False
    )
    if strategy.advertisements is None:
        if strategy.table is not None:
            settled(net, exact=strategy.name in EXACT)
        delivers_exactly(net)
    if strategy.table is not None:
        empty_in_the_end(net)
