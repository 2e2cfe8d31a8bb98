"""Patterns in a stream whose driver is killed at random: `python -m tools.pipeline.pattern_kills 20`.

Files of events, some seconds out of order → `detect` → a file for each micro-batch, which a batch that comes again
replaces. The driver is killed with `kill -9` at random moments and started again. In the end every detection that a
`Detector` tells over all events in order is there, once, and nothing else.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from fieldfare.patterns import Detector, Occurrence, parse_pattern
from tools.pipeline import drivers

PATTERNS: Final = {
    "rise": "a: [x < 10] b: [x >= 40] (a followed by b) within 20s",
    "calm": "a: [x < 3] b: [x >= 25] a followed by not b within 8s",
    "steps": "a: [x < 20] b: [x >= 30] (a{2,} followed by b) within 15s for each k after match past last event",
}
_LATE: Final = 4.0


class World:
    """What was published."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Begin without events."""
        self.folder, self.dice = folder, random.Random(seed)
        self.events: list[dict[str, float]] = []
        self.files = 0
        (folder / "in").mkdir()
        (folder / "patterns.json").write_text(json.dumps(PATTERNS))

    def publish(self) -> None:
        """A file of some events, a second apart, and out of order by less than the delay."""
        first = len(self.events)
        last = first + self.dice.randint(1, 20)
        new = [{"n": n, "x": self.dice.randrange(50), "k": n % 3, "at": 1e9 + n} for n in range(first, last)]
        self.events += new
        mixed = sorted(new, key=lambda one: one["at"] + self.dice.random() * _LATE)
        self._put(mixed)

    def end(self) -> None:
        """An event that no pattern looks at, long after all others: all timers before it strike."""
        self._put([{"n": -1, "x": 22, "k": 0, "at": 2e9}])

    def _put(self, events: list[dict[str, float]]) -> None:
        drivers.put(self.folder, f"{self.files:09d}.json", events)
        self.files += 1

    def check(self) -> dict[str, int]:
        """Compare the detections with those of a detector; a difference is an error."""
        detector = Detector({name: parse_pattern(text) for name, text in PATTERNS.items()})
        story = [Occurrence(int(one["at"] * 1e6), int(one["at"] * 1e6), one, "", int(one["n"])) for one in self.events]
        due = Counter(
            (one.pattern, tuple(event.event["n"] for _, event in one.match.events))
            for one in detector.step(story, 1.9e9)
        )
        told = json.loads((self.folder / "detections.json").read_text())
        got = Counter((pattern, tuple(numbers)) for _, pattern, numbers in told)
        counts = {
            "batches": drivers.committed(self.folder),
            "events": len(self.events),
            "detections": sum(due.values()),
            "lost": sum((due - got).values()),
            "twice or wrong": sum((got - due).values()),
            "ids twice": len(told) - len({one[0] for one in told}),
        }
        if counts["lost"] or counts["twice or wrong"] or counts["ids twice"] or not due:
            raise AssertionError(f"not exactly once: {counts}, in {self.folder}")
        return counts


def run(kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill a driver so many times, each some micro-batches and a moment after it has begun; then let it finish."""
    world = World(folder, seed)
    for _ in range(kills):
        driver = drivers.start(folder, "local[2]", "patterns")
        try:
            drivers.wait(driver, folder, (folder / "started").exists)
            goal = drivers.committed(folder) + world.dice.randrange(1, 3)
            while drivers.committed(folder) < goal and driver.poll() is None:
                world.publish()
                time.sleep(world.dice.random())
            time.sleep(world.dice.random())
            assert driver.poll() is None, (folder / "driver.log").read_text()[-3000:]
        finally:
            drivers.kill(driver)
    world.publish()
    world.end()
    (folder / "stop").touch()
    driver = drivers.start(folder, "local[2]", "patterns")
    try:
        drivers.wait(driver, folder, (folder / "detections.json").exists)
    finally:
        drivers.kill(driver)
    return {"kills": kills, **world.check()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fieldfare-kills-") as scratch:
        sys.stdout.write(f"{run(int(sys.argv[1]), Path(scratch), seed=random.randrange(1 << 30))}\n")
