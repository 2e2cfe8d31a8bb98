"""A test that breaks the shared Java machine breaks no test after it."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from tests.pipeline.jvm import Jvm, answers

pytestmark = pytest.mark.long  # it starts three Java machines


def test_answers_that_belong_to_other_calls_are_noticed(jvm: Jvm) -> None:
    """The cascade of 75 failures: a signal between a call and its answer, and all later answers were one behind."""
    jvm.session()
    assert SparkContext._gateway is not None
    connection = SparkContext._gateway._gateway_client.get_thread_connection()
    connection.socket.sendall(b"c\nz:java.lang.Integer\nparseInt\ns7\ne\n")  # and nobody reads what comes
    assert not answers()
    assert jvm.session().range(3).count() == 3


def test_a_machine_that_was_killed_is_started_anew(jvm: Jvm) -> None:
    jvm.session()
    assert SparkContext._gateway is not None
    SparkContext._gateway.proc.kill()
    assert not answers()
    again = jvm.session()
    assert again.range(3).count() == 3
    jvm.suspect = True  # as after a failure
    assert jvm.session() is again
