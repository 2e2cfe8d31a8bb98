"""The fields of events that are still MessagePack, though only the fields that filters look at are decoded.

An `EncodedEvent` is checked when it is made, so that nothing can be refused here; what a struct cannot hold is read
from all fields of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from fieldfare.events.encoded import EncodedEvent
from fieldfare.events.event import fields_of
from fieldfare.matching.match.field_decoders import MOST_PATHS, MSGPACK, UNWRITABLE, Decoder, WideDecoder
from fieldfare.matching.store.store import Store

FieldDecoder: TypeAlias = Decoder | WideDecoder | None
Fields: TypeAlias = Mapping[str, object]
Found = TypeVar("Found")
_NEVER: Final = -1


class EncodedReader:
    """A reader of encoded events for the fields that the filters of a store look at, for many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[int, FieldDecoder] = (_NEVER, None)

    def decoder(self) -> FieldDecoder:
        """Return the decoder for the fields that filters look at now; None if all fields are to be made."""
        version = self._store.looked_at.version()
        if self._known[0] != version:
            self._known = version, self._made()
        return self._known[1]

    def _made(self) -> FieldDecoder:
        paths = self._store.looked_at.paths()
        if paths is None or any(map(UNWRITABLE.search, paths)):
            return None
        if len(paths) > MOST_PATHS:
            return WideDecoder(paths, form=MSGPACK)
        return Decoder(paths, dotted=False, form=MSGPACK)

    def reader(self) -> Callable[[Mapping[str, object]], Fields]:
        """Return the function from events to fields, at least those that filters look at now."""
        return partial(_fields, decoder=self.decoder())

    def settled(self, event: EncodedEvent, match: Callable[[Fields], Found]) -> Found:
        """Return what `match` finds for the fields of an event, once filters look at no others meanwhile."""
        decoder = self.decoder()
        while True:
            found = match(_fields(event, decoder))
            used, decoder = decoder, self.decoder()
            if used is decoder:  # else a filter may have replaced another
                return found


def _fields(event: Mapping[str, object], decoder: FieldDecoder) -> Fields:
    if decoder is None or type(event) is not EncodedEvent:
        return fields_of(event)
    try:
        return decoder.fields(decoder.decode(event.encoded))
    except ValueError:  # bytes or a timestamp where a path goes on
        return event.fields
