"""R1.1 to R1.4: the nodes of detectors, the costs, and the gain from sharing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fieldfare.patterns.placement import POLICIES
from fieldfare_lab.patterns.network import (
    CARDS,
    SUBSCRIBERS,
    Wish,
    planned,
    run,
    statistics,
    story,
    wish,
)
from fieldfare_lab.results import Claim, Result, Settings, curves_of

_RATE: Final = 100.0
_SETUP: Final = "7 durable nodes: publishers at two, subscribers at three, a thin link between; 10 ms a link"


def bottleneck(settings: Settings) -> Result:
    """R1.1: what comes into a central detector, while more is published."""
    rows: list[dict[str, Any]] = []
    wishes = [wish(node, "a", "b", f"c{place}", "d") for place, node in enumerate(SUBSCRIBERS)]
    for factor in (1, 2, 4):
        events = story(settings.seed, settings.size(300) * factor)
        known = statistics(wishes, _RATE)
        central = planned(wishes, POLICIES["latency"], known._replace(distance=_central(known.distance)))
        apart = planned(wishes, POLICIES["load"], known)
        for name, plans in (("one central detector", central), ("in parts", apart)):
            found = run(wishes, plans, events)
            busiest = max(found.loads, key=lambda node: found.loads[node])
            rows.append({
                "rate": factor, "where": name, "into": found.into[busiest], "load": found.loads[busiest],
            })  # fmt: skip
    into = curves_of(rows, title="events into the busiest detector's node", x="rate", line="where", value="into")
    load = curves_of(rows, title="events the busiest detector looks at", x="rate", line="where", value="load")
    central_into, central_load, parts_load = (
        [value or 0.0 for value in line]
        for line in (into.lines["one central detector"], load.lines["one central detector"], load.lines["in parts"])
    )
    return Result(
        "R1.1", "A central detector", f"{_SETUP}; three patterns `a, b, c and d for each card`, times as many events",
        (into, load),
        (
            Claim(
                "what comes into a central detector grows as fast as what is published",
                all(abs(value / central_into[0] / factor - 1) < 0.15
                    for factor, value in zip((1, 2, 4), central_into, strict=True)),
                ", ".join(f"{value:.0f}" for value in central_into),
            ),
            Claim(
                "in parts, the busiest node has less to look at", all(
                    b < a for a, b in zip(central_load, parts_load, strict=True)),
                f"{central_load[-1]:.0f} and {parts_load[-1]:.0f} with the highest rate",
            ),
        ),
        "Central: all three at b3, the middle of the subscribers' side.",
    )  # fmt: skip


def _central(distance: Any) -> Any:
    """Return distances with b3 as the nearest node for everybody."""
    return {node: {other: 0.0 if "b3" in (node, other) else 9.0 for other in distance} for node in distance}


def locality(settings: Settings) -> Result:
    """R1.2: events on the links, with detectors near publishers and near subscribers."""
    rows: list[dict[str, Any]] = []
    wishes = [wish(node, "a", "b", f"c{place}") for place, node in enumerate(SUBSCRIBERS)]
    for cards in ("few", "many"):
        events = story(settings.seed, settings.size(1000))
        if cards == "few":  # one card: nearly every event is in some composite event
            events = [(time, type(event)({**event, "card": 0})) for time, event in events]
        for name, policy in (("near subscribers", "latency"), ("near publishers", "bandwidth")):
            found = run(wishes, planned(wishes, POLICIES[policy], statistics(wishes, _RATE)), events)
            rows.append({
                "cards": 1 if cards == "few" else CARDS, "where": name, "thin": found.thin / len(events),
                "links": found.links / len(events),
            })  # fmt: skip
    thin = curves_of(rows, title="events on the thin link, for each published", x="cards", line="where", value="thin")
    links = curves_of(rows, title="events on all links, for each published", x="cards", line="where", value="links")
    near, far = thin.lines["near publishers"], thin.lines["near subscribers"]
    return Result(
        "R1.2", "Near publishers, near subscribers", f"{_SETUP}; `a, b and c` of 1 card and for each of {CARDS} cards",
        (thin, links),
        (
            Claim(
                "detection near publishers greatly reduces traffic on the link to subscribers (to a fifth)",
                near[-1] is not None and far[-1] is not None and near[-1] < far[-1] / 5,
                f"{near[-1]:.3f} instead of {far[-1]:.3f} events for each published, with {CARDS} cards",
            ),
            Claim(
                "the more, the rarer composite events are",
                (near[0] or 0) / (far[0] or 1) > (near[-1] or 0) / (far[-1] or 1),
                f"{(near[0] or 0) / (far[0] or 1):.2f} of the traffic with one card, "
                f"{(near[-1] or 0) / (far[-1] or 1):.2f} with {CARDS}",
            ),
            Claim(
                "and on all links together",
                all((b or 0) < (a or 0) for a, b in zip(
                    links.lines["near subscribers"], links.lines["near publishers"], strict=True)),
                ", ".join(f"{value:.2f}" for line in links.lines.values() for value in line if value is not None),
            ),
        ),
    )  # fmt: skip


def reuse(settings: Settings) -> Result:
    """R1.3: the cost of more subscribers with a common part of all patterns."""
    rows: list[dict[str, Any]] = []
    events = story(settings.seed, settings.size(1000))
    counts = (1, 2, 4, 8)
    for count in counts:
        wishes = [wish(SUBSCRIBERS[n % 3], "a", "b", "c", f"d{n}") for n in range(count)]
        for name, policy in (
            ("the part is shared", POLICIES["bandwidth"]._replace(decomposition="max")),
            ("nothing is shared", POLICIES["bandwidth"]),
        ):
            found = run(wishes, planned(wishes, policy, statistics(wishes, _RATE)), events)
            rows.append({
                "subscribers": count, "how": name, "load": sum(found.loads.values()) / len(events),
                "links": found.links / len(events), "found": len(found.found),
            })  # fmt: skip
    load = curves_of(
        rows, title="events looked at, for each published", x="subscribers", line="how", value="load"
    )  # fmt: skip
    links = curves_of(rows, title="events on links, for each published", x="subscribers", line="how", value="links")
    shared, alone = ([value or 0.0 for value in line] for line in load.lines.values())
    equal = all(
        len({row["found"] for row in rows if row["subscribers"] == count}) == 1 for count in counts
    )  # fmt: skip
    return Result(
        "R1.3", "Parts that patterns share", f"{_SETUP}; `a, b, c and d` for each card, another d for each",
        (load, links),
        (
            Claim(
                "without sharing the work of detectors grows as the subscribers do, with a shared part far more slowly",
                shared[-1] / shared[0] < counts[-1] / 3 and alone[-1] / alone[0] > 0.75 * counts[-1],
                f"× {shared[-1] / shared[0]:.2f} and × {alone[-1] / alone[0]:.2f} for {counts[-1]} × as many",
            ),
            Claim("both detect the same", equal, f"{rows[-1]['found']} detections with {counts[-1]} subscribers"),
        ),
        "Both near the publishers; an event counts once for each detector that looks at it.",
    )  # fmt: skip


def policies(settings: Settings) -> Result:
    """R1.4: the five policies by delay, messages, load, and survival of a crash."""
    wishes = [wish(SUBSCRIBERS[n % 3], "a", "b", f"c{n}", "d") for n in range(6)]
    events = story(settings.seed, settings.size(600))
    known = statistics(wishes, _RATE)
    plans = {name: planned(wishes, policy, known) for name, policy in POLICIES.items()}
    runs = {name: run(wishes, plan, events) for name, plan in plans.items()}
    rows = []
    for number, (name, found) in enumerate(runs.items()):
        rows.append({
            "policy": number + 1, "delay": 1000 * sum(found.delays) / max(1, len(found.delays)),
            "links": found.links / len(events), "load": max(found.loads.values()) / len(events),
            "survived": _survived(wishes[:2], plans[name][:2], events[: len(events) // 4]),
            "found": len(found.found), "name": name,
        })  # fmt: skip
    by: dict[Any, dict[str, Any]] = {row["name"]: row for row in rows}
    titles = {
        "delay": "mean delay, ms", "links": "events on links, for each published",
        "load": "events at the busiest detectors, for each published", "survived": "crashes survived, share",
    }  # fmt: skip
    curves = tuple(
        curves_of([{"policy": 1, "line": row["name"], "value": row[what]} for row in rows],
                  title=title, x="policy", line="line", value="value")
        for what, title in titles.items()
    )  # fmt: skip

    def best(policy: str, what: str, *, most: bool = False) -> Claim:
        values: dict[str, Any] = {name: row[what] for name, row in by.items()}
        goal = max(values.values()) if most else min(values.values())
        listed = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
        return Claim(
            f"*{policy}* is best or tied: {titles[what]}", abs(values[policy] - goal) < 1e-6 + 0.01 * goal, listed
        )

    detected: set[Any] = {row["found"] for row in rows}
    return Result(
        "R1.4", "Five policies", f"{_SETUP}; six patterns `a, b, c and d` for each of {CARDS} cards, with another c",
        curves,
        (
            best("latency", "delay"),
            best("bandwidth", "links"),
            best("load", "load"),
            Claim(
                "*impact*: less at the busiest node than *bandwidth*, and fewer events on links than *load*",
                by["impact"]["load"] < by["bandwidth"]["load"] and by["impact"]["links"] < by["load"]["links"],
                f"{by['impact']['load']:.2f} and {by['bandwidth']['load']:.2f}; "
                f"{by['impact']['links']:.2f} and {by['load']['links']:.2f}",
            ),
            best("reliability", "survived", most=True),
            Claim(
                "decomposition adds delay", by["load"]["delay"] > by["latency"]["delay"],
                f"{by['load']['delay']:.1f} ms and {by['latency']['delay']:.1f} ms",
            ),
            Claim("all detect nearly as many", max(detected) <= 1.1 * min(detected), ", ".join(map(str, detected))),
        ),
        "A crash ends all detectors of a node in the middle of a shorter run with two of the patterns, one run for "
        "each node with detectors; the node "
        "goes on to route, since in a tree there is no way around it. It is survived if every later composite event "
        "still arrives. Detectors look at events in the order in which they arrive at their nodes, which differs from "
        "node to node; so two policies need not detect exactly the same.",
    )  # fmt: skip


def _survived(wishes: Sequence[Wish], plans: Any, events: Any) -> float:
    """Return the share of nodes with detectors whose crash changes nothing for subscribers."""
    nodes = sorted({stand.node for stands in plans for one in stands for stand in one.all()})
    whole = set(run(wishes, plans, events).found)
    same = [set(run(wishes, plans, events, crash=node).found) >= whole for node in nodes]
    return sum(same) / len(same)
