"""Docstrings become no vaguer: pronouns and docstrings that only repeat a name stay below their ceilings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose

HERE = Path("place/module.py")


def only(source: str, path: Path = HERE) -> prose.Docstring:
    (docstring,) = prose.docstrings_of(source, path)
    return docstring


def function(name: str, text: str) -> prose.Docstring:
    return only(f'def {name}():\n    """{text}"""\n')


@pytest.fixture(scope="module")
def measured() -> prose.Count:
    return prose.total(docstring for place in prose.places() for docstring in prose.docstrings_in(place))


HOW_TO_SEE = (
    "see the worst modules with `python -m tools.prose`, and the docstrings with `python -m tools.prose --module PATH`"
)


def test_pronouns_stay_below_their_ceiling(measured: prose.Count) -> None:
    ceiling, _ = prose.ceilings()
    assert measured.rate <= ceiling, (
        f"{measured.rate:.1f} pronouns for each 1,000 words of docstrings, ceiling {ceiling}: {HOW_TO_SEE}"
    )


def test_echoes_stay_below_their_ceiling(measured: prose.Count) -> None:
    _, ceiling = prose.ceilings()
    assert measured.echoes <= ceiling, (
        f"{measured.echoes} docstrings only repeat a name, ceiling {ceiling}: {HOW_TO_SEE}"
    )


def test_pronouns_are_counted_whatever_their_case_and_contractions_too() -> None:
    docstring = function("f", "What it does. It's the one that counts, which is known, and theirs.")
    assert docstring.pronouns == {"what": 1, "it": 2, "one": 1, "that": 1}
    assert prose.total([docstring]).rate == pytest.approx(1000 * 5 / 13)


def test_no_docstrings_no_rate() -> None:
    assert prose.total([]).rate == 0.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("send", "Send it."),
        ("anything", "Four words at most."),
        ("match_batch", "Match all of the batches that are matched."),
        ("FilterTable", "A table of the filters, and for filters."),
        ("read_HTTP_header", "Reads the header of an HTTP header."),
    ],
)
def test_echoes(name: str, text: str) -> None:
    assert function(name, text).is_echo


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("send", "Send a frame to each connected neighbour."),
        ("FilterTable", "A table of filters with their interfaces."),
    ],
)
def test_docstrings_that_say_more(name: str, text: str) -> None:
    assert not function(name, text).is_echo


def test_modules_classes_and_functions_are_read_with_their_lines() -> None:
    source = '"""M."""\n\nclass C:\n    """D."""\n    x = 1\n    """no docstring"""\n    async def f(self):\n        """E."""\n'
    found = [(each.name, each.line, each.text) for each in prose.docstrings_of(source, HERE)]
    assert found == [("module", 1, "M."), ("C", 4, "D."), ("f", 8, "E.")]


def test_a_package_without_code_is_left_out_and_one_with_code_has_its_folder_as_its_name() -> None:
    path = Path("place/thing/__init__.py")
    assert list(prose.docstrings_of('"""Things."""\n', path)) == []
    assert only('"""Things."""\nX = 1\n', path).name == "thing"


def test_sums_by_package_and_by_module(tmp_path: Path) -> None:
    folder = tmp_path / "product" / "part" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text('"""It is the one."""\n')
    (folder.parent / "b.py").write_text('"""A module about nouns and about verbs."""\n')
    (folder / "tests").mkdir()
    (folder / "tests" / "c.py").write_text('"""It."""\n')
    found = list(prose.docstrings_in(tmp_path))
    assert prose.by_package(found, [tmp_path]) == {"product/part": prose.Count(2, 11, 2, 1)}
    assert prose.by_module(found)[folder / "a.py"] == prose.Count(1, 4, 2, 1)


def test_the_command_shows_offenders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""A module about nouns and about verbs."""\n\ndef send():\n    """Send it."""\n')
    assert prose.main(["--module", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"{path}:4: send: ECHO, it" in shown
    assert "about verbs" not in shown
    assert prose.main(["--module", str(tmp_path / "missing.py")]) == 2


def test_the_command_shows_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main([]) == 0
    shown = capsys.readouterr().out
    assert "fieldfare/node" in shown
    assert "ceilings in pyproject.toml" in shown
