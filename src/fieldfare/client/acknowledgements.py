"""What was delivered and is not done with: so, what may be acknowledged, and how many deliveries more may come.

Deliveries come in the order of their numbers, with gaps. A client is done with them in any order, but can only say "all
up to this one": that is the last number before the first one that is still open. After a pause the node begins again
behind the last that it knows to be done with; what came before the pause can be acknowledged all the same.

No I/O here, and no clock.
"""

from __future__ import annotations


class Outstanding:
    """The deliveries of one session, told from another one by its identity.

    >>> book = Outstanding()
    >>> [book.came(number, 1) for number in (1, 2, 5)]
    [True, True, True]
    >>> book.finish(2), book.due()  # 1 is still open
    (True, 0)
    >>> book.finish(1), book.due()  # there was no 3 and no 4
    (True, 4)
    """

    def __init__(self) -> None:
        """Nothing came yet."""
        self._open: dict[int, int] = {}
        """how many subscriptions are not done with each; in order"""
        self._seen = 0
        """the last that came"""
        self._said = 0

        self._heir: tuple[int, Outstanding] | None = None
        """the number from which on this book is void, and the book that goes on instead"""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seen(self) -> int:
        """The last number that came."""
        return self._seen

    def cut(self, void: int) -> Outstanding:
        """The book that goes on from here: what came before a number counts in it; from there on, numbers are new.

        >>> book = Outstanding()
        >>> [book.came(number, 1) for number in (1, 2)]
        [True, True]
        >>> new = book.cut(2)
        >>> new.came(2, 1)  # another one
        True
        >>> book.finish(2), book.finish(1), new.due()  # the other 2 is still open
        (True, True, 1)
        """
        heir = Outstanding()
        heir._seen = min(self._seen, void - 1)
        heir._open = {number: parts for number, parts in self._open.items() if number < void}
        self._open = {number: parts for number, parts in self._open.items() if number >= void}
        self._heir = void, heir
        return heir

    def came(self, number: int, parts: int) -> bool:
        """A delivery is there, for so many subscriptions; says whether it was not there before."""
        if number <= self._seen:
            return False
        self._seen = number
        if parts:
            self._open[number] = parts
        return True

    def finish(self, number: int) -> bool:
        """One subscription is done with a delivery; says whether all are."""
        if self._heir is not None and number < self._heir[0]:
            return self._heir[1].finish(number)
        left = self._open[number] - 1
        if left:
            self._open[number] = left
            return False
        del self._open[number]
        return True

    def due(self) -> int:
        """The number to acknowledge now, as if it were said at once; 0 if there is nothing new to say."""
        number = next(iter(self._open), self._seen + 1) - 1
        if number <= self._said:
            return 0
        self._said = number
        return number

    def resume(self, acknowledged: int) -> None:
        """There is a new connection, and the node knows that all up to a number is done with."""
        self._said = acknowledged
        self._seen = max(self._seen, acknowledged)


class Allowance:
    """How many deliveries a node may send, so that no more than `limit` are ever kept here.

    >>> room = Allowance(4)
    >>> room.begin()
    4
    >>> for _ in range(4):
    ...     room.came(new=True)
    >>> room.more()
    0
    >>> room.went()
    >>> room.more()
    1
    """

    def __init__(self, limit: int) -> None:
        """Nothing is here."""
        self.limit = limit
        self.here = 0
        """deliveries that are kept"""
        self.promised = 0
        """deliveries that the node may still send"""
        self._step = max(1, limit // 4)

    def begin(self) -> int:
        """How many may come on a new connection; all that was promised before is void."""
        self.promised = self.limit - self.here
        return self.promised

    def wait(self) -> int:
        """The same, if nobody is there to take anything: none."""
        self.promised = 0
        return 0

    @property
    def pressing(self) -> bool:
        """Might the node soon have to wait for us?"""
        return self.promised * 2 <= self.limit

    def came(self, *, new: bool) -> None:
        """A delivery is there; it is kept if it is new."""
        self.promised -= 1
        self.here += new

    def went(self) -> None:
        """A delivery is done with."""
        self.here -= 1

    def more(self) -> int:
        """How many to promise now, as if it were done at once; not a few at a time, unless the node has to wait."""
        more = self.limit - self.here - self.promised
        if more < self._step and (self.promised > 0 or more <= 0):
            return 0
        self.promised += more
        return more
