"""A streaming pipeline that is killed at random: `python -m tools.pipeline.kills 50`.

Files of events → `match` with a catalogue that changes now and then → Parquet. The driver is a process that is killed
with `kill -9` at random moments, in micro-batches and between, and started again. In the end every event has reached
every subscription that wanted it in the version its micro-batch was matched with, once; and every micro-batch was
matched with one version, however often it was done.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fieldfare import Event, parse
from fieldfare.matching.index import Index
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from tools.pipeline import drivers

Delivery = tuple[int, str, int]
"""event, subscription, version"""
EVERYTHING = "everything"
"""a subscription that each event matches, so that each tells its version"""


@dataclass
class World:
    """What was published, and by whom it was wanted when."""

    folder: Path
    dice: random.Random
    events: list[dict[str, int]] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    """in which file each event is"""
    versions: dict[int, dict[str, str]] = field(default_factory=dict)

    def begin(self) -> None:
        (self.folder / "in").mkdir()
        filters = {EVERYTHING: "EXISTS n", **{f"s{n}": f"x > {n}" for n in range(20)}}
        made = catalogue.write_version(self.folder / "catalogue", [Subscription(*one) for one in filters.items()])
        self.versions[made] = filters

    def publish(self) -> None:
        """A file of some events."""
        name = f"{len(self.events):09d}.json"
        new = [{"n": len(self.events) + n, "x": self.dice.randrange(25)} for n in range(self.dice.randint(1, 30))]
        drivers.put(self.folder, name, new)
        self.events += new
        self.files |= dict.fromkeys((one["n"] for one in new), name)

    def change(self) -> None:
        """A new version of the catalogue."""
        filters = dict(self.versions[max(self.versions)])
        gone = self.dice.choice([id for id in filters if id != EVERYTHING])
        del filters[gone]
        add = {self.dice.choice(["s1", f"t{len(self.versions)}"]): f"x < {self.dice.randrange(25)}"}
        made = catalogue.amend(self.folder / "catalogue", [Subscription(*one) for one in add.items()], [gone])
        self.versions[made] = filters | add

    def live(self, seconds: float) -> None:
        """Go on publishing and changing for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.publish()
            if self.dice.random() < 0.3:
                self.change()
            time.sleep(self.dice.random() * 0.6)

    def check(self) -> dict[str, int]:
        """Compare what the table holds with what it should hold; a difference is an error."""
        got: list[Delivery] = [(n, id, version) for n, id, version in json.loads(self._found())]
        version_of = {n: version for n, id, version in got if id == EVERYTHING}
        expected = Counter((n, id, version) for n, version in version_of.items() for id in self._wanted(n, version))
        batch_of = drivers.batches(self.folder)
        by_batch: dict[int, set[int]] = {}
        for n, version in version_of.items():
            by_batch.setdefault(batch_of[self.files[n]], set()).add(version)
        counted = Counter(got)
        counts = {
            "batches": len(by_batch),
            "versions": len(self.versions),
            "events": len(self.events),
            "deliveries": len(got),
            "lost": sum((expected - counted).values()) + len(self.events) - len(version_of),
            "twice": drivers.twice(counted),
            "wrong": len(set(counted) - set(expected)),
            "mixed": sum(len(versions) != 1 for versions in by_batch.values()),
        }
        if any(counts[problem] for problem in ("lost", "twice", "wrong", "mixed")):
            raise AssertionError(f"not exactly once: {counts}, in {self.folder}")
        return counts

    def _wanted(self, n: int, version: int) -> list[str]:
        """What the engine and brute force say of an event."""
        filters = self.versions[version]
        event = Event(self.events[n])
        brute = [id for id, text in filters.items() if parse(text).matches(event)]
        engine = self._engine(version).match(event)
        assert sorted(brute) == sorted(engine), f"the engine differs from brute force: event {n}, version {version}"
        return brute

    def _engine(self, version: int) -> Index[str]:
        if version not in self._engines:
            self._engines[version] = Index((id, parse(text)) for id, text in self.versions[version].items())
        return self._engines[version]

    _engines: dict[int, Index[str]] = field(default_factory=dict)

    def _found(self) -> str:
        return (self.folder / "deliveries.json").read_text()


def run(kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill a driver so many times, each some micro-batches and a moment after it has begun; then let it finish."""
    world = World(folder, random.Random(seed))
    world.begin()
    for _ in range(kills):
        driver = drivers.start(folder, "local[2]", "stream")
        try:
            drivers.wait(driver, folder, (folder / "started").exists)
            goal = drivers.committed(folder) + world.dice.randrange(3)
            while drivers.committed(folder) < goal and driver.poll() is None:
                world.live(0.1)
            world.live(world.dice.random())
            assert driver.poll() is None, (folder / "driver.log").read_text()[-3000:]
        finally:
            drivers.kill(driver)
    world.publish()
    (folder / "stop").touch()
    driver = drivers.start(folder, "local[2]", "stream")
    try:
        drivers.wait(driver, folder, (folder / "deliveries.json").exists)
    finally:
        drivers.kill(driver)
    return {"kills": kills, **world.check()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fieldfare-kills-") as scratch:
        sys.stdout.write(f"{run(int(sys.argv[1]), Path(scratch), seed=random.randrange(1 << 30))}\n")
