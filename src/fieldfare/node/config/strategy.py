"""The routing strategy that the settings of a node choose."""

from __future__ import annotations

from dataclasses import replace

from fieldfare.node.config.settings import Config
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.strategies import Strategy, by_name


def strategy_of(config: Config) -> Strategy:
    """Return the strategy of a node, with the options of `[prefix]` if the strategy is `prefix`."""
    strategy, given = by_name(config.strategy), config.prefix
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
