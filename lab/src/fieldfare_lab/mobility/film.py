"""A film of a city: taxis drive from antenna to antenna, publish positions, and subscribe to rides near by.

Each cell of the city has an antenna, which is a broker; an inner broker joins four antennas, and the root joins the
inner brokers. A taxi is a client of the antenna of its cell. A taxi moves as a subscriber by `PathUpdate` and as a
publisher by the policy `SAFE`, and has no connection in the tunnel. A dispatcher walks and moves in the same way.
Customers and the office stay.

The film records a simulated run, and the trace checker judges the run. A taxi changes its subscription a moment after
an arrival, so that events held for the old subscription come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.path_update import PathUpdate
from fieldfare.mobility.publishers import Publishers
from fieldfare.mobility.subscribers import SubscriberVisit
from fieldfare.protocol.messages import Deliver, Message, Send
from fieldfare.routing.broker import Broker
from fieldfare.routing.publisher_policies import SAFE, PublisherPolicy
from fieldfare.routing.strategies import STRATEGIES, Strategy
from fieldfare.simulation import checker
from fieldfare.simulation.checker import Violation
from fieldfare.simulation.links import Wire, uniform
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, from_edges
from fieldfare.simulation.trace import Record, Trace
from fieldfare_lab.mobility import streets
from fieldfare_lab.mobility.streets import Drive, Point

ROOT: Final = "root"
OFFICE: Final = "office"
DISPATCHER: Final = "dispatcher"
FREE_TAXIS: Final = "type = 'taxi' AND free = TRUE AND cell IN ('b2', 'c2', 'b3', 'c3')"
"""filter of the dispatcher: free taxis in the middle of the city"""
NEWS: Final = "type = 'traffic'"
STRATEGY: Final[Strategy] = STRATEGIES["covering+ads"]
_CUSTOMERS: Final = 10
_NEAR: Final = Wire(uniform(0.01, 0.03))
_FAR: Final = Wire(uniform(0.02, 0.06))
"""delay between brokers that are no neighbours and exchange sessions directly"""
_SETTLED: Final = 1.0
"""seconds between the arrival at an antenna and the subscription to rides near the antenna"""
_LOOK: Final = 0.25
"""seconds between two counts of the events that wait for clients in the tunnel"""


class Handover(NamedTuple):
    """The move of a client and its session to an antenna."""

    time: float
    """arrival of the client"""
    done: float
    """arrival of the session"""
    client: str
    source: str
    target: str


class Film(NamedTuple):
    """A recorded run. Times count from `start`, except in the trace, which has times of the simulation."""

    start: float
    seconds: float
    topology: Topology
    places: dict[str, Point]
    """places of brokers, customers and the office"""
    drives: dict[str, Drive]
    """drives of taxis and the dispatcher"""
    states: list[tuple[float, str, bool]]
    """changes of taxis: time, taxi, free or busy"""
    handovers: list[Handover]
    waiting: list[tuple[float, str, int]]
    """changes of the number of waiting events: time, client, number"""
    trace: Sequence[Record]
    violations: list[Violation]

    @property
    def lost(self) -> int:
        """Return the number of due deliveries that never came."""
        return sum(violation.rule == "liveness" for violation in self.violations)


def record(taxis: int = 12, seconds: float = 120.0, seed: int = 1, *, policy: PublisherPolicy = SAFE) -> Film:
    """Simulate the city for some seconds of virtual time, and record a film."""
    return _City(taxis, seconds, seed, policy).film()


def judged(trace: Trace) -> list[Violation]:
    """Check a trace against the specification; events may wait until a handover is complete."""
    found = checker.safety(trace, advertisements=True) + checker.attribution(trace)
    found += checker.liveness(trace, advertisements=True) + checker.fifo(trace)
    return sorted(found, key=lambda violation: violation.order)


def antennas() -> tuple[Topology, dict[str, Point]]:
    """Return the tree of brokers and their places; an inner broker stands where its four cells meet."""
    places = {ROOT: (streets.SIZE / 2, streets.SIZE / 2)}
    edges = []
    for cell in streets.cells():
        x, y = streets.centre(cell)
        inner = f"{'west' if x < streets.SIZE / 2 else 'east'}-{'north' if y < streets.SIZE / 2 else 'south'}"
        if inner not in places:
            places[inner] = x + streets.CELL / 2, y + streets.CELL / 2
            edges.append((ROOT, inner))
        places[cell] = x, y
        edges.append((inner, cell))
    return from_edges(edges), places


def rides_near(cell: str) -> str:
    """Return the filter of a taxi for rides in its cell and in the cells around."""
    cells = ", ".join(f"'{other}'" for other in streets.around(cell))
    return f"type = 'ride' AND cell IN ({cells})"


class _Watched(PathUpdate):
    """A `PathUpdate` that reports the arrivals of sessions to the city."""

    def __init__(self, city: _City) -> None:
        super().__init__()
        self._city = city

    def session_arrived(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        self._city.handed_over(client, visit, self.base.name)
        return super().session_arrived(client, visit, now)


class _City:
    """A simulated run with all clients, and the lists that become a film."""

    def __init__(self, taxis: int, seconds: float, seed: int, policy: PublisherPolicy) -> None:
        self.dice = Random(seed)
        self.seconds = seconds
        self.topology, self.places = antennas()
        self.sessions: dict[str, _Watched] = {}
        way, neighbours = ways(self.topology), self.topology.neighbours()

        def machine(name: str) -> MobileBroker:
            part = self.sessions[name] = _Watched(self)
            return MobileBroker(Broker(name, STRATEGY), part, Publishers(policy), next_hop=way(name))

        self.network: Network[Any] = Network(
            machine, self.topology, seed=seed, mesh=True, on_message=self._receive,
            links=lambda a, b: _NEAR if b in neighbours[a] else _FAR,
        )  # fmt: skip
        self.network.drain()
        self.taxis = [f"taxi {number + 1}" for number in range(taxis)]
        self.drives = {taxi: streets.drive(self.dice, seconds, (12, 22)) for taxi in self.taxis}
        self.drives[DISPATCHER] = streets.drive(self.dice, seconds, (6, 9), tunnel=False)
        self.roamers = {name: Roamer(self.network, name) for name in self.drives}
        self.busy: dict[str, float] = {}
        """time until which a taxi is busy"""
        self.taken: set[tuple[str, int]] = set()
        """rides that a taxi has accepted"""
        self.arrivals: dict[tuple[str, int], float] = {}
        self.states: list[tuple[float, str, bool]] = []
        self.handovers: list[Handover] = []
        self.waiting: list[tuple[float, str, int]] = []
        self.customers = self._place_clients()
        self.start = self.network.now

    def _place_clients(self) -> list[str]:
        """Attach all clients at their first places, with subscriptions and advertisements; return the customers."""
        network = self.network
        self.places[OFFICE] = streets.SIZE / 2 + 26, streets.SIZE / 2 - 26
        network.attach(OFFICE, ROOT)
        network.subscribe(OFFICE, "taxis", "type = 'taxi'")
        for name, roamer in self.roamers.items():
            cell = streets.contacts(self.drives[name])[0][1]
            roamer.arrive(cell)
            if name == DISPATCHER:
                roamer.advertise("news", NEWS)
                roamer.subscribe("free", FREE_TAXIS)
            else:
                roamer.advertise("own", f"type = 'taxi' AND taxi = '{name}'")
                roamer.subscribe("rides", rides_near(cell))
                roamer.subscribe("news", NEWS)
        customers = [f"customer {number + 1}" for number in range(_CUSTOMERS)]
        for name, cell in zip(customers, self.dice.sample(streets.cells(), _CUSTOMERS), strict=True):
            x, y = streets.centre(cell)
            self.places[name] = x + self.dice.choice((-30, 30)), y + self.dice.choice((-66, 66))
            network.attach(name, cell)
            network.advertise(name, "rides", f"type = 'ride' AND cell = '{cell}'")
        network.drain()
        return customers

    @property
    def now(self) -> float:
        """Return the seconds since all clients are in place."""
        return self.network.now - self.start

    def film(self) -> Film:
        """Schedule all actions, run the simulation to its end, and return the film."""
        dice = self.dice
        for name, way in self.drives.items():
            for time, cell in streets.contacts(way)[1:]:
                self._at(time, self._contact, name, cell)
                if cell and name != DISPATCHER:
                    self._at(time + _SETTLED, self._ask, name, cell)
        for taxi in self.taxis:
            self._every(1.0, 1.0, dice.random(), self._report, taxi)
        for customer in self.customers:
            self._every(10.0, 30.0, dice.uniform(0, 20), self._call, customer)
        self._every(8.0, 12.0, 3.0, self._warn)
        self._every(_LOOK, _LOOK, 0.0, self._look)
        self.network.drain()
        trace = self.network.trace
        return Film(
            self.start, max(self.seconds, self.now), self.topology, self.places, self.drives, self.states,
            self.handovers, self.waiting, trace, judged(trace),
        )  # fmt: skip

    def _at(self, time: float, action: Any, *arguments: object) -> None:
        if time < self.seconds:
            self.network.at(self.start + time, action, *arguments)

    def _every(self, least: float, most: float, first: float, action: Any, *arguments: object) -> None:
        time = first
        while time < self.seconds:
            self._at(time, action, *arguments)
            time += self.dice.uniform(least, most)

    # Actions of the clients

    def _contact(self, name: str, cell: str) -> None:
        """Move a client to the antenna of another cell, or (no cell) out of reach."""
        roamer = self.roamers[name]
        if not cell:
            roamer.depart()
            return
        roamer.arrive(cell)
        self.arrivals[name, roamer.moves] = self.now

    def handed_over(self, client: str, visit: SubscriberVisit, broker: str) -> None:
        """Note that a session has arrived at a broker; the client may be elsewhere by now."""
        came = self.arrivals.pop((client, visit.number))
        self.handovers.append(Handover(came, self.now, client, visit.source, broker))

    def _ask(self, taxi: str, cell: str) -> None:
        if self.roamers[taxi].here == cell:
            self.roamers[taxi].subscribe("rides", rides_near(cell))

    def _report(self, taxi: str) -> None:
        """Publish the position of a taxi; in the tunnel there is no broker."""
        cell, way = self.roamers[taxi].here, self.drives[taxi]
        free = self.busy.get(taxi, 0.0) <= self.now
        if free and self.busy.pop(taxi, None) is not None:
            self.states.append((self.now, taxi, True))
        if cell is not None:
            x, y = streets.position(way, self.now)
            where = {"cell": cell, "x": round(x), "y": round(y), "speed": round(streets.speed(way, self.now))}
            self.network.publish(taxi, {"type": "taxi", "taxi": taxi, "free": free, **where})

    def _call(self, customer: str) -> None:
        cell = streets.cell_at(self.places[customer])
        seats = self.dice.randint(1, 4)
        self.network.publish(customer, {"type": "ride", "cell": cell, "customer": customer, "seats": seats})

    def _warn(self) -> None:
        cell, jam = self.dice.choice(streets.cells()), self.dice.random() < 0.5
        self.network.publish(DISPATCHER, {"type": "traffic", "cell": cell, "jam": jam})

    def _receive(self, client: str, message: Message) -> None:
        """Acknowledge a delivery to a mobile client; the first free taxi that receives a ride accepts the ride."""
        if client not in self.roamers:
            return
        self.roamers[client].receive(message)
        if not isinstance(message, Deliver) or message.event["type"] != "ride" or client in self.busy:
            return
        ride = message.publisher, message.sequence
        if ride not in self.taken:
            self.taken.add(ride)
            self.busy[client] = self.now + self.dice.uniform(8, 16)
            self.states.append((self.now, client, False))

    def _look(self) -> None:
        """Count the events that wait for clients out of reach."""
        before = {name: count for _, name, count in self.waiting}
        for name, roamer in self.roamers.items():
            visits = self.sessions[roamer.source].visits.get(name, {}).values() if roamer.here is None else ()
            count = max(
                (len(visit.buffered if visit.session is None else visit.session.pending) for visit in visits), default=0
            )
            if count != before.get(name, 0):
                self.waiting.append((self.now, name, count))
