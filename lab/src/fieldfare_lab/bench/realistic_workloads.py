"""`ads`, `alerts` and `lots`: filters as people write them, with alternatives, negation, patterns and nested fields.

ads     campaigns of an ad exchange: countries, devices, a floor price below the budget, hours, categories to avoid
alerts  rules over log lines: CONTAINS, ENDS WITH and LIKE, alone or with a service and a level
lots    rules over GeoJSON features of 400 bytes to 1 kB, most of them coordinates that no rule looks at
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator

from fieldfare_lab.bench.design_workloads import vocabulary, zipf
from fieldfare_lab.bench.rules import Event, listed, native_literal

Texts: TypeAlias = tuple[list[str], list[Event]]

COUNTRIES: Final = [a + b for a in "DFUGNBIPCS" for b in "EKRSAL"]
SYSTEMS: Final = {
    "mobile": ["android", "ios"],
    "tablet": ["ipados", "android"],
    "desktop": ["windows", "macos", "linux"],
}
CATEGORIES: Final = [f"IAB{i}-{j}" for i in range(1, 27) for j in range(1, 9)]
SITES: Final = 2000

PARTS: Final = ("api", "db", "worker", "cache")
SERVICES: Final = [f"{a}-{b}" for a in ("auth", "cart", "search", "billing", "media") for b in PARTS]
LEVELS: Final = ("DEBUG", "INFO", "WARN", "ERROR")
REGIONS: Final = [f"{a}-{b}-{n}" for a in ("eu", "us", "ap") for b in ("west", "east") for n in (1, 2)]
METHODS: Final = ("get", "put", "list", "delete")

STREETS: Final = 200
BLOCKS: Final = 3000
FEATURES: Final = 200_000

EXPECTED: Final = {("lots", 5): 1_591, ("lots", 20): 7_067, ("lots", 1_000): 364_746}
"""matches of `lots` over the first 20,000 events of seed 42, as brute force and counting find them"""


def ads(rng: Generator, filters: int, events: int) -> Texts:
    """Campaigns of advertisers as filters, bid requests of web sites as events."""

    def some(items: Sequence[str], most: int, skew: float = 0.8) -> list[str]:
        ranks = zipf(rng, len(items), skew, int(rng.integers(1, most + 1)))
        return [items[i] for i in sorted(set(ranks.tolist()))]

    def place() -> str:
        return _in("country", some(COUNTRIES, 6))

    def device() -> str:
        if rng.random() < 0.4:
            return _in("device", some(list(SYSTEMS), 2))
        first, second = (list(SYSTEMS)[i] for i in rng.permutation(3)[:2].tolist())
        narrow = f"device = '{first}' AND {_in('os', some(SYSTEMS[first], 2))}"
        return f"({narrow} OR device = '{second}' AND width >= {int(rng.integers(3, 13)) * 100})"

    def budget() -> str:
        most = round(float(rng.lognormal(0, 0.8)) + 0.05, 2)
        return f"floor <= {most}" if rng.random() < 0.7 else f"floor BETWEEN {round(most / 4, 3)} AND {most}"

    def hours() -> str:
        start = int(rng.integers(0, 18))
        return f"hour BETWEEN {start} AND {start + int(rng.integers(2, 6))}"

    def apart() -> str:
        kept_off = _in("category", some(CATEGORIES, 8, 0.3))
        site = f" OR site = 'site{int(rng.integers(SITES))}'" if rng.random() < 0.3 else ""
        return f"NOT ({kept_off}{site})"

    def topic() -> str:
        return _in("category", some(CATEGORIES, 12, 0.5))

    def about() -> str:
        return apart() if rng.random() < 0.6 else topic()

    parts: list[tuple[float, Callable[[], str]]] = [
        (1, place),
        (0.8, device),
        (0.95, budget),
        (0.4, hours),
        (0.8, about),
    ]
    texts = [" AND ".join(make() for share, make in parts if rng.random() < share) for _ in range(filters)]

    def event() -> Event:
        kind = list(SYSTEMS)[int(rng.choice(3, p=[0.6, 0.1, 0.3]))]
        return {
            "country": COUNTRIES[int(zipf(rng, len(COUNTRIES), 0.8, 1)[0])],
            "device": kind,
            "os": SYSTEMS[kind][int(rng.integers(len(SYSTEMS[kind])))],
            "width": int(rng.choice([320, 375, 768, 1080, 1280, 1920])),
            "floor": round(float(rng.lognormal(-0.7, 0.8)), 3),
            "hour": int(rng.integers(24)),
            "category": CATEGORIES[int(zipf(rng, len(CATEGORIES), 0.5, 1)[0])],
            "site": f"site{int(zipf(rng, SITES, 1.0, 1)[0])}",
        }

    return texts, [event() for _ in range(events)]


def alerts(rng: Generator, filters: int, events: int) -> Texts:
    """Alert rules as filters, log lines of services as events."""
    words = vocabulary()[:2000]

    def one(items: Sequence[str], skew: float = 0.9) -> str:
        return items[int(zipf(rng, len(items), skew, 1)[0])]

    def contains() -> str:
        text = one(words, 0.5) if rng.random() < 0.6 else f"{one(words)} {one(words)}"
        return f"message CONTAINS '{text}'"

    def host() -> str:
        return f"host ENDS WITH '{one(SERVICES)}.{one(REGIONS)}.example.com'"

    def path() -> str:
        return f"path LIKE '/v_/{one(words[:200])}/%/{one(METHODS)}'"

    def level() -> str:
        return _in("level", list(LEVELS[2 - int(rng.random() < 0.3) :]))

    def service() -> str:
        return f"service = '{one(SERVICES)}'"

    def slow() -> str:
        return f"millis >= {int(rng.integers(1, 40)) * 50}"

    def quiet() -> str:
        return f"NOT (message CONTAINS 'code {int(rng.integers(10))}' OR host STARTS WITH 'test')"

    kinds: list[tuple[float, list[Callable[[], str]]]] = [
        (0.25, [contains]),
        (0.25, [service, contains]),
        (0.15, [level, host, contains]),
        (0.1, [host, slow]),
        (0.15, [path, level]),
        (0.1, [service, contains, quiet]),
    ]
    chosen = rng.choice(len(kinds), filters, p=np.array([share for share, _ in kinds])).tolist()
    texts = [" AND ".join(make() for make in kinds[kind][1]) for kind in chosen]

    def event() -> Event:
        name, where = one(SERVICES), one(REGIONS)
        said = [words[i] for i in zipf(rng, len(words), 0.7, int(rng.integers(4, 13))).tolist()]
        return {
            "service": name,
            "level": LEVELS[int(rng.choice(4, p=[0.2, 0.5, 0.2, 0.1]))],
            "host": f"{'test' if rng.random() < 0.05 else 'node'}{int(rng.integers(40))}.{name}.{where}.example.com",
            "path": f"/v{int(rng.integers(1, 4))}/{one(words[:200])}/{int(rng.integers(10_000))}/{one(METHODS)}",
            "millis": int(rng.exponential(200)),
            "message": f"{' '.join(said)} code {int(rng.integers(10_000))}",
        }

    return texts, [event() for _ in range(events)]


def lots(rng: Generator, filters: int, events: int) -> Texts:
    """Rules over the properties of building lots, features of GeoJSON with their outlines as events."""
    streets = [word.upper() for word in vocabulary()[:STREETS]]

    def street() -> str:
        return streets[int(zipf(rng, STREETS, 0.6, 1)[0])]

    def on_street() -> str:
        return f"properties.STREET = '{street()}'"

    def side() -> str:
        return f"properties.ODD_EVEN = '{'EO'[int(rng.integers(2))]}'"

    def numbers() -> str:
        first = int(rng.integers(FEATURES))
        return f"id BETWEEN {first} AND {first + FEATURES // 20}"

    kinds = ([on_street], [on_street, side], [numbers], [numbers, side], [on_street, numbers])
    texts = [" AND ".join(make() for make in kinds[i % len(kinds)]) for i in range(filters)]

    def event() -> Event:
        block, lot = f"{int(rng.integers(BLOCKS)):04}", f"{int(rng.integers(200)):03}"
        where = rng.random(2) * (0.15, 0.1) + (-122.51, 37.7)
        outline = (where + rng.normal(0, 2e-4, (int(rng.integers(4, 12)), 2))).tolist()
        return {
            "type": "Feature",
            "id": int(rng.integers(FEATURES)),
            "properties": {
                "MAPBLKLOT": block + lot, "BLKLOT": block + lot, "BLOCK_NUM": block, "LOT_NUM": lot,
                "FROM_ST": str(number := int(rng.integers(1, 3000))), "TO_ST": str(number + 2), "STREET": street(),
                "ST_TYPE": ("ST", "AVE", None)[int(rng.integers(3))], "ODD_EVEN": "EO"[number % 2],
            },
            "geometry": {"type": "Polygon", "coordinates": [[[x, y, 0.0] for x, y in (*outline, outline[0])]]},
        }  # fmt: skip

    return texts, [event() for _ in range(events)]


def _in(field: str, items: Sequence[str]) -> str:
    values = listed(items, native_literal)
    return f"{field} IN ({values})" if len(items) > 1 else f"{field} = {values}"
