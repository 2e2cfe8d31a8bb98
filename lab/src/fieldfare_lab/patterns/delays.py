"""R1.5 and R1.6: detections from events that arrive out of order, by the three detection policies."""

from __future__ import annotations

from heapq import merge
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare.patterns.stability import BestEffort, DetectionPolicy, Guaranteed, InputOrder, Probabilistic
from fieldfare.patterns.stamps import SECOND
from fieldfare_lab.results import Claim, Result, Settings, curves_of

_PATTERN: Final = parse_pattern("""
    a: [kind = 'a'] b: [kind = 'b'] c: [kind = 'c']
    (a followed by not c followed by b) within 5 seconds for each card
""")
_SOURCES: Final = ("oslo", "rome", "lima")
_HEARTBEAT: Final = SECOND
_TRANSIT: Final = SECOND // 20
"""least time on the way"""
_SETUP: Final = (
    "three sources, each in order, 10 events/s together; 50 ms on the way and an exponential delay on top; a "
    "heartbeat a second from each; `a followed by not c followed by b within 5 s` for each of 4 cards"
)


class Arrival(NamedTuple):
    """An event, or a heartbeat, when it comes to the detector."""

    now: int
    place: int
    source: str
    time: int
    """time of the event, or of the promise"""
    event: Event | None


class Outcome(NamedTuple):
    """The detections of a policy, compared with those of the sorted input."""

    wrong: float
    """false detections and missed ones, for each right one"""
    delay: float
    """mean seconds from the end of a right detection"""
    longest: float
    found: int


