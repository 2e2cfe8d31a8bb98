"""The question "which filters does each event match" as a join, in two plans.

The equality plan makes a table for each field that filters compare by equality. Events join the table on the field,
which a database can hash, and the other predicates are checked on the joined rows; a predicate that a filter lacks is a
null or an endless bound. The plan needs every field in every event. The counting plan works without: events and filters
are cut into single values and predicates, joined on field and range, and a filter matches if as many rows were joined
as the filter has predicates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fieldfare_lab.bench.rules import Event, Rule
from fieldfare_lab.bench.workloads import Workload

OPERATORS: Final = frozenset({"=", "<=", ">=", "between"})
EVENTS: Final = "events"
ENDLESS: Final = 1e300

COUNT: Final = (
    "SELECT e.event, f.id FROM events e JOIN filters f"
    " ON e.field = f.field AND e.value >= f.low AND e.value <= f.high"
    " GROUP BY e.event, f.id, f.need HAVING count(*) = f.need"
)


class Condition(NamedTuple):
    """A comparison of an event's field with a column of a table of filters; `=?` holds also if the column is null."""

    field: str
    op: str
    column: str

    def sql(self) -> str:
        """Return the comparison in SQL, with `e` for the events and `f` for the table of filters."""
        if self.op == "=?":
            return f"(f.{self.column} IS NULL OR e.{self.field} = f.{self.column})"
        return f"e.{self.field} {self.op} f.{self.column}"


@dataclass(frozen=True)
class Plan:
    """Tables of filters, the table that events must become, and the queries that together give all (event, id)."""

    filters: dict[str, pa.Table]
    events: Callable[[Sequence[Event]], pa.Table]
    queries: list[str]
    conditions: dict[str, list[Condition]]
    """conditions of each table of filters; empty in the counting plan"""

    @property
    def counting(self) -> bool:
        """Tell whether the plan counts predicates instead of joining by an equality."""
        return not self.conditions

    @property
    def hashed(self) -> bool:
        """Tell whether every table begins with an equality, so that a database can use a hash join."""
        return not self.counting and all(conditions[0].op == "=" for conditions in self.conditions.values())


@lru_cache(maxsize=2)
def plan(workload: Workload) -> Plan:
    """Choose the plan of a workload: by an equality if every event has every field of the filters, else by counting."""
    rules = workload.rules or []
    everywhere = set.intersection(*(set(event) for event in workload.events))
    if not everywhere.issuperset(field for rule in rules for field, _, _ in rule):
        return _by_counting(rules)
    variety = {field: len({event[field] for event in workload.events[:2000]}) for field in everywhere}
    groups: dict[str, dict[int, Rule]] = defaultdict(dict)
    for id, rule in enumerate(rules):
        equal = [field for field, op, _ in rule if op == "="]
        groups[max(equal, key=variety.__getitem__, default="")][id] = rule
    return _by_equality(groups)


def _by_equality(groups: dict[str, dict[int, Rule]]) -> Plan:
    tables, conditions = {}, {}
    for number, (first, named) in enumerate(groups.items()):
        rules = named.values()
        name = f"filters{number}"
        equal = {field: None for rule in rules for field, op, _ in rule if op == "=" and field != first}
        ranged = {field: None for rule in rules for field, op, _ in rule if op != "="}
        wanted = [(first, "=")] if first else []
        wanted += [(field, "=?") for field in equal] + [(field, op) for field in ranged for op in (">=", "<=")]
        conditions[name] = [Condition(field, op, f"c{place}") for place, (field, op) in enumerate(wanted)]
        columns = {c.column: [_operand(rule, c) for rule in rules] for c in conditions[name]}
        tables[name] = pa.table({"id": list(named), **columns})
    queries = [
        f"SELECT e.event, f.id FROM {EVENTS} e JOIN {name} f ON {' AND '.join(c.sql() for c in parts)}"  # noqa: S608
        for name, parts in conditions.items()
    ]
    fields = sorted({condition.field for parts in conditions.values() for condition in parts})

    def table(events: Sequence[Event]) -> pa.Table:
        columns = {field: [_comparable(event[field]) for event in events] for field in fields}
        return pa.table({"event": range(len(events)), **columns})

    return Plan(tables, table, queries, conditions)


def _operand(rule: Rule, condition: Condition) -> Any:
    for field, op, operands in rule:
        if field == condition.field and (op == "=") == (condition.op in {"=", "=?"}):
            if op in {condition.op, "="}:
                return _comparable(operands[0])
            if op == "between":
                return _comparable(operands[0 if condition.op == ">=" else 1])
    return {">=": -ENDLESS, "<=": ENDLESS}.get(condition.op)


def _comparable(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _by_counting(rules: Sequence[Rule]) -> Plan:
    fields: dict[str, int] = {}
    words: dict[str, int] = {}

    def key(value: Any) -> float:
        return float(words.setdefault(value, len(words)) if isinstance(value, str) else value)

    rows = [
        (
            id, fields.setdefault(field, len(fields)),
            -ENDLESS if op == "<=" else key(xs[0]), ENDLESS if op == ">=" else key(xs[-1]), len(rule),
        )
        for id, rule in enumerate(rules) for field, op, xs in rule
    ]  # fmt: skip
    filters = pa.table([list(c) for c in zip(*rows, strict=True)], names=["id", "field", "low", "high", "need"])

    def table(events: Sequence[Event]) -> pa.Table:
        cut = [
            (number, fields[field], float(words.get(value, -1)) if isinstance(value, str) else float(value))
            for number, event in enumerate(events) for field, value in event.items() if field in fields
        ]  # fmt: skip
        return pa.table([list(c) for c in zip(*cut, strict=True)], names=["event", "field", "value"])

    return Plan({"filters": filters}, table, [COUNT], {})


def polars_join(pl: Any, events: Any, filters: Any, conditions: Sequence[Condition]) -> Any:
    """Return the lazy Polars join of events with a table of filters: the hashed equality first, then all the others."""

    def holds(condition: Condition) -> Any:
        value, column = pl.col(condition.field), pl.col(condition.column)
        if condition.op == "=?":
            return column.is_null() | (value == column)
        return value >= column if condition.op == ">=" else value <= column

    first, *rest = conditions
    if first.op != "=":
        return events.join_where(filters, *map(holds, conditions)).select("event", "id")
    joined = events.join(filters, left_on=first.field, right_on=first.column)
    return (joined.filter(*map(holds, rest)) if rest else joined).select("event", "id")


def polars_counting(pl: Any, events: Any, filters: Any) -> Any:
    """Return the counting plan as a lazy Polars query."""
    within = (pl.col("value") >= pl.col("low")) & (pl.col("value") <= pl.col("high"))
    met = events.join(filters, on="field").filter(within).group_by("event", "id", "need").len()
    return met.filter(pl.col("len") == pl.col("need")).select("event", "id")
