"""Events in bulk, on Spark: the same events, filters and engine as in a node. Needs `fieldfare[spark]`.

from fieldfare.pipeline import match, session
spark = session()
match(spark.read.parquet("events"), spark.read.parquet("subscriptions")).write.parquet("deliveries")
"""

from fieldfare.pipeline.catalogue import Subscription, SubscriptionError, amend
from fieldfare.pipeline.matching import match
from fieldfare.pipeline.session import session
from fieldfare.pipeline.subscriptions import publish

__all__ = ["Subscription", "SubscriptionError", "amend", "match", "publish", "session"]
