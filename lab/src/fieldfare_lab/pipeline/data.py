"""The data of the measurements: events as Parquet, subscriptions as a catalogue and as tables for a join.

Everything comes from the name of a workload and two numbers. Data is made once, into folders of the temporary directory
that are named by them, and used again. The filters do not depend on the number of events: a catalogue of a
million filters, which takes two minutes, is made only once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare_lab.bench import joins
from fieldfare_lab.bench.workloads import Workload, generate
from fieldfare_lab.pipeline import mixed_filters

WORKLOAD: Final = "stock"
FILES: Final = 8
OWNERS: Final = 1000


def cache() -> Path:
    """Return the folder of all made data, in the temporary directory."""
    return Path(tempfile.gettempdir()) / "fieldfare-bench-pipeline-2"


@dataclass(frozen=True)
class Data:
    """A workload on disk; each part is made at its first use."""

    folder: Path
    filters: int
    count: int
    """number of events"""
    workload: str = WORKLOAD
    """of `bench.workloads`, or `mixed`: the events of `stock` with the filters of `mixed_filters`"""

    @cached_property
    def events(self) -> Path:
        """Return the folder of Parquet files with the number and the fields of each event."""
        return self.made_once(f"events-{self.count}", self._write_events)

    @cached_property
    def subscriptions(self) -> Path:
        """Return the path of the catalogue; subscription 7 has filter number 7."""
        return self.made_once("catalogue", self._publish)

    @cached_property
    def joins(self) -> Path:
        """Return the folder of the filters as tables, with the queries of the join."""
        return self.made_once(f"joins-{self.count}", self._write_joins)

    @cached_property
    def made(self) -> Workload:
        """Return the filters and events in memory."""
        if self.workload == "mixed":
            return Workload("mixed", mixed_filters.texts(self.filters), generate("stock", 1, self.count).events)
        return generate(self.workload, self.filters, self.count)

    def made_once(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of a name, made if missing; made in a draft first, so that it is whole or not there."""
        place = self.folder / name
        if not place.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=self.folder, prefix="."))
            make(draft)
            try:
                draft.rename(place)
            except OSError:  # another process was faster
                shutil.rmtree(draft)
        return place

    def _write_events(self, folder: Path) -> None:
        events = self.made.events
        names = dict.fromkeys(name for event in events for name in event)  # from_pylist looks at the first event only
        fields = pa.table({name: [event.get(name) for event in events] for name in names})
        table = fields.add_column(0, "event", pa.array(range(self.count)))
        rows = -(-self.count // FILES)
        for number, start in enumerate(range(0, self.count, rows)):
            pq.write_table(table.slice(start, rows), folder / f"{number}.parquet")

    def _publish(self, folder: Path) -> None:
        named = enumerate(self.made.parsed)
        catalogue.write_version(folder, (Subscription(n, filter, f"o{n % OWNERS}") for n, filter in named))

    def _write_joins(self, folder: Path) -> None:
        plan = joins.plan(self.made)
        for name, table in plan.filters.items():
            pq.write_table(table, folder / f"{name}.parquet")
        (folder / "queries.json").write_bytes(msgspec.json.encode(plan.queries))


def data(filters: int, events: int, folder: Path | None = None, *, workload: str = WORKLOAD) -> Data:
    """Return a workload with so many filters and events, in the cache unless another folder is given."""
    return Data((folder or cache()) / f"{workload}-{filters}", filters, events, workload)
