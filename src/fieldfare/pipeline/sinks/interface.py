"""The interface of a sink: the place where a pipeline writes a table of each micro-batch.

A sink gets a micro-batch as a DataFrame with the name of the batch. After a crash the last batch comes again, with the
same name and the same rows, in any order and in any partitions. A sink must recognise the name, or replace the rows of
that name, to have every row exactly once; `tests/pipeline/sinks/suite.py` has the tests for sinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from fieldfare.pipeline import options
from fieldfare.pipeline.batch import Batch

if TYPE_CHECKING:  # a pipeline's file is read without Spark
    from pyspark.sql import DataFrame

    from fieldfare.pipeline.match.operator import Matched

Scalar = str | int | float | bool
Table = Literal["events", "deliveries", "quarantine", "late", "composites"]
Given = TypeVar("Given", bound=options.Options)


class SinkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[sink]]` of a pipeline's file."""

    kind: str
    """a kind that Fieldfare brings, or `package.module:make`"""
    table: Table = msgspec.field(name="of", default="deliveries")
    """the table that goes to the sink; the file calls the key `of`"""
    options: dict[str, Scalar] = {}
    """all other keys; `path`, `folder` and `dead_letters` are relative to the file of the pipeline"""

    def read(self, kind: type[Given]) -> Given:
        """Return the options as a struct; OptionError names a wrong, missing or unknown option."""
        return options.read(self.kind, options.texts(self.options), kind)


class Sink(Protocol):
    """A place for a table of a pipeline. A pipeline makes the sink at its start, and closes the sink at its end."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write the rows of a batch and return when the rows are safe; to write the same batch again changes nothing.

        An exception ends the pipeline, and the next run begins with the same batch.
        """
        ...

    def close(self) -> None:
        """Release the resources of the sink, such as a connection; a sink without resources inherits this method."""
        return


@runtime_checkable
class MatchSink(Protocol):
    """A sink of deliveries whose files the workers can write themselves, see `match.deliveries`."""

    def write_matched(self, matched: Matched, batch: Batch) -> None:
        """Write the deliveries of a batch, with the promises of `Sink.write`."""
        ...

    def rows_because(self, matched: Matched) -> str | None:
        """Return why Spark must write the rows here; None if the workers write files."""
        ...


__all__ = ["Batch", "MatchSink", "Scalar", "Sink", "SinkSettings", "Table"]
