"""Errors for bad input: a sentence on standard error, exit code 2, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, NoReturn

import typer

from fieldfare.extras import advice

REFUSED: Final = 2
"""exit code for input that cannot be used"""
DAMAGED: Final = 1
"""exit code for a damaged folder of a node, repaired or not"""


class Errors(StrEnum):
    """The choice of a user for one bad input among many: stop at it, or skip it."""

    STOP = "stop"
    SKIP = "skip"


class InputError(ValueError):
    """An error in the input of a command, with the place in a file: `trades.csv:12: …`."""

    def __init__(self, place: str, problem: object) -> None:
        super().__init__(f"{place}: {problem}" if place else str(problem))


@contextmanager
def reported(extra: str = "") -> Iterator[None]:
    """Report bad input instead of letting the error through; also a decorator for commands.

    A module that is not installed is reported, too, with the extra to install; `extra` names the extra of a command.
    """
    try:
        yield
    except InputError as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # `fieldfare ... | head`: typer ends the program quietly
    except ModuleNotFoundError as error:
        if not (sentence := advice(error, extra)):
            raise
        fail(sentence)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def fail(problem: str, code: int = REFUSED) -> NoReturn:
    """Print an error and exit with a code."""
    typer.secho("error: ", fg="red", err=True, nl=False)
    typer.echo(problem, err=True)
    raise typer.Exit(code)
