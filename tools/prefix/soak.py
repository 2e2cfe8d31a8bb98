"""Long random runs of the world: `python -m tools.prefix.soak [runs] [steps] [first seed]`."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

from fieldfare.routing.prefix import tag as tags
from fieldfare.routing.prefix.tag_reader import forward
from tools.prefix.samples import EVENTS, MIXED, UNSAID
from tools.prefix.world import INTERFACES, World
from tools.samples import FILTERS as RANGES

BROKERS = 3
WEIGHTS = {"subscribe": 6, "unsubscribe": 5, "hear": 30, "update": 5, "arrive": 14, "arrive_at_standby": 4,
           "publish": 8, "forget": 1, "fail": 0.4, "zombie": 0.6, "calm": 4}  # fmt: skip
FILTERS = (*RANGES, *MIXED, UNSAID)


def run(random: Random, steps: int) -> tuple[World, Counter[str]]:
    """A world after so many steps, and what happened in it."""
    world = World(BROKERS)
    counts: Counter[str] = Counter()
    filters = random.sample(FILTERS, random.randint(2, 20))
    for _ in range(steps):
        (name,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        counts[name] += 1
        broker = random.randrange(BROKERS)
        match name:
            case "subscribe":
                world.subscribe(broker, random.choice(INTERFACES), random.choice(filters))
            case "unsubscribe":
                world.unsubscribe(broker, random.randrange(10))
            case "hear":
                world.hear(random.randrange(2))
            case "update":
                world.update()
            case "zombie":
                world.update(-2)
            case "arrive":
                world.arrive(broker)
            case "arrive_at_standby":
                world.arrive_at_standby()
            case "publish":
                world.publish(broker, random.choice(EVENTS), random.choice([None, None, 1, 2, 3]))
            case "forget":
                world.forget(broker, random.randrange(4))
            case "fail":
                world.fail()
            case "calm":
                world.calm()
        for entry in range(BROKERS):
            world.publish(entry, random.choice(EVENTS), None)
        world.look()
        for _, data in world.flying:
            for one in world.brokers:
                read = forward(one.places.tree, tags.decode(data), one.places) is not None
                counts["read by tag" if read else "read by content"] += 1
    world.drain()
    world.look()
    return world, counts


def main(runs: int = 20, steps: int = 300, seed: int = 0) -> None:
    """Print what happened."""
    total: Counter[str] = Counter()
    for number in range(seed, seed + runs):
        try:
            world, counts = run(Random(number), steps)
        except BaseException:
            sys.stdout.write(f"seed {number}\n")
            raise
        total += counts + Counter({"deliveries": world.deliveries, "false positives": world.extra})
    sys.stdout.write(f"{dict(total)}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
