"""A city with a street: brokers along it, publishers that drive, subscribers that stay. One run, and what it cost.

85 brokers are a tree in which each has four children. The 64 leaves stand along the street, half a kilometre each.
A publisher drives to and fro at its speed; between two brokers it is cut off for a while. Each publishes one event of
its own, promises just that, and each subscriber wants one of them.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.mobility.messages import MoveIn, MoveOut
from fieldfare.mobility.publisher_policies import PublisherPolicy
from fieldfare.mobility.publishers import Publishers
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, with_advertisements
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import balanced_tree
from fieldfare_lab.mobility.observed_brokers import NONE, Model, Remembering, Watch, Watched

CELL: Final = 0.5
"""kilometres of street that a broker serves"""
CUT_OFF: Final = 3.0
"""seconds between two brokers"""
PROXIES: Final = 5
WARM_UP: Final = 15.0
_LINK: Final = Wire(0.00208)
"""2 ms, and what 100 bytes take at 10 Mbit/s: links are never full, so each message takes the same time"""
_CLIENT_LINK: Final = 0.00825
"""2 ms, and what 100 bytes take at 128 kbit/s"""
_STRATEGY: Final = with_advertisements(COVERING)


class Case(NamedTuple):
    """A run, before it has happened."""

    policy: PublisherPolicy
    model: Model
    publishers: int
    subscribers: int = 500
    speeds: tuple[float, ...] = (5.0, 50.0, 100.0)
    """km/h, one of which each publisher has"""
    roam: int | None = None
    """how many brokers to each side of its first one a publisher drives to; None: all of the street. It has done so for
    so long that it may be anywhere there when the run begins"""
    beyond: int | None = None
    """instead: how many brokers beyond the last of its proxies it drives to, and back to that"""
    locality: float = 0.0
    """the share of publishers that publish what others in their part of the city do"""
    every: float | None = None
    """seconds between two events of a publisher, if it publishes at all"""
    length: float = 45.0
    """seconds, after the warm-up"""
    seed: int = 1


class Outcome(NamedTuple):
    """What a run cost."""

    moves: int
    messages: int
    """between brokers, without events; each link counts"""
    rebuilding: float
    """seconds from coming until the last subscription that this caused is noted, on average"""
    due: int
    delivered: int
    waits: float
    """seconds from coming until events go out, on average, if they wait"""
    load: float
    """seconds of work in each second, for the broker that has most of it; more than one is too much"""

    @property
    def ratio(self) -> float:
        """Delivered events, of those that were due."""
        return self.delivered / self.due if self.due else 1.0


@lru_cache(maxsize=1000)
def run(case: Case) -> Outcome:
    """Let it happen."""
    return _Run(case).outcome()


class _Run:
    """A network with its clients."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.dice = Random(case.seed)
        topology = balanced_tree(4, 3)
        self.leaves = topology.brokers[-64:]
        self.watch = Watch()
        part, way = Remembering().part, ways(topology)
        self.delivered = self.due = 0
        self.came: dict[tuple[str, int], float] = {}
        self.away: set[str] = set()
        self.home: dict[str, int] = {}
        """the number of the leaf where each publisher came from"""
        self.start: dict[str, int] = {}
        """and where it is when the run begins"""

        def machine(name: str) -> Watched:
            mobile = Publishers(case.policy, proxies=self._proxies, patience=1e6)
            return Watched(
                Broker(name, _STRATEGY, remember=30.0, index=part), mobile, way(name), self.watch, case.model
            )

        self.network: Network[Any] = Network(
            machine, topology, links=_LINK, processing=None if case.model == NONE else case.model.cost,
            record=False, hear=self._hear, seed=case.seed,
        )  # fmt: skip
        self.network.settle()
        self.publications = self._settle_in()
        self.wanted: Counter[int] = Counter()
        for number in range(case.subscribers):
            wanted = self.dice.choice(self.publications)
            self.wanted[wanted] += 1
            self.network.attach(f"s{number}", self.dice.choice(self.leaves))
            self.network.subscribe(f"s{number}", "s", _filter(wanted))
        self.network.settle()

    def _proxies(self, client: str) -> list[str]:
        low = self._first_proxy(self.home[client])
        return list(self.leaves[low : low + PROXIES])

    def _first_proxy(self, home: int) -> int:
        return min(max(0, home - PROXIES // 2), len(self.leaves) - PROXIES)

    def _reach(self, home: int) -> tuple[int, int]:
        """The first and the last leaf that a publisher drives to."""
        end, beyond, roam = len(self.leaves) - 1, self.case.beyond, self.case.roam
        if beyond is not None:
            first = self._first_proxy(home)
            last = first + PROXIES - 1
            return (last, last + beyond) if last + beyond <= end else (first - beyond, first)
        return (0, end) if roam is None else (max(0, home - roam), min(end, home + roam))

    def _hear(self, client: str, message: Message) -> None:
        if isinstance(message, Deliver):
            self.delivered += 1

    def _settle_in(self) -> list[int]:
        """Publishers come to their first brokers; gives what each publishes."""
        publications = []
        for number in range(self.case.publishers):
            client, (low, high) = f"p{number}", self._reach(home := self.dice.randrange(len(self.leaves)))
            place = self.dice.randint(low, high)
            common = self.dice.random() < self.case.locality
            publications.append(-1 - place // 16 if common else number)
            self.start[client], self.home[client] = place, home
            self.watch.moves[client] = 0
            self.network.attach(client, self.leaves[place])
            promised = {"a": _filter(publications[-1])}
            self.network.say(client, MoveIn(advertisements=promised))
        self.network.settle()
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
        self.network.run(end + 20)  # what is delayed is done, too
        self.network.settle()
        after = self.network.total_traffic()
        counted = {move: time for move, time in self.came.items() if time >= begin}
        rebuilding = [max(0.0, self.watch.last.get(move, 0.0) - time) for move, time in counted.items()]
        waits = [time - counted[move] for move, time in self.watch.released.items() if move in counted]
        return Outcome(
            len(counted), after.admin + after.other - before.admin - before.other, _mean(rebuilding),
            self.due, self.delivered, _mean(waits), max(self.watch.work.values(), default=0.0) / self.case.length,
        )  # fmt: skip

    def _drive(self, number: int, start: float, end: float) -> None:
        """Plan all moves of a publisher."""
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
        self.network.say(client, MoveOut(target))
        self.away.add(client)

    def _come(self, number: int, source: str, target: str, moves: int) -> None:
        client = f"p{number}"
        self.away.discard(client)
        self.watch.moves[client] = moves
        self.came[client, moves] = self.network.now
        self.network.attach(client, target)
        promised = {"a": _filter(self.publications[number])}
        self.network.say(client, MoveIn(source, advertisements=promised, moves=moves))

    def _publish(self, number: int, end: float) -> None:
        assert self.case.every is not None
        if self.network.now >= end:
            return
        if f"p{number}" not in self.away:
            publication = self.publications[number]
            self.network.publish(f"p{number}", {"id": publication})
            self.due += self.wanted[publication]
        self.network.at(self.network.now + self.case.every, self._publish, number, end)


@lru_cache(maxsize=10_000)
def _filter(publication: int) -> Filter:
    return parse(f"id = {publication}")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
