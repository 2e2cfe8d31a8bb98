"""Write down what the workloads `eq`, `stock` and `begen` are, and which filter matches which event.

The answers come from `rules.holds`, the meaning of a rule in a line, and from no matcher. Tests hold the generators and
all matchers against them; where the original of the workloads is at hand, it is held against them as well.

    python -m tools.workload_fixtures
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from fieldfare_lab.bench import reference_workloads, rules

TARGET: Final = Path(__file__).parents[1] / "tests" / "matching" / "fixtures" / "workloads.jsonl"
SIZES: Final = {  # filters and events; an event of `eq` matches next to nothing, so it takes more of them
    "eq": ((500, 800), (1000, 500)),
    "stock": ((300, 200), (1000, 300)),
    "begen": ((300, 200), (500, 100)),
}
SEEDS: Final = (42, 7)


def digest(made: object) -> str:
    """A text that stands for a JSON value: the order of fields and the type of numbers count."""
    return hashlib.sha256(json.dumps(made, ensure_ascii=False).encode()).hexdigest()


def described(name: str, filters: int, events: int, seed: int) -> dict[str, Any]:
    """A workload in short, and in full the filters that each event matches, by their numbers."""
    made, trees = reference_workloads.generate(name, filters, events, seed)
    hits = [[number for number, rule in enumerate(made) if rules.holds(rule, tree)] for tree in trees]
    return {
        "name": name,
        "filters": filters,
        "events": events,
        "seed": seed,
        "filters_digest": digest([rules.native(rule) for rule in made]),
        "events_digest": digest(trees),
        "matches": sum(map(len, hits)),
        "hits": {str(number): hit for number, hit in enumerate(hits) if hit},
    }


def main() -> None:
    """Write the file, a workload a line."""
    found = [described(name, *size, seed) for name, sizes in SIZES.items() for size in sizes for seed in SEEDS]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


if __name__ == "__main__":
    main()
