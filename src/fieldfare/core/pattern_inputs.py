"""Inputs of a core about patterns: a pattern begins for a session, or in the settings, and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from fieldfare.protocol.journal import JournalEntry

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class SubscribePattern(Struct, frozen=True):
    """Subscribe a session to the detections of a pattern."""

    session: str
    id: str
    text: str
    identity: str = ""
    history: Sequence[JournalEntry] | None = None
    """Events of the log with which the pattern begins in the past."""

    def __call__(self, core: Core, now: float) -> str:
        """Return the key of the pattern; refuse a pattern beyond the bounds."""
        if self.identity:
            core.sessions.check_identity(self.session, self.identity)
        return core.patterns.subscribe(self.session, self.id, self.text, now, self.history)


class SettlePatterns(Struct, frozen=True):
    """Let the patterns of the settings stand here, by name."""

    texts: Mapping[str, str]
    policies: Mapping[str, str] = {}
    """By name: the placement policy of a pattern whose parts may be detected at other nodes."""

    def __call__(self, core: Core, now: float) -> None:
        """Begin new ones, and end those that the settings no longer have."""
        core.patterns.parts.settle(self.texts, self.policies, now)


class HostPattern(Struct, frozen=True):
    """Let a pattern stand here under a name, and its parts at other nodes, as somebody else has planned."""

    key: str
    text: str
    hosts: Mapping[str, str]

    def __call__(self, core: Core, now: float) -> None:
        """Begin the pattern, with parts at the planned nodes."""
        patterns = core.patterns
        patterns.begin(patterns.beginning(self.key, self.text, named=True, hosts=self.hosts), now)


class RemovePattern(Struct, frozen=True):
    """End a pattern on the wish of an administrator."""

    key: str

    def __call__(self, core: Core, now: float) -> None:
        """Forget the pattern with all state."""
        core.patterns.remove(self.key, now)
