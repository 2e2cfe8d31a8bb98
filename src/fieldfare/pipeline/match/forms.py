"""The forms of deliveries as Arrow: lists of subscriptions, rows, and counts.

`lists` is the form that the engine gives: a row for each event, with the list of its subscriptions. Rows are its
explosion, and counts its aggregation. Ids and columns of events are repeated by index: *coded* columns are dictionaries
with an index for each row, and Parquet takes them as they are, so that a value is encoded once and not at each match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.pairs import PAIRS, Ints, Pairs

Form = Literal["lists", "rows", "counts"]
Listed = Literal["ids", "named", "numbers"]
"""the items of lists: ids, structs of id and owner, or numbers"""
ADDED: Final = ("subscription", "owner", "snapshot")
"""the columns that the form `rows` adds to those of the event"""
LISTED: Final = ("subscriptions", "snapshot")
"""the columns that the form `lists` adds"""
COUNTED: Final = ("subscription", "owner", "events", "snapshot")
"""the columns of the form `counts`"""
BLOCK: Final = 1 << 16
"""subscriptions whose counts travel together"""
BLOCKS: Final = pa.schema([("snapshot", pa.int64()), ("block", pa.int32()), ("counts", pa.binary())])
_BYTES: Final = 1 << 27
"""bytes of a batch of rows, about: an offset of Arrow's has 31 bits"""


class Found(NamedTuple):
    """A piece of a batch: the columns of events for the result, beside the subscriptions."""

    opened: Opened
    kept: Any
    """a record batch: the columns of the events that the result has"""
    pairs: Pairs


def found(opened: Opened, kept: Any, matched: Iterable[Pairs]) -> Iterator[Found]:
    """Yield the matches of a batch of events beside the columns of the events."""
    start = 0
    for pairs in matched:
        events = len(pairs.counts)
        yield Found(opened, kept.slice(start, events), pairs)
        start += events


def lists(one: Found, *, coded: bool = False) -> Any:
    """Return a row for each event, with the list of subscriptions, perhaps empty."""
    opened, kept, (counts, numbers) = one
    ids = _coded(opened.ids, numbers) if coded else opened.ids.take(pa.array(numbers))
    listed = pa.ListArray.from_arrays(_offsets(counts), ids)
    return _batch(kept, dict(zip(LISTED, (listed, _version(opened, len(counts))), strict=True)))


def column(opened: Opened, pairs: Pairs, items: Listed) -> Any:
    """Return the lists of some events as a column of Spark's: structs of the version and the list."""
    found = pa.array(pairs.numbers.astype(np.int32))
    if items != "numbers":
        ids, owners = opened.ids.take(found), opened.owners
        found = ids if items == "ids" else pa.StructArray.from_arrays([ids, owners.take(found)], names=list(ADDED[:2]))
    parts = [_version(opened, len(pairs.counts)), pa.ListArray.from_arrays(_offsets(pairs.counts), found)]
    return pa.StructArray.from_arrays(parts, names=["snapshot", "matches"])


