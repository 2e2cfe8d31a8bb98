"""`Departed`: the nodes of sessions that have left, for clients and nodes with requests for such a session."""

from __future__ import annotations

from fieldfare.core.step import StepBuffer
from fieldfare.protocol.journal import Row, StoredRows


class Departed:
    """By session: the node where the session went, and the time of the departure."""

    def __init__(self, buffer: StepBuffer) -> None:
        """Begin without departed sessions, and write rows to a buffer."""
        self._buffer = buffer
        self._nodes: dict[str, tuple[str, float]] = {}

    def node_of(self, name: str) -> str:
        """Return the node where a session went; empty if unknown."""
        return self._nodes.get(name, ("", 0.0))[0]

    def note(self, name: str, node: str, now: float) -> None:
        """Remember where a session went."""
        self._nodes[name] = node, now
        self._buffer.store(Row("gone", (name,), [node, now]))

    def forget(self, name: str) -> None:
        """Forget where a session went, after a return of the session or a long time."""
        if self._nodes.pop(name, None) is not None:
            self._buffer.store(Row("gone", (name,)))

    def expire(self, now: float, life: float) -> None:
        """Forget where sessions went more than ten lives ago; until then a session may be in use elsewhere."""
        for name in [name for name, (_, when) in self._nodes.items() if now - when > 10 * life]:
            self.forget(name)

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; the time counts anew, since no client could come back while the node was down."""
        for (name,), (node, _) in stored.get("gone", {}).items():
            self._nodes[str(name)] = node, now
