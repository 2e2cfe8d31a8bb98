from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.node.http.helpers import (
    api,
    listening,
    publish,
    sink,
    subscribed,
    until,
)

ATTEMPTS = 3
plans = st.lists(st.lists(st.sampled_from([204, 204, 500, 503, 429, 404, 302]), min_size=ATTEMPTS, max_size=ATTEMPTS))


def expected(plan: list[list[int]]) -> tuple[list[str], list[str]]:
    """The model: which requests a sink gets, and which events are dead letters."""
    requests, dead = [], []
    for number, statuses in enumerate(plan):
        for attempt, status in enumerate(statuses, 1):
            requests.append(str(number))
            again = status >= 500 or status == 429
            if status != 204 and (not again or attempt == ATTEMPTS):
                dead.append(str(number))
            if not again:
                break
    return requests, dead


@settings(max_examples=8)
@given(st.lists(plans, min_size=1, max_size=4))
def test_whatever_sinks_answer_events_come_in_order_or_are_dead_letters(all_plans: list[list[list[int]]]) -> None:
    async def main() -> None:
        async with api() as found, contextlib.AsyncExitStack() as stack:
            wait = await stack.enter_async_context(listening(found.service, "type = 'fieldfare.deadletter'"))
            all_sinks = [await stack.enter_async_context(sink()) for _ in all_plans]
            for place, (plan, to) in enumerate(zip(all_plans, all_sinks, strict=True)):
                to.answers = lambda headers, tries, plan=plan: plan[int(headers["ce-id"])][tries - 1]  # type: ignore[misc]
                config = {"maxattempts": ATTEMPTS, "backoff": 0.001}
                await subscribed(found, to, types=[f"t{place}"], config=config)
            for place, plan in enumerate(all_plans):
                await publish(found, *range(len(plan)), type=f"t{place}")
            models = [expected(plan) for plan in all_plans]
            letters = await wait(sum(len(dead) for _, dead in models))
            for place, (to, (requests, dead)) in enumerate(zip(all_sinks, models, strict=True)):
                await to.wait(len(requests))
                assert to.ids() == requests
                mine = [letter["data.event.id"] for letter in letters if letter["data.event.type"] == f"t{place}"]
                assert mine == dead
            await until(
                lambda: not any(one.pending for one in found.service.node.core.sessions.values() if one.durable)
            )

    asyncio.run(main())
