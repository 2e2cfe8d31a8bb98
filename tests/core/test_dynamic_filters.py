"""Single cases of dynamic filters in a core; random runs of several cores are in `tests/simulation/test_core_runs.py`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fieldfare.core.core import Core
from fieldfare.core.inputs import Attach, ChangeFilters, ConnectLink, Input, Leave, LinkUp
from fieldfare.core.parameter_inputs import SetParameters, SubscribeDynamic
from fieldfare.core.state import RequestRefused
from fieldfare.filters import parse
from fieldfare.filters.dynamic import DynamicFilter, Values
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import RowKey
from fieldfare.protocol.messages import FilterUpdate, Role
from fieldfare.routing.broker import Broker
from fieldfare.routing.places import Places

STREET = Places({"1": ["2"], "2": ["1", "3"], "3": ["2", "4"], "4": ["3", "5"], "5": ["4"]}, ahead=2)


def core(places: Places = Places()) -> Core:  # noqa: B008
    made = Core(Broker("b"), places=places)
    done = made.step([Attach("ana", "ana@1"), ConnectLink("near", Role.PEER), LinkUp("near")], 0.0)
    assert not [answer for answer in done.answers if isinstance(answer, Exception)]
    return made


def updates(made: Core, *inputs: object) -> list[FilterUpdate]:
    """Apply inputs in a step of their own; return the filter updates to the neighbour."""
    before = set(made.links["near"].outbox)
    done = made.step(inputs, 1.0)  # type: ignore[arg-type]
    for answer in done.answers:
        if isinstance(answer, Exception):
            raise answer
    new = [data for number, data in made.links["near"].outbox.items() if number not in before]
    return [one for data in new if isinstance(one := wire.decode(data), FilterUpdate)]  # type: ignore[arg-type]


def parsed(*texts: str) -> tuple[Filter, ...]:
    return tuple(map(parse, texts))


def matched(made: Core, **event: object) -> Sequence[str]:
    return tuple(sorted(made.broker.clients.match(event).get("ana", ())))


def test_a_change_of_several_filters_is_one_update() -> None:
    made = core()
    assert updates(made, SubscribeDynamic("ana", "p", "at IN myloc"), SubscribeDynamic("ana", "q", "x < :low")) == []
    first = updates(made, SetParameters("ana", {"myloc": "1", "low": 5}))
    assert first == [FilterUpdate(parsed("at = '1'", "x < 5"))]
    assert updates(made, SetParameters("ana", {"myloc": "2", "low": 6})) == [
        FilterUpdate(parsed("at = '2'", "x < 6"), parsed("at = '1'", "x < 5"))
    ]
    assert matched(made, at="2", x=5) == ("p", "q")
    assert updates(made, SetParameters("ana", {"low": None}))[0].removed == parsed("x < 6")
    assert matched(made, at="1", x=5) == ()


def test_a_walk_needs_an_update_only_every_other_step() -> None:
    made = core(STREET)
    updates(made, SubscribeDynamic("ana", "p", "kind = 'bus' AND at IN myloc"))
    said = [updates(made, SetParameters("ana", {"myloc": place})) for place in "12345"]
    assert [bool(one) for one in said] == [True, False, True, False, False]
    assert said[0] == [FilterUpdate(parsed("at IN ('1', '2', '3') AND kind = 'bus'"))]
    assert matched(made, kind="bus", at="5") == ("p",)
    assert matched(made, kind="bus", at="4") == ()
    assert [one.removed for one in updates(made, Leave("ana"))] == [
        parsed("at IN ('1', '2', '3', '4', '5') AND kind = 'bus'")
    ]


def test_a_refused_change_changes_nothing() -> None:
    made = core(STREET)
    updates(made, SubscribeDynamic("ana", "p", "at IN myloc"), SubscribeDynamic("ana", "q", "x IN :some"))
    updates(made, SetParameters("ana", {"myloc": "1", "some": [3]}))

    def forbidden(filter: DynamicFilter, values: Values) -> Filter:
        found = filter.fill(values)
        if found.matches({"at": "3"}):
            raise RequestRefused("not there")
        return found

    for values, problem in (
        ({"myloc": "6"}, "no place '6'"),
        ({"myloc": "2", "some": 4}, "is a list of values"),
        ({"some": [4], "myloc": "3"}, "not there"),
        ({"a b": 3}, "is no name of a parameter"),
        ({"some": {}}, "is not a value"),
        ({str(number): number for number in range(101)}, "no name of a parameter"),
        ({f"p{number}": number for number in range(101)}, "at most 100 parameters"),
    ):
        with pytest.raises(ValueError, match=problem):
            updates(made, SetParameters("ana", values, fill=forbidden))
        assert made.dynamic.values["ana"] == {"myloc": "1", "some": [3]}
        assert matched(made, at="1", x=3) == ("p", "q")


def test_a_fixed_filter_takes_the_place_of_a_dynamic_one_and_back() -> None:
    made = core()
    updates(made, SetParameters("ana", {"myloc": "1"}), SubscribeDynamic("ana", "p", "at IN myloc"))
    updates(made, ChangeFilters("ana", m.Subscribe("p", parse("at = '3'"))))
    assert updates(made, SetParameters("ana", {"myloc": "2"})) == []
    assert matched(made, at="3") == ("p",)
    updates(made, SubscribeDynamic("ana", "p", "at IN myloc"))
    assert matched(made, at="2") == ("p",)
    updates(made, ChangeFilters("ana", m.Unsubscribe("p")))
    assert not made.dynamic.texts_of("ana")


def test_rows_are_enough_to_go_on_also_for_a_node_without_parameters() -> None:
    made, rows = Core(Broker("b"), places=STREET), dict[str, dict[RowKey, object]]()
    inputs: list[Input] = [
        Attach("ana", "ana@1"), SubscribeDynamic("ana", "p", "at IN myloc AND x < :low"),
        SubscribeDynamic("ana", "q", "y = :unset"), SetParameters("ana", {"myloc": "1", "low": 5}),
    ]  # fmt: skip
    for row in made.step(inputs, 0.0).rows:
        kind = rows.setdefault(row.kind, {})
        kind.pop(row.key, None) if row.value is None else kind.update({row.key: row.value})
    assert rows["subscriptions"] == {("ana", "p"): "at = '1' AND x < 5"}
    again = Core(Broker("b"), rows, places=STREET)
    assert again.dynamic.texts_of("ana") == made.dynamic.texts_of("ana")
    again.step([SetParameters("ana", {"low": 9})], 0.0)
    assert matched(again, at="1", x=8) == ("p",)
    older = Core(Broker("b"), {kind: found for kind, found in rows.items() if kind not in ("dynamic", "parameters")})
    assert matched(older, at="1", x=4) == ("p",)


def test_a_node_held_at_version_2_has_no_parameters() -> None:
    made = Core(Broker("b"), speaks=2)
    (_, answer) = made.step([Attach("ana", "ana@1"), SubscribeDynamic("ana", "p", "at IN myloc")], 0.0).answers
    assert "b speaks version 2, which has no SetParameters" in str(answer)
