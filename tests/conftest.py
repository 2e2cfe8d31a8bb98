"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: dev (the default), ci or long; what is run first; Spark for tests.

The first two try the same examples every time, so that a run tells about the change and not about the dice; `long` throws
them anew, and is run by hand before a release and whenever the algebra or the engine has changed. HYPOTHESIS_EXAMPLES
says how many examples it tries of each property: a million of one that was named take an hour or so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.shared import ABSENT, FOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.pipeline.jvm import Jvm
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

settings.register_profile("dev", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=40, deadline=None, derandomize=True)
settings.register_profile(
    "long", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")), deadline=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

collect_ignore = list(ABSENT)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """A scheduler that goes on when a worker dies: see there."""
    from tests.scheduling import Groups  # noqa: PLC0415

    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def jvm() -> Iterator[Jvm]:
    """The Java machine of a worker; imported only by those who need it."""
    from tests.pipeline.jvm import Jvm  # noqa: PLC0415

    shared = Jvm()
    yield shared
    shared.stop()


@pytest.fixture
def spark(jvm: Jvm, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A Spark session that works, whatever the test before has done to it."""
    failed = request.session.testsfailed
    yield jvm.session()
    jvm.suspect = request.session.testsfailed > failed


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses Spark is kept on one worker, and begins first, so that the others do not wait for it at the end."""
    for item in items:
        if "jvm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What is not here, and therefore was not collected: one line, instead of many skips."""
    if ABSENT:
        terminalreporter.write_line(f"not run: {' and '.join(ABSENT.values())} (not in {FOLDER})", yellow=True)
