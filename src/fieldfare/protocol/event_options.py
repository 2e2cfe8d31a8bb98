"""`EventOptions`: everything that a publisher, or a broker on the way, says about an event besides its fields.

An event on its way is one record, `messages.Forward`: its identity, the event (decoded, with the bytes that came), and
these options. A publication, a message of a link, a journal entry and a handover have the options under the same
names, and `options_of` copies them from one to the other. So a new option is a field of this class; the form of a
journal entry and of a handover gets a field of the same name at its end, and `frames.PublishOptions` one if clients
set it.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec


class EventOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options of an event: fields of every record on its way."""

    expires: float = 0.0
    """Time after which no subscriber is to get the event; 0: never."""
    replaces: str = ""
    """Events of a publisher with the same name replace each other while they wait for a subscriber."""
    tag: bytes = b""
    """Tag by which brokers on the way route without looking at the event; see `routing.prefix`."""
    channel_number: int = 0
    """Number of the event in the channel of its type, from the channel's home; 0: none, or none yet."""


def has_options(record: EventOptions) -> bool:
    """Tell whether an option of a record is set; most events have none, and need no copy of the options.

    >>> has_options(EventOptions()), has_options(EventOptions(replaces="state"))
    (False, True)
    """
    return _values_of(record) != _DEFAULTS


_values_of: Final = attrgetter(*EventOptions.__struct_fields__)
_DEFAULTS: Final = _values_of(EventOptions())


class WithOptions(Protocol):
    """A record with the options that matter while an event waits for a session."""

    @property
    def expires(self) -> float:
        """Return the time after which no subscriber is to get the event; 0: never."""

    @property
    def replaces(self) -> str:
        """Return the name under which events of a publisher replace each other."""


def options_of(record: msgspec.Struct, to: type[msgspec.Struct] = EventOptions) -> dict[str, Any]:
    """Return the options in a record as keywords for another kind of record, as far as both kinds have them.

    >>> options_of(EventOptions(replaces="state"))
    {'expires': 0.0, 'replaces': 'state', 'tag': b'', 'channel_number': 0}
    """
    return {name: getattr(record, name) for name in _common(type(record), to)}


@cache
def _common(one: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the options that two kinds of records have: a handover has no tag."""
    fields = {*one.__struct_fields__} & {*other.__struct_fields__}
    return tuple(name for name in EventOptions.__struct_fields__ if name in fields)
