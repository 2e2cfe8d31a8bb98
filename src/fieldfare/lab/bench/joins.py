"""Two ways to say "which filters does each event match" as a join.

By shape: filters with the same fields and operators make one table, and an event joins it on exactly those, so that a
database can hash the equalities. Where there are too many shapes, by counting: events and filters are cut into single
values and predicates, joined on the field and the range, and a filter that was met as often as it has predicates
matches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from fieldfare.lab.bench.rules import Event, Rule
from fieldfare.lab.bench.workloads import Workload

OPERATORS: Final = frozenset({"=", "<=", ">=", "between"})
EVENTS: Final = "events"
MOST_SHAPES: Final = 150

Shape: TypeAlias = tuple[tuple[str, str], ...]

COUNT: Final = (
    "SELECT count(*) AS n FROM (SELECT e.event, f.id FROM events e JOIN filters f"
    " ON e.field = f.field AND e.value >= f.low AND e.value <= f.high"
    " GROUP BY e.event, f.id, f.need HAVING count(*) = f.need)"
)


@dataclass(frozen=True)
class Plan:
    """Tables of filters, the table that events must become, and the queries whose counts add up to the answer."""

    filters: dict[str, pa.Table]
    events: Callable[[Sequence[Event]], pa.Table]
    queries: list[str]
    shapes: list[Shape]
    """of the tables, in their order; none for the counting plan"""

    @property
    def counting(self) -> bool:
        """Is it the counting plan?"""
        return not self.shapes


@lru_cache(maxsize=2)
def plan(workload: Workload) -> Plan:
    """The better plan for a workload."""
    rules = workload.rules or []
    grouped: dict[Shape, list[Rule]] = defaultdict(list)
    for rule in rules:
        grouped[tuple((field, op) for field, op, _ in rule)].append(rule)
    return _by_shape(grouped) if len(grouped) <= MOST_SHAPES else _by_counting(rules)


def name_of(number: int) -> str:
    """The table of a shape."""
    return f"filters{number}"


def operands(shape: Shape) -> list[tuple[str, str, str]]:
    """What must hold: (field, operator, column of the filters), BETWEEN taken apart."""
    pieces = [
        (field, part)
        for field, op in shape
        for part in (("=",) if op == "=" else (">=", "<=") if op == "between" else (op,))
    ]
    return [(field, op, f"c{place}") for place, (field, op) in enumerate(pieces)]


def _by_shape(grouped: dict[Shape, list[Rule]]) -> Plan:
    tables, queries = {}, []
    fields = sorted({field for shape in grouped for field, _ in shape})
    for number, (shape, rules) in enumerate(grouped.items()):
        columns = zip(*([x for p in rule for x in p.operands] for rule in rules), strict=True)
        names = [column for _, _, column in operands(shape)]
        tables[name_of(number)] = pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})
        holds = " AND ".join(f"e.{field} {op} f.{column}" for field, op, column in operands(shape))
        queries.append(f"SELECT count(*) AS n FROM {EVENTS} e JOIN {name_of(number)} f ON {holds}")  # noqa: S608

    def table(events: Sequence[Event]) -> pa.Table:
        return pa.table({field: [event.get(field) for event in events] for field in fields})

    return Plan(tables, table, queries, list(grouped))


def _by_counting(rules: Sequence[Rule]) -> Plan:
    fields: dict[str, int] = {}
    words: dict[str, int] = {}

    def key(value: Any) -> float:
        return float(words.setdefault(value, len(words)) if isinstance(value, str) else value)

    rows = [
        (
            id, fields.setdefault(field, len(fields)),
            -1e300 if op == "<=" else key(xs[0]), 1e300 if op == ">=" else key(xs[-1]), len(rule),
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

    return Plan({"filters": filters}, table, [COUNT], [])


def polars_join(pl: Any, events: Any, filters: Any, shape: Shape) -> Any:
    """The join of a shape in Polars, lazily: hashed equalities, then the rest."""
    parts = operands(shape)
    equal = [(field, column) for field, op, column in parts if op == "="]
    rest = [
        pl.col(field) >= pl.col(column) if op == ">=" else pl.col(field) <= pl.col(column)
        for field, op, column in parts
        if op != "="
    ]
    if not equal:
        return events.join_where(filters, *rest).select(pl.len())
    on = {"left_on": [field for field, _ in equal], "right_on": [column for _, column in equal]}
    joined = events.join(filters, how="inner", **on)
    return (joined.filter(*rest) if rest else joined).select(pl.len())


def polars_counting(pl: Any, events: Any, filters: Any) -> Any:
    """The counting plan in Polars, lazily."""
    within = (pl.col("value") >= pl.col("low")) & (pl.col("value") <= pl.col("high"))
    met = events.join(filters, on="field").filter(within).group_by("event", "id", "need").len()
    return met.filter(pl.col("len") == pl.col("need")).select(pl.len())
