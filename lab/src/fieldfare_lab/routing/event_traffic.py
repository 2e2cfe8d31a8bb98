"""R4, R5: event messages on links, with few and with many subscriptions."""

from __future__ import annotations

from fieldfare.protocol.messages import Forward
from fieldfare.routing.strategies import (
    COVERING,
    FLOODING,
)
from fieldfare_lab.results import Claim, Result, Settings, curves_of
from fieldfare_lab.routing.lines import (
    BROKERS,
    EVENTS,
    listed,
    rises,
    seeds,
)
from fieldfare_lab.routing.runs import Run, tree


def selectivity(settings: Settings) -> Result:
    """R4: event messages as a share of flooding's, while subscriptions become more."""
    sizes = tuple(dict.fromkeys(settings.size(n) for n in (10, 40, 160, 640)))
    rows = []
    for seed in seeds(settings):
        run = Run(COVERING, tree(4), seed, symbols=40)
        for size in sizes:
            run.subscribe(size - len(run.subscriptions))
            before = run.traffic.events
            run.publish(EVENTS)
            sent = run.traffic.events - before
            rows.append({"what": "covering", "subscriptions": size, "share": sent / EVENTS / (BROKERS - 1)})
    share = curves_of(rows, title="messages, as a share of flooding's", x="subscriptions", line="what", value="share")
    return Result(
        "R4", "Selectivity", f"{BROKERS} brokers, 40 symbols, {EVENTS} events", (share,),
        (
            Claim(
                "filtering wins where subscriptions are selective, and comes nearer to flooding with more "
                "subscriptions",
                rises(share.lines["covering"]) and (share.lines["covering"][0] or 1) < 0.3,
                listed(share.lines["covering"]),
            ),
        ),
    )  # fmt: skip


def saturation(settings: Settings) -> Result:
    """R5: the highest rate of events that a network bears, if a broker needs 2 ms for each event."""
    rates = (100, 200, 400, 800, 1600)
    cost = {Forward: 0.002}
    rows = []
    for seed in seeds(settings)[:1]:
        for name, strategy, size in (
            ("flooding, few subscriptions", FLOODING, 10), ("flooding, many subscriptions", FLOODING, 640),
            ("covering, few subscriptions", COVERING, 10), ("covering, many subscriptions", COVERING, 640),
        ):  # fmt: skip
            for rate in rates:
                run = Run(strategy, tree(4), seed, symbols=40, processing=cost)
                run.subscribe(settings.size(size))
                run.network.drain()
                begin, count = run.network.now, rate
                run.publish(count, rate)
                run.network.drain()
                rows.append({"what": name, "rate": rate, "late": run.network.now - begin - (count - 1) / rate})
    late = curves_of(
        rows, title="seconds until all is quiet, after one second of events", x="rate", line="what", value="late"
    )

    def bears(name: str) -> float:
        return max((rate for rate, value in zip(rates, late.lines[name], strict=True) if (value or 0) < 0.2), default=0)

    few, all_ = "covering, few subscriptions", "covering, many subscriptions"
    return Result(
        "R5", "Saturation", "31 brokers, 2 ms of work for each event that arrives over a link", (late,),
        (
            Claim(
                "flooding saturates at the same rate, with few and with many subscriptions",
                bears("flooding, few subscriptions") == bears("flooding, many subscriptions"),
                f"{bears('flooding, few subscriptions')} and {bears('flooding, many subscriptions')} events/s",
            ),
            Claim(
                "filtering bears much more where subscriptions are selective",
                bears(few) >= 2 * bears("flooding, few subscriptions"),
                f"{bears(few)} events/s, against {bears(all_)} with many subscriptions",
            ),
        ),
    )  # fmt: skip
