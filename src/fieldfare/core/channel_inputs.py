"""Inputs of a core about channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class MoveChannel(Struct, frozen=True):
    """Give a channel another home, on the request of an administrator at any node."""

    type: str
    target: str

    def __call__(self, core: Core, _: float) -> None:
        """Refuse if the type has no channel, the target is unknown, or a node is of an earlier version."""
        core.channels.moves.request(self.type, self.target)
