from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fieldfare.pipeline import spark_java


def test_a_session_counts(spark: SparkSession) -> None:
    assert spark.range(1000).count() == 1000
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_the_packaged_java_runs_without_the_module_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    home = spark_java.home(tmp_path)
    assert home is not None
    assert spark_java.version(home / "bin" / "java") == 21
    assert "jdk.incubator.vector" in (home / "bin" / "java").read_text()


def test_a_java_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(spark_java.NoJava, match=r"JAVA_HOME is .* Spark takes 17 or 21"):
        spark_java.home()
