"""The commands of the laboratory: `fieldfare lab` runs experiments again, `fieldfare bench` measures.

The entry points in `lab/pyproject.toml` name the two Typer applications, and `fieldfare.cli` loads them.
"""

from __future__ import annotations

from typing import Final

import typer

from fieldfare.cli.help import help_of
from fieldfare_lab.cli import bench, bench_core, bench_node, bench_patterns, bench_pipeline, bench_route, city, lab

benches: Final = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure how fast Fieldfare is.")
benches.command("core", help=help_of(bench_core.command))(bench_core.command)
benches.command("match", help=help_of(bench.command))(bench.command)
benches.command("node", help=help_of(bench_node.command))(bench_node.command)
benches.command("patterns", help=help_of(bench_patterns.command))(bench_patterns.command)
benches.command("pipeline", help=help_of(bench_pipeline.command))(bench_pipeline.command)
benches.command("route", help=help_of(bench_route.command))(bench_route.command)

labs: Final = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run the experiments of the field again.")
labs.command("tables", help=help_of(lab.tables))(lab.tables)
labs.command("routing", help=help_of(lab.routing))(lab.routing)
labs.command("mobility", help=help_of(lab.mobility))(lab.mobility)
labs.command("prefix", help=help_of(lab.prefix))(lab.prefix)
labs.command("city", help=help_of(city.city))(city.city)
