"""A bucket for tests: a server of S3 for each worker of pytest, which the environment names during a test."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from unittest.mock import patch

import pytest

BUCKET = "fieldfare"


_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Start a server on loopback with a bucket, and yield its address.

    A process, as deltalake holds Python's lock in some requests: a server in a thread could not answer them.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        address = server.stdout.readline().strip()
        assert address
        make_bucket(address)
        yield address
        server.stdin.close()


def make_bucket(address: str) -> None:
    """Make the bucket of the tests at a server."""
    import boto3  # noqa: PLC0415 - slow to import

    with patch.dict(os.environ, environment(address)):
        boto3.client("s3").create_bucket(Bucket=BUCKET)


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name the server in the environment, and return the URL of a place in its bucket."""
    for name, value in environment(s3_server).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def environment(server: str) -> dict[str, str]:
    """The variables that name a server of S3, and who asks."""
    return {
        "AWS_ACCESS_KEY_ID": "fieldfare",
        "AWS_SECRET_ACCESS_KEY": "fieldfare-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server,
        "AWS_ALLOW_HTTP": "true",
    }
