"""Components of the overlay: which brokers reach which, as a trace goes on."""

from __future__ import annotations

from fieldfare.simulation.trace import Crashed, Down, Forgot, Restarted, Up


class Components:
    """The connected components of brokers, over links now up."""

    def __init__(self) -> None:
        self._links: set[tuple[str, str]] = set()
        self._of: dict[str, str] | None = None

    def follow(self, record: Up | Down | Crashed | Restarted | Forgot) -> None:
        """Apply a record of a link or a broker; the components are found anew at the next question."""
        if isinstance(record, Up):
            self._links.add((record.broker, record.neighbour))
        elif isinstance(record, Down):
            self._links.discard((record.broker, record.neighbour))
        self._of = None

    def joined(self, a: str, b: str) -> bool:
        """Tell whether a path of links joins two brokers."""
        if a == b:
            return True
        if self._of is None:
            self._of = self._components()
        return a in self._of and self._of[a] == self._of.get(b)

    def _components(self) -> dict[str, str]:
        """Return for each broker the representative of the component (union-find with path halving)."""
        above: dict[str, str] = {}

        def top(broker: str) -> str:
            while above.setdefault(broker, broker) != broker:
                above[broker] = above[above[broker]]
                broker = above[broker]
            return broker

        for a, b in self._links:
            above[top(a)] = top(b)
        return {broker: top(broker) for broker in list(above)}
