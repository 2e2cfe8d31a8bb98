"""X4: a query log, in which each query is a filter for texts that contain the query; tags of texts are counted."""

from __future__ import annotations

import random
from statistics import mean
from typing import Any, Final

from fieldfare.routing.prefix.tagger import Tagger
from fieldfare.routing.prefix.tree import Tree
from fieldfare_lab.prefix.sizes import grow
from fieldfare_lab.prefix.workload import query_log, substring
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of

LENGTHS: Final = (1, 2, 5, 10, 20, 50)
TEXTS: Final = 500
SETS: Final = {"A": (43_238, 28), "B": (77_301, 11_276)}
"""the paper's query logs: queries and users"""


def queries(settings: Settings) -> Result:
    """X4: the size of tags for texts of 1 to 50 words and for queries themselves."""
    settings = settings._replace(scale=settings.scale**2)  # comparing patterns is slow: first impressions are small
    seeds = range(settings.seed, settings.seed + settings.replications)
    rows = [row for name in SETS for seed in seeds for row in _rows(settings, name, seed)]
    share, nodes, largest = (
        curves_of(rows, title=title, x="words", line="set", value=value)
        for title, value in (
            ("FPT, % of the filters in the RT", "share"), ("nodes of an FPT, mean", "nodes"),
            ("nodes of the largest FPT", "largest"),
        )
    )  # fmt: skip
    filters = {name: mean(row["filters"] for row in rows if row["set"] == name) for name in SETS}
    ten = share.at.index(10)
    return Result(
        "X4", "A query log",
        "Queries of 1 to 5 words by Zipf's law, a third of them asked before by the same user. Set A: "
        f"{settings.size(SETS['A'][0]):,} queries, {filters['A']:,.0f} of them different; set B: "
        f"{settings.size(SETS['B'][0]):,} and {filters['B']:,.0f}. An event is a text of so many words, or, at 0, "
        "one of the queries",
        (share, nodes, largest),
        (
            *(
                Claim(
                    f"set {name}: the FPT is about 0.1 % of the filters (0.05 to 0.2 %) where {what}",
                    0.05 <= (share.lines[name][place] or 0) <= 0.2,
                    f"{share.lines[name][place]:.3f} %, {nodes.lines[name][place]:.1f} nodes; {_reached(share, name)}",
                )
                for place, what in ((0, "an event is a query"), (ten, "an event is a text of ten words"))
                for name in SETS
            ),
        ),
        "The paper does not name its events, and their length decides: a query selects itself and the queries that it "
        "contains, less than 0.1 %; a short text selects about 0.1 %. An RT of substrings is flat: any two substrings "
        "may overlap, and our tree keeps such constraints whole, as children of the root.",
    )  # fmt: skip


def _rows(settings: Settings, name: str, seed: int) -> list[dict[str, Any]]:
    """The sizes of tags for texts of each length, in the tree of a log."""
    count, users = SETS[name]
    log = query_log(seed, settings.size(count), max(1, round(users * settings.scale)))
    rng, tree, entry = random.Random(-seed), Tree(), Tagger()
    grow(tree, map(substring, dict.fromkeys(log.queries)))
    rows = []
    for length in (0, *LENGTHS):
        texts = [log.text(rng, length) if length else rng.choice(log.queries) for _ in range(settings.size(TEXTS))]
        tags = [len(entry.select(tree, {"text": text})) for text in texts]
        rows.append(
            {"set": name, "words": length, "filters": tree.size, "nodes": mean(tags), "largest": max(tags),
             "share": 100 * mean(tags) / tree.size}
        )  # fmt: skip
    return rows


def _reached(share: Curves, line: str) -> str:
    found = next((at for at, value in zip(share.at, share.lines[line], strict=True) if (value or 0) >= 0.1), None)
    return "0.1 % is not reached" if found is None else f"0.1 % is passed with {found:.0f} words"
