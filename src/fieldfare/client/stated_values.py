"""`StatedValues`: the values that a program has stated for the parameters of filters. No I/O here, and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from fieldfare.events.event import Event
from fieldfare.protocol import frames as f


class StatedValues:
    """Values by parameter (None: forgotten), and the life of the log of the node that has all of them."""

    def __init__(self, encode_event: Callable[[Event], bytes]) -> None:
        self._encode_event = encode_event
        self._values: dict[str, object] = {}
        self._informed = ""

    def state(self, values: Mapping[str, object]) -> Callable[[], None]:
        """Take values, all or none; return a function that takes them back where the program has stated no others."""
        before = {name: self._values.get(name) for name in values}
        Event(values)  # a value that no event could have is an error of the program
        self._values.update(values)

        def take_back() -> None:
            for name, value in before.items():
                if self._values[name] == values[name]:
                    self._values[name] = value

        return take_back

    def frame(self, request: int, names: Iterable[str]) -> f.SetParameters:
        """Return the frame with the latest values: a repeated request must not bring back older ones."""
        values = Event({name: self._values[name] for name in names})
        return f.SetParameters(request, msgspec.Raw(self._encode_event(values)))

    def frame_of_all(self, request: int) -> f.SetParameters:
        """Return the frame with all values."""
        return self.frame(request, self._values)

    def must_be_repeated(self, life: str, *, anew: bool) -> bool:
        """Tell whether a node lacks values: in another life of a log a power failure or a move may have older ones."""
        if not anew and life == self._informed:
            return False
        self._informed = "" if self._values else life
        return bool(self._values)

    def inform(self, life: str) -> None:
        """Note that the node has answered, and has all values in this life of a log."""
        self._informed = life
