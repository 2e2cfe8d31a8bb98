"""R1, R2, R3, R7: routing tables and filter updates while subscriptions come and go, near and far."""

from __future__ import annotations

from typing import Any

from fieldfare.routing.strategies import (
    COVERING,
    FLOODING,
    IDENTITY,
    IMPERFECT,
    MERGING,
    SIMPLE,
    with_advertisements,
)
from fieldfare_lab.results import Claim, Result, Settings, curves_of, last
from fieldfare_lab.routing.lines import (
    ALL,
    BROKERS,
    EVENTS,
    below,
    by_subscriptions,
    factor,
    falls,
    listed,
    rises,
    seeds,
)
from fieldfare_lab.routing.runs import Run, tree


def growth(settings: Settings) -> Result:
    """R1: sizes of tables and numbers of filter updates, while subscriptions become more."""
    sizes = tuple(dict.fromkeys(settings.size(n) for n in (50, 100, 200, 400)))
    rows: list[dict[str, Any]] = []
    for seed in seeds(settings):
        for strategy in ALL:
            run = Run(strategy, tree(4), seed, symbols=10)
            before = told = 0
            for size in sizes:
                run.subscribe(size - before)
                admin = run.traffic.admin
                rows.append({
                    "strategy": strategy.name, "subscriptions": size, "entries": run.entries() / BROKERS,
                    "each": (admin - told) / (size - before),
                })  # fmt: skip
                before, told = size, admin
    entries = by_subscriptions(rows, "entries", "remote entries a broker")
    each = by_subscriptions(rows, "each", "filter updates for each of the last subscriptions")
    lines, cost = entries.lines, each.lines
    linear = sizes[-1] * (BROKERS - 1) / BROKERS
    return Result(
        "R1", "Subscriptions come", f"{BROKERS} brokers in a binary tree; 10 symbols, ranges of prices on a grid",
        (entries, each),
        (
            Claim(
                "simple: tables grow with every subscription, at every other broker",
                abs(last(entries, "simple") - linear) < 0.01, f"{last(entries, 'simple'):.1f} of {linear:.1f}",
            ),
            Claim(
                f"simple: each subscription goes over every link, always ({BROKERS - 1})",
                all(value == BROKERS - 1 for value in cost["simple"]), listed(cost["simple"]),
            ),
            Claim(
                "identity: tables grow more slowly than subscriptions, and each costs less and less",
                factor(lines["identity"]) < 0.9 * sizes[-1] / sizes[0] and falls(cost["identity"]),
                f"× {factor(lines['identity']):.1f} for × {sizes[-1] / sizes[0]:.0f}; {listed(cost['identity'])}",
            ),
            Claim(
                "covering: better than identity in both",
                all(below(c.lines["covering"], c.lines["identity"]) for c in (entries, each)),
                f"{last(entries, 'covering'):.0f} / {last(entries, 'identity'):.0f} entries",
            ),
            Claim(
                "merging: smaller tables than covering",
                last(entries, "merging") < last(entries, "covering")
                and last(entries, "book-merging") <= last(entries, "covering"),
                f"covering {last(entries, 'covering'):.0f}, book-merging {last(entries, 'book-merging'):.0f}, "
                f"merging {last(entries, 'merging'):.0f}",
            ),
            Claim(
                "imperfect merging: the smallest",
                all(last(entries, "imperfect") <= last(entries, other.name) for other in ALL),
                f"{last(entries, 'imperfect'):.0f}",
            ),
        ),
        "book-merging merges the filters of an interface in the broker's own table; merging merges the filters that go "
        "to a neighbour.",
    )  # fmt: skip


def churn(settings: Settings) -> Result:
    """R2: filter updates for a replaced subscription in a full network."""
    size, changes = settings.size(120), settings.size(40)
    rows: list[dict[str, Any]] = []
    for symbols in (5, 10, 40):
        for seed in seeds(settings):
            for strategy in ALL:
                run = Run(strategy, tree(4), seed, symbols=symbols)
                run.subscribe(size)
                before = run.traffic
                run.replace(changes)
                after = run.traffic
                rows.append({
                    "strategy": strategy.name, "symbols": symbols,
                    "admin": (after.admin - before.admin) / changes / 2,
                    "filters": (after.added + after.removed - before.added - before.removed) / changes / 2,
                })  # fmt: skip
    admin = curves_of(rows, title="filter updates a change", x="symbols", line="strategy", value="admin")
    filters = curves_of(rows, title="filters in the updates, a change", x="symbols", line="strategy", value="filters")
    return Result(
        "R2", "Subscriptions go and others come",
        f"{size} subscriptions, {changes} replaced; fewer symbols: more alike",
        (admin, filters),
        (
            Claim(
                "identity and covering: less than simple, the more filters are alike the less",
                all(rises(admin.lines[name]) and below(admin.lines[name], admin.lines["simple"])
                    for name in ("identity", "covering")),
                f"identity {listed(admin.lines['identity'])}, covering {listed(admin.lines['covering'])}",
            ),
            Claim(
                "merging: the overhead may increase (more filters in the updates of a change than with covering)",
                last(filters, "merging") > last(filters, "covering"),
                f"merging {listed(filters.lines['merging'])}, covering {listed(filters.lines['covering'])}",
            ),
        ),
    )  # fmt: skip


