from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.node.http.helpers import api_in_background


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a node in the background, for tests that only ask."""
    with api_in_background() as found:
        yield found
