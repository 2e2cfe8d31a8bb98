"""`Kafka`: Apache Kafka in KRaft mode, a process on loopback with a folder, to be killed and restarted."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tools.servers import cache
from tools.waiting import PATIENCE, wait_until

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.segment.delete.delay.ms=0
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
"""
_LOGGING: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %c{1}: %m%n
"""
_JAVA: Final = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Kafka:
    """A broker without replicas; acknowledged records survive a kill, because the page cache does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{self.port}"
        (folder / "server.properties").write_text(
            _PROPERTIES.format(port=self.port, controller=controller, folder=folder)
        )
        (folder / "log4j2.properties").write_text(_LOGGING)
        self.process: subprocess.Popen[bytes] | None = None
        self._java("kafka.tools.StorageTool", "format", f"--cluster-id={_uuid()}", "-c", "server.properties").wait()

    def start(self) -> None:
        """Start the broker, and return when it answers."""
        self.process = self._java("kafka.Kafka", "server.properties")
        wait_until(self._answers)

    def kill(self) -> None:
        """End the broker at once, without a word to anybody."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(map(str, cache.kafka_jars()))
        command = [*_JAVA, "-Dlog4j2.configurationFile=log4j2.properties", "-cp", path, *arguments]
        with (self.folder / "out.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "out.log").read_text()[-2000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    # Topics and records

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, topic: str, partitions: int = 1) -> str:
        """Make a topic, and return its name."""
        admin = self.admin()  # it ends with its last name, and its futures with it

        def made() -> bool:
            """Tell whether the topic is made: a broker that has just started, on a slow machine, is fenced at first."""
            (answer,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
                    raise
                return False
            return True

        wait_until(made)
        wait_until(lambda: len(getattr(admin.list_topics().topics.get(topic), "partitions", ())) == partitions)
        return topic

    def delete(self, topic: str) -> None:
        admin = self.admin()
        (gone,) = admin.delete_topics([topic]).values()
        gone.result()

    def produce(self, topic: str, records: Iterable[dict[str, Any]]) -> None:
        """Write records, each given as the arguments of `Producer.produce`, and return when the broker has them."""
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0})
        failed: list[Any] = []
        for record in records:
            producer.produce(topic, **record, on_delivery=lambda error, _: failed.append(error) if error else None)
        producer.flush()
        assert not failed, failed

    def read(self, topic: str, count: int) -> list[Message]:
        """Read a topic from the beginning until there are so many records; aborted transactions have none."""
        got: list[Message] = []
        with self._reading(topic) as consumer:
            end = time.monotonic() + PATIENCE
            while len(got) < count:
                assert time.monotonic() < end, f"{len(got)} of {count} records in {topic}"
                got += [one for one in consumer.consume(1000, 0.2) if one.error() is None]
        return got

    def all(self, topic: str) -> list[Message]:
        """Read a topic up to the present end."""
        got: list[Message] = []
        with self._reading(topic) as consumer:
            open_ones = {place.partition for place in consumer.assignment()}
            end = time.monotonic() + PATIENCE
            while open_ones:
                assert time.monotonic() < end, f"the end of {topic} does not come"
                for one in consumer.consume(1000, 0.2):
                    if (error := one.error()) is None:
                        got.append(one)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        open_ones.discard(one.partition())
        return got

    @contextlib.contextmanager
    def _reading(self, topic: str) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"reader-{uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        try:
            known = consumer.list_topics(topic).topics[topic].partitions
            starts = []
            for number in known:
                low, _ = consumer.get_watermark_offsets(TopicPartition(topic, number))
                starts.append(TopicPartition(topic, number, low))
            consumer.assign(starts)
            yield consumer
        finally:
            consumer.close()


def _uuid() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
