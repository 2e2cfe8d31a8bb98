"""Subscriptions of clients, some told wider than they are, against a twin that knows nothing but sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters import EVERYTHING, NOTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.clients import Clients, Told

FILTERS = [NOTHING, *(parse(f"x BETWEEN {low} AND {high}") for low in range(3) for high in range(low, 3))]
keys = st.tuples(st.sampled_from("ab"), st.sampled_from("12"))


def widened(filter: Filter, wider: Filter | None) -> Told:
    return Told(filter, wider if wider is None or wider.covers(filter) else EVERYTHING)


told = st.builds(widened, st.sampled_from(FILTERS), st.one_of(st.none(), st.sampled_from(FILTERS)))
changes = st.one_of(
    st.tuples(st.just("static"), keys, st.sampled_from([None, *FILTERS[1:]])),
    st.tuples(st.just("leave"), keys, st.none()),
    st.tuples(st.just("dynamic"), keys, st.dictionaries(st.sampled_from("12"), told, min_size=1)),
)


@given(st.lists(changes, max_size=12))
def test_neighbours_hear_of_all_wider_filters_and_clients_get_their_own(
    steps: list[tuple[str, tuple[str, str], object]],
) -> None:
    clients, twin, told_now = Clients(), dict[tuple[str, str], Told](), set[Filter]()
    for kind, (client, id), what in steps:
        if kind == "static":
            updates = [clients.set("subscriptions", client, id, what)]  # type: ignore[arg-type]
            twin.pop((client, id), None)
            twin |= {(client, id): Told(what)} if isinstance(what, Filter) else {}
        elif kind == "leave":
            updates = clients.leave(client)
            twin = {key: one for key, one in twin.items() if key[0] != client}
        else:
            assert isinstance(what, dict)
            updates = [clients.set_subscriptions(client, what)]
            twin |= {(client, one): new for one, new in what.items()}
        for update in updates:
            assert not told_now & set(update.added)
            assert len(set(update.added)) == len(update.added)
            told_now |= set(update.added)
            assert told_now.issuperset(update.removed)
            told_now -= set(update.removed)
        in_force = [one.filter if one.wider is None else one.wider for one in twin.values()]
        assert told_now == {one for one in in_force if not one.is_empty}
        for x in range(3):
            wanted = {(name, one) for (name, one), new in twin.items() if new.filter.matches({"x": x})}
            assert {(name, one) for name, ids in clients.match({"x": x}).items() for one in ids} == wanted
