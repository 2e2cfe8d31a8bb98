"""`Reminders`: handovers without progress, because a node on the way may have forgotten a message in a power failure.

A node with an unsynced disk, or with an earlier copy of its folder, forgets what others remember. Then each end of a
handover could wait for the other for ever. So the target repeats the `SessionRequest`, with the same ticket: a source
that knows of the handover ignores the message, one that has forgotten begins again, and one that has given the session
away says so. A source whose target is not ready keeps the session, and the client asks again.
"""

from __future__ import annotations

from typing import Final

from fieldfare.core.departures import Departures
from fieldfare.core.envelopes import Envelopes
from fieldfare.core.handover_states import HandoverStates
from fieldfare.core.handover_table import IGNORED, HandoverInput
from fieldfare.protocol import handover as h

MOST: Final = 16
"""Maintenances between two reminders, at most: they become rarer, lest they pile up for a node that is off."""
FIRST: Final = 2
"""Count of maintenances at the first reminder."""


def is_due(count: int) -> bool:
    """Tell whether a reminder follows the maintenance of a number, counted from the first that sees a handover.

    >>> [count for count in range(50) if is_due(count)]
    [2, 3, 5, 9, 17, 33, 49]
    """
    passed = count - 1
    return passed > 0 and (passed & (passed - 1) == 0 or passed % MOST == 0)


class Reminders:
    """How often the maintenance has seen each handover."""

    def __init__(self, here: str, states: HandoverStates, departures: Departures, envelopes: Envelopes) -> None:
        """Begin to count with the next maintenance."""
        self._here = here
        self._states = states
        self._departures = departures
        self._envelopes = envelopes
        self._seen: dict[tuple[str, str], int] = {}
        """By session and ticket."""

    def maintain(self) -> None:
        """Remind the other node of each handover that the maintenance before has seen, too."""
        states = self._states
        for arrival in states.arrivals.values():
            arrival.asked = 0
        moving = [(name, one.ticket) for name, one in states.arrivals.items()]
        moving += [(name, one.ticket) for name, one in states.departures.items()]
        self._seen = {handover: self._seen.get(handover, 0) + 1 for handover in moving}
        for (name, _), count in list(self._seen.items()):
            if is_due(count):
                with states.transition(name, HandoverInput.REMIND) as next_states:
                    if next_states is not IGNORED:
                        self._remind(name, again=count > FIRST)

    def _remind(self, name: str, *, again: bool) -> None:
        arrival = self._states.arrivals.get(name)
        if arrival is None:
            self._departures.cancel(name)
            return
        self._envelopes.send(arrival.source, h.SessionRequest(name, arrival.ticket, arrival.owner))
        # A source that has no part of the session answers the first reminder, and nobody gives up.
        if again and arrival.next_request is not None and self._here < arrival.source == arrival.next_request[1]:
            self._envelopes.send(arrival.source, h.SessionNotHere(name, arrival.next_request[0], gone=True))
