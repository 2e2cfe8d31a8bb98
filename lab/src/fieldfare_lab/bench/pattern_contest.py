"""The contest of pattern engines: answers first, then CPU seconds, for Fieldfare's detector and for Siddhi."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from fieldfare.events.event import Event
from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare_lab.bench.pattern_workloads import Tick, fieldfare_text, siddhi_app, ticks

SIDDHI: Final = "siddhi-5.1.21"
GROUP: Final = 1_000
"""events in a step of the detector"""
SLOW: Final = 8.0
"""CPU seconds that a round of a slow engine may take; beyond, the engine gets fewer events"""

PATIENCE: Final = 900
"""seconds that a Java may take"""

Answer = tuple[int, int, int]
"""A pattern, the number of the first event, and the number of the last, or -1 for a timer."""


class PatternRow(msgspec.Struct, frozen=True):
    """The figures of an engine for a shape and a number of patterns."""

    shape: str
    patterns: int
    engine: str
    events: int
    matches: int
    right: bool
    """Whether the answers are those of Fieldfare."""
    ready: float
    """CPU seconds until the first event."""
    seconds: float
    """CPU seconds of the best round."""
    trouble: str = ""
    """Why an engine has no figures."""

    @property
    def rate(self) -> float:
        """Events for each CPU second; 0 for an engine in trouble."""
        return self.events / self.seconds if self.seconds else 0.0


class SiddhiFailed(Exception):
    """Siddhi ended with an error, or did not end."""


def siddhi_jars() -> Path:
    """The folder where `python -m tools.servers` puts the jars of Siddhi, there or not."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "fieldfare" / "servers" / SIDDHI


def siddhi_is_there() -> bool:
    """Tell whether Siddhi can be measured."""
    return siddhi_jars().exists() and shutil.which("java") is not None


def measure(shape: str, patterns: int, events: int, rounds: int, step: Callable[[str], None]) -> list[PatternRow]:
    """Return the rows of all engines that are installed."""
    step(f"{shape}, {patterns:,} patterns: Fieldfare")
    given = ticks(shape, patterns, events)
    rows = [_fieldfare(shape, patterns, given, rounds)[1]]
    if siddhi_is_there():
        step(f"{shape}, {patterns:,} patterns: Siddhi")
        try:
            rows.append(_siddhi_in_time(shape, patterns, given, rounds))
        except SiddhiFailed as error:
            rows.append(PatternRow(shape, patterns, "Siddhi", 0, 0, False, 0.0, 0.0, str(error)))
    return rows


def _siddhi_in_time(shape: str, patterns: int, given: Sequence[Tick], rounds: int) -> PatternRow:
    """Measure Siddhi over all events, or as many as it takes in some seconds."""
    first = given[: max(500, len(given) // 20)]
    tried = _siddhi(shape, patterns, first, 2)
    fit = int(len(first) * SLOW / max(tried.seconds, 0.01))
    if fit <= len(first):
        return tried
    return _siddhi(shape, patterns, given[:fit], rounds + 1)


def _fieldfare(shape: str, patterns: int, given: Sequence[Tick], rounds: int) -> tuple[set[Answer], PatternRow]:
    before = time.process_time()
    detector = Detector({str(number): parse_pattern(fieldfare_text(shape, number)) for number in range(patterns)})
    ready = time.process_time() - before
    answers: set[Answer] = set()
    span, best, matches = given[-1].time + 60_000, float("inf"), 0
    for round_ in range(rounds + 1):
        events = [_occurrence(tick, round_ * span) for tick in given]
        start = time.process_time()
        found = [one for at in range(0, len(events), GROUP) for one in detector.step(events[at : at + GROUP])]
        taken = time.process_time() - start
        if round_ == 0:
            answers = {_answer(shape, one.pattern, one.match.events) for one in found}
            matches = len(found)
        else:
            best = min(best, taken)
    row = PatternRow(shape, patterns, "Fieldfare", len(given), matches, True, ready, best)
    return answers, row


def _occurrence(tick: Tick, shift: int) -> Occurrence:
    time_ = (tick.time + shift) * 1000
    fields = {"kind": tick.kind, "card": tick.card, "price": tick.price, "number": tick.number}
    return Occurrence(time_, time_, Event(fields), number=tick.number)


def _answer(shape: str, pattern: str, events: Sequence[tuple[str, Occurrence]]) -> Answer:
    last = -1 if shape == "absence" else events[-1][1].number
    return int(pattern), events[0][1].number, last


def _siddhi(shape: str, patterns: int, given: Sequence[Tick], rounds: int) -> PatternRow:
    """Run Siddhi in a Java of its own; the answers are compared with those of Fieldfare over the same events."""
    ended = [*given[:-1], Tick(given[-1].time + 30_000, "end", "", 0, given[-1].number)]
    answers, _ = _fieldfare(shape, patterns, ended, 0)
    runner = resources.files("fieldfare_lab.bench") / "java" / "SiddhiRunner.java"
    with tempfile.TemporaryDirectory() as scratch, resources.as_file(runner) as source:
        app, events, found = (Path(scratch) / name for name in ("app", "events", "found"))
        app.write_text(siddhi_app(shape, patterns))
        events.write_text("\n".join(",".join(map(str, tick)) for tick in ended))
        command = ["java", "-Xmx6g", "-cp", f"{siddhi_jars()}/*", str(source), *map(str, (app, events, found, rounds))]
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)  # noqa: S603
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            slow = isinstance(error, subprocess.TimeoutExpired)
            raise SiddhiFailed(f"no end in {PATIENCE} s" if slow else str(error.stderr)[-300:]) from None
        lines = [line.split() for line in said.stdout.splitlines()]
        theirs = [tuple(map(int, line.split(","))) for line in found.read_text().splitlines()]
    ready = next(float(line[1]) for line in lines if line[:1] == ["ready"])
    taken = [float(line[1]) for line in lines if line[:1] == ["round"]]
    right = set(theirs) == answers and len(theirs) == len(answers)
    return PatternRow(shape, patterns, "Siddhi", len(ended), len(theirs), right, ready, min(taken[1:]))
