"""The handover as a table: the states of a session seen from one node, the inputs, and the next states.

`protocol.handover` shows the messages between two nodes. The table shows the same handover from the inside of each
node: the target goes from ELSEWHERE over REQUESTED and ARRIVING to HERE; the source from HERE over DEPARTING, READY and
FROZEN to ELSEWHERE. A node that is neither may hold a REPLICA.

- ELSEWHERE: no session of the name is here. The node may remember the node of a session that has left.
- REQUESTED: a client is here, and another node was asked for the session. Nothing is lost by a cancellation.
- ARRIVING: the source has described the session. An interim session stores the events that reach this node, until the
  source has sent the rest. From the message `TargetReady` on the source gives the session away, so no client and no
  silence ends this state; the description of a replica holder, who was asked as well, replaces a silent source.
- HERE: clients can use the session.
- DEPARTING: the session was described to a target. Clients can still use the session, and any change cancels the
  departure, because the target has subscribed to the filters of before.
- READY: the target has subscribed to the same filters. The session must go, and no client can use the session here.
- FROZEN: the filters are removed here, so the session gets nothing more, and the waiting deliveries are sent in parts.
  Freezing is a step after READY, since READY must be on disk before. A restart forgets FROZEN.
- REPLICA: the node holds a copy of a session of another node.
- REPLICA_REQUESTED: as REQUESTED, while the node holds a replica of the session, too. The replica goes when the session
  arrives, and becomes the session when no other node has the session.

Every handover message names an attempt by its ticket. A message of the attempt in progress between the same two nodes
is an input by its type, and `replica_...` if the ticket is of a replica. A message of any other attempt is late, as
after a cancellation: such a message is STALE, and changes nothing in any state. A stale `SessionDescription` is
answered by `CancelHandover`, so that the sender keeps the session.

A pair of state and input has one of three meanings:

- next states: the input has an effect. Of several next states, data decide: as whether the owner is the right one, a
  filter can be read, or a third node has asked for the session meanwhile.
- `IGNORED`: the input may come in this state, and has no effect.
- none: the input is an error of a client, of this node or of another node, and changes nothing. A client hears
  that the session is moving or absent; a message is logged.

There is no logic in this module. `HandoverStates` is the only place that reads the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias


class HandoverState(StrEnum):
    """State of a session at a node."""

    ELSEWHERE = "elsewhere"
    REQUESTED = "requested"
    ARRIVING = "arriving"
    HERE = "here"
    DEPARTING = "departing"
    READY = "ready"
    FROZEN = "frozen"
    REPLICA = "replica"
    REPLICA_REQUESTED = "replica requested"


class HandoverInput(StrEnum):
    """Input that may change the state of a session: of clients, of the node, or of another node."""

    # Of clients
    CLAIM = "claim"
    """A client comes, and names the session."""
    ATTACH = "attach"
    """A client is connected to the session at this node."""
    USE = "use"
    """A client publishes, acknowledges or replays."""
    CHANGE_FILTERS = "change of filters"
    LEAVE = "leave"
    """A client, or the node, ends the session."""
    DETACH = "detach"
    """A connection ends; with the connection a session without a name ends, too."""
    CANCEL = "cancel"
    """A client no longer waits for the session."""
    TAKE_OVER = "take over"
    """A client has waited for too long; a replica holder shall be asked."""

    # Of the node
    OFFER = "offer"
    """An administrator wants the session at another node."""
    VOUCH = "vouch"
    """The client of a departing session gets a ticket for the target."""
    FREEZE = "freeze"
    SEND_PART = "send part"
    """Deliveries of the log are ready to be sent to the target."""
    EXPIRE = "expire"
    """Too much time has passed without a client."""
    REMIND = "remind"
    """The handover makes no progress: a node may have forgotten a message."""
    RESTART = "restart"

    # Messages of other nodes
    SESSION_REQUEST = "SessionRequest"
    TAKE_OVER_REQUEST = "SessionRequest, take over"
    SESSION_OFFER = "SessionOffer"
    DESCRIPTION = "SessionDescription"
    VOUCHER = "ClientVoucher"
    TARGET_READY = "TargetReady"
    DELIVERIES = "StoredDeliveries"
    TRANSFERRED = "SessionTransferred"
    NOT_HERE = "SessionNotHere"
    CANCELLED = "CancelHandover"
    REPLICA_DESCRIPTION = "SessionDescription, replica"
    HOLDER_READY = "TargetReady, replica"
    REPLICA_DELIVERIES = "StoredDeliveries, replica"
    REPLICA_PROGRESS = "ReplicaProgress"
    REPLICA_CANCELLED = "CancelHandover, replica"
    TAKEN_OVER = "SessionTakenOver"
    STALE = "message of another attempt"


NextStates: TypeAlias = tuple[HandoverState, ...]

IGNORED: Final[NextStates] = ()
"""Next states of an input that may come, and has no effect."""

_S, _I = HandoverState, HandoverInput

OF_CLIENTS: Final = frozenset({_I.CLAIM, _I.ATTACH, _I.USE, _I.CHANGE_FILTERS, _I.LEAVE, _I.OFFER})
"""Inputs that a client, or an administrator, hears about if the table does not know them."""

TRANSITIONS: Final[Mapping[HandoverState, Mapping[HandoverInput, NextStates]]] = {
    _S.ELSEWHERE: {
        _I.CLAIM: (_S.HERE, _S.REQUESTED),  # a new session, or a session of another node
        _I.ATTACH: (_S.HERE,),
        _I.DETACH: IGNORED,
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.VOUCH: IGNORED,
        _I.EXPIRE: IGNORED,
        _I.RESTART: (_S.ELSEWHERE,),
        _I.SESSION_REQUEST: (_S.ELSEWHERE,),  # the answer names another node, if known
        _I.TAKE_OVER_REQUEST: (_S.ELSEWHERE,),
        _I.SESSION_OFFER: (_S.REQUESTED,),
        _I.REPLICA_DESCRIPTION: (_S.REPLICA, _S.ELSEWHERE),
        _I.STALE: IGNORED,
    },
    _S.REQUESTED: {
        _I.CLAIM: (_S.REQUESTED,),
        _I.DETACH: IGNORED,
        _I.CANCEL: (_S.ELSEWHERE, _S.REQUESTED),  # a third node may still want the session
        _I.TAKE_OVER: (_S.REQUESTED,),
        _I.VOUCH: IGNORED,
        _I.EXPIRE: IGNORED,
        _I.REMIND: (_S.REQUESTED,),
        _I.RESTART: (_S.ELSEWHERE, _S.REQUESTED),
        _I.SESSION_REQUEST: (_S.REQUESTED,),  # answered when the session is here
        _I.TAKE_OVER_REQUEST: (_S.REQUESTED,),
        _I.SESSION_OFFER: IGNORED,
        _I.DESCRIPTION: (_S.ARRIVING, _S.ELSEWHERE),  # elsewhere: a filter cannot be read here
        _I.NOT_HERE: (_S.REQUESTED, _S.HERE, _S.ELSEWHERE, _S.DEPARTING),  # asked elsewhere, begun anew, or refused
        _I.CANCELLED: (_S.ELSEWHERE,),
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.STALE: IGNORED,
    },
    _S.ARRIVING: {
        _I.CLAIM: (_S.ARRIVING,),
        _I.DETACH: (_S.ARRIVING,),
        _I.CANCEL: IGNORED,  # the session comes all the same
        _I.TAKE_OVER: (_S.ARRIVING,),  # a second node is asked, and the first may still answer
        _I.OFFER: (_S.ARRIVING,),
        _I.VOUCH: IGNORED,
        _I.EXPIRE: IGNORED,
        _I.REMIND: (_S.ARRIVING,),
        _I.RESTART: (_S.ARRIVING,),
        _I.SESSION_REQUEST: (_S.ARRIVING,),
        _I.TAKE_OVER_REQUEST: (_S.ARRIVING,),
        _I.SESSION_OFFER: IGNORED,
        _I.DESCRIPTION: (_S.ARRIVING,),  # of a second node, or of a source that has forgotten the handover
        _I.VOUCHER: (_S.ARRIVING,),
        _I.DELIVERIES: (_S.ARRIVING,),
        _I.TRANSFERRED: (_S.HERE, _S.DEPARTING),  # departing: a third node has asked meanwhile
        _I.NOT_HERE: (_S.ARRIVING, _S.HERE, _S.DEPARTING, _S.ELSEWHERE),  # here: the source has lost the session
        _I.CANCELLED: (_S.ELSEWHERE,),
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.STALE: IGNORED,
    },
    _S.HERE: {
        _I.CLAIM: (_S.HERE, _S.REQUESTED),  # requested: the client knows a later copy of the session elsewhere
        _I.ATTACH: (_S.HERE,),
        _I.USE: (_S.HERE,),
        _I.CHANGE_FILTERS: (_S.HERE,),
        _I.LEAVE: (_S.ELSEWHERE,),
        _I.DETACH: (_S.HERE, _S.ELSEWHERE),
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.OFFER: (_S.HERE,),
        _I.VOUCH: IGNORED,
        _I.EXPIRE: (_S.ELSEWHERE,),
        _I.RESTART: (_S.HERE, _S.ELSEWHERE),
        _I.SESSION_REQUEST: (_S.DEPARTING, _S.HERE),  # here: the request is refused
        _I.TAKE_OVER_REQUEST: (_S.DEPARTING, _S.HERE),
        _I.SESSION_OFFER: IGNORED,
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.HOLDER_READY: (_S.HERE,),
        _I.TAKEN_OVER: (_S.ELSEWHERE,),
        _I.STALE: IGNORED,
    },
    _S.DEPARTING: {
        _I.CLAIM: (_S.HERE, _S.REQUESTED),
        _I.ATTACH: (_S.HERE,),
        _I.USE: (_S.DEPARTING,),
        _I.CHANGE_FILTERS: (_S.HERE,),
        _I.LEAVE: (_S.ELSEWHERE,),
        _I.DETACH: (_S.DEPARTING,),
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.OFFER: (_S.DEPARTING,),
        _I.VOUCH: (_S.DEPARTING,),
        _I.EXPIRE: IGNORED,
        _I.REMIND: (_S.HERE,),
        _I.RESTART: (_S.DEPARTING,),
        _I.SESSION_REQUEST: (_S.DEPARTING,),  # the same target, a new target, or a refusal
        _I.TAKE_OVER_REQUEST: (_S.DEPARTING,),
        _I.SESSION_OFFER: IGNORED,
        _I.TARGET_READY: (_S.READY,),
        _I.CANCELLED: (_S.HERE,),
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.HOLDER_READY: (_S.DEPARTING,),
        _I.TAKEN_OVER: (_S.ELSEWHERE,),
        _I.STALE: IGNORED,
    },
    _S.READY: {
        _I.CLAIM: (_S.READY,),
        _I.DETACH: (_S.READY,),
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.OFFER: (_S.READY,),
        _I.VOUCH: (_S.READY,),
        _I.FREEZE: (_S.FROZEN,),
        _I.EXPIRE: IGNORED,
        _I.REMIND: IGNORED,
        _I.RESTART: (_S.READY,),
        _I.SESSION_REQUEST: (_S.READY,),  # the answer names the target
        _I.TAKE_OVER_REQUEST: (_S.READY,),
        _I.SESSION_OFFER: IGNORED,
        _I.CANCELLED: IGNORED,  # too late: the session must go
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.HOLDER_READY: (_S.READY,),
        _I.TAKEN_OVER: IGNORED,
        _I.STALE: IGNORED,
    },
    _S.FROZEN: {
        _I.CLAIM: (_S.FROZEN,),
        _I.DETACH: (_S.FROZEN,),
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.OFFER: (_S.FROZEN,),
        _I.VOUCH: (_S.FROZEN,),
        _I.FREEZE: IGNORED,
        _I.SEND_PART: (_S.FROZEN, _S.ELSEWHERE),  # elsewhere: after the last part
        _I.EXPIRE: IGNORED,
        _I.REMIND: IGNORED,
        _I.RESTART: (_S.READY,),
        _I.SESSION_REQUEST: (_S.FROZEN,),
        _I.TAKE_OVER_REQUEST: (_S.FROZEN,),
        _I.SESSION_OFFER: IGNORED,
        _I.CANCELLED: IGNORED,
        _I.REPLICA_DESCRIPTION: IGNORED,
        _I.HOLDER_READY: (_S.FROZEN,),
        _I.TAKEN_OVER: IGNORED,
        _I.STALE: IGNORED,
    },
    _S.REPLICA: {
        _I.CLAIM: (_S.REPLICA_REQUESTED,),
        _I.DETACH: (_S.REPLICA,),
        _I.CANCEL: IGNORED,
        _I.TAKE_OVER: IGNORED,
        _I.OFFER: (_S.REPLICA,),
        _I.VOUCH: IGNORED,
        _I.EXPIRE: (_S.ELSEWHERE,),
        _I.RESTART: (_S.REPLICA,),
        _I.SESSION_REQUEST: (_S.REPLICA,),  # the answer names the node of the session
        _I.TAKE_OVER_REQUEST: (_S.DEPARTING, _S.HERE, _S.REPLICA),  # replica: the owner is another one
        _I.SESSION_OFFER: (_S.REPLICA_REQUESTED,),
        _I.REPLICA_DESCRIPTION: (_S.REPLICA, _S.ELSEWHERE),
        _I.REPLICA_DELIVERIES: (_S.REPLICA,),
        _I.REPLICA_PROGRESS: (_S.REPLICA,),
        _I.REPLICA_CANCELLED: (_S.ELSEWHERE,),
        _I.STALE: IGNORED,
    },
    _S.REPLICA_REQUESTED: {
        _I.CLAIM: (_S.REPLICA_REQUESTED,),
        _I.DETACH: (_S.REPLICA_REQUESTED,),
        _I.CANCEL: (_S.REPLICA, _S.REPLICA_REQUESTED),
        _I.TAKE_OVER: (_S.HERE, _S.DEPARTING, _S.REPLICA_REQUESTED),  # here: this node is the asked holder
        _I.OFFER: (_S.REPLICA_REQUESTED,),
        _I.VOUCH: IGNORED,
        _I.EXPIRE: (_S.REQUESTED,),
        _I.REMIND: (_S.REPLICA_REQUESTED,),
        _I.RESTART: (_S.REPLICA, _S.REPLICA_REQUESTED),
        _I.SESSION_REQUEST: (_S.REPLICA_REQUESTED,),
        _I.TAKE_OVER_REQUEST: (_S.REPLICA_REQUESTED,),
        _I.SESSION_OFFER: IGNORED,
        _I.DESCRIPTION: (_S.ARRIVING, _S.REPLICA),
        _I.NOT_HERE: (_S.REPLICA_REQUESTED, _S.HERE, _S.DEPARTING, _S.REPLICA),
        _I.CANCELLED: (_S.REPLICA,),
        _I.REPLICA_DESCRIPTION: (_S.REPLICA_REQUESTED, _S.REQUESTED),
        _I.REPLICA_DELIVERIES: (_S.REPLICA_REQUESTED,),
        _I.REPLICA_PROGRESS: (_S.REPLICA_REQUESTED,),
        _I.REPLICA_CANCELLED: (_S.REQUESTED,),
        _I.STALE: IGNORED,
    },
}
"""By state and input: the possible next states."""
