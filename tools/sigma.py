"""`python -m tools.sigma FOLDER`: the share of a folder of Sigma rules that loads, reasons for the rest, and speed.

    python -m tools.sigma ~/sigma --glob 'rules*/**/*.yml' --schema schema.toml --events events.jsonl

Every rule is also written in the native language and read again. Events are matched with all rules in one index, in CPU
time, and the first of them also rule by rule, which must give the same answers.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from fieldfare.filters import Filter, parse
from fieldfare.filters.languages.sigma import LogSchema
from fieldfare.matching import Index
from fieldfare_lab.sigma.corpus import load_rules


def measure(filters: dict[str, Filter], events: list[dict[str, Any]], compared: int = 20) -> None:
    begun = time.process_time()
    index = Index(filters.items())
    print(f"an index of {len(filters):,} rules is made in {time.process_time() - begun:.1f} s")
    found = [index.match(event) for event in events]
    for event, names in zip(events[:compared], found, strict=False):
        assert sorted(names) == sorted(name for name, one in filters.items() if one.matches(event)), event
    best = min(_timed(lambda: [index.match(event) for event in events]) for _ in range(3))
    print(
        f"{best / len(events) * 1e6:,.0f} \u00b5s an event, {sum(map(len, found)):,} matches of {len(events):,} events"
    )


def _timed(work: Any) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--glob", default="**/*.yml")
    options.add_argument("--schema", type=Path)
    options.add_argument("--events", type=Path, help="events as JSON lines")
    given = options.parse_args()
    schema = LogSchema.read(given.schema.read_text(), str(given.schema)) if given.schema else LogSchema()
    begun = time.process_time()
    filters, refused = load_rules(given.folder, given.glob, schema)
    total = len(filters) + refused.total()
    print(
        f"{len(filters):,} of {total:,} rules load ({len(filters) / total:.1%}) in {time.process_time() - begun:.1f} s"
    )
    for reason, count in refused.most_common():
        print(f"{count:6,} {reason}")
    for name, wanted in filters.items():
        assert parse(str(wanted)) == wanted, name
    if given.events:
        measure(filters, [json.loads(line) for line in given.events.read_text().splitlines()])


if __name__ == "__main__":
    main()
