"""`/admin/pipelines`: Spark pipelines report their progress to the node, and the dashboard shows the reports."""

from __future__ import annotations

from starlette.responses import Response

from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, Handler, answer, read
from fieldfare.node.pipeline_reports import PipelineReport, Reports


def handlers() -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method; the reports are kept in memory."""
    reports = Reports()

    async def shown(call: Call) -> Response:
        return answer(reports.shown(call.service.node.clock()))

    async def keep(call: Call) -> Response:
        name, report = call.request.path_params["name"], await read(call, PipelineReport)
        if report.name != name:
            raise Problem(
                400, f"the report is of {report.name}, and the path names {name[:200]}: use one name", field="name"
            )
        reports.keep(report, call.service.node.clock())
        return Response(None, 204)

    async def forget(call: Call) -> Response:
        name = call.request.path_params["name"]
        if not reports.forget(name):
            raise Problem(404, f"there is no pipeline {name[:200]}")
        return Response(None, 204)

    return {
        "/admin/pipelines": {"get": shown},
        "/admin/pipelines/{name:path}": {"put": keep, "delete": forget},
    }
