"""Stability: when an event may be looked at, although events of other sources may be on the way.

Events of several sources come over different ways, and so out of order, even if each source's events come in order.
Each subscription to a pattern chooses between delay and errors:

- `BestEffort` takes every event at once. A late event is out of order, and an instance ignores it or fails: detections
  may be missing, and others may be wrong.
- `Guaranteed` takes an event when it is *stable*: every source has promised to send nothing earlier, by a later
  event or by a heartbeat. If the events of each source come in order, the detections are those of the whole input
  sorted. A source silent for some heartbeats is evicted, by name and with a count: later events of the source may
  come too late, and the guarantee holds among the other sources. Without a limit a dead source blocks for ever.
- `Probabilistic` takes an event when, by the recent delays of each source, nothing earlier comes with a probability
  given by the subscription.

Time is an argument. An `InputOrder` holds the events of a single detector.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from fieldfare.patterns.runs import NEVER
from fieldfare.patterns.stamps import SECOND, Key, Occurrence

NOTHING: Final[Key] = (-NEVER, -NEVER, 0, "", 0)
"""place in the order before all events"""


class BestEffort(NamedTuple):
    """Take every event at once."""


class Guaranteed(NamedTuple):
    """Take stable events only, and evict a source after a long silence."""

    silence: int = 3 * SECOND
    """Microseconds without a sign of a source until it is evicted; 0 for never."""


class Probabilistic(NamedTuple):
    """Take events before which, with some probability, nothing comes."""

    threshold: float = 0.99
    memory: int = 200
    """Delays of each source that are remembered."""


DetectionPolicy: TypeAlias = BestEffort | Guaranteed | Probabilistic


def parse_policy(text: str) -> DetectionPolicy:
    """Return the policy of a text, as subscriptions name it.

    >>> parse_policy("best effort"), parse_policy("guaranteed"), parse_policy("probabilistic 0.95")
    (BestEffort(), Guaranteed(silence=3000000), Probabilistic(threshold=0.95, memory=200))
    """
    words = text.lower().replace("-", " ").split()
    match words:
        case ["best", "effort"]:
            return BestEffort()
        case ["guaranteed"]:
            return Guaranteed()
        case ["probabilistic", *threshold] if len(threshold) < 2:
            try:
                share = float(threshold[0]) if threshold else Probabilistic().threshold
            except ValueError:
                share = 0.0
            if 0 < share <= 1:
                return Probabilistic(share)
    raise ValueError(f"a detection policy is 'best effort', 'guaranteed' or 'probabilistic 0.99', not {text!r}")


class _Source:
    """The signs of a source."""

    def __init__(self, now: int) -> None:
        self.mark: Key = NOTHING
        """All later events of the source have a later place."""
        self.heard = now
        self.evicted = False
        self.order: deque[int] = deque()
        self.delays: list[int] = []
        """The same delays, sorted."""

    def add_delay(self, delay: int, memory: int) -> None:
        self.order.append(delay)
        insort(self.delays, delay)
        if len(self.order) > memory:
            self.delays.remove(self.order.popleft())

    def share(self, delay: int) -> float:
        """Return the share of events without a longer delay."""
        return bisect_right(self.delays, delay) / len(self.delays)


class InputOrder:
    """The events on the way into a detector.

    >>> order = InputOrder(Guaranteed(), ["oslo", "rome"])
    >>> order.take("oslo", Occurrence(5, 5, {}), now=6)
    >>> order.due(7), order.clock
    ([], -4611686018427387904)
    >>> order.heartbeat("rome", 5, now=8)
    >>> [event.high for event in order.due(8)], order.clock
    ([5], 5)
    >>> order.due(4_000_000), order.evictions  # no further sign of oslo and rome for three seconds
    ([], ['oslo', 'rome'])
    """

    def __init__(self, policy: DetectionPolicy, sources: Iterable[str] = (), now: int = 0) -> None:
        """Expect events of some sources; further sources may come later."""
        self.policy = policy
        self.clock = -NEVER
        """Timers with an earlier deadline may strike."""
        self.late = 0
        """Events that came behind the place of the detector: left out if guaranteed, else passed on, out of order."""
        self.evictions: list[str] = []
        """Sources that were evicted, in order."""
        self._sources = {source: _Source(now) for source in sources}
        self._waiting: list[tuple[Key, int, Occurrence]] = []
        self._count = 0
        self._passed: Key = NOTHING
        """Place of the detector: later events come in order."""
        self._lag: int | None = None

    def take(self, source: str, event: Occurrence, now: int) -> None:
        """Take in an event of a source, whose events come in order."""
        own = self._heard(source, now)
        own.mark = max(own.mark, event.key)
        if isinstance(self.policy, Probabilistic):
            own.add_delay(now - event.high, self.policy.memory)
            self._lag = None
        if event.key < self._passed:
            self.late += 1
            if isinstance(self.policy, Guaranteed):
                return
        self._count += 1
        heappush(self._waiting, (event.key, self._count, event))

    def heartbeat(self, source: str, time: int, now: int) -> None:
        """Take in the promise of a source: all later events end after a time, in microseconds."""
        own = self._heard(source, now)
        own.mark = max(own.mark, (time + 1, -NEVER, 0, "", 0))

    def _heard(self, source: str, now: int) -> _Source:
        own = self._sources.setdefault(source, _Source(now))
        own.heard, own.evicted = now, False
        return own

    def due(self, now: int) -> list[Occurrence]:
        """Return the events due at the detector now, in order, and set the clock for the timers behind the events."""
        found = []
        limit = self._limit(now)
        while self._waiting and (isinstance(self.policy, BestEffort) or self._waiting[0][0] <= limit):
            found.append(heappop(self._waiting)[2])
        if isinstance(self.policy, Guaranteed):
            self._passed = max(self._passed, limit)
        elif found:
            self._passed = max(self._passed, found[-1].key)
        self.clock = max(self.clock, limit[0])
        return found

    def _limit(self, now: int) -> Key:
        """Return the place up to which events are taken."""
        match self.policy:
            case Guaranteed(silence):
                for name, source in self._sources.items():
                    if silence and not source.evicted and now - source.heard > silence:
                        source.evicted = True
                        self.evictions.append(name)
                marks = [source.mark for source in self._sources.values() if not source.evicted]
                if not marks:  # nobody is left who could send something earlier
                    return (now, NEVER, 1, "", 0)
                return min(marks)
            case Probabilistic():
                return (now - self.lag, NEVER, 1, "", 0)
        return (now, NEVER, 1, "", 0)

    @property
    def lag(self) -> int:
        """Probabilistic only: microseconds after which an event is stable with the wanted probability.

        The delay is the least for which the shares of events without a longer delay, multiplied over the sources, are
        the probability. Sources of which nothing is known have no influence.
        """
        assert isinstance(self.policy, Probabilistic)
        if self._lag is None:
            known = [source for source in self._sources.values() if source.delays]
            delays = sorted({delay for source in known for delay in source.delays})
            low, high = 0, len(delays) - 1
            while low < high:
                middle = (low + high) // 2
                share = 1.0
                for source in known:
                    share *= source.share(delays[middle])
                low, high = (low, middle) if share >= self.policy.threshold else (middle + 1, high)
            self._lag = max(0, delays[low]) if delays else 0
        return self._lag
