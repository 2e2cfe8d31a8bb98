"""`Outstanding` and `Allowance`: which deliveries a client may acknowledge, and how many more the node may send.

Deliveries arrive in the order of the numbers, with gaps. A program acknowledges deliveries in any order, but the
protocol can only say "everything up to a number": the last number before the first open delivery. After a broken
connection the node starts again behind the last acknowledged number; deliveries of the earlier connection can be
acknowledged on the new connection all the same.

No I/O here, and no clock.
"""

from __future__ import annotations

from fieldfare.protocol import frames as f


class Outstanding:
    """The open deliveries of a session, which are not acknowledged. A new identity of the session needs a new object.

    >>> deliveries = Outstanding()
    >>> [deliveries.add(number, 1) for number in (1, 2, 5)]
    [True, True, True]
    >>> deliveries.acknowledge(2), deliveries.due()  # 1 is still open
    (True, 0)
    >>> deliveries.acknowledge(1), deliveries.due()  # there was no 3 and no 4
    (True, 4)
    """

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """how many subscriptions have not acknowledged each delivery, by its number, in order"""
        self._last = 0
        """the number of the last delivery"""
        self._sent = 0
        """the number of the last acknowledgement that was sent"""
        self._successor: tuple[int, Outstanding] | None = None
        """the first number that is void here, and the object that counts the numbers below"""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def last(self) -> int:
        """The number of the last delivery."""
        return self._last

    def cut(self, void_from: int) -> Outstanding:
        """Return the successor after the node forgot deliveries: numbers from `void_from` on mean other events there.

        Deliveries below `void_from` move to the successor; later acknowledgements here are passed on.

        >>> old = Outstanding()
        >>> [old.add(number, 1) for number in (1, 2)]
        [True, True]
        >>> new = old.cut(2)
        >>> new.add(2, 1)  # another event under the same number
        True
        >>> old.acknowledge(2), old.acknowledge(1), new.due()  # the new 2 is still open
        (True, True, 1)
        """
        successor = Outstanding()
        successor._last = min(self._last, void_from - 1)
        successor._open = {number: parts for number, parts in self._open.items() if number < void_from}
        self._open = {number: parts for number, parts in self._open.items() if number >= void_from}
        self._successor = void_from, successor
        return successor

    def add(self, number: int, parts: int) -> bool:
        """Note a delivery for so many subscriptions; return False if the same number was delivered before."""
        if number <= self._last:
            return False
        self._last = number
        if parts:
            self._open[number] = parts
        return True

    def acknowledge(self, number: int) -> bool:
        """Note the acknowledgement of a subscription; return True if no other subscription still has to acknowledge."""
        if self._successor is not None and number < self._successor[0]:
            return self._successor[1].acknowledge(number)
        left = self._open[number] - 1
        if left:
            self._open[number] = left
            return False
        del self._open[number]
        return True

    def due(self) -> int:
        """Return the number to acknowledge now, 0 if no number is new. The caller must send the number at once."""
        number = next(iter(self._open), self._last + 1) - 1
        if number <= self._sent:
            return 0
        self._sent = number
        return number

    def frame(self) -> f.Acknowledge | None:
        """Return the acknowledgement to send at once, if any."""
        number = self.due()
        return f.Acknowledge(number) if number else None

    def resume(self, acknowledged: int) -> None:
        """Go on with a new connection; the node knows acknowledgements up to a number."""
        self._sent = acknowledged
        self._last = max(self._last, acknowledged)


class SeparateOutstanding:
    """The open deliveries of a member on a connection, acknowledged separately.

    Numbers arrive in any order, since deliveries of a lost member come to the others.

    >>> deliveries = SeparateOutstanding()
    >>> [deliveries.add(number, 1) for number in (7, 8, 3)]
    [True, True, True]
    >>> deliveries.acknowledge(8), deliveries.frame()
    (True, Acknowledge(number=0, numbers=(8,)))
    """

    last = 0
    """A member does not go on where an earlier connection ended."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._due: list[int] = []

    def add(self, number: int, parts: int) -> bool:
        """Note a delivery for so many subscriptions; without any, the delivery is acknowledged at once."""
        if parts:
            self._open[number] = parts
        else:
            self._due.append(number)
        return True

    def acknowledge(self, number: int) -> bool:
        """Note the acknowledgement of a subscription; return True if no other subscription still has to acknowledge."""
        left = self._open[number] - 1
        if left:
            self._open[number] = left
            return False
        del self._open[number]
        self._due.append(number)
        return True

    def frame(self) -> f.Acknowledge | None:
        """Return the acknowledgement to send at once, if any."""
        due, self._due = self._due, []
        return f.Acknowledge(0, tuple(due)) if due else None


class Allowance:
    """The credit of a node: how many deliveries the node may send, with at most `limit` open in the client.

    >>> allowance = Allowance(4)
    >>> allowance.reset()
    4
    >>> for _ in range(4):
    ...     allowance.receive(new=True)
    >>> allowance.grant()
    0
    >>> allowance.release()
    >>> allowance.grant()
    1
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        """open deliveries in the client"""
        self.granted = 0
        """deliveries that the node may still send"""
        self._step = max(1, limit // 4)

    def reset(self) -> int:
        """Return the credit for a new connection; credit of earlier connections is void."""
        self.granted = self.limit - self.open
        return self.granted

    def withhold(self) -> int:
        """Return no credit for a new connection, because no subscription would use the deliveries."""
        self.granted = 0
        return 0

    @property
    def is_low(self) -> bool:
        """Tell whether the node may soon have to wait for credit."""
        return self.granted * 2 <= self.limit

    def receive(self, *, new: bool) -> None:
        """Note a delivery; a new delivery stays open."""
        self.granted -= 1
        self.open += new

    def release(self) -> None:
        """Note the acknowledgement of a delivery by all subscriptions."""
        self.open -= 1

    def grant(self) -> int:
        """Return the credit to send now, or 0. The caller must send the credit at once.

        Credit is given in steps of a quarter of the limit, to save frames, unless the node has none left.
        """
        more = self.limit - self.open - self.granted
        if more < self._step and (self.granted > 0 or more <= 0):
            return 0
        self.granted += more
        return more
