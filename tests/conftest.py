"""Profiles of hypothesis; tests that cannot run here; the order of tests; Spark and a swift `fieldfare` for tests.

HYPOTHESIS_PROFILE chooses a profile: `dev` (the default) and `ci` try 100 random examples of each property, `long` tries
2,000, or as many as HYPOTHESIS_EXAMPLES says. A property that is slow by nature says so with `few` (`tests/examples.py`).
The seed of the run stands in the header; `--hypothesis-seed=N` tries the same examples again. An example that failed
once becomes a case of its own: an `@example` above the property, or a test in a file of regressions.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.needs import NEEDS, absent
from tests.shared import ABSENT, FOLDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.pipeline.jvm import Jvm
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# Without the health check that reads a clock: where ten processes share a core, no strategy is fast enough.
settings.register_profile(
    "dev", max_examples=100, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"))
settings.register_profile(
    "long", settings.get_profile("dev"), max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000"))
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

collect_ignore = list(ABSENT)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of the run, unless one was given; workers of xdist get the seed of the run that started them.

    A shell that starts the tests in the background lets them ignore Ctrl-C, and so would every command that they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.hypothesis_seed is None:
        given = getattr(config, "workerinput", {}).get("hypothesis_seed")
        config.option.hypothesis_seed = str(random.randrange(1 << 32)) if given is None else given


def pytest_configure_node(node: object) -> None:
    """Hand the seed to a worker of xdist."""
    node.workerinput["hypothesis_seed"] = node.config.option.hypothesis_seed  # type: ignore[attr-defined]


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to try the same examples again."""
    profile = settings.get_current_profile_name()
    return (
        f"properties: profile {profile}; the same examples again with --hypothesis-seed={config.option.hypothesis_seed}"
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Make a scheduler that goes on when a worker dies: see there."""
    from tests.scheduling import Groups  # noqa: PLC0415

    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def programs() -> Iterator[str]:
    """Make a folder with a `fieldfare` that starts at once."""
    from tests.commands import Commands  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="fieldfare-") as folder, Commands(Path(folder)):
        yield folder


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """Start the Java machine of a worker; imported only where a test needs it."""
    from tests.pipeline.jvm import Jvm  # noqa: PLC0415

    shared = Jvm(tmp_path_factory.mktemp("java"))
    yield shared
    shared.stop()


@pytest.fixture
def spark(jvm: Jvm, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Give a Spark session that works, whatever the test before has done to it."""
    failed = request.session.testsfailed
    yield jvm.session()
    jvm.suspect = request.session.testsfailed > failed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose needs are not met."""
    left_out = [item for item in items if any(map(absent, _needs(item)))]
    if left_out:
        config.stash.setdefault(LEFT_OUT, set()).update(need for item in left_out for need in _needs(item))
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking again and again through 11,000 tests and all that they import."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 20)


LEFT_OUT = pytest.StashKey[set[str]]()
"""needs of tests that were not collected; the workers of xdist know, and the run that started them does not"""


def _needs(item: pytest.Item) -> list[str]:
    return [need for mark in item.iter_markers("needs") for need in mark.args]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name in one line all that is absent, and whose tests were therefore not collected."""
    needs = NEEDS if hasattr(config.option, "dist") and config.option.dist != "no" else config.stash.get(LEFT_OUT, ())
    missing = [*ABSENT.values(), *(need for need in needs if absent(need))]
    if missing:
        where = f"; foreign kits are looked for in {FOLDER}" if ABSENT else ""
        terminalreporter.write_line(f"not collected, for want of: {', '.join(missing)}{where}", yellow=True)
