"""Events in bulk, on Spark: the same events, filters and engine as in a node. Needs `fieldfare[spark]`.

`match_events(spark.read.parquet("events"), spark.read.parquet("subscriptions"))` gives every event with each matching
subscription.
"""

from typing import TYPE_CHECKING

from fieldfare.exports import lazy

if TYPE_CHECKING:
    from fieldfare.pipeline.detection.operator import detect
    from fieldfare.pipeline.lake.delta import clean, compact
    from fieldfare.pipeline.lake.history import replay, replay_to_file, replay_to_node, retroactive
    from fieldfare.pipeline.lake.table import read_table, write_table
    from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError, amend
    from fieldfare.pipeline.match.deliveries import write_deliveries
    from fieldfare.pipeline.match.merge_plan import merge_plan
    from fieldfare.pipeline.match.operator import explain_match, match_events
    from fieldfare.pipeline.match.row_patterns import match_recognize
    from fieldfare.pipeline.match.subscriptions import publish_subscriptions
    from fieldfare.pipeline.match.temporal import match_profiles
    from fieldfare.pipeline.spark import spark_session
    from fieldfare.pipeline.statistics.attributes import attribute_statistics
    from fieldfare.pipeline.table.normalisation import normalise

__all__ = [
    "Subscription",
    "SubscriptionError",
    "amend",
    "attribute_statistics",
    "clean",
    "compact",
    "detect",
    "explain_match",
    "match_events",
    "match_profiles",
    "match_recognize",
    "merge_plan",
    "normalise",
    "publish_subscriptions",
    "read_table",
    "replay",
    "replay_to_file",
    "replay_to_node",
    "retroactive",
    "spark_session",
    "write_deliveries",
    "write_table",
]
__getattr__ = lazy(
    __name__,
    {
        "detection.operator": ("detect",),
        "lake.delta": (
            "clean",
            "compact",
        ),
        "lake.history": (
            "replay",
            "replay_to_file",
            "replay_to_node",
            "retroactive",
        ),
        "lake.table": (
            "read_table",
            "write_table",
        ),
        "match.catalogue": (
            "Subscription",
            "SubscriptionError",
            "amend",
        ),
        "match.merge_plan": ("merge_plan",),
        "match.deliveries": ("write_deliveries",),
        "match.operator": (
            "explain_match",
            "match_events",
        ),
        "match.row_patterns": ("match_recognize",),
        "match.subscriptions": ("publish_subscriptions",),
        "match.temporal": ("match_profiles",),
        "spark": ("spark_session",),
        "statistics.attributes": ("attribute_statistics",),
        "table.normalisation": ("normalise",),
    },
)
