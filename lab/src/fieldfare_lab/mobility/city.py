"""A simulated city with a street: brokers along the street, publishers that drive, subscribers that stay.

The 85 brokers are a tree in which each inner broker has four children. The 64 leaves stand along the street and serve
half a kilometre each. A publisher drives to and fro at its speed, and is cut off for a while between two brokers. Each
publisher publishes and advertises events with its own id, and each subscriber subscribes to the events of an id.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.mobility.messages import MoveIn, MoveOut
from fieldfare.mobility.publishers import Publishers
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.publisher_policies import PublisherPolicy
from fieldfare.routing.strategies import COVERING, with_advertisements
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import balanced_tree
from fieldfare_lab.mobility.observed_brokers import NONE, Model, Remembering, Watch, Watched

CELL: Final = 0.5
"""kilometres of street that a broker serves"""
CUT_OFF: Final = 3.0
"""seconds without connection between two brokers"""
PROXIES: Final = 5
WARM_UP: Final = 15.0
_LINK: Final = Wire(0.00208)
"""2 ms plus the time of 100 bytes at 10 Mbit/s; links are never full, so each message takes the same time"""
_CLIENT_LINK: Final = 0.00825
"""2 ms plus the time of 100 bytes at 128 kbit/s"""
_STRATEGY: Final = with_advertisements(COVERING)


class Case(NamedTuple):
    """The parameters of a run."""

    policy: PublisherPolicy
    model: Model
    publishers: int
    subscribers: int = 500
    speeds: tuple[float, ...] = (5.0, 50.0, 100.0)
    """km/h; each publisher draws a speed"""
    roam: int | None = None
    """number of brokers to each side of home that a publisher drives to; None: the whole street. Publishers have driven
    for long before the run, so a run may begin anywhere within this range"""
    beyond: int | None = None
    """instead of `roam`: publishers drive between the last proxy and so many brokers beyond it"""
    locality: float = 0.0
    """share of publishers with the same events as others in the same part of the city"""
    every: float | None = None
    """seconds between two events of a publisher; None: publishers only move"""
    length: float = 45.0
    """seconds after the warm-up"""
    seed: int = 1


class Outcome(NamedTuple):
    """The counts and times of a run."""

    moves: int
    messages: int
    """messages between brokers without events, counted on each link"""
    rebuilding: float
    """mean seconds from the arrival of a publisher to the last subscription update that the arrival caused"""
    due: int
    delivered: int
    waits: float
    """mean seconds from the arrival of a publisher until held events are sent"""
    load: float
    """seconds of work in each second at the busiest broker; above 1 queues grow"""

    @property
    def ratio(self) -> float:
        """Return the share of due events that were delivered; late events count as delivered."""
        return self.delivered / self.due if self.due else 1.0


@lru_cache(maxsize=1000)
def run(case: Case) -> Outcome:
    """Simulate a case; outcomes are cached, because several experiments share cases."""
    return _Run(case).outcome()


class _Run:
    """A simulated network with publishers and subscribers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.dice = Random(case.seed)
        topology = balanced_tree(4, 3)
        self.leaves = topology.brokers[-64:]
        self.watch = Watch()
        index, way = Remembering(), ways(topology)
        self.delivered = self.due = 0
        self.came: dict[tuple[str, int], float] = {}
        self.away: set[str] = set()
        self.home: dict[str, int] = {}
        """number of each publisher's home leaf, in the middle of its proxies"""
        self.start: dict[str, int] = {}
        """number of each publisher's leaf at the beginning of the run"""

        def machine(name: str) -> Watched:
            mobile = Publishers(case.policy, proxies=self._proxies, patience=1e6)
            return Watched(
                Broker(name, _STRATEGY, remember=30.0, index=index), mobile, way(name), self.watch, case.model
            )

        self.network: Network[Any] = Network(
            machine, topology, links=_LINK, processing=None if case.model == NONE else case.model.cost,
            record=False, on_message=self._receive, seed=case.seed,
        )  # fmt: skip
        self.network.drain()
        self.publications = self._place_publishers()
        self.subscribers: Counter[int] = Counter()
        for number in range(case.subscribers):
            publication = self.dice.choice(self.publications)
            self.subscribers[publication] += 1
            self.network.attach(f"s{number}", self.dice.choice(self.leaves))
            self.network.subscribe(f"s{number}", "s", _filter(publication))
        self.network.drain()

    def _proxies(self, client: str) -> list[str]:
        low = self._first_proxy(self.home[client])
        return list(self.leaves[low : low + PROXIES])

    def _first_proxy(self, home: int) -> int:
        return min(max(0, home - PROXIES // 2), len(self.leaves) - PROXIES)

    def _reach(self, home: int) -> tuple[int, int]:
        """Return the numbers of the first and the last leaf that a publisher drives to."""
        end, beyond, roam = len(self.leaves) - 1, self.case.beyond, self.case.roam
        if beyond is not None:
            first = self._first_proxy(home)
            last = first + PROXIES - 1
            return (last, last + beyond) if last + beyond <= end else (first - beyond, first)
        return (0, end) if roam is None else (max(0, home - roam), min(end, home + roam))

    def _receive(self, client: str, message: Message) -> None:
        if isinstance(message, Deliver):
            self.delivered += 1

    def _place_publishers(self) -> list[int]:
        """Attach the publishers to their first brokers; return the id of each publisher's events."""
        publications = []
        for number in range(self.case.publishers):
            client, (low, high) = f"p{number}", self._reach(home := self.dice.randrange(len(self.leaves)))
            place = self.dice.randint(low, high)
            common = self.dice.random() < self.case.locality
            publications.append(-1 - place // 16 if common else number)
            self.start[client], self.home[client] = place, home
            self.watch.moves[client] = 0
            self.network.attach(client, self.leaves[place])
            advertised = {"a": _filter(publications[-1])}
            self.network.send(client, MoveIn(advertisements=advertised))
        self.network.drain()
        return publications

    def outcome(self) -> Outcome:
        begin = self.network.now + WARM_UP
        end = begin + self.case.length
        for number in range(self.case.publishers):
            self._drive(number, self.network.now, end)
            if self.case.every is not None:
                self.network.at(begin + self.dice.random() * self.case.every, self._publish, number, end)
        self.network.run(begin)
        before = self.network.total_traffic()
        self.watch.work.clear()
        self.network.run(end + 20)  # time for delayed messages
        self.network.drain()
        after = self.network.total_traffic()
        counted = {move: time for move, time in self.came.items() if time >= begin}
        rebuilding = [max(0.0, self.watch.last.get(move, 0.0) - time) for move, time in counted.items()]
        waits = [time - counted[move] for move, time in self.watch.released.items() if move in counted]
        return Outcome(
            len(counted), after.admin + after.other - before.admin - before.other, _mean(rebuilding),
            self.due, self.delivered, _mean(waits), max(self.watch.work.values(), default=0.0) / self.case.length,
        )  # fmt: skip

    def _drive(self, number: int, start: float, end: float) -> None:
        """Schedule all moves of a publisher."""
        client, time, moves = f"p{number}", start, 0
        stay = CELL / self.dice.choice(self.case.speeds) * 3600
        place, (low, high) = self.start[client], self._reach(self.home[client])
        step = self.dice.choice((-1, 1))
        time += self.dice.random() * stay
        while time < end and low < high:
            if not low <= place + step <= high:
                step = -step
            source, place, moves = self.leaves[place], place + step, moves + 1
            self.network.at(time, self._go, client, self.leaves[place])
            self.network.at(time + CUT_OFF + _CLIENT_LINK, self._come, number, source, self.leaves[place], moves)
            time += CUT_OFF + stay

    def _go(self, client: str, target: str) -> None:
        self.network.send(client, MoveOut(target))
        self.away.add(client)

    def _come(self, number: int, source: str, target: str, moves: int) -> None:
        client = f"p{number}"
        self.away.discard(client)
        self.watch.moves[client] = moves
        self.came[client, moves] = self.network.now
        self.network.attach(client, target)
        advertised = {"a": _filter(self.publications[number])}
        self.network.send(client, MoveIn(source, advertisements=advertised, moves=moves))

    def _publish(self, number: int, end: float) -> None:
        assert self.case.every is not None
        if self.network.now >= end:
            return
        if f"p{number}" not in self.away:
            publication = self.publications[number]
            self.network.publish(f"p{number}", {"id": publication})
            self.due += self.subscribers[publication]
        self.network.at(self.network.now + self.case.every, self._publish, number, end)


@lru_cache(maxsize=10_000)
def _filter(publication: int) -> Filter:
    return parse(f"id = {publication}")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
