"""Overlays with cycles: the same promises as without, once the network is at rest; and no event twice at any time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.routing.runs import Link, Step, delivers_exactly, empty_in_the_end, in_order, parents, run, steps, tree

from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import FLOODING, SOURCES, STRATEGIES, Strategy, cyclic

CYCLIC = [FLOODING, SOURCES, *(cyclic(one) for one in STRATEGIES.values() if one.prefix is None)]
extra = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4)


def graph(parents: Sequence[int], extra: Sequence[tuple[int, int]]) -> list[Link]:
    """A tree and some links more."""
    links = tree(parents, "peer")
    known = {frozenset(link[:2]) for link in links}
    for a, b in extra:
        pair = frozenset((f"b{a % (len(parents) + 1)}", f"b{b % (len(parents) + 1)}"))
        if len(pair) == 2 and pair not in known:
            known.add(pair)
            first, second = sorted(pair)
            links.append((first, second, Role.PEER))
    return links


@pytest.mark.parametrize("strategy", CYCLIC, ids=lambda strategy: strategy.name)
@few(7)
@given(parents=parents, extra=extra, steps=steps)
def test_delivers_once_on_any_graph(
    strategy: Strategy, parents: Sequence[int], extra: Sequence[tuple[int, int]], steps: Sequence[Step]
) -> None:
    ads = strategy.advertisements is not None
    net = run(
        lambda name, life: Broker(name, strategy, life=life), graph(parents, extra), steps,
        advertise=ads,
    )  # fmt: skip
    net.delivered.clear()  # order is promised once brokers agree on the trees
    delivers_exactly(net)
    in_order(net)
    if strategy.table is not None:
        empty_in_the_end(net)


@pytest.mark.parametrize("strategy", CYCLIC, ids=lambda strategy: strategy.name)
@few(7)
@given(parents=parents, extra=extra, steps=steps)
def test_finds_other_ways_when_links_break_and_brokers_crash(
    strategy: Strategy, parents: Sequence[int], extra: Sequence[tuple[int, int]], steps: Sequence[Step]
) -> None:
    net = run(
        lambda name, life: Broker(name, strategy, life=life), graph(parents, extra), steps,
        change=True, mend=False,
    )  # fmt: skip
    if strategy.advertisements is None:
        net.delivered.clear()
        delivers_exactly(net)
    if strategy.table is not None:
        empty_in_the_end(net)