def arrivals(seed: int, events: int, jitter: float, *, silent: str = "") -> list[Arrival]:
    """Draw the arrivals of events and heartbeats; a source may fall silent in the middle."""
    flows = []
    end = events * SECOND // 10
    for source in _SOURCES:
        dice = Random(f"{seed} {source}")
        said: list[tuple[int, Event | None]] = [
            (beat, None) for beat in range(_HEARTBEAT, end + 20 * SECOND, _HEARTBEAT)
        ]
        for number in range(events // 3):
            fields = {"kind": dice.choice("abc"), "card": dice.randrange(4), "source": source, "number": number}
            said.append((dice.randrange(end), Event(fields)))
        if source == silent:
            said = [one for one in said if one[0] < end // 2]
        now, flow = 0, []
        for place, (time, event) in enumerate(sorted(said, key=lambda one: one[0])):
            delay = _TRANSIT + (round(dice.expovariate(1 / (jitter * SECOND))) if jitter else 0)
            now = max(now, time + delay)
            flow.append(Arrival(now, place, source, time, event))
        flows.append(flow)
    return list(merge(*flows))


def detect(given: list[Arrival], policy: DetectionPolicy) -> tuple[dict[Any, float], InputOrder]:
    """Return the detections of a policy, each with its delay in seconds."""
    order, detector = InputOrder(policy, _SOURCES), Detector({"p": _PATTERN}, kernels="lazy")
    found: dict[Any, float] = {}
    for one in given:
        if one.event is None:
            order.heartbeat(one.source, one.time, one.now)
        else:
            order.take(one.source, _occurrence(one), one.now)
        made = detector.step(order.due(one.now))
        for what in (*made, *detector.advance(order.clock)):
            found.setdefault(_name(what), (one.now - what.match.stamp.high) / SECOND)
    return found, order


def expected(given: list[Arrival]) -> set[Any]:
    """Return the detections in the sorted input."""
    events = sorted((_occurrence(one) for one in given if one.event is not None), key=lambda one: one.key)
    return {_name(what) for what in Detector({"p": _PATTERN}, kernels="lazy").step(events, now=1e9)}


def _occurrence(one: Arrival) -> Occurrence:
    assert one.event is not None
    return Occurrence(one.time, one.time, one.event, one.source, one.place)


def _name(detection: Any) -> Any:
    return tuple((event.event["source"], event.event["number"]) for _, event in detection.match.events)


def compared(given: list[Arrival], policy: DetectionPolicy) -> Outcome:
    """Compare the detections of a policy with the right ones."""
    found, right = detect(given, policy)[0], expected(given)
    delays = [delay for name, delay in found.items() if name in right] or [0.0]
    wrong = len(found.keys() ^ right) / max(1, len(right))
    return Outcome(wrong, sum(delays) / len(delays), max(delays), len(found))


def wrong(settings: Settings) -> Result:
    """R1.5: wrong detections and delays, by the disorder on the way."""
    rows: list[dict[str, Any]] = []
    named: dict[str, DetectionPolicy] = {
        "best effort": BestEffort(), "guaranteed": Guaranteed(0), "probabilistic 0.99": Probabilistic(0.99),
    }  # fmt: skip
    longest = []
    for jitter in (0.0, 0.05, 0.2, 0.8):
        for seed in range(settings.seed, settings.seed + settings.replications):
            given = arrivals(seed, settings.size(3000), jitter)
            for name, policy in named.items():
                one = compared(given, policy)
                rows.append({"jitter": jitter, "policy": name, "wrong": one.wrong, "delay": one.delay})
                if name == "guaranteed":
                    transit = max(arrival.now - arrival.time for arrival in given) / SECOND
                    longest.append((one.longest, _HEARTBEAT / SECOND + transit))
    wrongs = curves_of(
        rows, title="wrong and missing detections, for each right one", x="jitter", line="policy", value="wrong"
    )
    delays = curves_of(rows, title="mean delay of a right detection, s", x="jitter", line="policy", value="delay")
    best, sure, likely = (wrongs.lines[name] for name in named)
    return Result(
        "R1.5", "Events out of order", _SETUP, (wrongs, delays),
        (
            Claim(
                "best effort gives wrong detections as soon as events of different sources overtake each other",
                all((value or 0) > 0 for value in best[1:]), _percent(best),
            ),
            Claim("guaranteed never does", not any(sure), _percent(sure)),
            Claim(
                "guaranteed pays at most a heartbeat and the longest way",
                all(a <= b + 1e-6 for a, b in longest),
                "; ".join(f"{a:.2f} s of {b:.2f} s" for a, b in longest[:: settings.replications]),
            ),
            Claim(
                "probabilistic stability is between both in errors", _rising(sure, likely, best), _percent(likely),
            ),
            Claim(
                "and in delay",
                _rising(*(delays.lines[name] for name in ("best effort", "probabilistic 0.99", "guaranteed"))),
                ", ".join(f"{value:.2f} s" for value in delays.lines["probabilistic 0.99"] if value is not None),
            ),
        ),
        "Jitter: mean of the exponential delay, in seconds. A source never overtakes itself. Guaranteed detection "
        "waits for one sign of every other source, and sources that say much give many. Probabilistic stability "
        "knows delays, but not that a source is in order: with 0.99 for three sources it waits for the slowest "
        "events of all, which may take longer than a heartbeat. So it is no cheaper than guaranteed detection "
        "where sources say more than their delays last; it is worth its errors where sources are silent, or send "
        "no heartbeats.",
    )  # fmt: skip


def _percent(line: tuple[float | None, ...]) -> str:
    return ", ".join(f"{value:.1%}" for value in line if value is not None)


def _rising(*lines: tuple[float | None, ...]) -> bool:
    """Tell whether no line is above the next, where events are late."""
    columns = list(zip(*lines, strict=True))[1:]
    return all((a or 0) <= (b or 0) for column in columns for a, b in pairwise(column))


def silence(settings: Settings) -> Result:
    """R1.5, second part: a source falls silent in the middle."""
    given = arrivals(settings.seed, settings.size(3000), 0.05, silent="lima")
    half = settings.size(3000) * SECOND // 20
    rows, evicted = [], list[str]()
    for name, policy in (("never evicted", Guaranteed(0)), ("evicted after 3 heartbeats", Guaranteed(3 * _HEARTBEAT))):
        found, order = detect(given, policy)
        rows += [
            {"policy": name, "half": 1, "found": float(sum(1 for one in found if _ended(given, one) < half))},
            {"policy": name, "half": 2, "found": float(sum(1 for one in found if _ended(given, one) >= half))},
        ]
        evicted = list(order.evictions)
    curves = curves_of(rows, title="detections of each half", x="half", line="policy", value="found")
    late = len(expected(given))
    kept, gone = curves.lines["never evicted"], curves.lines["evicted after 3 heartbeats"]
    return Result(
        "R1.5s", "A silent source", f"{_SETUP}; the third source says nothing in the second half", (curves,),
        (
            Claim("a silent source blocks guaranteed detection for ever", not kept[1], f"{kept[1]:.0f} then"),
            Claim(
                "after its eviction the detections are those of the other sources, all of them",
                (gone[0] or 0) + (gone[1] or 0) == late and evicted == ["lima"],
                f"{(gone[0] or 0) + (gone[1] or 0):.0f} of {late}; evicted: {', '.join(evicted)}",
            ),
        ),
    )  # fmt: skip


def _ended(given: list[Arrival], name: Any) -> int:
    times = {(one.source, one.event["number"]): one.time for one in given if one.event is not None}
    return max(times[event] for event in name)


def thresholds(settings: Settings) -> Result:
    """R1.6: errors against delay, by the wanted probability of stability."""
    wanted = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
    rows: list[dict[str, Any]] = []
    for threshold in wanted:
        for seed in range(settings.seed, settings.seed + settings.replications):
            one = compared(arrivals(seed, settings.size(3000), 0.2), Probabilistic(threshold))
            rows += [
                {"threshold": threshold, "what": "wrong, for each right one", "value": one.wrong},
                {"threshold": threshold, "what": "mean delay, s", "value": one.delay},
            ]
    curves = curves_of(rows, title="by threshold", x="threshold", line="what", value="value")
    errors, delays = ([value or 0.0 for value in line] for line in curves.lines.values())
    return Result(
        "R1.6", "Probable stability", f"{_SETUP}; mean delay on top 0.2 s", (curves,),
        (
            Claim("the higher the threshold, the longer the delay", delays == sorted(delays),
                  ", ".join(f"{value:.2f} s" for value in delays)),
            Claim("and the fewer the errors", errors[-1] < errors[0] and all(
                b <= 1.1 * a + 0.01 for a, b in pairwise(errors)),
                ", ".join(f"{value:.1%}" for value in errors)),
        ),
    )  # fmt: skip
