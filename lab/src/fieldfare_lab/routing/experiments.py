"""What the literature says of routing strategies, run again in simulated networks. Everything is counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from fieldfare.protocol.messages import Forward
from fieldfare.routing.strategies import (
    BOOK_MERGING,
    COVERING,
    FLOODING,
    IDENTITY,
    IMPERFECT,
    MERGING,
    RENDEZVOUS,
    SIMPLE,
    with_advertisements,
)
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last
from fieldfare_lab.routing.runs import Run, tree

_ALL: Final = (SIMPLE, IDENTITY, COVERING, BOOK_MERGING, MERGING, IMPERFECT)
_BROKERS: Final = 31
EVENTS: Final = 300


def growth(settings: Settings) -> Result:
    """R1: tables and tells while subscriptions grow."""
    sizes = tuple(dict.fromkeys(settings.size(n) for n in (50, 100, 200, 400)))
    rows: list[dict[str, Any]] = []
    for seed in _seeds(settings):
        for strategy in _ALL:
            run = Run(strategy, tree(4), seed, symbols=10)
            before = told = 0
            for size in sizes:
                run.subscribe(size - before)
                admin = run.traffic.admin
                rows.append({
                    "strategy": strategy.name, "subscriptions": size, "entries": run.entries() / _BROKERS,
                    "each": (admin - told) / (size - before),
                })  # fmt: skip
                before, told = size, admin
    entries = _curves(rows, "entries", "remote entries a broker")
    each = _curves(rows, "each", "admin messages for each of the last subscriptions")
    lines, cost = entries.lines, each.lines
    linear = sizes[-1] * (_BROKERS - 1) / _BROKERS
    return Result(
        "R1", "Subscriptions come", f"{_BROKERS} brokers in a binary tree; 10 symbols, ranges of prices on a grid",
        (entries, each),
        (
            Claim(
                "simple: tables grow with every subscription, at every other broker",
                abs(last(entries, "simple") - linear) < 0.01, f"{last(entries, 'simple'):.1f} of {linear:.1f}",
            ),
            Claim(
                f"simple: each is told on every link, always ({_BROKERS - 1})",
                all(value == _BROKERS - 1 for value in cost["simple"]), _list(cost["simple"]),
            ),
            Claim(
                "identity: tables grow more slowly than subscriptions, and each costs less and less",
                _factor(lines["identity"]) < 0.9 * sizes[-1] / sizes[0] and _falls(cost["identity"]),
                f"× {_factor(lines['identity']):.1f} for × {sizes[-1] / sizes[0]:.0f}; {_list(cost['identity'])}",
            ),
            Claim(
                "covering: better than identity in both",
                all(_below(c.lines["covering"], c.lines["identity"]) for c in (entries, each)),
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
                all(last(entries, "imperfect") <= last(entries, other.name) for other in _ALL),
                f"{last(entries, 'imperfect'):.0f}",
            ),
        ),
        "book-merging merges what an interface has told a broker, in its own table; merging what goes to a neighbour.",
    )  # fmt: skip


def churn(settings: Settings) -> Result:
    """R2: what a change costs when many are there."""
    size, changes = settings.size(120), settings.size(40)
    rows: list[dict[str, Any]] = []
    for symbols in (5, 10, 40):
        for seed in _seeds(settings):
            for strategy in _ALL:
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
    admin = curves_of(rows, title="admin messages a change", x="symbols", line="strategy", value="admin")
    filters = curves_of(rows, title="filters in them, a change", x="symbols", line="strategy", value="filters")
    return Result(
        "R2", "Subscriptions go and others come", f"{size} of them, {changes} replaced; fewer symbols: more alike",
        (admin, filters),
        (
            Claim(
                "identity and covering: less than simple, the more filters are alike the less",
                all(_rises(admin.lines[name]) and _below(admin.lines[name], admin.lines["simple"])
                    for name in ("identity", "covering")),
                f"identity {_list(admin.lines['identity'])}, covering {_list(admin.lines['covering'])}",
            ),
            Claim(
                "merging: the overhead may increase (more filters said a change than with covering)",
                last(filters, "merging") > last(filters, "covering"),
                f"merging {_list(filters.lines['merging'])}, covering {_list(filters.lines['covering'])}",
            ),
        ),
    )  # fmt: skip


def locality(settings: Settings) -> Result:
    """R3: where events go, when interest is more and more local."""
    size = settings.size(150)
    rows: list[dict[str, Any]] = []
    for share in (0.0, 0.5, 0.8, 0.95):
        for seed in _seeds(settings):
            for strategy in (FLOODING, SIMPLE, COVERING, MERGING, IMPERFECT):
                run = Run(strategy, tree(4), seed, symbols=40, locality=share)
                run.subscribe(size)
                run.publish(EVENTS)
                rows.append({
                    "strategy": strategy.name, "locality": share, "messages": run.traffic.events / EVENTS,
                    "unasked": (run.traffic.events - run.needed) / EVENTS, "entries": run.entries() / _BROKERS,
                })  # fmt: skip
    messages, unasked, entries = (
        curves_of(rows, title=title, x="locality", line="strategy", value=value)
        for value, title in (
            ("messages", "messages an event"), ("unasked", "of them to where nobody wants it"),
            ("entries", "remote entries a broker"),
        )
    )  # fmt: skip
    exact = ("simple", "covering", "merging")
    return Result(
        "R3", "Local interest", f"{size} subscriptions, {EVENTS} events, 40 symbols; most of them of one's own part",
        (messages, unasked, entries),
        (
            Claim(
                "flooding: every event on every link", all(v == _BROKERS - 1 for v in messages.lines["flooding"]),
                _list(messages.lines["flooding"]),
            ),
            Claim(
                "exact strategies send nothing to where nobody wants it",
                not any(v for name in exact for v in unasked.lines[name]), "0",
            ),
            Claim(
                "filtering saves the more, the more local interest is", _falls(messages.lines["covering"]),
                _list(messages.lines["covering"]),
            ),
            Claim(
                "imperfect merging pays with messages, never as many as flooding",
                last(unasked, "imperfect") > 0 and _below(messages.lines["imperfect"], messages.lines["flooding"]),
                _list(unasked.lines["imperfect"]),
            ),
        ),
    )  # fmt: skip


def selectivity(settings: Settings) -> Result:
    """R4: how much of the traffic of flooding remains, when more is wanted."""
    sizes = tuple(dict.fromkeys(settings.size(n) for n in (10, 40, 160, 640)))
    rows = []
    for seed in _seeds(settings):
        run = Run(COVERING, tree(4), seed, symbols=40)
        for size in sizes:
            run.subscribe(size - len(run.subscriptions))
            before = run.traffic.events
            run.publish(EVENTS)
            sent = run.traffic.events - before
            rows.append({"what": "covering", "subscriptions": size, "share": sent / EVENTS / (_BROKERS - 1)})
    share = curves_of(rows, title="messages, as a share of flooding's", x="subscriptions", line="what", value="share")
    return Result(
        "R4", "Selectivity", f"{_BROKERS} brokers, 40 symbols, {EVENTS} events", (share,),
        (
            Claim(
                "filtering wins where subscriptions are selective, and comes nearer to flooding as more is wanted",
                _rises(share.lines["covering"]) and (share.lines["covering"][0] or 1) < 0.3,
                _list(share.lines["covering"]),
            ),
        ),
    )  # fmt: skip


def saturation(settings: Settings) -> Result:
    """R5: how many events a second a network bears, if a broker needs 2 ms for each."""
    rates = (100, 200, 400, 800, 1600)
    cost = {Forward: 0.002}
    rows = []
    for seed in _seeds(settings)[:1]:
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


def hierarchy(settings: Settings) -> Result:
    """R6: hierarchical against peer-to-peer."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for form in ("peer-to-peer", "hierarchical"):
            for seed in _seeds(settings):
                topology = tree(height) if form == "peer-to-peer" else tree(height).hierarchical()
                run = Run(IDENTITY, topology, seed, symbols=1, width=1)
                run.subscribe(1)
                known = sum(1 for b in run.network.brokers.values() if b.entries)
                run.subscribe(60 * count)
                run.publish(100)
                rows.append({
                    "form": form, "brokers": count, "lone": known, "entries": run.entries(),
                    "messages": run.traffic.events / 100,
                })  # fmt: skip
    lone, entries, messages = (
        curves_of(rows, title=title, x="brokers", line="form", value=value)
        for value, title in (
            ("lone", "brokers that know of a lone subscription"), ("entries", "remote entries, saturated"),
            ("messages", "messages an event, saturated"),
        )
    )  # fmt: skip
    few = [value or 0 for value in lone.lines["hierarchical"]]
    saved = 1 - last(entries, "hierarchical") / last(entries, "peer-to-peer")
    return Result(
        "R6", "Hierarchical and peer-to-peer", "binary trees, identity-based; 60 subscriptions a broker, of 10 filters",
        (lone, entries, messages),
        (
            Claim(
                "a lone subscription is known to all brokers, or to O(log n) of them",
                lone.lines["peer-to-peer"] == lone.at
                and all(k <= n.bit_length() for n, k in zip(map(int, lone.at), map(float, few), strict=True)),
                f"{_list(lone.lines['peer-to-peer'])} and {_list(lone.lines['hierarchical'])}",
            ),
            Claim(
                "saturated, a hierarchy saves half of the entries (45 to 55 %)", 0.45 <= saved <= 0.55, f"{saved:.0%}",
            ),
        ),
    )  # fmt: skip


