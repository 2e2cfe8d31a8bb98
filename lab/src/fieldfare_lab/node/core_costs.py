"""The costs of a core: CPU time of an event in each stage between two sockets, without the sockets.

An event is decoded, a step accepts and routes a group of events, the storage writes the step, the core releases the
effects, and every receiving session fetches its deliveries. After each `BETWEEN` events the sessions acknowledge, as
clients do after a moment. Shapes of load differ in the number of receivers and filters. The events of two shapes are
features of GeoJSON, of which filters look at two nested fields.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from fieldfare.core.core import Core
from fieldfare.core.inputs import Acknowledge, Attach, ChangeFilters, ConnectLink
from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.config import Log
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol import messages as m
from fieldfare.protocol.codec import CODECS
from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker
from fieldfare_lab.bench import workloads
from fieldfare_lab.node import load

BETWEEN: Final = 100
"""events between two acknowledgements of the sessions"""
STAGES: Final = ("decode", "step", "write", "release", "fetch", "acknowledge")
SHAPES: Final = ("one of 100", "all of 100", "10 of 10,000", "nested, one of 100", "nested JSON, one of 100")


class CoreCosts(msgspec.Struct, frozen=True):
    """CPU time of an event in microseconds, by stage."""

    shape: str
    batch: int
    """events in a group"""
    receivers: float
    """sessions that an event reaches"""
    stages: dict[str, float]

    @property
    def all(self) -> float:
        """Return the CPU time of all stages together."""
        return sum(self.stages.values())


class Traffic(msgspec.Struct, frozen=True):
    """The filters of 100 subscribers, and the events that somebody publishes."""

    filters: Sequence[tuple[int, str]]
    events: Sequence[Event]
    form: str = "msgpack"
    """form of the publisher's frames"""


def traffic(shape: str, events: int) -> Traffic:
    """Return the load of a shape.

    >>> len(traffic("all of 100", 5).filters)
    100
    """
    if shape == "10 of 10,000":
        made = load.make(1)
        filters = [(filter.subscriber, filter.text) for filter in made.filters]
        return Traffic(filters, [Event(one.fields) for one in load.events(made, events)])
    if shape.startswith("nested"):
        lots = workloads.generate("lots", 0, events).events
        texts = [f"properties.key = {number} AND properties.ODD_EVEN IN ('E', 'O')" for number in range(100)]
        trees = [{**lot, "properties": {**lot["properties"], "key": place % 100}} for place, lot in enumerate(lots)]
        return Traffic(list(enumerate(texts)), list(map(Event, trees)), "json" if "JSON" in shape else "msgpack")
    if shape not in SHAPES:
        raise ValueError(f"there is no shape {shape!r}; there are {', '.join(SHAPES)}")
    texts = [f"key = {number}" if shape == "one of 100" else "price > 0" for number in range(100)]
    fields = [{"key": number % 100, "price": 17.5, "quantity": number, "note": "amended"} for number in range(events)]
    return Traffic(list(enumerate(texts)), [Event(one) for one in fields])


def core_costs(
    shape: str, batch: int, *, events: int = 3000, rounds: int = 5, durable: bool = True, linked: bool = False
) -> CoreCosts:
    """Measure a core under a shape of load; the best round counts."""
    made = traffic(shape, events)
    encoded = [CODECS[made.form].raw(event) for event in made.events]
    with tempfile.TemporaryDirectory(prefix="fieldfare-core-") as folder, _quiet():
        run = _Run(made, Path(folder) if durable else None, linked=linked)
        run.publish(encoded[:BETWEEN], batch)  # warms up
        found = []
        for _ in range(rounds):
            run.begin()
            run.publish(encoded, batch)
            found.append({stage: 1e6 * spent / events for stage, spent in run.spent.items()})
        run.storage.close()
    best = min(found, key=lambda one: sum(one.values()))
    return CoreCosts(shape, batch, run.delivered / events, best)


class _Run:
    """A core with its storage, and the sessions of a load."""

    def __init__(self, made: Traffic, folder: Path | None, *, linked: bool) -> None:
        self._decode = CODECS[made.form].event_to_log
        self.core = Core(Broker("bench"))
        self.storage = Storage(folder, Log())
        self.begin()
        durable = folder is not None
        self._names = [f"subscriber-{number}" for number in range(1 + max(one for one, _ in made.filters))]
        inputs: list[Callable[[Core, float], object]] = [
            Attach(name, name, durable=durable) for name in (*self._names, "publisher")
        ]
        for number, (subscriber, text) in enumerate(made.filters):
            inputs.append(ChangeFilters(self._names[subscriber], m.Subscribe(str(number), parse(text))))
        if linked:
            inputs.append(ConnectLink("neighbour", Role.PEER))
        self._step(inputs)

    def begin(self) -> None:
        """Forget the time that was spent."""
        self.spent = dict.fromkeys(STAGES, 0.0)
        self.delivered = 0

    def publish(self, encoded: Sequence[bytes], batch: int) -> None:
        """Publish events in groups, one event a publication, and acknowledge now and then."""
        rest, since, woken = iter(encoded), 0, set[str]()
        while group := list(islice(rest, batch)):
            with self._timed("decode"):
                inputs = [Publication("publisher", 0, [self._decode(one)]) for one in group]
            woken |= self._step(inputs)
            since += batch
            if since >= BETWEEN:
                since = 0
                self._acknowledge(sorted(woken))
                woken.clear()
        self._acknowledge(sorted(woken))

    def _step(self, inputs: Sequence[object]) -> set[str]:
        """Return the sessions with new deliveries, which have fetched them."""
        with self._timed("step"):
            step = self.core.step(inputs, 0.0)  # type: ignore[arg-type]
        with self._timed("write"):
            self.storage.write(step)
        with self._timed("release"):
            self.core.release(step)
        with self._timed("fetch"):
            for name in step.sessions:
                self.delivered += len(self.core.deliveries.next(name, 500, 0.0))
        return set(step.sessions)

    def _acknowledge(self, names: Sequence[str]) -> None:
        inputs = [Acknowledge(name, self.core.sessions[name].sent) for name in names]
        with self._timed("acknowledge"):
            step = self.core.step(inputs, 0.0)
            self.storage.write(step)
            self.core.release(step)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.spent[stage] += time.process_time() - began


@contextmanager
def _quiet() -> Iterator[None]:
    """Collect no garbage, as a node under load does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
