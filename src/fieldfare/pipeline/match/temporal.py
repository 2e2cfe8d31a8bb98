"""Temporal subspace matching in bulk: profiles that hold for a period, against queries asked for a period.

    pairs = match_profiles(profiles, queries, mode="cover")

A profile is a subspace: its fields are values or intervals. A profile meets a query if the subspace overlaps the query,
or is covered by the query, *and* both periods have a common instant. The engine decides on the periods, too, so that no
join follows: a period is two instants, which are points in either mode. A profile has the fields `$from` and `$until`;
a query asked in [a, b) gets the condition `$from < b AND $until > a`. Instants are microseconds, so that every period
has the form [from, until).

Streams of profiles and queries are matched by `temporal_stream`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

from fieldfare.events.values import INT64_MAX, INT64_MIN
from fieldfare.filters import parse
from fieldfare.filters.dialects import Dialect, read
from fieldfare.pipeline.match.operator import match_events

Mode = Literal["overlap", "cover"]
Fields = Sequence[str] | Mapping[str, str | Column] | None
FROM: Final = "$from"
UNTIL: Final = "$until"
HOLDS: Final = f"`{FROM}` < `{UNTIL}`"
"""the condition that a period is not empty"""
ALWAYS: Final = (INT64_MIN, INT64_MAX)
_VALID: Final = "valid"
_ENDS: Final = ({"low", "high"}, {"low", "high", "closed"})
_BOUNDED: Final = pa.struct([("filter", pa.string()), ("dialect", pa.string())])
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns


def match_profiles(
    profiles: DataFrame, queries: DataFrame, *, mode: Mode = "overlap", columns: Fields = None
) -> DataFrame:
    """Return every profile with every query that the profile meets at some time.

    Args:
        profiles: rows with the column `valid`, a struct of the timestamps `low` and `high` and perhaps of `closed`,
            such as `"[)"`; without `closed` both ends belong to the period. An end that is null is open, and a `valid`
            that is null is always. Other columns are fields; structs of low, high and perhaps closed are intervals.
        queries: rows with the columns `id` and `filter`, perhaps `owner` and `dialect`, and `valid` as above: the
            period for which the query is asked.
        mode: "overlap" if a profile may lie partly outside of the query, "cover" if all of it must lie inside.
        columns: the columns of profiles that are fields, or a mapping of fields to columns, as for `match_events`.

    Returns:
        The columns of the profiles, and `subscription` (the id of the query), `owner` and `snapshot`.
    """
    timed = with_period(profiles, "profiles").where(HOLDS)
    asked = bounded(with_period(queries, "queries").where(HOLDS))
    return match_events(timed, asked, columns=with_ends(profiles, columns), mode=checked(mode)).drop(FROM, UNTIL)


def checked(mode: Mode) -> Mode:
    """Return the mode, or raise ValueError for a mode that subspaces do not have."""
    if mode not in ("overlap", "cover"):
        raise ValueError(f"mode must be 'overlap' or 'cover', not {mode!r}")
    return mode


def with_period(rows: DataFrame, what: str) -> DataFrame:
    """Add columns with the ends of the period, in microseconds."""
    kind = rows.schema[_VALID].dataType if _VALID in rows.columns else None
    if not isinstance(kind, StructType) or set(kind.names) not in _ENDS:
        there = "it is " + kind.simpleString() if kind else "there are " + ", ".join(rows.columns)
        raise ValueError(
            f"{what} need a column 'valid', a struct of the timestamps low and high, perhaps of closed: {there}"
        )
    closed = F.coalesce(F.col("valid.closed"), F.lit("[]")) if "closed" in kind.names else F.lit("[]")
    low, high = (F.unix_micros(F.col(f"valid.{end}").cast("timestamp")) for end in ("low", "high"))
    first = F.coalesce(low + closed.startswith("(").cast("long"), F.lit(ALWAYS[0]))
    end = F.coalesce(high + closed.endswith("]").cast("long"), F.lit(ALWAYS[1]))
    return rows.withColumns({FROM: first, UNTIL: end})


def with_ends(profiles: DataFrame, columns: Fields) -> Fields:
    """Return the columns of profiles for `match_events`: the fields, and the ends of the periods."""
    if isinstance(columns, Mapping):
        return {**columns, FROM: FROM, UNTIL: UNTIL}
    given = [name for name in profiles.columns if name != _VALID] if columns is None else columns
    return [*given, FROM, UNTIL]


def bounded(queries: DataFrame) -> DataFrame:
    """Add the period of each query to its filter; a filter that cannot be parsed stays, for `write_version` to name."""
    owner, dialect = (
        F.col(name) if name in queries.columns else F.lit(None).cast("string") for name in ("owner", "dialect")
    )
    native = F.coalesce(dialect, F.lit(str(Dialect.NATIVE)))
    made = _udf(_bound, "struct<filter: string, dialect: string>")(F.col("filter"), native, F.col(FROM), F.col(UNTIL))
    rows = queries.select("id", owner.alias("owner"), made.alias("made"), FROM, UNTIL)
    return rows.select("id", "owner", "made.filter", "made.dialect", FROM, UNTIL)


def _bound(batches: Iterator[tuple[pa.Array, pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch), strict=True)
        yield pa.array([_asked(*row) for row in rows], _BOUNDED)


def _asked(text: str | None, dialect: str, start: int, end: int) -> tuple[str | None, str]:
    try:
        wanted = read(text or "", Dialect(dialect))
    except ValueError:
        return text, dialect
    if end < ALWAYS[1]:
        wanted &= parse(f'"{FROM}" < {end}')
    if start > ALWAYS[0]:
        wanted &= parse(f'"{UNTIL}" > {start}')
    return str(wanted), str(Dialect.NATIVE)
