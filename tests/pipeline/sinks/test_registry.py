"""Sinks by their kind: those of Fieldfare, and a user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from fieldfare.pipeline.job.config import PipelineError, parse
from fieldfare.pipeline.job.run import ready
from fieldfare.pipeline.sinks import Batch, OptionError, Options, Sink, SinkSettings, make


class OwnOptions(Options, frozen=True):
    colour: str


@dataclass(frozen=True)
class OwnSink(Sink):
    settings: SinkSettings
    colour: str

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write nothing."""


def make_own(settings: SinkSettings) -> OwnSink:
    return OwnSink(settings, settings.read(OwnOptions).colour)


OWN = f"{__name__}:make_own"


def test_a_sink_of_ones_own_gets_its_settings() -> None:
    sink = make(SinkSettings(OWN, "late", {"colour": "red"}))
    assert isinstance(sink, OwnSink)
    assert (sink.colour, sink.settings.table) == ("red", "late")
    sink.close()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (OWN, "the option `colour` is missing; its options: colour"),
        ("no_such_module:make", "no_such_module:make cannot be loaded: there is no module no_such_module"),
        (f"{__name__}:nothing", "has no function nothing"),
        ("lak", "there is no sink of the kind 'lak'"),
        *((kind, "the option `path` is missing") for kind in ("lake", "parquet", "subscribers")),
    ],
)
def test_a_mistake_is_named(kind: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        make(SinkSettings(kind))


def test_the_place_in_the_file_is_named_before_spark_is_started(tmp_path: Path) -> None:
    head = f'name = "a"\nstate = "{tmp_path}"\nsource = {{kind = "files", path = "in"}}\n'
    pipeline = parse(head + 'sink = [{kind = "subscribers", of = "events", path = "x"}]')
    with pytest.raises(PipelineError, match=r"sink\[0\]: only deliveries have subscribers"), ready(pipeline):
        pass
