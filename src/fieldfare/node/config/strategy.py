"""The routing strategy that the settings of a node choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fieldfare.filters.distributions import Distributions
from fieldfare.node.config.settings import Config
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.strategies import Strategy, by_name


def strategy_of(config: Config) -> Strategy:
    """Return the strategy of a node, with the options of `[prefix]` or `[routing]` if the strategy has any."""
    strategy, given = by_name(config.strategy), config.prefix
    if strategy.merging is not None and strategy.merging.imperfect:
        budget = config.routing.merging_budget
        merging = replace(strategy.merging, budget=budget, imperfect=budget > 0)
        if config.routing.merging_statistics:
            known = Distributions.read(Path(config.routing.merging_statistics).read_bytes())
            merging = replace(merging, statistics=known)
        return replace(strategy, merging=merging)
    if strategy.prefix is None:
        return strategy
    options = PrefixOptions(
        given.optimizers,
        given.parts,
        given.depth or None,
        given.threshold,
        given.refresh_seconds,
        given.layout,
        given.beat_seconds,
        given.patience_seconds,
    )
    return replace(strategy, prefix=options)