def advertisements(settings: Settings) -> Result:
    """R7: with few publishers, what do advertisements save?"""
    sizes = tuple(settings.size(n) for n in (50, 100, 200))
    rows: list[dict[str, Any]] = []
    for publishers in (2, 8, 31):
        for plain in (SIMPLE, IDENTITY, COVERING, MERGING):
            for strategy in (plain, with_advertisements(plain)):
                for seed in _seeds(settings):
                    run = Run(strategy, tree(4), seed, symbols=10)
                    run.advertise(run.brokers[-publishers:])
                    run.subscribe(sizes[-1])
                    rows.append({
                        "strategy": strategy.name, "publishers": publishers, "entries": run.entries() / _BROKERS,
                        "admin": run.traffic.admin / sizes[-1],
                    })  # fmt: skip
    entries, admin = (
        curves_of(rows, title=title, x="publishers", line="strategy", value=value)
        for value, title in (("entries", "remote entries a broker"), ("admin", "admin messages a subscription"))
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
                "and so is what is told", all((admin.lines[f"{s.name}+ads"][0] or 0) < (admin.lines[s.name][0] or 0)
                                              for s in (SIMPLE, IDENTITY, COVERING, MERGING)),
                f"covering {admin.lines['covering'][0]:.1f} → {admin.lines['covering+ads'][0]:.1f} messages",
            ),
        ),
    )  # fmt: skip


