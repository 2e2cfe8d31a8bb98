"""R4, R5: events on links while filters become wider and subscriptions more."""

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
    """R4: how much of the traffic of flooding remains, when more is wanted."""
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
                "filtering wins where subscriptions are selective, and comes nearer to flooding as more is wanted",
                rises(share.lines["covering"]) and (share.lines["covering"][0] or 1) < 0.3,
                listed(share.lines["covering"]),
            ),
        ),
    )  # fmt: skip


def saturation(settings: Settings) -> Result:
    """R5: how many events a second a network bears, if a broker needs 2 ms for each."""
    rates = (100, 200, 400, 800, 1600)
    cost = {Forward: 0.002}
    rows = []
    for seed in seeds(settings)[:1]:
        for name, strategy, size in (
            ("flooding, few wanted", FLOODING, 10), ("flooding, all wanted", FLOODING, 640),
            ("covering, few wanted", COVERING, 10), ("covering, all wanted", COVERING, 640),
        ):  # fmt: skip
            for rate in rates:
                run = Run(strategy, tree(4), seed, symbols=40, processing=cost)
                run.subscribe(settings.size(size))
                run.network.settle()
                begin, count = run.network.now, rate
                run.publish(count, rate)
                run.network.settle()
                rows.append({"what": name, "rate": rate, "late": run.network.now - begin - (count - 1) / rate})
    late = curves_of(
        rows, title="seconds until all is quiet, after one second of events", x="rate", line="what", value="late"
    )

    def bears(name: str) -> float:
        return max((rate for rate, value in zip(rates, late.lines[name], strict=True) if (value or 0) < 0.2), default=0)

    few, all_ = "covering, few wanted", "covering, all wanted"
    return Result(
        "R5", "Saturation", "31 brokers, 2 ms of work for each event that arrives over a link", (late,),
        (
            Claim(
                "flooding saturates at the same rate, whatever is wanted",
                bears("flooding, few wanted") == bears("flooding, all wanted"),
                f"{bears('flooding, few wanted')} and {bears('flooding, all wanted')} events/s",
            ),
            Claim(
                "filtering bears much more where subscriptions are selective",
                bears(few) >= 2 * bears("flooding, few wanted"),
                f"{bears(few)} events/s, against {bears(all_)} if all is wanted",
            ),
        ),
    )  # fmt: skip
