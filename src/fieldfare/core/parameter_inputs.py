"""Inputs of a core about filters with parameters, and the values that sessions state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from fieldfare.core.dynamic_filters import Fill
from fieldfare.filters.dynamic import DynamicFilter

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class SubscribeDynamic(Struct, frozen=True):
    """Subscribe to a filter with parameters; `fill` returns the filter for present values, or refuses."""

    session: str
    id: str
    text: str
    identity: str = ""
    fill: Fill = DynamicFilter.fill

    def __call__(self, core: Core, now: float) -> None:
        """Refuse if the session of this identity is over."""
        if self.identity:
            core.sessions.check_identity(self.session, self.identity)
        with core.presence.changing_filters(self.session):
            core.dynamic.subscribe(self.session, self.id, self.text, now, self.fill)


class SetParameters(Struct, frozen=True):
    """State values of a session's parameters, or forget values (None); the place is the value of `myloc`."""

    session: str
    values: Mapping[str, object]
    identity: str = ""
    fill: Fill = DynamicFilter.fill
    most: int = 100
    """Parameters of a session, at most."""

    def __call__(self, core: Core, now: float) -> None:
        """Change all dynamic filters of the session at once, or refuse and change nothing."""
        if self.identity:
            core.sessions.check_identity(self.session, self.identity)
        with core.presence.changing_filters(self.session):
            core.dynamic.set(self.session, self.values, now, fill=self.fill, most=self.most)