def _offsets(counts: Ints) -> Any:
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def rows(one: Found) -> Iterator[Any]:
    """Yield batches with a row for each match: the columns of the event, and the subscription."""
    opened, kept, (counts, numbers) = one
    events = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    most = max(1, min(PAIRS, _BYTES // _largest(kept)))
    for start in range(0, len(events), most):
        of, number = events[start : start + most], pa.array(numbers[start : start + most])
        added = (opened.ids.take(number), opened.owners.take(number), _version(opened, len(of)))
        yield _batch(kept.take(pa.array(of)), dict(zip(ADDED, added, strict=True)))


def coded_rows(one: Found) -> Iterator[Any]:
    """Yield the same batches with dictionaries for columns, where a column has a type that allows it."""
    opened, kept, (counts, numbers) = one
    events = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    plain = [name for name in kept.schema.names if not _codable(kept[name].type)]
    most = max(1, min(2 * PAIRS, _BYTES // _largest(kept.select(plain)))) if plain else 2 * PAIRS
    columns = {name: kept[name] if name in plain else _encoded(kept[name]) for name in kept.schema.names}
    for start in range(0, len(events), most):
        of, number = events[start : start + most], numbers[start : start + most]
        made = {name: _repeated(column, of) for name, column in columns.items()}
        added = (_coded(opened.ids, number), _coded(opened.owners, number), _version(opened, len(of), coded=True))
        yield pa.record_batch({**made, **dict(zip(ADDED, added, strict=True))})


def counts(all_found: Iterable[Found]) -> Iterator[Any]:
    """Yield the numbers of events of the subscriptions, in blocks of subscriptions; only blocks with an event.

    Counts of a task are an array over the numbers of subscriptions; `summed` adds the arrays of tasks.
    """
    totals: dict[int, tuple[Opened, Ints]] = {}
    for opened, _, (_, numbers) in all_found:
        version = opened.about.version
        if version not in totals:
            totals[version] = opened, np.zeros(len(opened.ids), np.int64)
        if len(numbers):
            total = totals[version][1]
            if len(numbers) < len(total) >> 4:
                np.add.at(total, numbers, 1)
            else:
                total += np.bincount(numbers, minlength=len(total))
    for version, (_, total) in totals.items():
        blocks = [(at // BLOCK, total[at : at + BLOCK]) for at in range(0, len(total), BLOCK)]
        some = [(number, block.tobytes()) for number, block in blocks if block.any()]
        if some:
            columns = [[version] * len(some), *map(list, zip(*some, strict=True))]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, kind) for column, kind in zip(columns, BLOCKS.types, strict=True)], schema=BLOCKS
            )


def summed(batches: Iterable[Any]) -> dict[tuple[int, int], Ints]:
    """Add the counts of each block, by version and number of the block."""
    totals: dict[tuple[int, int], Ints] = {}
    for batch in batches:
        for row in batch.to_pylist():
            key, block = (row["snapshot"], row["block"]), np.frombuffer(row["counts"], np.int64)
            totals[key] = totals[key] + block if key in totals else block
    return totals


def named_counts(opened: Opened, block: int, total: Ints) -> Any:
    """Return the counts of a block with ids and owners: a row for each subscription with an event."""
    some = total.nonzero()[0]
    number = pa.array(some + block * BLOCK)
    added = (opened.ids.take(number), opened.owners.take(number), pa.array(total[some]), _version(opened, len(some)))
    return pa.record_batch(dict(zip(COUNTED, added, strict=True)))


def without_rest(one: Found) -> Found:
    """Return the events with a match, without the rest."""
    keep = one.pairs.counts > 0
    if keep.all():
        return one
    return Found(one.opened, one.kept.filter(pa.array(keep)), Pairs(one.pairs.counts[keep], one.pairs.numbers))


def together(parts: list[Found]) -> Found:
    """Join successive events of the same version."""
    if len(parts) == 1:
        return parts[0]
    joined = Pairs(*map(np.concatenate, zip(*(part.pairs for part in parts), strict=True)))
    kept = pa.Table.from_batches([part.kept for part in parts]).combine_chunks().to_batches()
    if len(kept) == 1:
        return Found(parts[0].opened, kept[0], joined)
    whole = parts[0].kept.slice(0, 0) if kept else pa.RecordBatch.from_struct_array(_nothing(len(joined.counts)))
    return Found(parts[0].opened, whole, joined)


def _nothing(rows: int) -> Any:
    return pa.array([{}] * rows, pa.struct([]))


def _batch(kept: Any, added: dict[str, Any]) -> Any:
    return pa.record_batch({**dict(zip(kept.schema.names, kept.columns, strict=True)), **added})


def _version(opened: Opened, rows: int, *, coded: bool = False) -> Any:
    version = opened.about.version
    if coded:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([version], pa.int64()))
    return pa.array(np.full(rows, version))


def _coded(values: Any, numbers: Ints) -> Any:
    """Return the values with these numbers as indices of a dictionary, which has only the used values, each once."""
    used = np.zeros(len(values), np.bool_)
    used[numbers] = True
    place = np.cumsum(used, dtype=np.int32) - np.int32(1)
    codes = _encoded(values.filter(pa.array(used)))
    if len(codes) and not codes.indices.null_count:
        place = codes.indices.to_numpy()[place]  # once for each subscription, not for each match
        return pa.DictionaryArray.from_arrays(pa.array(place[numbers]), codes.dictionary)
    return pa.DictionaryArray.from_arrays(codes.indices.take(pa.array(place[numbers])), codes.dictionary)


def _encoded(values: Any) -> Any:
    """Return an array as a dictionary. Floats go by their bits, since 0.0 and -0.0 are equal but not the same."""
    if pt.is_float64(values.type):
        coded = values.view(pa.int64()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.view(pa.float64()))
    if pt.is_float32(values.type):
        coded = values.view(pa.int32()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.view(pa.float32()))
    return values.dictionary_encode()


def _repeated(values: Any, at: NDArray[np.int32]) -> Any:
    if not isinstance(values, pa.DictionaryArray):
        return values.take(pa.array(at))
    codes = values.indices
    repeated = codes.take(pa.array(at)) if codes.null_count else pa.array(codes.to_numpy()[at])
    return pa.DictionaryArray.from_arrays(repeated, values.dictionary)


def _codable(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (
            *(pt.is_integer, pt.is_float32, pt.is_float64, pt.is_string, pt.is_large_string),
            *(pt.is_binary, pt.is_large_binary, pt.is_timestamp, pt.is_date32),
        )
    )


def _largest(batch: Any) -> int:
    """Return about how many bytes the largest row of a batch has."""
    total = 8
    for column in batch.columns:
        kind = column.type
        if pt.is_string(kind) or pt.is_binary(kind):
            total += pc.max(pc.binary_length(column)).as_py() or 0
        elif pt.is_nested(kind):
            total += int(pc.max(_sizes(column)).as_py() or 0)
        total += 8
    return total


def _sizes(column: Any) -> Any:
    """Return about how many bytes each nested value has: the average of the batch, times what its length differs."""
    average = column.nbytes / max(1, len(column))
    if not (pt.is_list(column.type) or pt.is_map(column.type)):
        return pa.array([average])
    lengths = pc.list_value_length(column) if pt.is_list(column.type) else pa.array(np.diff(column.offsets))
    mean = pc.mean(lengths).as_py() or 1.0
    return pc.multiply(lengths.cast(pa.float64()), average / mean)
