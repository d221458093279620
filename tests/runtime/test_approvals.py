"""A yes that is taken: by a button or in words, once, for exactly what was shown."""

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.core.approval import Purpose, approval_id
from landed.core.changes import Kind
from landed.core.errors import ApprovalError
from landed.core.plan import PlanState, Wanted
from landed.core.value import PlanValue
from landed.runtime.acting import ModelTools
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from tests.runtime.office import (
    DRAFT,
    INVOICE,
    PAY,
    Office,
    OfficeRig,
    at_rest,
    paying,
    proposed,
    proposed_at_once,
    token_of,
)
from tests.runtime.stores import Conflicts, TroubledStore


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


def deleting(count: int) -> Wanted:
    return Wanted(tool="delete_expenses", arguments={"ids": [f"E{n}" for n in range(count)]})


@pytest.mark.req("S1-13", "K14", "S1-14")
@pytest.mark.fault("X86")
def test_no_byte_that_a_model_is_shown_holds_a_token(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        heard = await rt.receive("invoice the logo", principal="ana")
        plans: list[PlanValue] = []
        tools = ModelTools(rt=rt, heard=heard, seen=plans.append)
        steps = [{"tool": each.tool, "arguments": dict(each.arguments)} for each in INVOICE]
        shown = [json.dumps(tools.specs()), await tools.call("act", {"steps": steps})]
        (plan,) = plans
        shown.append(await tools.call("status", {"id": plan.plan}))
        rig.office.refuses = {"issue"}
        partial = await rt.approve(token=token_of(plan), principal="ana")
        assert partial is not None
        rig.office.refuses = set()
        tokens = [token_of(plan), token_of(partial)]
        done = await rt.approve(token=tokens[1], purpose=Purpose.RETRY, principal="ana")
        shown += [value.to_model for value in (plan, partial, done) if value is not None]
        shown += [repr(value) for value in (plan, partial, done)]
        shown += [item.text for item in await rt.history()]
        shown.append((await rt.report(heard.turn)).text)
        return tokens, "\n".join(shown), done

    tokens, shown, done = rig.run(script)
    assert done.state is PlanState.DONE
    assert "ada@example.org" in shown
    for token in tokens:
        assert len(base64.urlsafe_b64decode(token)) == 24
        assert token not in shown
        assert token not in rig.bodies()
    assert len(set(tokens)) == 2


@pytest.mark.req("S1-14")
@pytest.mark.field("H4", "C19")
@pytest.mark.parametrize(("after_s", "state"), [(599.5, PlanState.DONE), (600.0, None)])
def test_a_yes_may_come_for_ten_minutes(
    rig: OfficeRig, after_s: float, state: PlanState | None
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        assert value.offer is not None
        assert value.offer.answer_by == rt.driver.clock.now() + 600.0
        await asyncio.sleep(after_s)  # virtual time
        try:
            done = await rt.approve(token=token_of(value), principal="ana")
        except ApprovalError as error:
            return error.problem
        return done.state if done else None

    assert rig.run(script) == (state or "expired")
    assert rig.office.done == (["pay"] if state else [])


@pytest.mark.field("H4")
@pytest.mark.parametrize(("after_s", "state"), [(3599.5, "undone"), (3600.0, "absent")])
def test_an_undo_may_come_for_an_hour(rig: OfficeRig, after_s: float, state: str) -> None:
    async def script(rt: Runtime) -> Any:
        done = await proposed(rt, [DRAFT])
        offer = await rt.offer(done.plan, Purpose.UNDO)
        assert offer is not None
        assert offer.answer_by == done.undo_by
        await asyncio.sleep(done.undo_by - rt.driver.clock.now() - 3600.0 + after_s)  # virtual time
        late = await rt.plan(done.plan)
        assert (late.undo_by is None) == (state == "absent")
        try:
            undone = await rt.approve(token=offer.token, purpose=Purpose.UNDO, principal="ana")
        except ApprovalError as error:
            assert await rt.offer(done.plan, Purpose.UNDO) is None
            assert error.problem == "expired"
            return "absent"
        return str(undone.state) if undone else ""

    assert rig.run(script) == state


@pytest.mark.req("S1-15")
def test_the_record_holds_what_the_yes_is_bound_to_and_the_token_only_as_a_digest(
    rig: OfficeRig,
) -> None:
    async def script(rt: Runtime) -> Any:
        return await proposed(rt)

    value = rig.run(script)
    (record,) = rig.records(Kind.APPROVAL)
    assert record.id == approval_id(value.plan, Purpose.CONFIRM, 1)
    assert (record.tenant, record.session) == ("default", "main")
    frozen = record.frozen
    assert (frozen["plan"], frozen["principal"]) == (value.plan, "ana")
    assert (frozen["purpose"], frozen["attempt"]) == ("confirm", 1)
    assert str(frozen["hash"]).startswith("sha256:")
    assert len(str(record.changing["token"])) == len(str(record.changing["seal"])) == 64
    assert token_of(value) not in json.dumps([dict(frozen), dict(record.changing)])


@pytest.mark.req("S1-19", "S1-20", "K4")
@pytest.mark.field("C1", "C3")
@pytest.mark.fault("X80")
def test_of_fifty_yeses_at_once_one_runs_and_all_get_its_outcome(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, INVOICE)
        token = token_of(value)
        yes = [rt.approve(token=token, principal="ana") for _ in range(50)]
        return await asyncio.gather(*yes)

    values = rig.run(script)
    assert rig.office.done == ["draft", "issue", "mail", "remind"]
    assert {value.state for value in values} == {PlanState.DONE}
    assert sorted(value.replayed for value in values) == [False] + [True] * 49
    assert len({(value.plan, value.text, value.operations) for value in values}) == 1
    assert rig.events().count("approval_taken") == 1


@pytest.mark.fault("X80")
def test_eight_at_a_time_press_each_of_two_hundred_buttons(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        for number in range(200):
            session = f"s{number}"
            value = await proposed(rt, [paying(f"p{number}")], session=session)
            token = token_of(value)
            yes = (rt.approve(token=token, principal="ana", session=session) for _ in range(8))
            values = await asyncio.gather(*yes)
            assert sum(not each.replayed for each in values if each) == 1

    rig.run(script)
    assert len(rig.office.effects) == len({str(effect) for effect in rig.office.effects}) == 200


@pytest.mark.req("S1-19")
@pytest.mark.field("C31")
@pytest.mark.fault("X80")
def test_two_processes_that_were_told_yes_run_it_once_and_answer_the_same(rig: OfficeRig) -> None:
    value = rig.run(proposed)
    token = token_of(value)

    async def click(rt: Runtime) -> Any:
        return await rt.approve(token=token, principal="ana")

    one, two = rig.start(click), rig.start(click)
    rig.world.wait(one, two)
    first, second = one.result(), two.result()
    assert first is not None
    assert second is not None
    assert {first.state, second.state} == {PlanState.DONE}
    assert sorted([first.replayed, second.replayed]) == [False, True]
    assert first.operations == second.operations
    assert rig.office.done == ["pay"]


@pytest.mark.field("C31", "C16")
@pytest.mark.fault("X80")
def test_two_runtimes_on_one_file_race_for_each_yes(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    def opened() -> Any:
        return landed.open(url, tools=office.tools(), permissions=office, secret=b"s3cret")

    async def race() -> None:
        async with opened() as one, opened() as two:
            for number in range(8):
                session = f"s{number}"
                value = await proposed(one, [paying(f"p{number}")], session=session)
                token = token_of(value)
                yes = [
                    rt.approve(token=token, principal="ana", session=session)
                    for rt in (one, two, two, one)
                ]
                values = await asyncio.gather(*yes)
                assert {each.state for each in values} == {PlanState.DONE}
                assert sum(not each.replayed for each in values) == 1

    asyncio.run(race())
    assert len(office.effects) == len({str(effect) for effect in office.effects}) == 8


@pytest.mark.req("S1-23")
@pytest.mark.fault("X86")
def test_words_confirm_while_no_model_is_running_and_only_the_users_own_do(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        for origin in ("tool", "timer", "model", "email"):
            await rt.receive("yes", principal="ana", origin=origin)
        waits = await rt.plan(value.plan)
        heard = await rt.receive("Sí, por favor", principal="ana")
        done = await at_rest(rt, value.plan)
        return waits, done, await rt.report(heard.turn)

    waits, done, report = rig.run(script)
    assert (waits.state, done.state) == (PlanState.PROPOSED, PlanState.DONE)
    assert "Pay ada 100 cents" in report.text
    assert report.operations == done.operations
    assert rig.office.done == ["pay"]


@pytest.mark.req("S1-25")
@pytest.mark.field("C22", "C23")
@pytest.mark.parametrize(
    "words",
    [
        "Sí, pero cambia la fecha",
        "disallow",
        "no, don't approve",
        "yes?",
        "“yes”",
        "ok",
        "1",
        "> yes",
    ],
)
def test_other_words_cancel_the_plan_and_kill_its_token(rig: OfficeRig, words: str) -> None:
    async def script(rt: Runtime) -> Any:
        old = await proposed(rt)
        heard = await rt.receive(words, principal="ana")
        new = await rt.propose([paying("ben")], ask=heard.ask("act"))
        with pytest.raises(ApprovalError) as refused:
            await rt.approve(token=token_of(old), principal="ana")
        done = await rt.approve(token=token_of(new), principal="ana")
        return await rt.plan(old.plan), refused.value, done, await rt.history()

    old, refused, done, history = rig.run(script)
    assert old.state is PlanState.EXPIRED
    assert (refused.problem, refused.again) == ("expired", "")
    assert done.state is PlanState.DONE
    assert [str(effect) for effect in rig.office.effects] == ["('pay', ['ben', 100])"]
    assert words in [item.text for item in history if item.role == "user"]
    assert any("it was no yes" in item.text for item in history)


@pytest.mark.field("C17", "C23")
def test_a_no_in_words_declines_it_and_is_told(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard = await rt.receive("no", principal="ana")
        with pytest.raises(ApprovalError, match="declined already"):
            await rt.approve(token=token_of(value), principal="ana")
        again = await rt.decline(token=token_of(value), principal="ana")
        return await rt.plan(value.plan), again, await rt.report(heard.turn)

    value, again, report = rig.run(script)
    assert value.state is again.state is PlanState.DECLINED
    assert report.text.startswith("You said no. Nothing was done.")
    assert rig.office.effects == []


@pytest.mark.req("S1-26")
@pytest.mark.fault("X98")
@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("sí", False),
        ("yes 1", False),
        ("3", True),
        ("BORRAR", True),
        ("delete", True),
        ("4", False),
        ("BORRAR 3", False),
    ],
)
def test_to_delete_three_takes_their_number_or_the_word(
    rig: OfficeRig, said: str, runs: bool
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt, [deleting(3)])
        await rt.receive(said, principal="ana")
        return value, await at_rest(rt, value.plan)

    value, after = rig.run(script)
    assert "Type 3 or DELETE to go ahead." in value.text
    assert after.state is (PlanState.DONE if runs else PlanState.EXPIRED)
    assert rig.office.done == (["expenses"] if runs else [])


@pytest.mark.req("S1-26")
@pytest.mark.field("C24")
def test_a_numbered_yes_is_no_way_around_words_that_have_to_be_typed(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        first, typed, last = await proposed_at_once(rt, [PAY], [deleting(3)], [paying("ben")])
        await rt.receive("yes 2", principal="ana")
        return first, typed, last, [await rt.plan(v.plan) for v in (first, typed, last)]

    _, typed, last, after = rig.run(script)
    assert "yes 2" not in typed.text
    assert "yes 3" in last.text
    states = [value.state for value in after]
    assert states == [PlanState.PROPOSED, PlanState.EXPIRED, PlanState.PROPOSED]
    assert rig.office.effects == []


@pytest.mark.field("B4", "C7", "C25", "C27")
def test_numbered_answers_in_reverse_order_reach_each_its_own_plan(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        names = ("ada", "ben", "cy", "dan")
        plans = await proposed_at_once(rt, *[[paying(name)] for name in names])
        await rt.receive("yes 4", principal="ana")
        await rt.receive("no 3", principal="ana")
        await rt.receive("confirmo 2", principal="ana")
        await rt.receive("yes 2", principal="ana")  # It is over: these are words for the model.
        return [(await at_rest(rt, each.plan)).state for each in plans]

    states = rig.run(script)
    done, no, waits = PlanState.DONE, PlanState.DECLINED, PlanState.PROPOSED
    assert states == [waits, done, no, done]
    assert rig.office.effects == [("pay", ["dan", 100]), ("pay", ["ben", 100])]


@pytest.mark.field("C24", "C25")
def test_a_number_that_no_question_has_is_no_answer_and_closes_the_last(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        await rt.receive("yes, 2", principal="ana")
        await rt.receive("yes", principal="ana")
        return await at_rest(rt, value.plan)

    assert rig.run(script).state is PlanState.EXPIRED
    assert rig.office.effects == []


@pytest.mark.field("C24")
def test_a_yes_to_another_question_runs_nothing(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        heard = await rt.receive("go on", principal="ana", origin="timer")
        await rt.ask(heard, "Do you want the newsletter?")
        await rt.receive("yes", principal="ana")
        return await rt.plan(value.plan)

    assert rig.run(script).state is PlanState.PROPOSED
    assert rig.office.effects == []


@pytest.mark.field("C1", "C12", "C13")
def test_a_yes_is_for_this_plan_and_for_no_later_one_of_the_same_tool(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        first = await proposed(rt)
        await rt.receive("yes", principal="ana")
        await at_rest(rt, first.plan)
        later = await proposed_at_once(rt, [paying("ben")], [PAY])
        for value in later:
            with pytest.raises(ApprovalError):
                await rt.approve(token=token_of(first) + "x", principal="ana")
            replayed = await rt.approve(token=token_of(first), principal="ana")
            assert replayed is not None
            assert (replayed.plan, replayed.replayed) == (first.plan, True)
            assert (await rt.plan(value.plan)).state is PlanState.PROPOSED
        return later

    rig.run(script)
    assert rig.office.done == ["pay"]


@pytest.mark.field("C5")
def test_an_approved_plan_never_asks_again_however_the_yes_was_given(rig: OfficeRig) -> None:
    async def script(rt: Runtime) -> Any:
        plans = await proposed_at_once(rt, *[[paying(f"p{n}")] for n in range(5)])
        question = plans[3].questions[0]
        values = [
            await rt.approve(token=token_of(plans[0]), principal="ana"),
            await rt.approve(token=token_of(plans[1]), principal="ana", patience_s=0.0),
            await rt.approve(plans[2].plan, principal="ana"),
            await rt.approve(question, principal="ana"),
            await rt.approve(
                "",
                token=token_of(plans[4]),
                principal="ana",
                purpose=Purpose.CONFIRM,
                tenant="default",
                session="main",
                patience_s=1.0,
            ),
        ]
        return [(await at_rest(rt, value.plan)).state for value in values if value]

    assert rig.run(script) == [PlanState.DONE] * 5
    assert rig.events().count("asked") == 5


@pytest.mark.field("C10", "C16")
def test_what_waits_for_a_yes_waits_through_a_restart(rig: OfficeRig) -> None:
    value = rig.run(proposed)

    async def look(rt: Runtime) -> Any:
        return await rt.plan(value.plan), await rt.history(), await rt.unacted()

    seen, history, unacted = rig.run(look)
    assert seen.state is PlanState.PROPOSED
    assert history[-1].text == value.text
    assert (rig.office.effects, unacted) == ([], ())

    async def say_yes(rt: Runtime) -> Any:
        await rt.receive("yes", principal="ana")
        return await at_rest(rt, value.plan)

    assert rig.run(say_yes).state is PlanState.DONE
    assert rig.office.done == ["pay"]


@pytest.mark.field("C16")
@pytest.mark.fault("X08")
def test_a_yes_works_on_a_file_after_the_process_is_gone(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    async def process(act: Any) -> Any:
        opened = landed.open(url, tools=office.tools(), permissions=office, secret=b"s3cret")
        async with opened as rt:
            return await act(rt)

    value = asyncio.run(process(proposed))
    done = asyncio.run(process(lambda rt: rt.approve(token=token_of(value), principal="ana")))
    again = asyncio.run(process(lambda rt: rt.approve(token=token_of(value), principal="ana")))
    assert (done.state, done.replayed) == (PlanState.DONE, False)
    assert (again.state, again.replayed) == (PlanState.DONE, True)
    assert office.done == ["pay"]


@pytest.mark.fault("X08")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("by_words", [True, False])
def test_a_crash_around_the_commit_that_takes_the_yes_leaves_both_or_neither(
    rig: OfficeRig, side: str, by_words: bool
) -> None:
    value = rig.run(proposed)

    async def say_yes(rt: Runtime) -> Any:
        if not by_words:
            return await rt.approve(token=token_of(value), principal="ana")
        await rt.receive("yes", principal="ana", delivery="d1")
        return await at_rest(rt, value.plan)

    rig.kill_at = Point(side=side, name="approval_taken")
    process = rig.start(say_yes)
    rig.world.wait(process)
    assert not process.alive
    rig.base.worker_died(process.name)
    (approval,), (plan,) = rig.records(Kind.APPROVAL), rig.records(Kind.PLAN)
    taken = {"before": ("open", "proposed"), "after": ("taken", "running")}[side]
    assert (approval.state, plan.state) == taken
    assert rig.office.effects == []
    rig.kill_at = None

    async def once_more(rt: Runtime) -> Any:
        await say_yes(rt)
        return await at_rest(rt, value.plan)

    assert rig.run(once_more).state is PlanState.DONE
    assert rig.office.done == ["pay"]


@pytest.mark.fault("X08")
def test_a_yes_is_taken_once_also_where_its_commit_meets_others(rig: OfficeRig) -> None:
    trouble = Conflicts("approval_taken", times=5)
    rig.wrap = lambda store: TroubledStore(store, trouble)

    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        return await rt.approve(token=token_of(value), principal="ana")

    assert rig.run(script).state is PlanState.DONE
    assert trouble.seen == 5
    assert rig.office.done == ["pay"]


def test_a_yes_that_comes_while_the_runtime_ends_is_carried_out_by_the_next(rig: OfficeRig) -> None:
    async def leave(rt: Runtime) -> Any:
        value = await proposed(rt)
        yes = asyncio.ensure_future(rt.approve(token=token_of(value), principal="ana"))
        for _ in range(3):
            await asyncio.sleep(0)
        await rt.drain()
        return value, (await asyncio.gather(yes, return_exceptions=True))[0]

    value, told = rig.run(leave)
    (approval,) = rig.records(Kind.APPROVAL)

    async def go_on(rt: Runtime) -> Any:
        if approval.state == "open":
            await rt.approve(token=token_of(value), principal="ana")
        return await at_rest(rt, value.plan)

    assert isinstance(told, PlanValue | Exception | asyncio.CancelledError)
    assert rig.run(go_on).state is PlanState.DONE
    assert rig.office.done == ["pay"]


def test_what_was_sealed_with_an_older_secret_is_still_good(tmp_path: Path) -> None:
    office, url = Office(), f"sqlite:///{tmp_path / 'office.db'}"

    async def process(secret: Any, act: Any) -> Any:
        opened = landed.open(url, tools=office.tools(), permissions=office, secret=secret)
        async with opened as rt:
            return await act(rt)

    async def two(rt: Runtime) -> Any:
        return await proposed_at_once(rt, [PAY], [paying("ben")])

    def yes(value: PlanValue) -> Any:
        return lambda rt: rt.approve(token=token_of(value), principal="ana")

    first, second = asyncio.run(process(b"old", two))
    with pytest.raises(landed.StoreError, match="secret"):
        asyncio.run(process(b"new", yes(first)))
    done = asyncio.run(process([b"new", b"old"], yes(first)))
    third = asyncio.run(process([b"new", b"old"], lambda rt: proposed_at_once(rt, [PAY])))[0]
    assert done.state is PlanState.DONE
    with pytest.raises(landed.StoreError, match="edited"):
        asyncio.run(process([b"new"], yes(second)))
    assert asyncio.run(process([b"newer", b"new", b"old"], yes(third))).state is PlanState.DONE
    assert office.done == ["pay", "pay"]
