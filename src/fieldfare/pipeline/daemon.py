"""The parent of Spark's Python workers on one machine: it loads the engine once, and all workers are its forks.

Spark ends a worker that had nothing to do for a minute. Its successor would import and load everything again, which
takes more than a second of CPU time, and longer than most jobs.
"""

from __future__ import annotations

from pyspark import daemon

from fieldfare.matching import backend
from fieldfare.pipeline.match import deliveries as _deliveries  # noqa: F401 - what workers run, with all it imports


def main() -> None:
    """Load the engine, and fork workers as Spark asks."""
    if not backend.compiling() and backend.cached():
        backend.choose()  # without a thread, which a fork would not have
    daemon.manager()


if __name__ == "__main__":
    main()
