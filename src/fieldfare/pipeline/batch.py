"""The name of a micro-batch: a batch that runs again after a crash has the same name, so that sinks recognise it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from fieldfare.objects import Objects


class Batch(msgspec.Struct, frozen=True):
    """The number that a writer gives to a batch of rows; the numbers of a writer only grow."""

    writer: str
    """the stream and the table in it; a stream that goes on with its checkpoint is the same writer"""
    number: int


def query_id(checkpoint: str | Path) -> str:
    """Return the id of a stream of Spark's, which stays the same as long as the stream keeps its checkpoint."""
    about: dict[str, str] = msgspec.json.decode(_objects(checkpoint).read("metadata"))
    return about["id"]


def has_query(checkpoint: str | Path) -> bool:
    """Tell whether a stream has begun with a checkpoint."""
    return _objects(checkpoint).find("metadata") is not None


def _objects(checkpoint: str | Path) -> Objects:
    return Objects(re.sub(r"^s3[an]://", "s3://", str(checkpoint)))
