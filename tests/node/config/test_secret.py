from __future__ import annotations

import traceback
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.config.test_loader import HIDDEN, MISTAKES, read

from fieldfare.node.config import (
    Config,
    ConfigError,
    Secret,
)

passwords = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789!$%&/()=?", min_size=12, max_size=60).map(
    "Zq9!{}".format
)


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(HIDDEN)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!s:>20}", "%s" % secret, repr([secret])]  # noqa: UP031
    shown += [repr(Config(join_token=secret)), str(msgspec.structs.asdict(Config(join_token=secret)))]
    assert all("***" in text and HIDDEN not in text for text in shown)
    with pytest.raises(TypeError) as caught:
        msgspec.json.encode(Config(join_token=secret))
    assert HIDDEN not in str(caught.value)
    assert secret == Secret(HIDDEN) != Secret(HIDDEN + "x")
    assert secret != HIDDEN
    assert len({secret, Secret(HIDDEN)}) == 1
    assert (repr(Secret("")), Secret("").is_empty, Secret("ä").size) == ("Secret()", True, 2)


@given(
    passwords,
    st.sampled_from(
        [
            *(text for text, _ in MISTAKES if "security" not in text),
            "",
            "security.algorithms = ['none']",
            "security.algorithms = ['HS512', 'HS256']",
            "security.anonymous = 'nobody'",
            "[security.roles.x]\npublish = 1",
            "security.secret.x = 1",
            "security.public_key = 'node.toml'",
        ]
    ),
    st.sampled_from(["environment", "file", "url", "flag"]),
)
def test_no_secret_is_in_what_is_shown_or_said(
    tmp_path_factory: pytest.TempPathFactory, password: str, mistake: str, where: str
) -> None:
    environment: dict[str, str] = {}
    flags: dict[str, object] = {}
    table = ""
    if where == "environment":
        environment = {"FIELDFARE_TOKEN_SECRET": password, "FIELDFARE_JOIN_TOKEN": password}
    elif where == "flag":
        flags = {"security.secret": password, "join_token": password}
    elif where == "url":
        flags = {"join": [f"ws://ana:{password}@rome"], "public_url": f"ws://rome?{password}"}
    else:
        table = f"\n[[bridge]]\ntype = 'mqtt'\npassword = '{password}'\nurl = ['mqtt://a:{password}@b']\n"
    folder = tmp_path_factory.mktemp("config")
    assert password not in _shown(folder, mistake + table, environment, flags)


def _shown(folder: Path, text: str, environment: dict[str, str], flags: dict[str, object]) -> str:
    """The settings, or what is wrong with them, as a log would have it."""
    try:
        config = read(folder, text, environment, **flags)
    except ConfigError as error:
        return "".join(traceback.format_exception(error)) + repr(error)
    return f"{config} {config!r} {msgspec.structs.asdict(config)}"
