"""Truths that hold across rooms: who may settle what, what is kept of it, and what decides."""

import asyncio
import inspect
import json
import re
from dataclasses import replace

import pytest

import landed
import landed.tools.function
from landed.core.canonical import Json, fingerprint
from landed.core.changes import Kind
from landed.core.doubt import LookUp, SendAgain, doubt
from landed.core.journal import Entry
from landed.core.operation import State
from landed.core.plan import Plan, Wanted, plan_from
from landed.runtime import acting
from landed.runtime.reader import Reader
from landed.runtime.runtime import Runtime
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME
from tests.core.build import RESENDABLE, operation

DAY_S = 86_400.0
SETTLING = ("state", "outcome", "result", "confirmed", "failed", "evidence", "key")


@pytest.mark.req("S4-10", "S4-11")
def test_no_verb_takes_a_state_an_outcome_or_a_key() -> None:
    """A model, or whoever speaks for one, has no way to say how an operation ended.

    Code that verified what a service said by itself hands it to `receive`, and a person rules by
    `resolve`, with their name; the one face that a model has calls neither.
    """
    verbs = {
        name: inspect.signature(verb).parameters
        for name, verb in inspect.getmembers(Runtime, inspect.isfunction)
        if not name.startswith("_")
    }
    assert {"perform", "propose", "revise", "resolve", "status"} <= set(verbs)
    taken = {(name, each) for name, given in verbs.items() for each in given if each in SETTLING}
    assert taken == {("receive", "evidence")}
    shown = inspect.getsource(acting)
    assert not re.search(r"\.(receive|resolve|approve|decline|offer|retry|undo)\(", shown)


@pytest.mark.field("G3")
@pytest.mark.req("S4-38")
def test_past_the_retention_of_a_key_there_is_a_look_and_no_send() -> None:
    remembers_a_day = replace(RESENDABLE, retention_s=DAY_S, lookup=True, escalate_after_s=1e9)
    unknown = operation(
        State.UNKNOWN, first_sent_at=0.0, last_sent_at=0.0, send_by=1e9, looked="Absent", looks=1
    )
    assert doubt(unknown, remembers_a_day, DAY_S / 2) == SendAgain()
    assert doubt(unknown, remembers_a_day, 25 * 3_600.0) == LookUp()


@pytest.mark.field("G2")
def test_a_key_that_meets_other_details_is_refused_and_nothing_is_lost() -> None:
    ran = run(BY_NAME["key-reuse-strict"])
    assert [one["text"] for one in ran.world["restaurant"]] == ["R1 Fri 19:00 x4"]
    assert any("used with other details" in line.text for line in ran.timeline.lines)


def pay_slowly(release: asyncio.Event) -> landed.tools.function.FunctionTool:
    @landed.tool(effect="reversible")
    async def pay(cents: int) -> dict[str, str]:
        await release.wait()
        return {"id": "P1"}

    return pay


@pytest.mark.req("S4-48", "S4-52", "S4-05")
def test_the_journal_shows_what_was_authorised_by_whom_and_why_it_is_settled() -> None:
    async def act() -> list[Entry]:
        done = asyncio.Event()
        done.set()
        async with landed.open("sqlite://:memory:", tools=[pay_slowly(done)]) as rt:
            heard = await rt.receive("pay Ana 20", principal="ana")
            value = await rt.perform("pay", {"cents": 2000}, ask=heard.ask("c1"))
            return list(await rt.driver.store.journal(record=value.operation))

    entries = asyncio.run(act())
    made, last = json.loads(entries[0].body or b""), json.loads(entries[-1].body or b"")
    assert [entry.event for entry in entries] == ["made", "sent", "acknowledged"]
    assert made["arguments"] == {"cents": 2000}
    assert (made["ask"]["principal"], made["ask"]["call_id"]) == ("ana", "c1")
    assert made["identity"] == fingerprint(
        {"tool": "pay", "arguments": made["arguments"]}, domain="identity"
    )
    assert [one["source"] for one in last["evidence"]] == ["reply"]
    assert all(entry.at > 0 for entry in entries)


@pytest.mark.req("S0-01")
def test_what_is_wanted_planned_and_pending_can_each_be_read_while_a_call_is_out() -> None:
    async def act() -> tuple[Plan, list[str], list[str]]:
        answer = asyncio.Event()
        intent: dict[str, Json] = {"pay": "Ana", "cents": 2000}
        async with landed.open(
            "sqlite://:memory:",
            tools=[pay_slowly(answer)],
            plan_for=lambda wish: [Wanted(tool="pay", arguments={"cents": wish["cents"]})],
        ) as rt:
            heard = await rt.receive("pay Ana 20")
            paying = asyncio.ensure_future(rt.propose(ask=heard.ask("c1"), intent=intent))
            reader = Reader(store=rt.driver.store)
            while not (pending := await _states(reader, "sent", "unknown")):
                await asyncio.sleep(0)
            answer.set()
            await paying
            records = await reader.records(tenant="default", session="main")
            (plan,) = [plan_from(r) for r in records if r.kind is Kind.PLAN]
            return plan, pending, await _states(reader, "sent", "unknown")

    plan, pending, pending_after = asyncio.run(act())
    assert plan.intent == {"pay": "Ana", "cents": 2000}
    assert [step.tool for step in plan.steps] == ["pay"]
    assert (pending, pending_after) == (["sent"], [])


async def _states(reader: Reader, *wanted: str) -> list[str]:
    records = await reader.records(tenant="default", session="main")
    return [r.state for r in records if r.kind is Kind.OPERATION and r.state in wanted]
