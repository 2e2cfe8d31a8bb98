"""Hypothesis profiles, chosen with HYPOTHESIS_PROFILE: dev (the default), ci or long; and what is run first.

The first two try the same examples every time, so that a run tells about the change and not about the dice; `long` throws
them anew, and is run by hand before a release and whenever the algebra or the engine has changed. HYPOTHESIS_EXAMPLES
says how many examples it tries of each property: a million of one that was named take an hour or so.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("dev", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("ci", max_examples=40, deadline=None, derandomize=True)
settings.register_profile(
    "long", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")), deadline=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What one worker has to do alone, as with Spark, begins first, so that the others do not wait for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
