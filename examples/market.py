"""A morning at the market: which filters match which quotes and trades, and which filters cover others?

Run the example with `python examples/market.py`. The events and filters are the sample that comes with Fieldfare.
"""

from collections import Counter
from importlib import resources

import fieldfare as ff
from fieldfare.events.json import decode_lines

MARKET = resources.files("fieldfare") / "data" / "market"


def read_events() -> list[ff.Event]:
    """Read the quotes and trades of the sample."""
    with (MARKET / "events.jsonl").open("rb") as lines:
        return list(decode_lines(lines))


def read_filters() -> dict[str, ff.Filter]:
    """Read the named filters of the sample: a line is NAME<TAB>FILTER, or a comment."""
    lines = (MARKET / "filters.txt").read_text("utf-8").splitlines()
    pairs = (line.split("\t", 1) for line in lines if line and not line.startswith("#"))
    return {name: ff.parse(text) for name, text in pairs}


def main() -> None:
    """Match all events with all filters, then compare the filters with a filter of our own."""
    events, filters = read_events(), read_filters()
    deliveries = Counter(name for event in events for name, filter in filters.items() if filter.matches(event))
    print(f"{len(events)} events, {len(filters)} filters, {deliveries.total()} matches; the busiest filters:")
    for name, count in deliveries.most_common(3):
        print(f"  {count} × {name}: {filters[name]}")

    mine = ff.parse("symbol IN ('ACME', 'KODA') AND price < :limit", limit=20)
    covered = [name for name, filter in filters.items() if mine.covers(filter)]
    related = [name for name, filter in filters.items() if mine.overlaps(filter)]
    print(f"\n{mine}\n  covers {len(covered)} of them, such as {covered[0]}: {filters[covered[0]]}")
    print(f"  and has events in common with up to {len(related)}")

    event = ff.Event({"symbol": "ACME", "price": ff.Interval(18, 22)})
    some, every = mine.matches(event), mine.matches(event, mode="covers")
    print(f"\nACME between 18 and 22: might match? {some}; sure to match? {every}")


if __name__ == "__main__":
    main()
