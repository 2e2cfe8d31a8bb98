"""`fieldfare warmup`: compile the matching kernels before their first use."""

from __future__ import annotations

import time

import typer

from fieldfare.cli.errors import reported


@reported()
def command() -> None:
    """Compile the matching kernels now, and keep them on disk.

    Without this command numba compiles the kernels at their first use, for some ten seconds. Until then, and without
    numba, NumPy gives the same answers, only slower. Run the command once after an installation; `make setup` does.

    Examples:
        fieldfare warmup
    """
    from fieldfare.matching import backend

    started = time.perf_counter()
    before = backend.cached()
    try:
        backend.choose("numba")
        from fieldfare.patterns.row_patterns import recognition
        from fieldfare.routing.prefix import kernels  # after `choose`, which says if numba is missing

        kernels.warm_up()
        recognition.warm_up()
    except ModuleNotFoundError as error:
        typer.echo(f"{error}. NumPy is used instead.")
        return
    how = "loaded" if before else "compiled"
    typer.echo(f"Kernels {how} in {time.perf_counter() - started:.1f} s.")
