"""Events as instances of the program's own classes: dataclasses, or structs of msgspec.

A class may have fields of all types of an event; an `Interval` has to be annotated as `Any`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from fieldfare.client.errors import MismatchError
from fieldfare.events.event import Event
from fieldfare.events.values import Interval

T = TypeVar("T")


def event_of(given: object) -> Event:
    """Return the event in a mapping, an event, a dataclass or a struct; TypeError for other objects.

    >>> @dataclasses.dataclass
    ... class Quote:
    ...     symbol: str
    ...     price: float
    >>> event_of(Quote("IBM", 119.5))
    Event({'symbol': 'IBM', 'price': 119.5})
    """
    if isinstance(given, Event):
        return given
    if isinstance(given, Mapping):
        return Event(given)
    tree = _plain(given)
    if not isinstance(tree, dict):
        raise TypeError(f"an event is a mapping, a dataclass or a msgspec.Struct, not {type(given).__name__}")
    return Event(tree)


def _plain(value: Any) -> object:
    if isinstance(value, msgspec.Struct):
        config = type(value).__struct_config__
        tag: dict[str, object] = {config.tag_field: config.tag} if config.tag_field is not None else {}
        info = msgspec.structs.fields(type(value))
        fields = {field.encode_name: getattr(value, field.name) for field in info}
        return {**tag, **{name: _plain(item) for name, item in fields.items() if item is not msgspec.UNSET}}
    if isinstance(value, Interval):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def instance_of(event: Event, type: type[T], position: int) -> T:
    """Return an event as an instance of a class; `MismatchError` names the field and the position.

    >>> class Quote(msgspec.Struct):
    ...     symbol: str
    >>> instance_of(Event({"symbol": 5}), Quote, 17)
    Traceback (most recent call last):
        ...
    fieldfare.client.errors.MismatchError: the event at position 17 is no Quote: Expected `str`, ... at `$.symbol`
    """
    try:
        return msgspec.convert(event.tree, type)
    except msgspec.ValidationError as error:
        name = getattr(type, "__name__", type)
        raise MismatchError(f"the event at position {position} is no {name}: {error}") from None
