"""The costs of a single broker: CPU time of an event, of a subscription, and memory, with and without a neighbour.

The neighbour subscribes to nothing, so both brokers do the same for their clients: the difference is the price of the
link. The brokers take turns in rounds, and the best round counts, because other work on the machine disturbs some.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare_lab.bench.workloads import generate

CLIENTS: Final = 100
"""number of clients that share the filters"""
NEIGHBOUR: Final = "neighbour"
TRACED: Final = 10_000
"""number of filters at most in the broker whose memory is traced; tracing slows loading down"""


@dataclass(frozen=True)
class BrokerCosts:
    """The costs of a broker with some filters; times are CPU time, of all threads."""

    workload: str
    filters: int
    deliveries_an_event: float
    """number of clients that an event reaches"""
    unlinked_us: float
    """an event, in batches, without a neighbour"""
    linked_us: float
    """an event, in batches, with a neighbour that subscribes to nothing"""
    linked_over_unlinked: float
    single_us: float
    """an event alone, with the neighbour"""
    subscribe_us: float
    """a subscription at a time, with the neighbour"""
    unsubscribe_us: float
    load_us: float
    """a subscription at a time, from none to all, with the neighbour"""
    connect_ms: float
    """a neighbour that comes when all filters are there"""
    memory_bytes: float
    """a filter, with the neighbour: everything that the broker holds beside the filter itself"""
    unlinked_memory_bytes: float


def broker_costs(
    filters: int,
    *,
    workload: str = "stock",
    events: int = 5000,
    batch: int = 100,
    changes: int = 2500,
    rounds: int = 5,
    strategy: Strategy = COVERING,
    step: Callable[[str], None] = lambda _: None,
) -> BrokerCosts:
    """Measure a broker with a number of filters; `step` receives the name of each part that begins."""
    step(f"{filters:,} filters: loading")
    turns = min(rounds, 3)
    made = generate(workload, filters + turns * changes, events)
    wanted, more = made.parsed[:filters], made.parsed[filters:]
    published = [Event(event) for event in made.events]
    unlinked, linked = _Loaded(strategy, linked=False), _Loaded(strategy, linked=True)
    with _quiet():
        unlinked.subscribe(wanted)
        load = _cpu(lambda: linked.subscribe(wanted)) / filters
    singles = published[: max(1, events // 10)]
    deliveries = linked.route(published, batch)  # also warms up
    if unlinked.route(published, batch) != deliveries:
        raise RuntimeError("a neighbour changes the deliveries: that is a defect")
    times: dict[str, list[float]] = {}
    with _quiet():
        for number in range(rounds):
            step(f"{filters:,} filters: round {number + 1} of {rounds}")
            parts: list[tuple[str, Callable[[], object], int]] = [
                ("unlinked", lambda: unlinked.route(published, batch), events),
                ("linked", lambda: linked.route(published, batch), events),
                ("single", lambda: linked.route(singles, 1), len(singles)),
            ]
            for name, do, size in parts:
                times.setdefault(name, []).append(_cpu(do) / size)
        for turn in range(turns):  # with other filters each time: a filter remembers its text and its hash
            some = more[turn * changes : (turn + 1) * changes]
            times.setdefault("subscribe", []).append(_cpu(lambda: linked.subscribe(some, filters)) / changes)  # noqa: B023
            times.setdefault("unsubscribe", []).append(_cpu(lambda: linked.unsubscribe(some, filters)) / changes)  # noqa: B023
        connect = _cpu(unlinked.connect)
    step(f"{filters:,} filters: memory")
    best = {name: 1e6 * min(found) for name, found in times.items()}
    return BrokerCosts(
        workload,
        filters,
        deliveries / events,
        best["unlinked"],
        best["linked"],
        best["linked"] / best["unlinked"],
        best["single"],
        best["subscribe"],
        best["unsubscribe"],
        1e6 * load,
        1e3 * connect,
        _memory(strategy, wanted[:TRACED], linked=True),
        _memory(strategy, wanted[:TRACED], linked=False),
    )


class _Loaded:
    """A broker with clients, and with a neighbour if linked."""

    def __init__(self, strategy: Strategy, *, linked: bool) -> None:
        self._broker = Broker("broker", strategy)
        self._numbers = count(1)
        if linked:
            self.connect()

    def connect(self) -> None:
        self._broker.receive(m.Connect(), NEIGHBOUR, now=0.0)

    def subscribe(self, filters: Sequence[Filter], first: int = 0) -> None:
        for number, filter in enumerate(filters, first):
            self._broker.receive(m.Subscribe(str(number), filter), f"client {number % CLIENTS}", now=0.0)

    def unsubscribe(self, filters: Sequence[Filter], first: int = 0) -> None:
        for number in range(first, first + len(filters)):
            self._broker.receive(m.Unsubscribe(str(number)), f"client {number % CLIENTS}", now=0.0)

    def route(self, events: Sequence[Event], batch: int) -> int:
        """Route events in batches and return the number of clients that get an event."""
        found = 0
        for start in range(0, len(events), batch):
            forwards = [m.Forward(event, "publisher", next(self._numbers)) for event in events[start : start + batch]]
            found += sum(len(routed.clients) for routed in self._broker.route(forwards, LOCAL, now=0.0))
        return found


def _memory(strategy: Strategy, filters: Sequence[Filter], *, linked: bool) -> float:
    """The bytes a filter that Python and NumPy allocate for a broker and do not free."""
    _Loaded(strategy, linked=linked).subscribe(filters[:1])  # the kernels are loaded with the first filter
    gc.collect()
    tracemalloc.start()
    try:
        loaded = _Loaded(strategy, linked=linked)
        loaded.subscribe(filters)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return held / len(filters)


def _cpu(do: Callable[[], object]) -> float:
    started = time.process_time()
    do()
    return time.process_time() - started


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the garbage collector from walking through data that is there already."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
