"""The version of all that is sent. Nodes and clients speak two: the newest, and the one before.

So the nodes of a network are upgraded one after the other. The subprotocol of a WebSocket names a form and a version.
The side that dials offers all that it speaks, the newest first; the other side takes the first that it speaks, too. The
connection has this version until its end, and nothing is sent on it that the version lacks.

>>> subprotocols("json")
('fieldfare.v3.json', 'fieldfare.v2.json')
>>> chosen(["fieldfare.v4.link", "fieldfare.v3.link"], ["link"])
Subprotocol(form='link', version=3)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

NEWEST: Final = 3
"""Version of client frames, link frames and the messages inside them."""
OLDEST: Final = NEWEST - 1
"""Version before the newest, which is spoken, too."""

SINCE: Final[dict[str, int]] = {
    "ChannelClosed": 3,
    "ChannelDrained": 3,
    "ChannelHandover": 3,
    "ChannelHome": 3,
    "ChannelOpen": 3,
    "ChannelTaken": 3,
    "DropPattern": 3,
    "JoinChannel": 3,
    "LeaveFor": 3,
    "MeasurePattern": 3,
    "MoveChannel": 3,
    "PatternRefused": 3,
    "PatternStatistics": 3,
    "SetParameters": 3,
    "StandInRequest": 3,
    "SubscribePattern": 3,
    "WantPattern": 3,
}
"""By kind of frame or message: the first version that has it. A kind of all spoken versions is left out.

`Kind.field` stands for a field that a peer must not skip: a frame with another value than the default is for this
version. All other new fields have defaults, need no line here, and are skipped by older peers.
"""

_NAME: Final = re.compile(r"fieldfare\.v(\d{1,9})\.(\w+)")


class Subprotocol(NamedTuple):
    """The meaning of the name of a WebSocket's subprotocol."""

    form: str
    """`msgpack` or `json` for clients, `link` between nodes."""
    version: int

    def __str__(self) -> str:
        return f"fieldfare.v{self.version}.{self.form}"


def subprotocols(form: str, highest: int = NEWEST) -> tuple[str, ...]:
    """Return the names to offer for a form, the newest first."""
    return tuple(str(Subprotocol(form, version)) for version in range(highest, OLDEST - 1, -1))


def chosen(offered: Iterable[str], forms: Sequence[str], highest: int = NEWEST) -> Subprotocol | None:
    """Return the first offered subprotocol of the given forms and of a spoken version; None if there is none."""
    for name in offered:
        if (found := _NAME.fullmatch(name)) and found[2] in forms and OLDEST <= int(found[1]) <= highest:
            return Subprotocol(found[2], int(found[1]))
    return None


def not_spoken(who: str, offered: Sequence[str], forms: Sequence[str], highest: int = NEWEST) -> str:
    """Return the reason for a refusal of all offered subprotocols.

    >>> not_spoken("oslo", ["fieldfare.v1.link"], ["link"])
    'oslo speaks fieldfare.v3.link or fieldfare.v2.link, not fieldfare.v1.link'
    """
    spoken = " or ".join(name for form in forms for name in subprotocols(form, highest))
    return f"{who} speaks {spoken}, not {' or '.join(offered)[:200]}" if offered else f"say which subprotocol: {spoken}"


def has(version: int, kind: str) -> bool:
    """Tell whether a version has a kind of frame or message, by its name."""
    return SINCE.get(kind, OLDEST) <= version


def lacking(version: int, what: msgspec.Struct) -> str:
    """Return what a version lacks of a frame or message: the kind, or a field with a value. Empty: nothing."""
    if version >= NEWEST:
        return ""
    kind = type(what).__name__
    if not has(version, kind):
        return kind
    for name in SINCE:
        of, _, field = name.partition(".")
        if of == kind and not has(version, name) and getattr(what, field) != _default(what, field):
            return name
    return ""


def _default(what: msgspec.Struct, name: str) -> object:
    return next(field.default for field in msgspec.structs.fields(what) if field.name == name)


def refusal(who: str, version: int, what: str) -> str:
    """Return the reason why a request cannot be done with a peer of an older version.

    >>> refusal("oslo", 2, "Teleport")
    'oslo speaks version 2, which has no Teleport (since version 3): upgrade oslo'
    """
    return (
        f"{who} speaks version {version}, which has no {what} (since version {SINCE.get(what, NEWEST)}): upgrade {who}"
    )
