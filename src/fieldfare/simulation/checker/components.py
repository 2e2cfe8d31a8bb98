"""Components of the overlay: which brokers reach which, as a trace goes on."""

from __future__ import annotations

from fieldfare.simulation.trace import Crashed, Down, Restarted, Up


class Components:
    """Which brokers can reach which over links that are up."""

    def __init__(self) -> None:
        self._links: set[tuple[str, str]] = set()
        self._of: dict[str, str] | None = None

    def follow(self, record: Up | Down | Crashed | Restarted) -> None:
        """Go on by a record."""
        if isinstance(record, Up):
            self._links.add((record.broker, record.neighbour))
        elif isinstance(record, Down):
            self._links.discard((record.broker, record.neighbour))
        self._of = None

    def joined(self, a: str, b: str) -> bool:
        """Whether there is a path."""
        if a == b:
            return True
        if self._of is None:
            self._of = self._components()
        return a in self._of and self._of[a] == self._of.get(b)

    def _components(self) -> dict[str, str]:
        """A broker of its component for each, found by joining the components that a link joins."""
        above: dict[str, str] = {}

        def top(broker: str) -> str:
            while above.setdefault(broker, broker) != broker:
                above[broker] = above[above[broker]]
                broker = above[broker]
            return broker

        for a, b in self._links:
            above[top(a)] = top(b)
        return {broker: top(broker) for broker in list(above)}
