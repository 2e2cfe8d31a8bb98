"""`Matcher`: filters with ids on one side, events on the other. What every matching algorithm here can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from fieldfare.events.event import Event
from fieldfare.filters import Filter, parse
from fieldfare.filters.constraint import Mode

Id = TypeVar("Id", bound=Hashable)


class Matcher(ABC, Generic[Id]):
    """A set of filters, each under an id, that tells which of them an event matches.

    Implementations must agree with `Filter.matches` for every filter and event, always. Ids are any hashable values.
    """

    @abstractmethod
    def add(self, id: Id, filter: Filter | str) -> None:
        """Store a filter. KeyError if the id is in use: `update` replaces."""

    @abstractmethod
    def remove(self, id: Id) -> None:
        """Forget a filter. KeyError if there is none of that id."""

    @abstractmethod
    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """The ids of all filters that the event matches, each once, in no particular order."""

    @abstractmethod
    def __len__(self) -> int:
        """How many filters there are."""

    @abstractmethod
    def __contains__(self, id: object) -> bool:
        """Is there a filter of that id?"""

    def update(self, id: Id, filter: Filter | str) -> None:
        """Replace the filter of an id, or store a new one."""
        wanted = as_filter(filter)
        if id in self:
            self.remove(id)
        self.add(id, wanted)

    def add_many(self, items: Iterable[tuple[Id, Filter | str]]) -> None:
        """Store many filters at once."""
        for id, filter in items:
            self.add(id, filter)

    def match_many(self, events: Sequence[Event], mode: Mode = "overlaps") -> list[list[Id]]:
        """What `match` gives for each of several events."""
        return [self.match(event, mode) for event in events]

    def count(self, event: Mapping[str, object], mode: Mode = "overlaps") -> int:
        """How many filters does the event match?"""
        return len(self.match(event, mode))


def as_filter(filter: Filter | str) -> Filter:
    """A filter given as one, or as text of the native language."""
    return parse(filter) if isinstance(filter, str) else filter
