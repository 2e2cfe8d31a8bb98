"""Input that cannot be used: said in a sentence on stderr, with exit code 2 and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, NoReturn

import typer

from fieldfare.extras import advice

REFUSED: Final = 2
"""the exit code for input that cannot be used"""
DAMAGED: Final = 1
"""the exit code for a node's folder that is damaged, or was"""


class Errors(StrEnum):
    """What to do where one of many inputs cannot be used."""

    STOP = "stop"
    SKIP = "skip"


class InputError(ValueError):
    """What is wrong with the input, and where it is: `trades.csv:12`."""

    def __init__(self, place: str, problem: object) -> None:
        super().__init__(f"{place}: {problem}" if place else str(problem))


@contextmanager
def reported(extra: str = "") -> Iterator[None]:
    """Report bad input instead of letting the error through; also a decorator for commands.

    If a module is missing, that is reported, too, with what to install: the `extra` that a command needs as a whole.
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
    """Say what is wrong and end."""
    typer.secho("error: ", fg="red", err=True, nl=False)
    typer.echo(problem, err=True)
    raise typer.Exit(code)
