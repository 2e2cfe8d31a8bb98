from __future__ import annotations

from pathlib import Path

import pytest

from fieldfare.pipeline.job.config import PipelineError, parse, read

WHOLE = """
name = "market"
state = "state"
every = "5 seconds"

[source]
kind = "log"
path = "node-data"
max_rows = 1000

[normalise]
fields = "symbol string, price double"
late = "1 hour"

[match]
subscriptions = ["http://127.0.0.1:7400", "http://127.0.0.1:7401"]

[[sink]]
kind = "lake"
path = "deliveries"

[[sink]]
kind = "webhooks"
of = "late"
url = "https://example.org/hook"

[report]
node = "http://127.0.0.1:7400"

[spark]
master = "local[2]"
spark.driver.memory = "2g"
spark.sql.ansi.enabled = true
"""


def test_a_pipeline_is_read_and_its_paths_are_relative_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(WHOLE)
    found = read(tmp_path / "p.toml")
    assert found.state == str(tmp_path / "state")
    assert found.source.options == {"path": str(tmp_path / "node-data"), "max_rows": 1000}
    assert found.sink[0].options["path"] == str(tmp_path / "deliveries")
    assert found.sink[1].options["url"] == "https://example.org/hook"
    assert found.spark == {"master": "local[2]", "spark.driver.memory": "2g", "spark.sql.ansi.enabled": "true"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('kind = "log"', 'kind = "lag"'),
            "line 7: source.kind: 'lag' is not valid; did you mean 'log'? (choices: 'log', 'node', 'files',",
        ),
        (('path = "node-data"', ""), "line 6: source: a log needs the setting 'path'"),
        (("[match]", "[macht]"), "there is no setting 'macht'; did you mean 'match'?"),
        (("late =", "lite ="), "line 13: normalise: there is no setting 'lite'; did you mean 'late'?"),
        (('late = "1 hour"', ""), "sink[1]: nothing is late unless normalise.late says after how long"),
        (('name = "market"', 'name = "a b"'), "matching regex"),
        (
            ('path = "deliveries"', "path = [1]"),
            "line 20: sink[0].path: expected a boolean or an integer or a number or a string, got an array",
        ),
        (('["http://127.0.0.1:7400", "http://127.0.0.1:7401"]', '["a.csv"]'), "a list is of nodes, such as http"),
        (
            ('kind = "lake"', 'kind = "lak"'),
            "line 19: sink[0].kind: there is no sink of the kind 'lak'; did you mean 'lake'? (choices: lake, parquet,",
        ),
        (('kind = "webhooks"\nof = "late"', "kind = 1"), "sink[1].kind: expected a string, got an integer"),
        (("every =", "every"), "line"),
    ],
)
def test_what_is_wrong_is_named(change: tuple[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        parse(WHOLE.replace(*change, 1))
    assert said in str(caught.value)


def test_deliveries_need_a_match_and_sinks_differ() -> None:
    start = WHOLE.index("[match]")
    with pytest.raises(PipelineError, match=r"sink\[0\]: there are no deliveries without \[match\]"):
        parse(WHOLE[:start] + WHOLE[WHOLE.index("[[sink]]") :])
    with pytest.raises(PipelineError, match="two sinks have the same path: deliveries"):
        parse(WHOLE + '[[sink]]\nkind = "lake"\npath = "deliveries"\n')
    with pytest.raises(PipelineError, match="the setting 'sink' is missing"):
        parse(WHOLE[: WHOLE.index("[[sink]]")])
