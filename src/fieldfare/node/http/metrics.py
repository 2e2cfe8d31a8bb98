"""`GET /metrics`: the metrics of a node in the format of Prometheus. With security the caller needs `administer`.

Most metrics are read from the node at each request; only the sizes of groups are counted as they occur. Sessions have
no labels of their own: there may be a hundred thousand sessions.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.responses import Response

from fieldfare.core.step import Step
from fieldfare.node.context import Context
from fieldfare.node.http.health import our_version
from fieldfare.node.http.resource import Call, Handler
from fieldfare.node.http.webhooks import Webhooks
from fieldfare.routing.prefix.routes import PrefixRoutes

GROUPS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
"""bounds of the histogram of group sizes"""


def metrics(service: Context, hooks: Webhooks) -> Handler:
    """Return the handler of `/metrics`, in the format that the `Accept` header asks for."""
    registry = CollectorRegistry()
    registry.register(_Figures(service, hooks))
    ProcessCollector(registry=registry)
    groups = Histogram(
        "fieldfare_group_events", "Events written to the log together", buckets=GROUPS, registry=registry
    )

    def watch(step: Step) -> None:
        groups.observe(len(step.entries))

    service.node.watchers.add(watch)

    async def show(call: Call) -> Response:
        encode, kind = choose_encoder(call.request.headers.get("accept", ""))
        return Response(encode(registry), media_type=None, headers={"Content-Type": kind})

    return show


class _Figures(Collector):
    """The collector that reads the metrics from a node."""

    def __init__(self, service: Context, hooks: Webhooks) -> None:
        self._service = service
        self._hooks = hooks

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of the node, with their present values."""
        yield from self._traffic()
        yield from self._state()
        yield from self._links()
        yield from self._webhooks()

    def _traffic(self) -> Iterator[Metric]:
        traffic = self._service.node.counters
        yield CounterMetricFamily("fieldfare_events_published", "Events accepted from publishers", traffic.events_in)
        yield CounterMetricFamily("fieldfare_deliveries", "Events delivered to clients", traffic.deliveries)
        yield CounterMetricFamily("fieldfare_refused", "Requests of clients that the node refused", traffic.refused)
        yield CounterMetricFamily("fieldfare_matching_seconds", "Seconds of matching and routing", traffic.busy)
        frames = CounterMetricFamily("fieldfare_frames", "Frames on the WebSockets of clients", labels=["direction"])
        frames.add_metric(["in"], traffic.frames_in)
        frames.add_metric(["out"], traffic.frames_out)
        yield frames
        size = CounterMetricFamily("fieldfare_frame_bytes", "Bytes in these frames", labels=["direction"])
        size.add_metric(["in"], traffic.bytes_in)
        size.add_metric(["out"], traffic.bytes_out)
        yield size

    def _state(self) -> Iterator[Metric]:
        node = self._service.node
        sessions = node.core.sessions.values()
        about = {"name": node.name, "version": our_version(), "strategy": node.config.strategy}
        yield InfoMetricFamily("fieldfare_node", "The node", about)
        yield GaugeMetricFamily("fieldfare_ready", "1 if the node accepts requests", node.ready)
        yield GaugeMetricFamily("fieldfare_start_time_seconds", "When the node started", node.counters.started)
        present = GaugeMetricFamily("fieldfare_sessions", "Sessions", labels=["state"])
        here = sum(session.connected for session in sessions)
        present.add_metric(["here"], here)
        present.add_metric(["away"], len(sessions) - here)
        yield present
        clients = node.core.broker.clients.all.values()
        wanted = sum(len(client.subscriptions) for client in clients)
        yield GaugeMetricFamily("fieldfare_subscriptions", "Subscriptions of all sessions", wanted)
        waiting = [len(session.pending) for session in sessions]
        yield GaugeMetricFamily("fieldfare_pending", "Events that wait for sessions", sum(waiting))
        yield GaugeMetricFamily("fieldfare_pending_most", "Events that wait for one session", max(waiting, default=0))
        dropped = sum(session.dropped for session in sessions)
        yield GaugeMetricFamily("fieldfare_dropped", "Events that the present sessions have missed", dropped)
        yield GaugeMetricFamily("fieldfare_table_entries", "Entries of the routing table", node.core.broker.entries)
        routes = node.core.broker.routes
        if isinstance(routes, PrefixRoutes):
            forwarded = CounterMetricFamily(
                "fieldfare_forwarded", "Events forwarded by tag or by content", labels=["by"]
            )
            forwarded.add_metric(["tag"], routes.by_tag)
            forwarded.add_metric(["content"], routes.by_content)
            yield forwarded
            nodes = GaugeMetricFamily("fieldfare_tree_nodes", "Nodes of the prefix tree", labels=["part"])
            loose = GaugeMetricFamily(
                "fieldfare_tree_loose", "Alternatives of filters without nodes in the prefix tree", labels=["part"]
            )
            for one in routes.status:
                nodes.add_metric([str(one.part)], one.nodes)
                loose.add_metric([str(one.part)], one.loose)
            yield nodes
            yield loose
        log = node.storage.log
        yield GaugeMetricFamily("fieldfare_log_bytes", "Size of the log", log.bytes)
        yield GaugeMetricFamily("fieldfare_log_first_position", "The oldest event in the log", log.first)
        yield GaugeMetricFamily("fieldfare_log_last_position", "The last event in the log", log.last)

    def _links(self) -> Iterator[Metric]:
        node, up = self._service.node, self._service.hood.up
        is_up = GaugeMetricFamily("fieldfare_link_up", "1 if the neighbour is connected", labels=["neighbour"])
        outbox = GaugeMetricFamily(
            "fieldfare_link_outbox", "Messages that the neighbour has not acknowledged", labels=["neighbour"]
        )
        for name, link in node.core.links.items():
            is_up.add_metric([name], name in up)
            outbox.add_metric([name], len(link.outbox))
        yield is_up
        yield outbox
        forwards = CounterMetricFamily(
            "fieldfare_link_forwards", "Events of a neighbour, wanted here or not", labels=["neighbour", "wanted"]
        )
        for name, counts in node.core.broker.forwards.items():
            forwards.add_metric([name, "yes"], counts.wanted)
            forwards.add_metric([name, "no"], counts.unwanted)
        yield forwards
        labels = ["neighbour", "direction"]
        for what, text in (("events", "Events"), ("tells", "Changes of filters"), ("bytes", "Bytes")):
            family = CounterMetricFamily(f"fieldfare_link_{what}", f"{text} on a link", labels=labels)
            for name, traffic in node.counters.links.items():
                for direction in ("in", "out"):
                    family.add_metric([name, direction], getattr(traffic, f"{what}_{direction}"))
            yield family

    def _webhooks(self) -> Iterator[Metric]:
        total = self._hooks.total
        family = GaugeMetricFamily("fieldfare_webhooks", "Subscriptions with a sink", labels=["state"])
        active = sum(hook.active for hook in self._hooks.all.values())
        family.add_metric(["active"], active)
        family.add_metric(["pending"], len(self._hooks.all) - active)
        yield family
        yield CounterMetricFamily("fieldfare_webhook_deliveries", "Events that sinks accepted", total.delivered)
        yield CounterMetricFamily("fieldfare_webhook_retries", "Repeated attempts to deliver", total.retries)
        yield CounterMetricFamily("fieldfare_dead_letters", "Events that sinks did not accept", total.dead)
