"""`Matcher`: the interface of every matching algorithm, filters with ids on the one side and events on the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from fieldfare.events.event import Event
from fieldfare.filters import Filter, parse
from fieldfare.filters.constraint import Mode

Id = TypeVar("Id", bound=Hashable)


class Matcher(ABC, Generic[Id]):
    """A set of filters, each with an id, that returns the ids of the filters which an event matches.

    Implementations must agree with `Filter.matches` for every filter and event. An id is any hashable value.
    """

    @abstractmethod
    def add(self, id: Id, filter: Filter | str) -> None:
        """Store a filter. KeyError if the id is in use: `update` replaces."""

    @abstractmethod
    def remove(self, id: Id) -> None:
        """Remove a filter. KeyError if no filter has the id."""

    @abstractmethod
    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Return the ids of all filters that the event matches, each once, in no particular order."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of filters."""

    @abstractmethod
    def __contains__(self, id: object) -> bool:
        """Tell whether a filter has the id."""

    def update(self, id: Id, filter: Filter | str) -> None:
        """Replace the filter of an id, or store a new filter."""
        wanted = as_filter(filter)
        if id in self:
            self.remove(id)
        self.add(id, wanted)

    def add_many(self, items: Iterable[tuple[Id, Filter | str]]) -> None:
        """Store many filters at once."""
        for id, filter in items:
            self.add(id, filter)

    def match_many(self, events: Sequence[Event], mode: Mode = "overlaps") -> list[list[Id]]:
        """Return the result of `match` for each of several events."""
        return [self.match(event, mode) for event in events]

    def count(self, event: Mapping[str, object], mode: Mode = "overlaps") -> int:
        """Return the number of filters that the event matches."""
        return len(self.match(event, mode))


def as_filter(filter: Filter | str) -> Filter:
    """Return a filter, given as a `Filter` or as text of the native language."""
    return parse(filter) if isinstance(filter, str) else filter
