"""Problems of RFC 9457, as a node answers them over HTTP, also instead of opening a WebSocket."""

from __future__ import annotations

from typing import Final

import msgspec

VERSION_NEEDED: Final = 426
"""Status with which a node refuses a WebSocket whose versions the node does not speak."""


class _Problem(msgspec.Struct, frozen=True):
    detail: str


def detail_of(body: bytes | bytearray | None) -> str:
    """Return the detail of a problem; empty for any other body.

    >>> detail_of(b'{"title": "Not Found", "status": 404, "detail": "there is no /x here"}')
    'there is no /x here'
    """
    try:
        return msgspec.json.decode(body or b"", type=_Problem).detail
    except msgspec.DecodeError:
        return ""
