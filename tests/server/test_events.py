"""Progress over server-sent events: it is gone on with where it broke off, and has a bound."""

import asyncio
import json
from typing import Any

import pytest

from tests.server.served import Office, kind_of
from tests.server.test_commits import run

THREE = [{"tool": "refund", "arguments": {"invoice": str(n), "amount_cents": n}} for n in (1, 2, 3)]


async def done_plan(here: Office) -> str:
    """Have three refunds made; return where their events are."""
    answer = await here.post("/v1/plans", {"calls": THREE}, key="p1")
    assert answer.json()["state"] == "done"
    return f"/v1/plans/{answer.json()['plan_id']}/events"


async def told(here: Office, path: str, **how: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the events of a stream, each with its id."""
    answer = await here.get(path, **how)
    assert answer.status_code == 200, answer.text
    found: list[tuple[int, dict[str, Any]]] = []
    for block in answer.text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        found.append((int(lines["id"]), json.loads(lines["data"])))
    return found


@pytest.mark.req("S1-51")
def test_who_comes_again_is_told_what_came_since_and_nothing_twice() -> None:
    async def script(here: Office) -> None:
        path = await done_plan(here)
        ((last, end),) = await told(here, path)
        assert (end["state"], end["step"]) == ("done", 3)
        every = await told(here, path, Last_Event_ID="1")
        steps = [event["step"] for _, event in every]
        assert steps == sorted(steps)
        assert set(steps) == {1, 2, 3}
        assert [id for id, _ in every] == sorted({id for id, _ in every})
        assert every[-1] == (last, end)
        assert await told(here, path, Last_Event_ID=str(every[1][0])) == every[2:]

    run(script)


def test_who_has_seen_all_of_what_is_over_is_not_to_come_again() -> None:
    async def script(here: Office) -> None:
        path = await done_plan(here)
        ((last, _),) = await told(here, path)
        for seen in (last, last + 1):
            answer = await here.get(path, Last_Event_ID=str(seen))
            assert (answer.status_code, answer.content) == (204, b"")
        assert kind_of(await here.get(path, who="bob", Last_Event_ID="9")) == (404, "absent")

    run(script)


@pytest.mark.parametrize("seen", ["", "x", "-1", "1.5"])
def test_an_id_that_is_none_of_ours_begins_with_how_it_stands(seen: str) -> None:
    async def script(here: Office) -> None:
        path = await done_plan(here)
        ((_, end),) = await told(here, path, Last_Event_ID=seen)
        assert end["state"] == "done"

    run(script)


@pytest.mark.parametrize("hangs_up", [False, True])
def test_only_so_many_watch_at_once_and_whoever_goes_leaves_their_place(hangs_up: bool) -> None:
    async def script(here: Office) -> None:
        begun = await here.propose("slow", {"what": "x"}, Prefer="respond-async")
        path = f"/v1/plans/{begun.json()['plan_id']}/events"
        await here.ledger.begun.wait()
        watches = asyncio.create_task(here.get(path))
        while not here.rt.driver.setting.listeners.of:
            await asyncio.sleep(0)
        answer = await here.get(path)
        assert kind_of(answer) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        if hangs_up:
            watches.cancel()
            await asyncio.wait([watches])
        here.ledger.opened.set()
        if not hangs_up:
            assert (await watches).status_code == 200
        assert (await here.get(path)).status_code == 200
        assert here.rt.driver.setting.listeners.of == {}

    run(script, streams_max=1)
