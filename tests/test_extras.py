"""A module that is not installed is said in one line, with what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fieldfare.extras import EXTRAS

WITHOUT = """
import sys
missing, *sys.argv = sys.argv[1:]
sys.modules.update(dict.fromkeys(missing.split(",")))  # as if they were not there
if sys.argv[0] == "fieldfare":
    from fieldfare.cli import main
    main()
else:
    exec(sys.argv[0])
"""
NODE = "httptools,httpx,jwt,prometheus_client,starlette,uvicorn,uvloop,websockets"


def run(missing: str, *arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-c", WITHOUT, missing, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (NODE, ("up", "--port", "0", "--name", "a"), "node"),
        ("websockets", ("up", "--port", "0", "--name", "a"), "node"),
        ("prometheus_client", ("up", "--port", "0", "--name", "a"), "node"),
        (NODE, ("demo",), "node"),
        ("websockets", ("pub", "{}"), "client"),
        ("websockets", ("sub", "x > 0"), "client"),
        ("pyspark,py4j,pandas", ("pipeline", "run", "no.toml"), "spark"),
        ("pyspark,py4j,pandas", ("pipeline", "check", "no.toml"), "spark"),
        ("pyspark,py4j,pandas", ("pipeline", "explain", "no.toml"), "spark"),
    ],
)
def test_a_command_says_what_to_install(missing: str, arguments: tuple[str, ...], extra: str) -> None:
    code, lines = run(missing, "fieldfare", *arguments)
    assert code == 2
    (line,) = lines
    assert line.startswith("error: ")
    assert line.endswith(f"pip install 'fieldfare[{extra}]'")


@pytest.mark.parametrize("name", ["connect", "connect_sync"])
def test_the_client_says_what_to_install(name: str) -> None:
    _, lines = run("websockets", f"import fieldfare as ff; ff.{name}('ws://127.0.0.1:7400')")
    assert lines[-1] == "ModuleNotFoundError: websockets is not installed: pip install 'fieldfare[client]'"
    assert not any("During handling" in line for line in lines)


def test_without_numba_matching_goes_on() -> None:
    ask = "import fieldfare as ff; index = ff.Index(); index.add(1, ff.parse('x > 0')); print(index.match({'x': 1}))"
    code, lines = run("numba,ahocorasick", ask)
    assert (code, len(lines)) == (0, 1), lines
    code, lines = run("numba", "import fieldfare as ff; ff.Index(kernels='numba')")
    assert "pip install 'fieldfare[fast]'" in lines[-1]
    assert run("numba", "fieldfare", "warmup")[0] == 0


def test_every_module_of_an_extra_is_known() -> None:
    """By the name under which it is imported."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    names = {"pyjwt": "jwt", "pyahocorasick": "ahocorasick", "prometheus-client": "prometheus_client"} | {
        "confluent-kafka": "confluent_kafka",
        "nats-py": "nats",
    }
    for extra in ("client", "fast", "kafka", "mqtt", "nats", "node", "spark"):
        for text in project["optional-dependencies"][extra]:
            package = text.partition(">")[0].strip()
            assert EXTRAS[names.get(package, package)] in (extra, "client")
