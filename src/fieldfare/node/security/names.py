"""Names that come from outside: one rule for all ways by which somebody can name a session.

Sessions that the node makes for its own purposes have names too (`~...`, `webhook:ID`, `bridge:NAME`). Nobody else may
use such a one, or they could take what is meant for a sink or another system.
"""

from __future__ import annotations

from typing import Final

from fieldfare.node.state import INTERNAL

LONGEST: Final = 200
"""characters"""


def check_session(name: str) -> None:
    """ValueError unless a client may call its session so.

    >>> check_session("ana")
    >>> check_session("bridge:plant")
    Traceback (most recent call last):
    ValueError: the name of a session has 1 to 200 printable characters, and does not begin with ~, webhook: or bridge:
    """
    if not 0 < len(name) <= LONGEST or not name.isprintable() or name.startswith(INTERNAL):
        begins = f"{', '.join(INTERNAL[:-1])} or {INTERNAL[-1]}"
        raise ValueError(
            f"the name of a session has 1 to {LONGEST} printable characters, and does not begin with {begins}"
        )