def brokers(settings: Settings) -> Result:
    """R8: more and more brokers, with as many subscriptions each."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for strategy in (FLOODING, SIMPLE, IDENTITY, COVERING, MERGING):
            for seed in _seeds(settings):
                run = Run(strategy, tree(height), seed, symbols=40, locality=0.8)
                run.subscribe(5 * count)
                told = run.traffic.admin
                run.publish(EVENTS)
                rows.append({
                    "strategy": strategy.name, "brokers": count, "entries": run.entries() / count,
                    "messages": run.traffic.events / EVENTS, "admin": told / len(run.subscriptions),
                })  # fmt: skip
    entries, admin, messages = (
        curves_of(rows, title=title, x="brokers", line="strategy", value=value)
        for value, title in (
            ("entries", "remote entries a broker"), ("admin", "admin messages a subscription"),
            ("messages", "messages an event"),
        )
    )  # fmt: skip
    return Result(
        "R8", "Brokers", "five subscriptions a broker, four fifths of them local",
        (entries, admin, messages),
        (
            Claim(
                "simple: messages a subscription grow with the brokers; covering: at most 0.7 times as much",
                _factor(admin.lines["covering"]) < 0.7 * _factor(admin.lines["simple"]),
                f"× {_factor(admin.lines['simple']):.1f} and × {_factor(admin.lines['covering']):.1f}",
            ),
            Claim(
                "tables: the same", _factor(entries.lines["covering"]) < 0.7 * _factor(entries.lines["simple"]),
                f"× {_factor(entries.lines['simple']):.1f} and × {_factor(entries.lines['covering']):.1f}",
            ),
        ),
    )  # fmt: skip


def rendezvous(settings: Settings) -> Result:
    """R9: brokers that can all reach each other, and a rendezvous for each symbol."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for strategy in (FLOODING, COVERING, replace(RENDEZVOUS, field="symbol")):
            for seed in _seeds(settings):
                run = Run(strategy, tree(height), seed, symbols=40)
                before = run.traffic.admin
                run.subscribe(5 * count)
                told = run.traffic.admin - before
                run.publish(EVENTS)
                rows.append({
                    "strategy": strategy.name, "brokers": count, "entries": run.entries() / count,
                    "messages": run.traffic.events / EVENTS, "admin": told / len(run.subscriptions),
                })  # fmt: skip
    entries, admin, messages = (
        curves_of(rows, title=title, x="brokers", line="strategy", value=value)
        for value, title in (
            ("entries", "entries a broker"), ("admin", "admin messages a subscription"),
            ("messages", "messages an event"),
        )
    )  # fmt: skip
    return Result(
        "R9", "Rendezvous", "five subscriptions a broker; a tree of links, or a DHT in which all reach each other",
        (entries, admin, messages),
        (
            Claim(
                "fewer admin messages than on a tree of links, in which everybody is told",
                last(admin, "rendezvous") < last(admin, "covering"),
                f"{last(admin, 'rendezvous'):.1f} against {last(admin, 'covering'):.1f}",
            ),
            Claim(
                "and less to remember: only brokers on the way to a rendezvous do",
                last(entries, "rendezvous") < last(entries, "covering"),
                f"{last(entries, 'rendezvous'):.0f} against {last(entries, 'covering'):.0f} entries",
            ),
        ),
        "Entries of rendezvous count those for local clients too; the copies that others keep for it are not counted.",
    )  # fmt: skip


