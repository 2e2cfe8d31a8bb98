"""The frames of the client protocol. A frame is one message of a WebSocket.

A client says `Hello` and hears `Welcome`; then both speak as they like. What a client asks for carries a `request`
number, and is answered by `Done` or `Refused` with the same number, in the order in which it was asked.

- **Publishing.** A publisher counts its events; `Publish` has the number of its first. `Accepted` says up to which
  number all is safe. A client that was cut off says again what was not accepted: what is known is not taken twice.
  The events of one frame are taken all or none.
- **Delivering.** The node counts what it delivers to a session, and sends no more than the client gave it `Credit`
  for. The client acknowledges all up to a number. After a pause, what was not acknowledged comes again under its old
  numbers.

Events are kept in the form of the frame around them, MessagePack or JSON: see `codec`.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

VERSION: Final = 1
"""of this protocol; a node refuses another one, and says so"""

MSGPACK: Final = "fieldfare.v1.msgpack"
"""the WebSocket subprotocol of binary frames"""
JSON: Final = "fieldfare.v1.json"
"""the WebSocket subprotocol of text frames, for browsers and for people"""


class Frame(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Anything that is said."""


# From clients


class Hello(Frame, frozen=True):
    """The first frame of a client."""

    version: int = VERSION
    session: str = ""
    """the name of a session that survives; without one the client is forgotten when it goes"""
    token: str = ""
    """who it is, if that was not said in the HTTP header `Authorization`"""
    credit: int = 0
    """how many deliveries it can take at once; 0: none until it says `Credit`"""
    at: str = ""
    """the node where the session was last, if it was another one: this one gets it from there"""
    identity: str = ""
    """what that node said in its `Welcome`"""
    keepers: tuple[str, ...] = ()
    """the same: who may have a copy of the session, should that node not answer"""
    moves: int = 0
    """the same: how often the session had moved"""
    lives: tuple[tuple[str, int], ...] = ()
    """the same: in which lives of the node's log deliveries were numbered"""
    seen: int = 0
    """the number of the last delivery that came"""
    ticket: str = ""
    """instead of a token: what the last node of the session gave for this one (`Bye`), or this one (`Welcome`)"""


class Publish(Frame, frozen=True):
    """Something happened."""

    number: int
    """of the first event"""
    events: list[msgspec.Raw]
    ttl: float | None = None
    """seconds after which nobody is to get them any more"""
    replaces: str = ""
    """events under such a name replace each other, as long as they wait for somebody"""


class Subscribe(Frame, frozen=True):
    """Tell me of such events from now on, or since then; under an id that is in use, instead of what it asked for."""

    request: int
    id: str
    filter: Any
    """a text, or a document of CloudEvents' subscriptions"""
    since: int | float | str | None = None
    """events that happened already too: from a position (a whole number), or a time (seconds, or RFC 3339)"""
    life: str = ""
    """the life of the node's log in which you heard of that position, as `Welcome` said it"""
    complete: bool = False
    """of those all that the log has: also what was replaced since, and what has outlived its time to live"""


class Unsubscribe(Frame, frozen=True):
    """No more of that."""

    request: int
    id: str


class Advertise(Frame, frozen=True):
    """I shall publish such events."""

    request: int
    id: str
    filter: Any


class Unadvertise(Frame, frozen=True):
    """No more of those."""

    request: int
    id: str


class Acknowledge(Frame, frozen=True):
    """I am done with all deliveries up to a number."""

    number: int


class Credit(Frame, frozen=True):
    """I can take so many deliveries more."""

    more: int


class WatchInterest(Frame, frozen=True):
    """What does anybody want? Answered by `Interest` now, and whenever that changes."""

    request: int


class Leave(Frame, frozen=True):
    """End my session, with all that I asked for and all that waits for me."""

    request: int


# From nodes


class Welcome(Frame, frozen=True):
    """The answer to `Hello`."""

    node: str
    session: str
    """the name of the session; one was made up if there was none"""
    identity: str
    """tells this session from another one of the same name"""
    accepted: int = 0
    """the number of the last event that is safe"""
    acknowledged: int = 0
    """the number of the last delivery that the client is done with"""
    version: int = VERSION
    max_frame: int = 0
    """the size of a frame that the node takes, in bytes"""
    max_batch: int = 0
    """how many events it takes in a frame"""
    keepers: tuple[str, ...] = ()
    """the nodes that keep a copy of the session"""
    moves: int = 0
    """how often the session has come to another node"""
    doubt: int = 0
    """deliveries up to this number may be events that you have had before, under other numbers"""
    lives: tuple[tuple[str, int], ...] = ()
    """in which lives of the node's log deliveries were numbered, each with its first number; for your next `Hello`"""
    void: int = 0
    """deliveries from this number on that you have had are others than those that will come: the node has forgotten
    them, after a power failure or with an earlier copy of its folder. 0: there are none"""
    life: str = ""
    """the present life of the node's log: say it with a position that you have from here"""
    warned: int = 0
    """of how many dropped deliveries of this session a client was told; see `Deliveries`"""
    ticket: str = ""
    """if you came with one: another one, for the next time that you come here"""


class Accepted(Frame, frozen=True):
    """All that you published, up to a number, is safe, but for what was refused."""

    number: int


class Done(Frame, frozen=True):
    """What you asked for is done."""

    request: int
    gone: int = 0
    """the log begins at this position, though `since` asked for older events: those are gone"""


class Refused(Frame, frozen=True):
    """What you said has no effect."""

    reason: str
    request: int = 0
    number: int = 0
    """of the first event of a `Publish`"""
    code: str = "bad"
    """`bad`: it is wrong; `denied`: you may not; `limit`: it is too much"""


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """An event that somebody asked for."""

    number: int
    position: int
    """in the log of the node"""
    time: float
    """when it was logged"""
    publisher: str
    event: msgspec.Raw
    subscriptions: tuple[str, ...]
    """the ids of all that it matches"""
    by: str = ""
    """the identity of its publisher, and how it counts the event: said if the session has, or had, keepers"""
    sequence: int = 0


class Deliveries(Frame, frozen=True):
    """Events, in order."""

    items: list[Delivery]
    dropped: int = 0
    """how many deliveries of the session were dropped so far, in all: more waited than the node keeps"""


class Interest(Frame, frozen=True):
    """All that anybody wants, as filters; an event that matches none of them need not be published."""

    filters: list[str]


class Waiting(Frame, frozen=True):
    """Before `Welcome`: your session is on its way here. Said now and then, as long as that takes."""

    source: str
    """the node that has it"""


class Bye(Frame, frozen=True):
    """The node hangs up."""

    reason: str
    again: bool = True
    """whether it makes sense to come back"""
    to: str = ""
    """the address of another node, where your session goes on"""
    ticket: str = ""
    """what to show there instead of your token"""


FromClient: TypeAlias = (
    Hello | Publish | Subscribe | Unsubscribe | Advertise | Unadvertise | Acknowledge | Credit | WatchInterest | Leave
)
FromNode: TypeAlias = Welcome | Waiting | Accepted | Done | Refused | Deliveries | Interest | Bye
