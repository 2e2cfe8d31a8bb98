"""`Sharing`: the members of a session, and which member holds which delivery.

A delivery *waits*, is *given* to a member with credit, is *taken* by the connection of the member, and is *released* by
an acknowledgement; its key is *free* once the acknowledgement is written. When a member leaves, the deliveries there
wait again, in the order of the numbers; a delivery taken by the connection has a mark then, for the member may have
seen the event. With a key, all deliveries of a key go to the present holder of the key, and wait if the holder has no
credit.

Nothing here is durable: after a restart all members come anew, and everything without an acknowledgement waits again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from heapq import heappop, heappush, merge
from typing import Final, NamedTuple

import msgspec

MOST_BLOCKED: Final = 1000
"""Deliveries that may wait for members that hold their keys, before all others have to wait, too."""


class Given(NamedTuple):
    """A delivery for the connection of a member."""

    number: int
    again: bool
    """Whether another member had the delivery before."""


class Member(msgspec.Struct):
    """A worker, attached to a session."""

    label: str = ""
    """Name that the member has given itself; empty if none."""
    credit: int = 0
    """How many deliveries the member can take."""
    given: dict[int, None] = {}
    """Deliveries that the connection has not taken yet."""
    taken: dict[int, None] = {}
    """Deliveries without an acknowledgement."""

    @property
    def holds(self) -> int:
        """The number of deliveries without an acknowledgement, closed to other members."""
        return len(self.given) + len(self.taken)


class Sharing:
    """The members of a session, in the order of turns."""

    def __init__(self, key: str = "") -> None:
        """Begin without members; deliveries with the same value of the field `key` stay together."""
        self.key = key
        self.members: dict[str, Member] = {}
        self.begun = False
        """Whether any delivery was added."""
        self._waiting: list[int] = []
        """A heap."""
        self._holders: dict[int, str] = {}
        self._again: set[int] = set()
        self._keys: dict[int, Hashable] = {}
        """Keys of the waiting and held deliveries, as far as known; None: the event has no key."""
        self._busy: dict[Hashable, tuple[str, int]] = {}
        """By key: the member that holds deliveries of the key, and how many."""

    # Members

    def attach(self, name: str, label: str = "") -> None:
        """Add a member, without credit yet."""
        self.members[name] = Member(label)

    def detach(self, name: str) -> None:
        """Remove a member, and let the deliveries there wait again."""
        member = self.members.pop(name)
        self._again.update(member.taken)
        for number in (*member.given, *member.taken):
            self._free(number)
            heappush(self._waiting, number)

    def grant(self, name: str, more: int, most: int) -> None:
        """Let a member take more deliveries, `most` in all."""
        member = self.members[name]
        member.credit = min(member.credit + more, most)

    # Deliveries

    def room(self) -> int:
        """Return how many deliveries more are of use."""
        credit = sum(member.credit for member in self.members.values())
        return max(0, credit + (MOST_BLOCKED if self.key else 0) - len(self._waiting)) if credit else 0

    def add(self, numbers: Iterable[int]) -> None:
        """Let further deliveries wait, with numbers beyond all before."""
        for number in numbers:
            self.begun = True
            heappush(self._waiting, number)

    def without_key(self) -> list[int]:
        """Return the waiting deliveries without a known key; `note_keys` tells the keys."""
        return sorted(number for number in self._waiting if number not in self._keys) if self.key else []

    def note_keys(self, keys: Mapping[int, Hashable]) -> None:
        """Take the keys of waiting deliveries; the key of a delivery never changes."""
        self._keys.update(keys)

    def give(self, is_pending: Callable[[int], bool]) -> set[str]:
        """Give waiting deliveries to members with credit, in turn; return the names of members with more to take.

        A delivery no longer pending, as after the time to live, is forgotten.
        """
        woken: set[str] = set()
        blocked: list[int] = []
        while self._waiting:
            number = self._waiting[0]
            if not is_pending(number):
                heappop(self._waiting)
                self._forget(number)
                continue
            if self.key and number not in self._keys:
                break  # what follows might be of the same key
            key = self._keys.get(number)
            name = self._next() if key is None or key not in self._busy else self._busy[key][0]
            if name is None:
                break
            heappop(self._waiting)
            member = self.members.get(name)  # None: a member that has gone before the end of a write
            if member is None or member.credit <= 0:
                blocked.append(number)
                continue
            member.credit -= 1
            member.given[number] = None
            self._hold(number, name, key)
            woken.add(name)
        self._waiting = list(merge(blocked, sorted(self._waiting))) if blocked else self._waiting
        return woken

    def _next(self) -> str | None:
        """Return the next member with credit, and move the member behind all others."""
        for name in self.members:
            if self.members[name].credit > 0:
                self.members[name] = self.members.pop(name)
                return name
        return None

    def _hold(self, number: int, name: str, key: Hashable) -> None:
        self._holders[number] = name
        if key is not None:
            self._busy[key] = name, self._busy.get(key, (name, 0))[1] + 1

    def _free(self, number: int) -> None:
        name, key = self._holders.pop(number), self._keys.get(number)
        if key is not None:
            count = self._busy[key][1] - 1
            if count:
                self._busy[key] = name, count
            else:
                del self._busy[key]

    def _forget(self, number: int) -> None:
        self._again.discard(number)
        self._keys.pop(number, None)

    def take(self, name: str, limit: int, pending: Container[int]) -> list[Given]:
        """Return the next deliveries for the connection of a member, at most `limit`."""
        member = self.members[name]
        found: list[Given] = []
        for number in list(member.given):
            if len(found) == limit:
                break
            del member.given[number]
            if number in pending:
                member.taken[number] = None
                found.append(Given(number, number in self._again))
            else:
                member.credit += 1
                self._free(number)
                self._forget(number)
        return found

    def release(self, name: str, number: int) -> bool:
        """Note an acknowledgement; False if the member does not hold the delivery (any more).

        The key of the delivery stays with the member until `free`.
        """
        member = self.members.get(name)
        if member is None or number not in member.taken:
            return False
        del member.taken[number]
        return True

    def free(self, number: int) -> None:
        """Let others have deliveries of the key of a released delivery, if no more of the key are held."""
        if number in self._holders:
            self._free(number)
            self._forget(number)

    def give_back(self, name: str, number: int) -> bool:
        """Release an unsent delivery; the member has the credit back."""
        released = self.release(name, number)
        if released:
            self.free(number)
            self.members[name].credit += 1
        return released

    @property
    def waiting(self) -> int:
        """The number of deliveries without a member, the next to be given."""
        return len(self._waiting)
