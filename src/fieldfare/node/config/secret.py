"""Values that must not appear in logs, error texts or reports."""

from __future__ import annotations

import hmac
from typing import Any


class Secret:
    """A text that hides itself: from `print`, from error texts, and from msgspec's encoders.

    >>> Secret("tell nobody")
    Secret(***)
    >>> Secret("tell nobody").reveal()
    'tell nobody'
    """

    # Neither a Struct nor a dataclass: msgspec would encode those with all their fields.
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the hidden text; callers keep the result out of logs and error texts."""
        return self._text

    @property
    def size(self) -> int:
        """The bytes of the text in UTF-8."""
        return len(self._text.encode())

    @property
    def is_empty(self) -> bool:
        """True if the text is empty: no secret was given."""
        return not self._text

    def __repr__(self) -> str:
        return "Secret(***)" if self._text else "Secret()"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)


class Table(dict[str, Any]):
    """The table of a bridge, whose keys the node does not know: any value may be a password, so only keys are shown."""

    def __repr__(self) -> str:
        return f"Table({', '.join(self)})"


def decode_secret(kind: type, value: object) -> object:
    """Decode a `Secret` for msgspec; no error text quotes the value."""
    if kind is not Secret:
        raise NotImplementedError
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # as msgspec says it: `toml` rewords both
    try:
        value.encode()
    except UnicodeEncodeError:  # the message of this error would quote the value
        raise ValueError("a secret must be text in UTF-8") from None
    return Secret(value)
