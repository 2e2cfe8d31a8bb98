"""Events in bulk, on Spark: the same events, filters and engine as in a node. Needs `fieldfare[spark]`.

`match(spark.read.parquet("events"), spark.read.parquet("subscriptions"))` is every event with all who want it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fieldfare.pipeline.catalogue import Subscription, SubscriptionError, amend
    from fieldfare.pipeline.counting import statistics
    from fieldfare.pipeline.history import replay, replay_to_file, replay_to_node, retroactive
    from fieldfare.pipeline.lake import read_table, write_table
    from fieldfare.pipeline.matching import match
    from fieldfare.pipeline.merging import merge_plan
    from fieldfare.pipeline.normalising import normalise
    from fieldfare.pipeline.starting import session
    from fieldfare.pipeline.subscriptions import publish
    from fieldfare.pipeline.temporal import match_profiles

__all__ = [
    "Subscription",
    "SubscriptionError",
    "amend",
    "match",
    "match_profiles",
    "merge_plan",
    "normalise",
    "publish",
    "read_table",
    "replay",
    "replay_to_file",
    "replay_to_node",
    "retroactive",
    "session",
    "statistics",
    "write_table",
]
_PLACES = {
    "catalogue": ("Subscription", "SubscriptionError", "amend"),
    "history": ("replay", "replay_to_file", "replay_to_node", "retroactive"),
    "lake": ("read_table", "write_table"),
    "matching": ("match",),
    "merging": ("merge_plan",),
    "normalising": ("normalise",),
    "starting": ("session",),
    "counting": ("statistics",),
    "subscriptions": ("publish",),
    "temporal": ("match_profiles",),
}


def __getattr__(name: str) -> Any:
    """What is asked for, when it is: each of Spark's Python processes imports only what it needs."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
