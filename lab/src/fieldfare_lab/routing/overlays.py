"""R6, R8, R9: shapes of the overlay: hierarchies, more brokers, rendezvous nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fieldfare.routing.strategies import (
    COVERING,
    FLOODING,
    IDENTITY,
    MERGING,
    RENDEZVOUS,
    SIMPLE,
)
from fieldfare_lab.results import Claim, Result, Settings, curves_of, last
from fieldfare_lab.routing.lines import (
    EVENTS,
    factor,
    listed,
    seeds,
)
from fieldfare_lab.routing.runs import Run, tree


def hierarchy(settings: Settings) -> Result:
    """R6: hierarchies against peer-to-peer trees: who knows a subscription, and the size of tables."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for form in ("peer-to-peer", "hierarchical"):
            for seed in seeds(settings):
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
                f"{listed(lone.lines['peer-to-peer'])} and {listed(lone.lines['hierarchical'])}",
            ),
            Claim(
                "saturated, a hierarchy saves half of the entries (45 to 55 %)", 0.45 <= saved <= 0.55, f"{saved:.0%}",
            ),
        ),
    )  # fmt: skip


def brokers(settings: Settings) -> Result:
    """R8: growing networks, with five subscriptions for each broker."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for strategy in (FLOODING, SIMPLE, IDENTITY, COVERING, MERGING):
            for seed in seeds(settings):
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
            ("entries", "remote entries a broker"), ("admin", "filter updates a subscription"),
            ("messages", "messages an event"),
        )
    )  # fmt: skip
    return Result(
        "R8", "Brokers", "five subscriptions a broker, four fifths of them local",
        (entries, admin, messages),
        (
            Claim(
                "simple: messages a subscription grow with the brokers; covering: at most 0.7 times as much",
                factor(admin.lines["covering"]) < 0.7 * factor(admin.lines["simple"]),
                f"× {factor(admin.lines['simple']):.1f} and × {factor(admin.lines['covering']):.1f}",
            ),
            Claim(
                "tables: the same bar", factor(entries.lines["covering"]) < 0.7 * factor(entries.lines["simple"]),
                f"× {factor(entries.lines['simple']):.1f} and × {factor(entries.lines['covering']):.1f}",
            ),
        ),
    )  # fmt: skip


def rendezvous(settings: Settings) -> Result:
    """R9: a rendezvous node for each symbol, among brokers that can all reach each other."""
    rows: list[dict[str, Any]] = []
    for height in (2, 3, 4, 5):
        count = 2 ** (height + 1) - 1
        for strategy in (FLOODING, COVERING, replace(RENDEZVOUS, field="symbol")):
            for seed in seeds(settings):
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
            ("entries", "entries a broker"), ("admin", "filter updates a subscription"),
            ("messages", "messages an event"),
        )
    )  # fmt: skip
    return Result(
        "R9", "Rendezvous",
        "five subscriptions a broker; a tree of links, or a DHT in which all brokers reach each other",
        (entries, admin, messages),
        (
            Claim(
                "fewer filter updates than on a tree of links, where updates reach every broker",
                last(admin, "rendezvous") < last(admin, "covering"),
                f"{last(admin, 'rendezvous'):.1f} against {last(admin, 'covering'):.1f}",
            ),
            Claim(
                "and smaller tables: only brokers on the way to a rendezvous node keep entries",
                last(entries, "rendezvous") < last(entries, "covering"),
                f"{last(entries, 'rendezvous'):.0f} against {last(entries, 'covering'):.0f} entries",
            ),
        ),
        "Entries of rendezvous include the entries for local clients, but not the copies that other brokers keep.",
    )  # fmt: skip
