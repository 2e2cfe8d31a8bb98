"""Workloads of patterns: five shapes, any number of patterns, and events whose matches do not depend on a dialect.

Ten patterns share a kind of events and differ in their thresholds, so an event concerns ten patterns at the most. The
events of a kind come as *stories* with pauses between: no match mixes events of two stories, and so engines with other
rules about the reuse of events have the same answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Final, NamedTuple

SHAPES: Final = ("sequence", "keys", "iteration", "absence", "choice")
TOGETHER: Final = 10
"""patterns with a kind in common"""
LANES: Final = 5
"""stories that happen at the same time"""
STEP: Final = 430
"""milliseconds between two events of a story; no multiple is the length of a pattern, where engines differ"""
PAUSE: Final = 12_000
"""milliseconds between two stories of a lane, longer than every pattern"""


class Tick(NamedTuple):
    """An event: the time in milliseconds, and the fields."""

    time: int
    kind: str
    card: str
    price: int
    number: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The three filters of a pattern, as bounds of the price: a is above, b is below, c is equal."""

    kind: str
    above: int
    below: int
    equal: int = 50


def thresholds(number: int) -> Thresholds:
    """Return the filters of a pattern by its number."""
    rank = number % TOGETHER
    return Thresholds(f"k{number // TOGETHER}", 90 + rank, 10 - rank)


def fieldfare_text(shape: str, number: int) -> str:
    """Return a pattern in the language for people."""
    one = thresholds(number)
    a, b, c = (
        f"{name}: [kind = '{one.kind}' AND price {condition}]"
        for name, condition in (("a", f"> {one.above}"), ("b", f"< {one.below}"), ("c", f"= {one.equal}"))
    )
    return {
        "sequence": f"{a} {b} a followed by b within 10 s",
        "keys": f"{a} {b} a followed by b within 10 s for each card",
        "iteration": f"{a} {b} (at least 3 a followed by b) within 10 s",
        "absence": f"{a} {b} a followed by not b within 2 s",
        "choice": f"{a} {b} {c} a followed by (b or c) within 10 s",
    }[shape]


def siddhi_app(shape: str, patterns: int) -> str:
    """Return an app for Siddhi that says the same."""
    stream = "define stream S (kind string, card string, price int, number int);"
    queries = "\n".join(_siddhi_query(shape, number) for number in range(patterns))
    if shape == "keys":
        queries = f"partition with (card of S) begin\n{queries}\nend;"
    return f"@app:playback\n{stream}\n{queries}\n"


def _siddhi_query(shape: str, number: int) -> str:
    one = thresholds(number)
    a, b, c = (f"S[kind == '{one.kind}' and price {test}]" for test in (f"> {one.above}", f"< {one.below}", "== 50"))
    either = "ifThenElse(e2.number is null, e3.number, e2.number)"
    events, last = {
        "sequence": (f"every e1={a} -> e2={b} within 10 sec", "e2.number"),
        "keys": (f"every e1={a} -> e2={b} within 10 sec", "e2.number"),
        "iteration": (f"every (e1={a}<3:> -> e2={b}) within 10 sec", "e2.number"),
        "absence": (f"every e1={a} -> not {b} for 2 sec", "-1"),
        "choice": (f"every e1={a} -> e2={b} or e3={c} within 10 sec", either),
    }[shape]
    first = "e1[0].number" if shape == "iteration" else "e1.number"
    return f"from {events} select {number} as pattern, {first} as first, {last} as last insert into Found;"


def ticks(shape: str, patterns: int, events: int, seed: int = 1) -> list[Tick]:
    """Return about so many events for patterns of a shape, in the order of time; the last ends all waiting."""
    kinds = max(1, patterns // TOGETHER)
    lanes = [_lane(shape, lane, kinds, random.Random(f"{seed} {shape} {lane}")) for lane in range(min(LANES, kinds))]
    merged = merge(*lanes)
    found = [tick._replace(number=number) for number, tick in zip(range(events), merged, strict=False)]
    return [*found, Tick(found[-1].time + 30_000, "end", "", 0, events)]


def _lane(shape: str, lane: int, kinds: int, chance: random.Random) -> Iterator[Tick]:
    """Yield the stories of the kinds of a lane, one after the other, without end."""
    time = lane * 7 + 1
    while True:
        order = [kind for kind in range(kinds) if kind % LANES == lane]
        chance.shuffle(order)
        for kind in order:
            card = f"card{chance.randrange(1000)}"
            for price in _story(shape, chance):
                yield Tick(time, f"k{kind}", card, price, 0)
                time += STEP
            time += PAUSE


def _story(shape: str, chance: random.Random) -> list[int]:
    """Return prices: beginnings, noise that matches nothing, and an end that may be missing or late."""
    noise = [chance.randint(11, 49) for _ in range(chance.randint(0, 6))]
    begin = [chance.randint(91, 100) for _ in range(chance.randint(2, 5) if shape == "iteration" else 1)]
    end = 50 if shape == "choice" and chance.random() < 0.5 else chance.randint(0, 9)
    return [*begin, *noise, *([end] if chance.random() < 0.8 else [])]
