"""One module for each command of `fieldfare`; `command` is the function that Typer calls."""