EXPERIMENTS: dict[str, Callable[[Settings], Result]] = {
    "R1": growth,
    "R2": churn,
    "R3": locality,
    "R4": selectivity,
    "R5": saturation,
    "R6": hierarchy,
    "R7": advertisements,
    "R8": brokers,
    "R9": rendezvous,
}


def _seeds(settings: Settings) -> list[int]:
    return [settings.seed + i for i in range(settings.replications)]


def _curves(rows: Sequence[dict[str, Any]], value: str, title: str) -> Curves:
    return curves_of(rows, title=title, x="subscriptions", line="strategy", value=value)


def _list(values: Iterable[float | None]) -> str:
    return ", ".join("-" if value is None else f"{value:,.3g}" for value in values)


def _factor(values: Sequence[float | None]) -> float:
    return (values[-1] or 0) / (values[0] or 1)


def _falls(values: Sequence[float | None]) -> bool:
    return all((a or 0) >= (b or 0) for a, b in pairwise(values)) and values[0] != values[-1]


def _rises(values: Sequence[float | None]) -> bool:
    return _falls([-(value or 0) for value in values])


def _below(values: Sequence[float | None], others: Sequence[float | None]) -> bool:
    return all((a or 0) <= (b or 0) for a, b in zip(values, others, strict=True))
