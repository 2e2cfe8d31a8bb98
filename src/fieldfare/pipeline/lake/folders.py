"""Folders named after any values, and files that get there in one step.

A type or an owner may be empty, as long as a book, or have slashes. A value that makes a safe and short name is the
name; any other value becomes `~`, a piece of the value and a hash, and no safe name begins with `~`. The value is also
a column in the files, so that no name has to be read back.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

_SAFE: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # Spark and Hadoop hide what begins with a dot or an underscore
_PIECE: Final = 24
_DIGEST: Final = 32
NULL: Final = "~"
"""the name of the folder for null"""


def folder_name(value: str | None) -> str:
    """Return the name of the folder for a value.

    >>> folder_name("trade"), folder_name("a/b"), folder_name(None)
    ('trade', '~a_b~c14cddc033f64b9dea80ea675cf280a0', '~')
    """
    if value is None:
        return NULL
    if re.fullmatch(_SAFE, value):
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()
    return f"~{re.sub('[^A-Za-z0-9]', '_', value)[:_PIECE]}~{digest[:_DIGEST]}"


def folder(value: Column) -> Column:
    """Return the name of the folder for a value, as an expression of Spark's."""
    piece = F.substring(F.regexp_replace(value, "[^A-Za-z0-9]", "_"), 1, _PIECE)
    named = F.concat(F.lit("~"), piece, F.lit("~"), F.substring(F.sha2(value.cast("binary"), 256), 1, _DIGEST))
    return F.when(value.isNull(), NULL).when(value.rlike(rf"\A{_SAFE}\z"), value).otherwise(named)


def partitions(path: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """Yield the Parquet files that Spark wrote below a folder, each with the values in the names of its folders."""
    for file in sorted(path.rglob("*.parquet")):
        named = (part.partition("=") for part in file.relative_to(path).parent.parts)
        yield {name: unquote(value) for name, _, value in named}, file


def move(file: Path, to: Path) -> None:
    """Move a file in one step; an existing file is replaced."""
    to.parent.mkdir(parents=True, exist_ok=True)
    file.replace(to)


def remove(path: Path) -> None:
    """Remove a folder with its content; a missing folder is no error."""
    shutil.rmtree(path, ignore_errors=True)
