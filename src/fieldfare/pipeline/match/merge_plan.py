"""The merge plan of a table of subscriptions: fewer filters with nearly the same meaning, and the price.

    plan = merge_plan(subscriptions, attribute_statistics(events), bound=0.05)
    measured(plan, events).show()

Covered filters are removed first. The remaining filters are merged greedily, each with the partner that wastes least:
exactly where possible, otherwise as long as the *waste* of the merger is within the bound. The waste of a merger is its
false-positive rate: the share of its events that match no member. The plan has the waste as statistics predict it, and
`measured` as events show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.filters import Filter
from fieldfare.filters.dialects import read
from fieldfare.filters.statistics import Statistics
from fieldfare.matching.index import Index
from fieldfare.pipeline.lake.history import table_matches
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.subscriptions import subscriptions_in
from fieldfare.tables.merging.roots import RootMerger
from fieldfare.tables.merging.rules import Merging


@dataclass(frozen=True)
class PlannedFilter:
    """A filter of the merged table, with the subscriptions that the filter replaces."""

    filter: Filter
    members: tuple[str | int, ...]
    predicted: float
    """the predicted waste of the merger"""


@dataclass(frozen=True)
class MergePlan:
    """The filters of the merged table."""

    entries: tuple[PlannedFilter, ...]
    filters: dict[str | int, Filter]
    """of the subscriptions"""

    @property
    def before(self) -> int:
        """How many subscriptions the table has."""
        return len(self.filters)

    @property
    def after(self) -> int:
        """The number of filters after merging."""
        return len(self.entries)


def merge_plan(
    subscriptions: DataFrame | Iterable[Subscription], statistics: Statistics, bound: float = 0.0
) -> MergePlan:
    """Which filters to merge, none with a waste above the bound; 0 allows only exact mergers."""
    if not 0 <= bound <= 1:
        raise ValueError(f"the bound is a share, from 0 to 1, not {bound}")
    given = subscriptions_in(subscriptions) if isinstance(subscriptions, DataFrame) else subscriptions
    filters = {one.id: _filter(one) for one in given}
    home = _homes(list(dict.fromkeys(filters.values())))
    merger = RootMerger(Merging("best", imperfect=bound > 0, budget=bound, statistics=statistics))
    merger.change(joined=dict.fromkeys(home.values()))
    mergers = {one.filter: one for one in merger.mergers()}
    entry_of = {root: one.filter for one in mergers.values() for root in (*one.components, *one.covered)}
    members: dict[Filter, list[str | int]] = {filter: [] for filter in merger.exported()}
    for id, filter in filters.items():
        root = home[filter]
        members[entry_of.get(root, root)].append(id)
    entries = (
        PlannedFilter(filter, tuple(ids), mergers[filter].waste if filter in mergers else 0.0)
        for filter, ids in members.items()
    )
    return MergePlan(tuple(entries), filters)


def _filter(one: Subscription) -> Filter:
    return one.filter if isinstance(one.filter, Filter) else read(one.filter, one.dialect)


def _homes(filters: list[Filter]) -> dict[Filter, Filter]:
    """Return for each filter a root that covers the filter, perhaps the filter itself; of equal filters, the first."""
    index: Index[int] = Index(enumerate(filters))
    covering = [index.covering(filter) for filter in filters]
    roots = {
        number
        for number, larger in enumerate(covering)
        if all(other >= number and number in covering[other] for other in larger)
    }
    return {
        filter: filter if number in roots else filters[min(roots.intersection(covering[number]))]
        for number, filter in enumerate(filters)
    }


def measured(plan: MergePlan, events: DataFrame) -> DataFrame:
    """Match an event table with the plan in a single pass, and return the measured waste.

    Returns:
        For each filter of the merged table: the `merger`, its `members`, the waste as `predicted` and as `measured`
        (null if no event passes), the numbers of events that `passed` and that were `unwanted`, and the numbers of
        filters in the table `before` and `after`.
    """
    spark = events.sparkSession
    rows = [
        (number, str(one.filter), [*map(str, one.members)], one.predicted, plan.before, plan.after)
        for number, one in enumerate(plan.entries)
    ]
    entries = spark.createDataFrame(
        rows, "entry int, merger string, members array<string>, predicted double, before long, after long"
    )
    matched = events.select(table_matches(events, _judged(plan, events)).getField("matches").alias("matches"))
    entry = F.explode(_entries("merger")).alias("entry")
    passes = matched.select(entry, _entries("member").alias("wanted"))
    counted = passes.groupBy("entry").agg(
        F.count("*").alias("passed"), F.count_if(~F.array_contains("wanted", F.col("entry"))).alias("unwanted")
    )
    return (
        entries.join(counted, "entry", "left")
        .fillna(0, ["passed", "unwanted"])
        .withColumn("measured", F.try_divide("unwanted", "passed"))
        .orderBy("entry")
        .select("merger", "members", "predicted", "measured", "passed", "unwanted", "before", "after")
    )


def _judged(plan: MergePlan, events: DataFrame) -> DataFrame:
    """Return mergers and members as subscriptions, each owned by its entry."""
    mergers = ((f"merger {n}", str(one.filter), str(n)) for n, one in enumerate(plan.entries))
    members = (
        (f"member {n} {place}", str(filter), str(n))
        for n, one in enumerate(plan.entries)
        for place, filter in enumerate(dict.fromkeys(plan.filters[id] for id in one.members))
    )
    return events.sparkSession.createDataFrame([*mergers, *members], "id string, filter string, owner string")


def _entries(role: str) -> Column:
    """Return the entries whose merger, or a member of which, matches an event."""
    found = F.filter("matches", lambda one: one.getField("subscription").startswith(role))
    return F.transform(found, lambda one: one.getField("owner").cast("int"))
