"""The kind `node`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipeline.nodes import logged, node_elsewhere
from tests.pipeline.sinks.suite import SinkSuite

from fieldfare.pipeline.sinks import OptionError, SinkSettings, make


class TestNode(SinkSuite):
    kind = "node"

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Path]:
        with node_elsewhere(tmp_path) as url:
            (tmp_path / "url").write_text(url)
            yield tmp_path

    def settings(self, place: Path) -> SinkSettings:
        return SinkSettings(self.kind, self.table, {"url": (place / "url").read_text()})

    def contents(self, place: Path) -> list[str]:
        return sorted(event["id"] for event in logged(place))


def test_a_node_needs_an_address() -> None:
    with pytest.raises(OptionError, match="node: the option `url` is missing; its options: url, token, session"):
        make(SinkSettings("node", "events"))
