"""Workloads: timed actions of clients.

A workload is made from a few parameters and a seed, saved in a Parquet file, and replayed on any network: the same
actions for every strategy, for a fair comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice
from random import Random
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.simulation.content import Market, Numbers, Region, Sensors, Subject
from fieldfare.simulation.distributions import SHARES, arrivals
from fieldfare.simulation.durable_network import DurableNetwork
from fieldfare.simulation.network import Network

# Actions


class Attach(NamedTuple):
    """A client comes to a broker."""

    time: float
    client: str
    broker: str


class Subscribe(NamedTuple):
    """A client asks for events."""

    time: float
    client: str
    id: str
    filter: Filter


class Unsubscribe(NamedTuple):
    """A client asks no more."""

    time: float
    client: str
    id: str


class Advertise(NamedTuple):
    """A client advertises a filter under an id."""

    time: float
    client: str
    id: str
    filter: Filter


class Unadvertise(NamedTuple):
    """A client takes a promise back."""

    time: float
    client: str
    id: str


class Publish(NamedTuple):
    """A client publishes an event."""

    time: float
    client: str
    event: Event


class Leave(NamedTuple):
    """A client ends all subscriptions and advertisements."""

    time: float
    client: str


Action: TypeAlias = Attach | Subscribe | Unsubscribe | Advertise | Unadvertise | Publish | Leave

# Making them

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a random workload."""

    subject: Literal["market", "sensors", "numbers"] = "market"
    """what events are about"""
    values: Literal["uniform", "gaussian", "pareto", "zipf"] = "uniform"
    """how numbers are spread, if they are about numbers"""
    subscribers: Count = 20
    """clients that want something"""
    publishers: Count = 5
    """clients that say something"""
    subscriptions: Count = 100
    """of all subscribers together, at any time"""
    lifetime: Positive | None = None
    """mean seconds after which a subscription makes place for another one; None: they stay"""
    events: Count = 1000
    rate: Positive = 100.0
    """events in a second"""
    arrivals: Literal["constant", "poisson", "bursts"] = "poisson"
    burst: Annotated[int, msgspec.Meta(ge=1)] = 10
    """events in a burst, if they come in bursts"""
    warmup: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """seconds before the first event, in which all subscribe"""
    moves: Count = 0
    """of subscribers to other brokers, in all; needs a handover"""
    locality: Share = 0.0
    """how alike the wishes at a broker are: 0 as those of all, 1 all the same"""
    publisher_locality: Share = 0.0
    """how much each publisher keeps to what is wanted at its own broker"""


def generate(workload: Workload, brokers: Sequence[str], seed: int = 0) -> list[Action]:
    """All actions, in order of time; the same for the same seed.

    >>> actions = generate(Workload(events=2, subscriptions=1, subscribers=1, publishers=1), ["b0"])
    >>> [type(action).__name__ for action in actions]
    ['Attach', 'Attach', 'Advertise', 'Subscribe', 'Publish', 'Publish']
    """
    dice = Random(seed)
    subject = _subject(workload, dice)
    starts: list[Action] = []
    homes = {broker: number / len(brokers) for number, broker in enumerate(brokers)}
    subscribers = {f"s{number}": dice.choice(brokers) for number in range(workload.subscribers)}
    publishers = {f"p{number}": dice.choice(brokers) for number in range(workload.publishers)}
    starts += [Attach(0.0, client, broker) for client, broker in (subscribers | publishers).items()]
    speakers = {}
    for client, broker in publishers.items():
        speakers[client] = subject.publisher(dice, Region(homes[broker], 1 - workload.publisher_locality))
        starts.append(Advertise(0.0, client, "all", speakers[client].promised))
    published: list[Action] = []
    if publishers:
        # Wishes and events have dice of their own, so that more of the one does not change the other.
        chance = Random(f"{seed} events")
        for time in islice(arrivals(workload.arrivals, chance, workload.rate, workload.burst), workload.events):
            client = chance.choice(list(speakers))
            published.append(Publish(workload.warmup + time, client, speakers[client].event(chance)))
    end = published[-1].time if published else workload.warmup
    wishes: list[Action] = []
    if subscribers:
        chance = Random(f"{seed} subscriptions")
        fresh = _subject(workload, Random(seed))  # prices as they were at the start
        for number in range(workload.subscriptions):
            client = chance.choice(list(subscribers))
            region = Region(homes[subscribers[client]], 1 - workload.locality)
            ids = chain([f"{number}"], (f"{number}.{again}" for again in count(1)))
            for (since, until), id in zip(_stays(workload, chance, end), ids, strict=False):
                wishes.append(Subscribe(since, client, id, fresh.filter(chance, region)))
                if until < end:
                    wishes.append(Unsubscribe(until, client, id))
    journeys: list[Action] = []
    chance = Random(f"{seed} moves")
    for _ in range(workload.moves if subscribers else 0):
        time = chance.uniform(workload.warmup, end)
        journeys.append(Attach(time, chance.choice(list(subscribers)), chance.choice(brokers)))
    return sorted(starts + wishes + published + journeys, key=lambda action: action.time)


def _stays(workload: Workload, dice: Random, end: float) -> Iterator[tuple[float, float]]:
    """Return the periods of a subscription and of the subscriptions replacing it."""
    since = dice.uniform(0, workload.warmup / 2)
    while since <= end:
        until = since + dice.expovariate(1 / workload.lifetime) if workload.lifetime else math.inf
        yield since, until
        since = until


def _subject(workload: Workload, dice: Random) -> Subject:
    match workload.subject:
        case "market":
            return Market(dice)
        case "sensors":
            return Sensors()
        case "numbers":
            return Numbers(SHARES[workload.values])


# Doing them


def replay(actions: Iterable[Action], network: Network[Any] | DurableNetwork) -> None:
    """Plan all actions in a network."""
    for action in actions:
        name = type(action).__name__.lower()
        network.at(action.time, getattr(network, name), *action[1:])


# In files

_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (Attach, Subscribe, Unsubscribe, Advertise, Unadvertise, Publish, Leave)
}
_SCHEMA: Final = pa.schema(
    {
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "time": pa.float64(),
        "client": pa.string(),
        "broker": pa.string(),
        "id": pa.string(),
        "filter": pa.string(),  # in the language of filters
        "event": pa.binary(),  # MessagePack
    }
)


def write(actions: Iterable[Action], path: str) -> None:
    """Save a workload in a Parquet file."""
    rows = [{"kind": type(action).__name__, **action._asdict()} for action in actions]
    columns = {name: [row.get(name) for row in rows] for name in _SCHEMA.names}
    columns["filter"] = [None if filter is None else str(filter) for filter in columns["filter"]]
    columns["event"] = [None if event is None else msgpack.encode(event) for event in columns["event"]]
    pq.write_table(pa.table(columns, schema=_SCHEMA), path)


def read(path: str) -> list[Action]:
    """Read a workload from a Parquet file; ValueError if the file holds none."""
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"no Parquet file: {error}") from None
    if missing := set(_SCHEMA.names) - set(table.column_names):
        raise ValueError(f"no workload: there is no column {', '.join(sorted(missing))}")
    actions: list[Action] = []
    for row in table.to_pylist():
        kind = _KINDS.get(row["kind"])
        if kind is None:
            raise ValueError(f"no workload: there is no action {row['kind']}")
        if row["filter"] is not None:
            row["filter"] = parse(row["filter"])
        if row["event"] is not None:
            row["event"] = msgpack.decode(row["event"])
        actions.append(kind(*(row[name] for name in kind._fields)))
    return actions
