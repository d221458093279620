"""The tools of a model: what it is shown and told, and that it need not be careful."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.core.canonical import canonical
from landed.core.changes import Kind
from landed.core.errors import StoreError
from landed.core.plan import PlanState
from landed.core.session import Input
from landed.core.value import PlanValue
from landed.runtime.acting import ASKED, ModelTools
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import FINE, REFUSED, REPLY_LOST, RESET, TAKEN, Rig, Wire, booking

FRIDAY: Any = {"steps": [{"tool": "book", "arguments": {"day": "Fri"}}]}
SATURDAY: Any = {"steps": [{"tool": "book", "arguments": {"day": "Sat"}}]}


@tool(effect="none")
async def free_days(month: int) -> list[str]:
    """Say which days are free."""
    return ["Fri", "Sat"]


def risky(rig: Rig) -> FunctionTool[Any, Any]:
    return booking(rig.far, risk="confirm", says={"en": {"confirmed": "booked {day}"}})


async def hear(rt: Runtime, words: str = "a table", **more: Any) -> Input:
    return await rt.receive(words, session="s1", principal="ana", **more)


def acts(rig: Rig, *calls: tuple[str, Any], tools: Any = None) -> list[str]:
    """What a model is told that makes these calls one after the other, for one input."""

    async def script(rt: Runtime) -> list[str]:
        mine = ModelTools(rt, await hear(rt))
        return [await mine.call(name, arguments) for name, arguments in calls]

    return rig.run(script, *(tools or (booking(rig.far), free_days)))


# What it is shown.


@pytest.mark.req("S1-01", "S4-10", "S4-11")
def test_a_model_is_shown_four_tools_and_only_one_of_them_acts(rig: Rig) -> None:
    async def script(rt: Runtime) -> Any:
        return ModelTools(rt, await hear(rt)).specs()

    specs = rig.run(script, booking(rig.far), free_days)
    assert [spec["name"] for spec in specs] == ["act", "status", "ask", "revise"]
    assert {name: set(one["parameters"]["properties"]) for name, one in by_name(specs).items()} == {
        "act": {"steps"},
        "status": {"id"},
        "ask": {"question", "operation", "claim"},
        "revise": {"turn", "steps", "drop"},
    }
    steps = by_name(specs)["act"]["parameters"]["properties"]["steps"]
    assert by_name(specs)["revise"]["parameters"]["properties"]["steps"] == steps


def by_name(specs: Any) -> dict[str, Any]:
    return {spec["name"]: spec for spec in specs}


SHOW = """
import asyncio, sys, landed
from landed.core.canonical import canonical
from landed.runtime.acting import ModelTools
from pydantic import BaseModel

class Guest(BaseModel):
    name: str

@landed.tool(effect="reversible", makes_type="table")
async def book(day: str, guest: Guest) -> None: ...

@landed.tool(effect="reversible", accepts={"table": "table"})
async def cancel(table: str) -> None: ...

async def main(tools):
    async with landed.open("sqlite://:memory:", tools=tools) as rt:
        heard = await rt.receive("hello")
        sys.stdout.buffer.write(canonical(list(ModelTools(rt, heard).specs())))

