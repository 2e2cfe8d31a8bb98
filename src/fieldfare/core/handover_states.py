"""`HandoverStates`: the state of every session at a node, and the check of each change against the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fieldfare.core.handover_state import (
    STATUS,
    Arrival,
    Departure,
    HandoverError,
    HandoverStatus,
    SessionMoving,
)
from fieldfare.core.handover_table import OF_CLIENTS, TRANSITIONS, HandoverInput, HandoverState, NextStates
from fieldfare.core.replica_state import Replica
from fieldfare.core.state import RequestRefused, Session


class HandoverStates:
    """The arriving and departing sessions of a node, and the state of any session.

    No state is stored a second time: an arrival, a departure, a replica and a session are the state, in memory as in
    rows.
    """

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        """Begin without handovers and replicas; all sessions of the node are given."""
        self._sessions = sessions
        self.arrivals: dict[str, Arrival] = {}
        self.departures: dict[str, Departure] = {}
        self.held: dict[str, Replica] = {}
        """Replicas of sessions of other nodes."""

    def of(self, name: str) -> HandoverState:
        """Return the state of a session."""
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        if arrival is not None:
            if arrival.session is not None:
                return HandoverState.ARRIVING
            return HandoverState.REPLICA_REQUESTED if name in self.held else HandoverState.REQUESTED
        if departure is not None:
            if departure.frozen:
                return HandoverState.FROZEN
            return HandoverState.READY if departure.ready else HandoverState.DEPARTING
        if name in self.held:
            return HandoverState.REPLICA
        return HandoverState.HERE if name in self._sessions else HandoverState.ELSEWHERE

    def status(self, name: str) -> HandoverStatus:
        """Return where a session is."""
        return STATUS[self.of(name)]

    def check(self, name: str, given: HandoverInput) -> NextStates:
        """Return the possible next states of a session; raise an error if the table does not know the input."""
        state = self.of(name)
        known = TRANSITIONS[state].get(given)
        if known is not None:
            return known
        if given not in OF_CLIENTS:
            raise HandoverError(f"{given.value} does not fit a session that is {state.value}: {name}")
        if state is HandoverState.ELSEWHERE:
            raise RequestRefused(f"there is no session {name}")
        raise SessionMoving(f"the session {name} is on its way")

    @contextmanager
    def transition(self, name: str, given: HandoverInput) -> Iterator[NextStates]:
        """Check an input before the change of state, and the new state afterwards.

        The value is empty if the table ignores the input. Nothing else may change the state of a session.
        """
        before, allowed = self.of(name), self.check(name, given)
        yield allowed
        after = self.of(name)
        assert after in (allowed or (before,)), f"{name}: {given.value} led from {before.value} to {after.value}"
        self.check_invariants(name)

    def check_invariants(self, name: str) -> None:
        """Assert the agreement of the parts on a session."""
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        session, replica = self._sessions.get(name), self.held.get(name)
        assert arrival is None or departure is None, f"{name} is arriving and departing at once"
        assert arrival is None or (arrival.session is None) == (session is None or replica is not None), name
        assert departure is None or (session is not None and session.durable), f"{name} departs, and is not here"
        assert departure is None or departure.ready or not departure.frozen, (
            f"{name} is frozen before its target is ready"
        )
        assert replica is None or (session is not None and session.mark == replica.mark), (
            f"no replica of {name} is here"
        )
        assert replica is None or departure is None, f"{name} departs, and is only a replica"
        assert session is None or session.acknowledged <= session.count, f"{name} has acknowledged too much"
        assert session is None or session.sent <= max(session.released, session.acknowledged), (
            f"{name} was sent too much"
        )
