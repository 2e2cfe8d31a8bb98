"""How a session goes from one node to another: what the two say to each other.

    target                          source
      | ---- Come -----------------> |   give me this session
      | <--- Going ----------------- |   this is what it wants; I note from now on what it gets
      | (asks for the same, and keeps aside what comes)
      | ---- Ready ----------------> |   behind the subscriptions, on the same links
      | <--- Vouch ----------------- |   if its client was there: this is who follows, with which ticket
      | <--- Carry, Carry, Moved --- |   what waits for it, and what I noted

All of it goes from link to link, in order, and behind all that was said there before. So when `Ready` is at the source,
every event that the target will not get is there already; and when `Moved` is at the target, so are all subscriptions
that the source knew of and that the target's promises overlap: a publisher that goes on there is heard by all. What
both got is dropped at the target: the source's part of each publisher's events is the beginning, the target's the end.

A *keeper* of a session, should its node fail for good, hears of it the same way: it asks for what the session wants
and keeps what comes, gets what waits for the session, and is told what the client is done with. It needs no last word:
a client that cannot get its session from its node has it taken over from there (`Come` with `take_over`).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from fieldfare.protocol.numbers import Number

VERSION: Final = 2
"""Version of the handover messages; see `docs/reference/versions.md`."""


class Word(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Anything that nodes say about a session that moves. The ticket tells one attempt to move it from another."""

    session: str
    ticket: str


class Come(Word, frozen=True):
    """Give me this session: a client that uses it is here."""

    owner: str | None = None
    """who it must belong to, if that matters"""
    take_over: bool = False
    """from a keeper: its node does not answer"""


class Offer(Word, frozen=True):
    """Have this session: say `Come`."""

    owner: str


class Going(Word, frozen=True):
    """It will come; this is what it wants and promises."""

    identity: str
    owner: str
    subscriptions: dict[str, str] = {}
    advertisements: dict[str, str] = {}
    keep: bool = False
    """it stays here, but be its keeper"""


class Vouch(Word, frozen=True):
    """Its client follows, and shows a ticket with this digest: take my word for who it is and what roles it has.

    Said before `Moved`; `ticket` is that of the handover, as in all of these.
    """

    digest: bytes
    owner: str
    roles: tuple[str, ...] = ()
    until: float | None = None
    """when its token ends"""
    token: str = ""
    """the id of that, and when it was issued: it may become void"""
    issued: float | None = None


class Ready(Word, frozen=True):
    """I have asked for all that it wants, and this follows on the same links."""


class Carried(msgspec.Struct, frozen=True, array_like=True):
    """An event that waits for the session, under its number."""

    number: Number
    subscriptions: tuple[str, ...]
    expires: float
    publisher: str
    sequence: Number
    by: str
    source: str
    replaces: str
    event: bytes
    old: bool = False
    """it had happened before the session asked for it"""


class Carry(Word, frozen=True):
    """Some of what waits for the session."""

    items: list[Carried]


class Moved(Word, frozen=True):
    """That was all: it is yours."""

    sequence: Number
    """of the last event that it published"""
    count: Number
    """of its deliveries"""
    done: Number
    dropped: Number
    had: list[tuple[str, str, Number]]
    """publishers, and the last events of theirs that it has had"""
    doubt: Number = 0
    """up to which number deliveries may be events that the client has had under other numbers"""
    moves: Number = 0
    """how often the session has moved"""
    lives: tuple[tuple[str, Number], ...] = ()
    """in which lives of which logs its deliveries were numbered"""
    warned: Number = 0
    """of how many dropped deliveries the client was told"""


class Done(Word, frozen=True):
    """To a keeper: how far the session is."""

    sequence: Number
    count: Number
    done: Number
    moves: Number
    had: list[tuple[str, str, Number]]
    """publishers, and the last events of theirs that the client is done with"""


class Lost(Word, frozen=True):
    """From a keeper: you did not answer, so the session has been taken over."""

    identity: str


class Elsewhere(Word, frozen=True):
    """It is not here, but perhaps there."""

    node: str = ""
    refused: str = ""
    """why you cannot have it"""


class Cancel(Word, frozen=True):
    """Nothing comes of it: the client is somewhere else by now."""


AnyWord: TypeAlias = Come | Offer | Going | Vouch | Ready | Carry | Moved | Done | Lost | Elsewhere | Cancel
encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyWord).decode


def decode(data: bytes) -> AnyWord:
    """What was said; ValueError if that cannot be read."""
    try:
        word: AnyWord = _decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"nothing that is said of a session: {error}") from None
    return word
