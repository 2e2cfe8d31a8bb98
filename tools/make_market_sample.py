"""Make the market data sample that `fieldfare match` uses when it is given nothing: always the same one.

Quotes and trades of an invented market, and the filters of 300 invented subscribers: most of them as simple as filters
mostly are, and 30, written out below, that show what the language can say.

    python -m tools.make_market_sample
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

SEED: Final = 20261115
EVENTS: Final = 1000
FILTERS: Final = 300
TARGET: Final = Path(__file__).parents[1] / "src" / "fieldfare" / "data" / "market"
OPENING: Final = datetime(2026, 11, 16, 14, 30, tzinfo=UTC)

SECTORS: Final = {
    "tech": "ACME ALTO BYTR CIRQ DELV FLUX KODA NIMB QBIT ZEPH",
    "energy": "AMPR BOLT HELI PYRE SOLR TIDE VOLT WIND",
    "health": "BIOX CURA GENO MEDI PULS VITA",
    "finance": "AURM BANC CRED LEND MINT TRST",
    "transport": "AERO CARG RAIL SHIP TRAM",
    "food": "BREW GRAN MALT OLIV SALT",
}
SECTOR_OF: Final = {symbol: sector for sector, symbols in SECTORS.items() for symbol in symbols.split()}
EXCHANGES: Final = {"XNAR": "US", "XMID": "US", "XBOR": "DE", "XALP": "CH", "XKAI": "JP"}
TAGS: Final = ("block", "dividend", "earnings", "halted", "index", "odd-lot", "retail", "short")
PEOPLE: Final = (
    "ana",
    "ben",
    "chloe",
    "dario",
    "emma",
    "farid",
    "greta",
    "hugo",
    "ines",
    "jonas",
    "kira",
    "liam",
    "mona",
    "nils",
    "olga",
    "pablo",
    "ruth",
    "sven",
)

RICH: Final = """\
ana-tech-dips	sector = 'tech' AND change < -2 AND type = 'trade'
ben-big-money	price * volume > 500000
chloe-a-to-c	symbol >= 'A' AND symbol < 'D' AND price < 50
dario-swiss-german	venue.country IN ('CH', 'DE') AND type = 'quote' AND NOT sector IN ('tech', 'food')
emma-earnings	ANY tags = 'earnings' AND ABS(change) > 1
farid-only-plain	ALL tags IN ('retail', 'odd-lot') AND EXISTS tags AND price > 20
greta-first-minutes	time < TIMESTAMP '2026-11-16T14:35:00Z' AND type = 'trade'
hugo-last-hour	time BETWEEN TIMESTAMP '2026-11-16T20:00:00Z' AND TIMESTAMP '2026-11-16T21:00:00Z' AND volume >= 1000
ines-crossed-book	bid > $ask
jonas-near-high	price >= $high * 0.99 AND sector = 'health'
kira-wide-spread	ask - bid > 0.5
liam-no-price	price IS MISSING AND type = 'quote' AND exchange = 'XKAI'
mona-indicative	price BETWEEN 95 AND 105 AND ANY tags = 'index'
nils-four-letters	symbol LIKE '__L_' AND LENGTH(symbol) = 4
olga-vowel-ends	(symbol ENDS WITH 'O' OR symbol ENDS WITH 'A') AND change > 1
pablo-contains-ol	symbol CONTAINS 'OL' AND volume > 100
ruth-any-case	note ILIKE '%halt%'
sven-not-retail	EXISTS tags AND NOT ANY tags = 'retail' AND type = 'trade' AND price > 100
ana-one-venue	venue HAS (id = 3 AND country = 'DE')
ben-big-leg	legs HAS (symbol STARTS WITH 'S' AND volume > 500)
chloe-null-note	note IS NULL
dario-odd-types	volume IS NOT NUMBER
emma-two-ways	(sector = 'energy' AND change > 3) OR (sector = 'finance' AND change < -3)
farid-except-acme	sector = 'tech' AND symbol != 'ACME' AND volume BETWEEN 100 AND 200 AND price < 100
greta-bargain-or-block	(price < 5 AND type = 'trade') OR ANY tags IN ('block', 'halted') AND price < 30
hugo-above-open	price > $open * 1.03
ines-between-fields	price BETWEEN $low AND $high AND exchange = 'XKAI' AND volume < 500
jonas-round-lots	volume % 1000 = 0 AND volume > 0
kira-not-between	price NOT BETWEEN 2 AND 450
liam-lower-case	LOWER(exchange) = 'xalp' AND sector = 'transport'
"""


def events(chance: random.Random) -> Iterator[dict[str, object]]:
    """The day of the market, in its order."""
    symbols = chance.sample(sorted(SECTOR_OF), len(SECTOR_OF))
    popularity = [1 / rank for rank in range(1, len(symbols) + 1)]  # Zipf: the few that all speak of, the many
    opened = {symbol: round(chance.lognormvariate(3.6, 1.1) + 1, 2) for symbol in symbols}
    times = sorted(chance.uniform(0, 6.5 * 3600) for _ in range(EVENTS))
    for number, seconds in enumerate(times, 1):
        (symbol,) = chance.choices(symbols, popularity)
        yield event(
            chance, f"e{number:04}", symbol, opened[symbol], OPENING + timedelta(milliseconds=int(seconds * 1000))
        )


def happens(chance: random.Random, share: float) -> bool:
    """True in this share of all cases."""
    return chance.random() < share


def event(chance: random.Random, identity: str, symbol: str, opened: float, time: datetime) -> dict[str, object]:
    """A trade or a quote; some lack a field, some have more than others."""
    change = round(chance.gauss(0, 2), 2)
    price = round(opened * (1 + change / 100), 2)
    exchange = chance.choice(list(EXCHANGES))
    kind = "trade" if happens(chance, 0.6) else "quote"
    tree: dict[str, object] = {
        "id": identity,
        "type": kind,
        "symbol": symbol,
        "sector": SECTOR_OF[symbol],
        "exchange": exchange,
    }
    if kind == "trade":
        low, high = sorted(round(opened * (1 + chance.gauss(0, 2) / 100), 2) for _ in range(2))
        volume = chance.choice((100, 200, 500, 1000, 5000)) if happens(chance, 0.7) else chance.randint(1, 20000)
        tree |= {"price": price, "change": change, "volume": "n/a" if happens(chance, 0.01) else volume}
        tree |= {"open": opened, "low": min(low, price), "high": max(high, price)}
    else:
        half = price * abs(chance.gauss(0, 0.004)) * (-1 if happens(chance, 0.02) else 1)  # a few are crossed
        tree |= {"bid": round(price - half, 2), "ask": round(price + half, 2), "change": change}
        if happens(chance, 0.25):  # an indicative quote: somewhere in between
            tree["price"] = {"$interval": [round(price * 0.97, 2), round(price * 1.03, 2)]}
    tree["time"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if happens(chance, 0.6):
        tree["venue"] = {"id": chance.randint(1, 6), "country": EXCHANGES[exchange]}
    if happens(chance, 0.4):
        tree["tags"] = sorted(chance.sample(TAGS, chance.randint(1, 3)))
    if happens(chance, 0.05):
        tree["note"] = chance.choice((None, "Halted for news", "trading halt lifted", "late report"))
    if happens(chance, 0.04):
        others = chance.sample(sorted(SECTOR_OF), 2)
        tree["legs"] = [{"symbol": other, "volume": chance.choice((100, 500, 1000))} for other in others]
    for field in ("sector", "exchange", "change"):
        if happens(chance, 0.02):
            del tree[field]
    return tree


def filters(chance: random.Random) -> Iterator[str]:
    """The rich filters, and simple ones until there are enough."""
    lines = RICH.splitlines()
    names = {line.partition("\t")[0] for line in lines}
    while len(lines) < FILTERS:
        name, text = simple(chance)
        if name not in names:
            names.add(name)
            lines.append(f"{name}\t{text}")
    yield from lines


def simple(chance: random.Random) -> tuple[str, str]:
    """What most subscribers want: a symbol or a sector, and a bound or two."""
    person, symbol, sector = chance.choice(PEOPLE), chance.choice(sorted(SECTOR_OF)), chance.choice(list(SECTORS))
    price = chance.choice((5, 10, 20, 40, 80, 120.5))
    match chance.randrange(7):
        case 0:
            return f"{person}-{symbol.lower()}-trades", f"symbol = '{symbol}' AND type = 'trade'"
        case 1:
            return f"{person}-{symbol.lower()}-below-{price:g}", f"symbol = '{symbol}' AND price < {price}"
        case 2:
            low, high = sorted(chance.sample((10, 15, 25, 40, 60, 100), 2))
            text = f"sector = '{sector}' AND price BETWEEN {low} AND {high} AND volume >= 5000"
            return f"{person}-{sector}-{low}-to-{high}", text
        case 3:
            drop = chance.choice((3, 4, 5))
            return f"{person}-{sector}-falls-{drop}", f"sector = '{sector}' AND change <= -{drop}"
        case 4:
            exchange = chance.choice(list(EXCHANGES))
            text = f"exchange = '{exchange}' AND symbol STARTS WITH '{symbol[:2]}'"
            return f"{person}-{symbol[:2].lower()}-on-{exchange.lower()}", text
        case 5:
            some = sorted(chance.sample(sorted(SECTOR_OF), 3))
            text = f"symbol IN ({', '.join(map(repr, some))}) AND change > 2"
            return f"{person}-{'-'.join(some).lower()}-up", text
        case _:
            tag = chance.choice(TAGS)
            return f"{person}-{symbol.lower()}-{tag}", f"symbol = '{symbol}' AND ANY tags = '{tag}'"


def main() -> None:
    """Write both files."""
    chance = random.Random(SEED)
    TARGET.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(tree) + "\n" for tree in events(chance))
    (TARGET / "events.jsonl").write_text(lines, encoding="utf-8")
    head = "# Who wants what from the market: NAME<TAB>FILTER. Made by tools/make_market_sample.py.\n"
    (TARGET / "filters.txt").write_text(head + "".join(f"{line}\n" for line in filters(chance)), encoding="utf-8")


if __name__ == "__main__":
    main()