asyncio.run(main([book, cancel] if sys.argv[1] == "one" else [cancel, book]))
"""


def test_the_same_tools_are_shown_in_the_same_bytes_by_every_process() -> None:
    shown = {
        subprocess.run(
            [sys.executable, "-c", SHOW, order],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for order, seed in (("one", "1"), ("one", "2"), ("other", "3"))
    }
    assert len(shown) == 1
    (specs,) = shown
    assert b'"book"' in specs
    assert b"book__Guest" in specs


def test_tools_that_are_not_offered_are_neither_shown_nor_taken(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[Any, str]:
        mine = ModelTools(rt, await hear(rt), offered=["free_days"])
        return mine.specs(), await mine.call("act", FRIDAY)

    specs, said = rig.run(script, booking(rig.far), free_days)
    assert "book" not in json.dumps(specs[0]["parameters"])
    assert said == "step 1: there is no tool 'book'; The tools are free_days"
    assert rig.far.total == 0


# What it does and is told.


@pytest.mark.req("S1-01")
def test_a_plan_is_carried_out_and_told_with_what_each_step_came_to(rig: Rig) -> None:
    steps = [{"tool": "free_days", "arguments": {"month": 5}}, *FRIDAY["steps"]]
    (said,) = acts(rig, ("act", {"steps": steps}))
    assert rig.far.total == 1
    assert "Step 1: " in said
    assert "Fri, Sat" in said
    assert "Step 2: " in said
    assert "R1" in said
    assert said.splitlines()[-1].startswith("This is plan-")


@pytest.mark.req("S1-01", "S1-02")
def test_what_a_step_makes_is_what_a_later_one_is_given(rig: Rig) -> None:
    given: list[tuple[str, str]] = []

    @tool(effect="reversible", accepts={"table": "table"}, makes_type="order")
    async def order(table: str, dish: str) -> dict[str, str]:
        given.append((table, dish))
        return {"id": "O1"}

    steps = [
        *FRIDAY["steps"],
        {"tool": "order", "arguments": {"table": "$1", "dish": "soup"}},
        {"tool": "order", "arguments": {"table": "R9", "dish": "fish for $3"}},
    ]
    (said,) = acts(
        rig, ("act", {"steps": steps}), tools=[booking(rig.far, makes_type="table"), order]
    )
    assert given == [("R1", "soup"), ("R9", "fish for $3")]
    assert "Step 3: " in said


def test_a_plan_that_was_refused_is_mended_and_carried_out(rig: Rig) -> None:
    wrong = {"steps": [{"tool": "bok", "arguments": {"day": "Fri"}}]}
    refused, done = acts(rig, ("act", wrong), ("act", FRIDAY))
    assert "did you mean 'book'?" in refused
    assert "Step 1: " in done
    assert rig.far.total == 1


def test_arguments_come_as_text_bytes_or_values_and_mean_the_same_plan(rig: Rig) -> None:
    text = json.dumps(FRIDAY)
    said = acts(rig, ("act", text), ("act", text.encode()), ("act", FRIDAY))
    assert len(set(said)) == 1
    assert rig.far.total == 1


@pytest.mark.req("S1-30", "S1-34", "K5")
def test_five_identical_plans_at_once_are_one_plan_with_one_effect(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=2.0))

    async def script(rt: Runtime) -> list[str]:
        mine = ModelTools(rt, await hear(rt))
        return await asyncio.gather(*(mine.call("act", FRIDAY) for _ in range(5)))

    said = rig.run(script, booking(rig.far))
    assert len(said) == 5
    assert len(set(said)) == 1
    assert (rig.far.total, len(rig.far.sends)) == (1, 1)


@pytest.mark.req("S1-28", "S1-30", "K5")
@pytest.mark.field("A13")
def test_a_plan_that_is_sent_again_later_is_the_same_and_from_another_person_is_not(
    rig: Rig,
) -> None:
    async def script(rt: Runtime) -> list[str]:
        ana = ModelTools(rt, await hear(rt, delivery="d1"))
        again = ModelTools(rt, await hear(rt, delivery="d1"))
        eva = ModelTools(rt, await rt.receive("a table", session="s2", principal="eva"))
        return [await one.call("act", FRIDAY) for one in (ana, again, eva)]

    first, second, other = rig.run(script, booking(rig.far))
    assert first == second != other
    assert rig.far.total == 2


@pytest.mark.req("K5", "S1-30")
@pytest.mark.fault("X72")
def test_a_plan_that_differs_only_in_form_is_the_same(rig: Rig) -> None:
    @tool(effect="reversible")
    async def order(pieces: int, note: str = "") -> str:
        made.append(pieces)
        return "ok"

    made: list[int] = []
    form = '{"steps": [{"tool": "order", "arguments": {"pieces": %s}}]}'
    texts = [form % pieces for pieces in ("1", "1.0", "1e0", '1, "note": ""')]
    said = acts(rig, *(("act", text) for text in texts), tools=[order])
    assert len(set(said)) == 1
    assert made == [1]


@pytest.mark.req("S1-61", "S4-04", "S1-30", "F1-05")
@pytest.mark.fault("X70", "X72", "X84")
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("act", {**FRIDAY, "idempotency_key": "mine"}, "filled by the runtime; leave it out"),
        ("act", {"steps": [{**FRIDAY["steps"][0], "token": "x"}]}, "filled by the runtime"),
        (
            "act",
            {"steps": [{"tool": "book", "arguments": {"day": "Fri", "key": "mine"}}]},
            "filled by the runtime",
        ),
        (
            "act",
            {"steps": [{"tool": "book", "arguments": {"day": "Fri", "total": 999}}]},
            "total: Extra inputs",
        ),
        ("act", {"steps": [{"tool": "book", "arguments": {"day": "$1"}}]}, "takes no reference"),
        ("act", {"steps": [*FRIDAY["steps"], {"tool": "approve"}]}, "no tool 'approve'"),
        ("act", {"steps": FRIDAY["steps"] * 101}, "at most 100 steps"),
        ("act", "yes, do it", "not one JSON value"),
        ("act", b"\xff", "not UTF-8"),
        ("act", None, "a plan is an object"),
        ("approve", {"question": "question-1"}, "yours are act, status, ask, revise"),
        ("perform", {"tool": "book"}, "yours are act, status, ask, revise"),
        ("resolve", {"id": "op-1", "state": "confirmed"}, "yours are act, status, ask, revise"),
        ("__class__", {}, "yours are act, status, ask, revise"),
        ("book", {"day": "Fri"}, "book is a step: send it in the steps of act"),
        ("status", {"id": "op-1", "state": "confirmed"}, "filled by the runtime"),
        ("status", {}, "id is text that says something"),
        ("status", "[]", "status takes an object with id"),
        ("ask", {"question": " "}, "question is text that says something"),
        ("ask", {"question": "?" * 1001}, "at most 1000 characters"),
        ("ask", {"question": "Which?", "to": "eva"}, "'to' is no field of ask, which has question"),
        ("revise", {"turn": "turn-9", "steps": []}, "a plan without a step"),
        ("revise", {"turn": "turn-9", "steps": FRIDAY["steps"]}, "there is no turn 'turn-9'"),
        ("revise", {"turn": "t", "steps": FRIDAY["steps"], "drop": "all"}, "drop is a list"),
        ("revise", {"turn": "t", "steps": FRIDAY["steps"], "drop": [1]}, "drop is a list"),
        ("revise", {"turn": "t" * 201, "steps": FRIDAY["steps"]}, "at most 200 characters"),
        ("revise", {"turn": "t", "steps": FRIDAY["steps"], "drop": ["x" * 201]}, "drop is a list"),
        ("revise", {"turn": "t", "steps": FRIDAY["steps"], "drop": ["x"] * 101}, "drop is a list"),
    ],
)
def test_what_a_careless_model_sends_comes_back_as_words_and_does_nothing(
    rig: Rig, name: str, arguments: Any, says: str
) -> None:
    (said,) = acts(rig, (name, arguments))
    assert says in said
    assert len(said) < 1_000
    assert rig.operations("s1") == []
    assert rig.far.total == 0


@pytest.mark.req("S1-61", "S4-10")
def test_a_lost_reply_is_told_as_unknown_and_the_same_plan_does_nothing_more(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime) -> list[str]:
        mine = ModelTools(rt, await hear(rt), patience_s=1.0)
        first = await mine.call("act", FRIDAY)
        return [first, await mine.call("act", FRIDAY)]

    tools = booking(rig.far, lookup=None, close=None, compares_payload=False, deadline_s=60.0)
    for said in rig.run(script, tools):
        assert "failed" not in said.lower()
        assert "try again" not in said.lower()
    assert len(rig.far.sends) == 1


DAYS = ("Fri", "Sat")
LIES: tuple[Any, ...] = (
    {},
    {"idempotency_key": "k1"},
    {"total": 999},
    {"status": "confirmed"},
    {"key": 1.0},
)


@st.composite
def misbehaviour(draw: st.DrawFn) -> tuple[str, Any]:
    """One call of a model that repeats, omits, invents and lies."""
    days = draw(st.lists(st.sampled_from(DAYS), max_size=3))
    lie = draw(st.sampled_from(LIES))
    inside = draw(st.booleans())
    steps = [{"tool": "book", "arguments": {"day": day, **(lie if inside else {})}} for day in days]
    name = draw(st.sampled_from(["act", "act", "act", "approve", "perform", "retry"]))
    return name, {"steps": steps, **({} if inside else lie)}


@pytest.mark.req("S1-61", "S1-28", "S1-30")
@settings(max_examples=60)
@given(
    st.lists(misbehaviour(), min_size=1, max_size=5),
    st.lists(st.sampled_from([FINE, REPLY_LOST, RESET, REFUSED, TAKEN]), max_size=6),
    st.booleans(),
)
def test_whatever_a_model_does_each_operation_has_at_most_one_effect(
    calls: list[tuple[str, Any]], wires: list[Wire], at_once: bool
) -> None:
    """And there are no more effects than the steps of the different plans that it sent."""
    with World() as world:
        rig = Rig(world)
        rig.far.wire.extend(wires)

        async def script(rt: Runtime) -> list[str]:
            mine = ModelTools(rt, await hear(rt), patience_s=30.0)
            if at_once:
                return await asyncio.gather(*(mine.call(*one) for one in calls))
            return [await mine.call(*one) for one in calls]

        said = rig.run(script, booking(rig.far))
        plain = {
            json.dumps(sent)
            for name, sent in calls
            if name == "act" and not lied(sent) and sent["steps"]
        }
        wanted = sum(len(json.loads(one)["steps"]) for one in plain)
        assert all(count == 1 for count in rig.far.effects.values())
        assert rig.far.total <= wanted
        assert sum("Step 1: " in one or "This is plan-" in one for one in said) == sum(
            json.dumps(sent) in plain for name, sent in calls if name == "act"
        )


def lied(sent: Any) -> bool:
    return len(sent) > 1 or any(len(one["arguments"]) > 1 for one in sent["steps"])


def test_what_is_nobodys_fault_but_ours_is_raised(rig: Rig) -> None:
    async def script(rt: Runtime) -> None:
        async def broken(*_: object, **__: object) -> PlanValue:
            raise StoreError("disk full")

        mine = ModelTools(Broken(rt, broken), await hear(rt))  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="disk full"):
            await mine.call("act", FRIDAY)

    rig.run(script, booking(rig.far))


class Broken:
    """A runtime whose `propose` is another."""

    def __init__(self, rt: Runtime, propose: Any) -> None:
        self.driver = rt.driver
        self.propose = propose


# The others.


def test_it_can_look_how_a_plan_or_an_operation_stands(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[str, str, str]:
        values: list[PlanValue] = []
        mine = ModelTools(rt, await hear(rt), seen=values.append)
        done = await mine.call("act", FRIDAY)
        (value,) = values
        of_plan = await mine.call("status", {"id": value.plan})
        return done, of_plan, await mine.call("status", {"id": value.operations[0]})

    done, of_plan, of_operation = rig.run(script, booking(rig.far))
    assert done == of_plan
    assert "R1" in of_operation


@pytest.mark.parametrize("whose", ["another session", "another tenant", "nobody", "a turn"])
def test_what_is_not_of_its_conversation_is_not_there(rig: Rig, whose: str) -> None:
    async def script(rt: Runtime) -> list[str]:
        values: list[PlanValue] = []
        heard = await hear(rt)
        await ModelTools(rt, heard, seen=values.append).call("act", FRIDAY)
        other = {
            "another session": await rt.receive("?", session="s2"),
            "another tenant": await rt.receive("?", session="s1", tenant="t2"),
        }.get(whose, heard)
        ids = {"nobody": ["plan-x"], "a turn": [heard.turn]}.get(
            whose, [values[0].plan, *values[0].operations]
        )
        return [await ModelTools(rt, other).call("status", {"id": id}) for id in ids]

    for said in rig.run(script, booking(rig.far)):
        assert said == "there is no plan or operation of that id in this conversation"


def test_a_question_is_put_to_the_person_once(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[list[str], list[str]]:
        heard = await hear(rt)
        mine = ModelTools(rt, heard)
        said = [await mine.call("ask", {"question": "Which day?"}) for _ in range(2)]
        records = await rt.driver.reader.records(tenant="default", session="s1")
        return said, [str(r.frozen["text"]) for r in records if r.kind is Kind.QUESTION]

    said, asked = rig.run(script)
    assert said == [ASKED, ASKED]
    assert asked == ["Which day?"]


def test_a_change_of_mind_replaces_what_changed_and_the_same_again_is_the_same(rig: Rig) -> None:
    @tool(effect="irreversible")
    async def cancel(table: str) -> str:
        cancelled.append(table)
        return "ok"

    cancelled: list[str] = []
    rig.far.wire.append(Wire(replies_s=5.0))

    async def script(rt: Runtime) -> tuple[str, str]:
        first = await hear(rt)
        friday = asyncio.ensure_future(ModelTools(rt, first).call("act", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        mine = ModelTools(rt, await hear(rt, "Saturday instead"))
        wanted = {"turn": first.turn, **SATURDAY}
        changed = await mine.call("revise", wanted)
        again = await mine.call("revise", json.dumps(wanted))
        await friday
        return changed, again

    book = booking(rig.far, undo="cancel", undo_arguments={"table": "{result.id}"})
    changed, again = rig.run(script, book, cancel)
    assert changed == again
    assert cancelled == ["R1"]


# No token.


@pytest.mark.req("S1-13", "S1-11", "K14")
def test_no_byte_that_a_model_is_given_is_of_a_token(rig: Rig) -> None:
    async def script(rt: Runtime) -> tuple[list[PlanValue], bytes]:
        values: list[PlanValue] = []
        heard = await hear(rt)
        mine = ModelTools(rt, heard, seen=values.append)
        shown: list[Any] = list(mine.specs())
        for name, arguments in (
            ("act", FRIDAY),
            ("act", FRIDAY),
            ("status", {"id": "x"}),
            ("act", {"steps": []}),
            ("ask", {"question": "Which?"}),
        ):
            shown.append(await mine.call(name, arguments))
        shown.append(await mine.call("status", {"id": values[0].plan}))
        assert values[0].offer is not None
        await rt.approve(token=values[0].offer.token, principal="ana", session="s1")
        shown.append(await mine.call("status", {"id": values[0].plan}))
        shown += [item.text for item in await rt.history("s1")]
        return values, canonical(shown)

    values, shown = rig.run(script, risky(rig))
    assert values[0].state is PlanState.PROPOSED
    tokens = {value.offer.token for value in values if value.offer and value.offer.token}
    assert len(tokens) == 1
    for token in tokens:
        assert len(token) >= 32
        assert token.encode() not in shown
        assert token[:12].encode() not in shown
    assert rig.far.total == 1


@pytest.mark.req("S1-11", "S1-61")
def test_a_model_that_insists_gets_no_further_than_the_question(rig: Rig) -> None:
    async def script(rt: Runtime) -> list[str]:
        mine = ModelTools(rt, await hear(rt))
        said = [await mine.call("act", FRIDAY) for _ in range(3)]
        said.append(await mine.call("approve", {"plan": "it"}))
        said.append(await mine.call("act", {**FRIDAY, "approved": True}))
        return said

    *waiting, approve, approved = rig.run(script, risky(rig))
    assert len(set(waiting)) == 1
    assert "do not say that it was done" in waiting[0]
    assert "yours are act" in approve
    assert "filled by the runtime" in approved
    assert rig.far.total == 0
