"""The Kafka bridge: records of topics come in as events, and events go out as records.

    [[bridge]]
    kind = "kafka"
    name = "market"
    servers = "127.0.0.1:9092"
    in = [{ topic = "quotes", fields = { symbol = "key" }, type = "quote" }]
    out = [{ filter = "type = 'alarm' AND level > 3", topic = "alarms", key = "{room}", mode = "binary" }]

**In.** The node stores the offset of a record as the number of its event, so a record is published once, whichever
side crashes. A deleted and recreated topic has another id in Kafka, and counts as another source here. The
offsets are also committed under a consumer group, which shows the lag of the bridge; only a node without a folder
begins there.

**Out.** An event is acknowledged to the node after all replicas in sync have its record. After a crash the last
events may be written again, with the same `fieldfare-id`.

**Loops.** A record has the identity of the writing bridge, which does not read the record.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any, Final

from fieldfare.filters import EVERYTHING, Filter
from fieldfare.filters.languages.python import field
from fieldfare.node.bridges import kafka_settings
from fieldfare.node.bridges.interface import Batch, BridgeError, IncomingEvent, OutgoingEvent, Positions, Rejection
from fieldfare.node.bridges.kafka_client import Partition, Reader, Writer, closing
from fieldfare.node.bridges.kafka_records import BRIDGE, Record, event_of, record_of
from fieldfare.node.bridges.kafka_settings import Settings

LOOK_SECONDS: Final = 30.0
"""between two looks for new partitions"""


def make(identity: str, table: Mapping[str, Any]) -> KafkaBridge:
    """Return a bridge from its table; ConfigError if a setting is wrong."""
    return KafkaBridge(identity, *kafka_settings.read(identity, table))


class KafkaBridge:
    """The bridge to one Kafka cluster; each rule of `out` has its parsed filter in `rules`."""

    def __init__(self, identity: str, given: Settings, filters: Sequence[Filter]) -> None:
        self.identity, self.settings = identity, given
        self.rules = tuple(zip(given.outgoing, filters, strict=True))
        self.incoming = {rule.topic: rule for rule in given.incoming}

    @property
    def subscription(self) -> Filter | None:
        """The union of the filters in `out`."""
        return reduce(or_, (filter for _, filter in self.rules)) if self.rules else None

    @property
    def advertisement(self) -> Filter | None:
        """The types in the rules of `in`; everything if a rule sets no type."""
        types = [rule.type for rule in self.settings.incoming]
        if not types:
            return None
        return reduce(or_, (field.type == type for type in types)) if all(types) else EVERYTHING

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[KafkaConnection]:
        """Make the clients, and ask for the topics, so that Kafka must answer."""
        client = kafka_settings.client(self.settings)
        reader = Reader(client, self.settings.group)
        async with closing(reader):
            partitions = await reader.partitions(list(self.incoming)) if self.incoming else []
            writer = Writer(client)
            async with closing(writer):
                yield KafkaConnection(self, reader, writer, partitions)


class KafkaConnection:
    """An open connection to a Kafka cluster."""

    def __init__(self, bridge: KafkaBridge, reader: Reader, writer: Writer, partitions: Sequence[Partition]) -> None:
        self._bridge, self._reader, self._writer, self._partitions = bridge, reader, writer, partitions

    async def incoming_from(self, position: Positions) -> AsyncIterator[Batch]:
        """Yield records of all partitions, of each from its position on."""
        if not self._partitions:
            await asyncio.Event().wait()
        places = {(one.topic, one.number): one for one in self._partitions}
        starts: dict[Partition, int] = {}
        for one in self._partitions:
            starts[one], gone = await self._start(one, await position(one.source))
            if gone:
                yield Batch([Rejection(gone)], _nothing)
        await self._reader.commit(
            starts, confirmed=True
        )  # or else the next connection would take another end for the latest
        await self._reader.assign(starts)
        read, looked = dict(starts), asyncio.get_running_loop().time()
        while True:
            records = await self._reader.read()
            for place, run in groupby(records, key=lambda one: (one.topic, one.partition)):
                group = list(run)

                async def done(partition: Partition = places[place], last: Record = group[-1]) -> None:
                    read[partition] = last.offset + 1

                yield Batch([one for one in map(self._arrived, group) if one is not None], done, places[place].source)
            if (now := asyncio.get_running_loop().time()) - looked > LOOK_SECONDS:
                looked = now
                await self._reader.commit(read, confirmed=False)
                if await self._reader.partitions(list(self._bridge.incoming)) != list(self._partitions):
                    raise BridgeError("a topic has other partitions now: the bridge connects again")

    async def _start(self, partition: Partition, known: int) -> tuple[int, str]:
        """Return the offset to begin with, and a remark on deleted records."""
        place = f"{partition.topic}/{partition.number}"
        low, high = await self._reader.range(partition)
        start = known or await self._reader.committed(partition)
        if start is None:
            return (low if self._bridge.incoming[partition.topic].start == "earliest" else high), ""
        if start > high:
            raise BridgeError(
                f"{place} ends at the offset {high}, and the node has read up to {start}: Kafka has lost records."
                " Give the bridge another name to read the topic anew"
            )
        if start < low:
            return low, f"{place}: Kafka has deleted the offsets {start} to {low - 1} before they were read"
        return start, ""

    def _arrived(self, record: Record) -> IncomingEvent | Rejection | None:
        """Return the event in a record; None for a record of this bridge."""
        if (BRIDGE, self._bridge.identity.encode()) in record.headers:
            return None
        return event_of(self._bridge.incoming[record.topic], record)

    async def outgoing(self, events: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        """Write the records of events, and wait until Kafka has acknowledged all of them."""
        rejections: list[Rejection] = []
        records: list[Record] = []
        for one in events:
            for rule, filter in self._bridge.rules:
                if filter.matches(one.event):
                    made = record_of(rule, one, self._bridge.identity)
                    if isinstance(made, Rejection):
                        rejections.append(made)
                    else:
                        records.append(made)
        return [*rejections, *(await self._writer.write(records) if records else ())]


async def _nothing() -> None:
    """Acknowledge a batch without records, which Kafka does not know."""
