"""The rule for names of sessions, the same for HTTP, WebSockets and handovers.

The node's own sessions have names, too (`~...`, `webhook:ID`, `bridge:NAME`). No client may use such a name: the client
would get the events of a sink, or of another system.
"""

from __future__ import annotations

from typing import Final

from fieldfare.core.state import INTERNAL

LONGEST: Final = 200
"""characters"""


def check_session(name: str) -> None:
    """Raise ValueError unless a client may give this name to a session.

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
