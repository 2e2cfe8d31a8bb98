"""`CoreWorld`: the surroundings of simulated nodes: virtual time, chance, wrong clocks, unique names, and the trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any

from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.messages import FilterUpdate
from fieldfare.simulation import trace as records
from fieldfare.simulation.clock import VirtualClock
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.node_clock import NodeClock
from fieldfare.simulation.story import Note, sentence
from fieldfare.simulation.story_messages import message_sentence
from fieldfare.simulation.trace import Record


class CoreWorld:
    """Time, chance and names for some nodes, and the record of all that happens to them."""

    def __init__(
        self, nodes: Iterable[str], seed: int, *, story: list[Note] | None = None, detailed: bool = False
    ) -> None:
        """Begin at virtual time 0, with right clocks."""
        names = tuple(nodes)
        self.clock = VirtualClock()
        self.clocks = {name: NodeClock(self.clock) for name in names}
        self.trace: list[Record] = []
        self.problems: list[str] = []
        """breaches of the rules between the parts of the network, which no trace shows"""
        self.traffic: defaultdict[tuple[str, str], Traffic] = defaultdict(Traffic)
        self.work: dict[str, Work] = {name: Work() for name in names}
        self._seed, self._story, self._detailed = seed, story, detailed
        self._randoms: dict[str, Random] = {}
        self._fresh: defaultdict[str, int] = defaultdict(int)

    # Chance, clocks and names

    def random_of(self, name: str) -> Random:
        """Return the random generator of a part: a change in a part changes no other part."""
        if name not in self._randoms:
            self._randoms[name] = Random(f"{self._seed} {name}")
        return self._randoms[name]

    def fresh(self, about: str) -> str:
        """Return a unique name, made of a word and a count."""
        self._fresh[about] += 1
        return f"{about}/{self._fresh[about]}"

    def wall(self, node: str) -> float:
        """Return the time of a node's wall clock, which may jump."""
        return self.clocks[node].wall()

    def jump(self, node: str, seconds: float) -> None:
        """Let the wall clock of a node jump."""
        self.note(node, f"its clock jumps by {seconds:.1f} s")
        self.clocks[node].jump(seconds)

    def slew(self, node: str, rate: float) -> None:
        """Let the clocks of a node run too fast or too slow."""
        self.note(node, f"counts {rate} seconds in each second from now on")
        self.clocks[node].slew(rate)

    @property
    def clock_error(self) -> float:
        """Upper bound of the difference between the wall clocks of any two nodes."""
        return 2 * max(clock.error for clock in self.clocks.values())

    # Records

    def record(self, kind: type[Any], *fields: object) -> None:
        """Add a record to the trace."""
        self.trace.append(kind(self.clock.now, len(self.trace), *fields))
        if self._story is not None:
            self._story.append(Note(self.clock.now, *sentence(self.trace[-1])))

    def note(self, who: str, text: str) -> None:
        """Add a sentence to the story."""
        if self._story is not None:
            self._story.append(Note(self.clock.now, who, text))

    def problem(self, text: str) -> None:
        """Note a breach of the rules."""
        self.problems.append(text)
        self.note("", text)

    def refused(self, node: str, session: str, reason: str) -> None:
        """Record the refusal of a request."""
        self.work[node].refused += 1
        self.record(records.Refused, node, session, "", reason)

    def forwarded(self, node: str, neighbour: str, entry: JournalEntry) -> None:
        """Count an event between nodes."""
        self.traffic[node, neighbour].events += 1
        self.note(node, f"sends {neighbour} event {entry.sequence} of {entry.publisher}")
        if self._detailed:
            self.record(records.Forwarded, node, neighbour, entry.publisher, entry.sequence)

    def told(self, node: str, neighbour: str, message: bytes) -> None:
        """Count a message between nodes that is no event."""
        traffic = self.traffic[node, neighbour]
        if self._story is not None and (text := message_sentence(node, neighbour, message)):
            self.note(node, text)
        update = wire.decode(message) if self._detailed else None
        if isinstance(update, FilterUpdate):
            traffic.admin += 1
            added, removed = len(update.added), len(update.removed)
            traffic.added += added
            traffic.removed += removed
            self.record(records.Told, node, neighbour, update.about, added, removed)
        else:
            traffic.other += 1