def locality(settings: Settings) -> Result:
    """R3: event messages, while interest becomes more local."""
    size = settings.size(150)
    rows: list[dict[str, Any]] = []
    for share in (0.0, 0.5, 0.8, 0.95):
        for seed in seeds(settings):
            for strategy in (FLOODING, SIMPLE, COVERING, MERGING, IMPERFECT):
                run = Run(strategy, tree(4), seed, symbols=40, locality=share)
                run.subscribe(size)
                run.publish(EVENTS)
                rows.append({
                    "strategy": strategy.name, "locality": share, "messages": run.traffic.events / EVENTS,
                    "unasked": (run.traffic.events - run.needed) / EVENTS, "entries": run.entries() / BROKERS,
                })  # fmt: skip
    messages, unasked, entries = (
        curves_of(rows, title=title, x="locality", line="strategy", value=value)
        for value, title in (
            ("messages", "messages an event"), ("unasked", "surplus messages an event"),
            ("entries", "remote entries a broker"),
        )
    )  # fmt: skip
    exact = ("simple", "covering", "merging")
    return Result(
        "R3", "Local interest",
        f"{size} subscriptions, {EVENTS} events, 40 symbols; most of them from the broker's own part",
        (messages, unasked, entries),
        (
            Claim(
                "flooding: every event on every link", all(v == BROKERS - 1 for v in messages.lines["flooding"]),
                listed(messages.lines["flooding"]),
            ),
            Claim(
                "exact strategies send no event to a broker without a matching subscription behind",
                not any(v for name in exact for v in unasked.lines[name]), "0",
            ),
            Claim(
                "filtering saves the more, the more local interest is", falls(messages.lines["covering"]),
                listed(messages.lines["covering"]),
            ),
            Claim(
                "imperfect merging pays with messages, never as many as flooding",
                last(unasked, "imperfect") > 0 and below(messages.lines["imperfect"], messages.lines["flooding"]),
                listed(unasked.lines["imperfect"]),
            ),
        ),
    )  # fmt: skip


def advertisements(settings: Settings) -> Result:
    """R7: entries and filter updates that advertisements save, with few and with many publishers."""
    sizes = tuple(settings.size(n) for n in (50, 100, 200))
    rows: list[dict[str, Any]] = []
    for publishers in (2, 8, 31):
        for plain in (SIMPLE, IDENTITY, COVERING, MERGING):
            for strategy in (plain, with_advertisements(plain)):
                for seed in seeds(settings):
                    run = Run(strategy, tree(4), seed, symbols=10)
                    run.advertise(run.brokers[-publishers:])
                    run.subscribe(sizes[-1])
                    rows.append({
                        "strategy": strategy.name, "publishers": publishers, "entries": run.entries() / BROKERS,
                        "admin": run.traffic.admin / sizes[-1],
                    })  # fmt: skip
    entries, admin = (
        curves_of(rows, title=title, x="publishers", line="strategy", value=value)
        for value, title in (("entries", "remote entries a broker"), ("admin", "filter updates a subscription"))
    )
    return Result(
        "R7", "Advertisements", f"{sizes[-1]} subscriptions; each publisher advertises one of 10 symbols",
        (entries, admin),
        (
            Claim(
                "with few publishers, tables are far smaller, for every strategy (2 publishers: less than half)",
                all((entries.lines[f"{s.name}+ads"][0] or 0) < 0.5 * (entries.lines[s.name][0] or 0)
                    for s in (SIMPLE, IDENTITY, COVERING, MERGING)),
                f"covering {entries.lines['covering'][0]:.0f} → {entries.lines['covering+ads'][0]:.0f}",
            ),
            Claim(
                "and there are fewer filter updates",
                all((admin.lines[f"{s.name}+ads"][0] or 0) < (admin.lines[s.name][0] or 0)
                    for s in (SIMPLE, IDENTITY, COVERING, MERGING)),
                f"covering {admin.lines['covering'][0]:.1f} → {admin.lines['covering+ads'][0]:.1f} messages",
            ),
        ),
    )  # fmt: skip
