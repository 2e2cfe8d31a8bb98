"""JSON texts that try every rule of a reader, for hypothesis: repeated names, tags, dots, numbers without a value."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["a", "b", "c", "d", "k", "s", "u", "x", "time", "b.c", "a.b", "c.d", "b.c.d", "", ".", "$time", "$literal",
         "$valid", "\\u0061", "é", "\\ud800", "a\\\\", "specversion"]  # fmt: skip
SCALARS = ["1", "2", "-0", "0.5", "1e2", "1E+400", "1e-400", "1" * 18, "1" * 19, "8" * 19, "9" * 19, "1" * 20, "-" + "1" * 19, "9223372036854775807",
           "9223372036854775808", "1" * 200 + ".5", "01", "1.", ".5", "-", "1e", "NaN", "true", "false", "null", "nul",
           '"x"', '"axb"', '""', '"\\n"', '"\\x"', '"\\u00e9"', '"é"', '"\\ud800"', '"\\ud83d\\ude00"', '"\n"', '"',
           '"2026-11-15T09:30:00Z"', '"a.b"', '"{[,"', '"\\""', "{}", "[]"]  # fmt: skip
spaces = st.sampled_from(["", "", "", " ", "\t", "\n", "\r"])


def _object(members: list[tuple[str, str, str, str]]) -> str:
    return "{" + ",".join(f'"{name}"{left}:{right}{value}' for name, left, right, value in members) + "}"


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.tuples(st.sampled_from(NAMES), spaces, spaces, inner), max_size=4)
    return members.map(_object) | st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")


texts = st.recursive(st.sampled_from(SCALARS), _nested, max_leaves=12)
objects = st.lists(st.tuples(st.sampled_from(NAMES), spaces, spaces, texts), max_size=5).map(_object)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(objects).encode(errors="surrogatepass"))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(raw)))
        raw[place : place + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\xc3", b"0", b".", b"\n"])
        )
    return bytes(raw)


damaged = _damaged()
"""texts of which a few bytes were changed"""
