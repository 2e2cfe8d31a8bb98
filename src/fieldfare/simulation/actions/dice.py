"""`Dice`: the chance behind a plan."""

from __future__ import annotations

from random import Random


class Dice(Random):
    """Draws clients and nodes, a few more often: faults do most harm together."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._few = {kind: [self.randrange(64) for _ in range(2)] for kind in ("client", "node")}
        self._focus = self.choice((0.3, 0.6, 0.95))

    def client(self) -> int:
        """Draw the number of a client."""
        return self._one("client")

    def node(self) -> int:
        """Draw the number of a node."""
        return self._one("node")

    def link(self) -> int:
        """Draw the number of a link."""
        return self.randrange(64)

    def _one(self, kind: str) -> int:
        return self.choice(self._few[kind]) if self.random() < self._focus else self.randrange(64)
