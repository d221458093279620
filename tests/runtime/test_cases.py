"""Cases at the runtime: rulings, evidence that comes by itself, and people who are elsewhere."""

import asyncio
from typing import Any

import pytest

from landed.core.case import Ruling, Standing, Why
from landed.core.errors import ProposalError
from landed.core.history import View
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import Absent, Found, NoAnswer
from landed.core.plan import Wanted
from landed.core.tool import Call
from landed.core.value import Blocked, Confirmed, Failed, Receipt, Undecided, Unknown
from landed.runtime import inbox
from landed.runtime.runtime import Runtime
from landed.tools.function import FunctionTool
from tests.runtime.rig import DROPPED, FINE, REPLY_LOST, Rig, Wire, booking, unkeyed

ANA = {"to": "ana"}
YES = Found(result={"id": "M7"})


def mailing(rig: Rig, **promises: Any) -> FunctionTool[Any, Any]:
    """A mail that nobody can find out about, and that a person is asked about at once."""
    return unkeyed(rig.far, when_unknown="escalate", **promises)


async def doubt(rt: Runtime, **asked: Any) -> str:
    """Have a mail end in front of a person; return its id."""
    value = await rt.perform("mail", ANA, **asked)
    assert isinstance(value, Undecided), value
    return value.operation


async def by_webhook(rt: Runtime, evidence: Receipt, **said: Any) -> Any:
    kept = {"principal": "mailhook", "origin": "webhook", **said}
    return await rt.receive("{delivered}", evidence=evidence, **kept)


# A person resolves.


@pytest.mark.req("S4-53")
@pytest.mark.parametrize(
    ("ruling", "kind"),
    [
        (Ruling.LANDED, Confirmed),
        (Ruling.ABSENT, Failed),
        (Ruling.HOLD, Undecided),
        (Ruling.LIFT, Undecided),
    ],
)
def test_a_person_resolves_from_what_the_inbox_shows(rig: Rig, ruling: Ruling, kind: type) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        heard = await rt.receive("Tell Ana that we are late.", principal="cleo")
        await doubt(rt, ask=heard.ask("c1"))
        (shown,) = await rt.inbox()
        assert ruling in shown.may
        value = await rt.resolve(shown.id, ruling=ruling, by="bo", note="asked Ana")
        return shown, value, await rt.inbox()

    shown, value, after = rig.run(script, mailing(rig))
    assert shown.words == "Tell Ana that we are late."
    assert (shown.principal, shown.arguments, shown.tool) == ("cleo", ANA, "mail")
    assert isinstance(value, kind)
    assert len(after) == (kind is Undecided)
    last = rig.operation().evidence[-1]
    assert (last.source, last.by) == ("person", "bo")
    assert "asked Ana" in last.says


def test_what_it_made_is_its_result_from_then_on(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime):
        id = await doubt(rt)
        return await rt.resolve(id, ruling=Ruling.LANDED, by="bo", made="M9")

    value = rig.run(script, mailing(rig))
    assert isinstance(value, Confirmed)
    assert value.result == {"id": "M9"}


def test_a_ruling_without_a_name_or_about_nothing_is_refused(rig: Rig) -> None:
    async def script(rt: Runtime) -> None:
        sent = await rt.perform("mail", ANA)
        with pytest.raises(ProposalError, match="needs a name"):
            await rt.resolve(sent.operation, ruling=Ruling.LANDED)
        with pytest.raises(ProposalError, match="is confirmed: that cannot be said"):
            await rt.resolve(sent.operation, ruling=Ruling.ABSENT, by="bo")
        with pytest.raises(ProposalError, match="there is no operation"):
            await rt.resolve("op-none", ruling=Ruling.ABSENT, by="bo")

    rig.run(script, mailing(rig))


def test_what_does_not_fit_a_case_is_refused_and_a_closed_one_stays_closed(rig: Rig) -> None:
    async def script(rt: Runtime):
        await by_webhook(rt, Receipt(key="pi_7", outcome=YES))
        (case,) = await rt.inbox()
        with pytest.raises(ProposalError, match="is open: that cannot be said"):
            await rt.resolve(case.id, ruling=Ruling.LANDED, by="bo")
        assert await rt.resolve(case.id, ruling=Ruling.HOLD, by="bo", note="who?") is None
        (held,) = await rt.inbox()
        assert held.evidence[-1].says == "hold: who?"
        await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="ana")
        with pytest.raises(ProposalError, match="is closed: that cannot be said"):
            await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="bo")
        return await rt.inbox()

    assert rig.run(script, mailing(rig)) == ()


def test_a_lift_lets_the_same_call_be_made_again(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        id = await doubt(rt, ask=Ask(call_id="c1"))
        blocked = await rt.perform("mail", ANA, ask=Ask(call_id="c2"))
        await rt.resolve(id, ruling=Ruling.LIFT, by="bo", note="they will not get two")
        again = await rt.perform("mail", ANA, ask=Ask(call_id="c2"))
        return blocked, again, await rt.status(id)

    blocked, again, first = rig.run(script, mailing(rig))
    assert isinstance(blocked, Blocked)
    assert isinstance(again, Confirmed)
    assert again.operation == blocked.operation
    assert isinstance(first, Undecided)
    assert rig.far.total == 1


def test_what_was_lifted_and_landed_after_all_is_settled_beside_the_one_that_took_its_rule(
    rig: Rig,
) -> None:
    """A rule's name is another's by then; the evidence is written down all the same."""
    rig.far.wire.extend([REPLY_LOST, FINE])
    mail = mailing(rig, unique=["mail {to}"])

    async def script(rt: Runtime):
        id = await doubt(rt, ask=Ask(session="s1"))
        await rt.resolve(id, ruling=Ruling.LIFT, by="bo")
        other = await rt.perform("mail", ANA, ask=Ask(session="s2"))
        assert isinstance(other, Confirmed)
        await by_webhook(rt, Receipt(operation=id, outcome=YES))
        third = await rt.perform("mail", ANA, ask=Ask(session="s3"))
        return await rt.status(id), third

    value, third = rig.run(script, mail)
    assert isinstance(value, Confirmed)
    assert type(third).__name__ == "Withdrawn"
    assert rig.far.total == 2


# From elsewhere.


@pytest.mark.req("S4-53")
@pytest.mark.parametrize("crash", [False, True], ids=["living", "after a crash"])
def test_a_plan_goes_on_when_a_person_rules_in_another_process(rig: Rig, crash: bool) -> None:
    rig.far.wire.extend([DROPPED, FINE])
    calls = [Wanted(tool="mail", arguments=ANA), Wanted(tool="mail", arguments={"to": "bo"})]
    tools = (mailing(rig),)

    async def own(rt: Runtime):
        value = await rt.propose(calls, ask=Ask(call_id="p1"), patience_s=20.0)
        await asyncio.sleep(100.0)  # virtual time
        return (await rt.plan(value.plan)).state

    async def rule(rt: Runtime):
        (shown,) = await rt.inbox()
        await rt.resolve(shown.id, ruling=Ruling.LANDED, by="bo")

    process = rig.start(own, *tools)
    rig.world.pass_time(30.0)
    if crash:
        rig.kill(process)
    rig.world.wait(rig.start(rule))
    if crash:
        process = rig.start(own, *tools)
    rig.world.wait(process)
    assert process.result() == "done"
    assert len(rig.far.sends) == 2


def test_a_ruling_on_what_another_worker_is_finding_out_is_written_down_and_ends_it(
    rig: Rig,
) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**6
    book = booking(rig.far, close=None, max_tries=1)

    async def own(rt: Runtime):
        return await rt.perform("book", {"day": "Fri"}, patience_s=200.0)

    async def rule(rt: Runtime):
        return await rt.resolve("op-a1", ruling=Ruling.LANDED, by="bo")

    process = rig.start(own, book)
    rig.world.pass_time(30.0)
    ruled = rig.start(rule)
    rig.world.wait(ruled)
    rig.world.wait(process)
    assert isinstance(ruled.result(), Confirmed)
    assert isinstance(process.result(), Confirmed)
    assert rig.events("op-a1")[-1] == "ruled_landed"


@pytest.mark.fault("X61")
@pytest.mark.parametrize("after_s", [1.0, 30.0], ids=["in flight", "in doubt"])
@pytest.mark.parametrize(("outcome", "kind"), [(YES, Confirmed), (Absent(), Failed)])
def test_a_webhook_that_comes_to_another_process_settles_what_its_owner_holds(
    rig: Rig, after_s: float, outcome: Found | Absent, kind: type
) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**6
    book = booking(rig.far, close=None, max_tries=1)

    async def own(rt: Runtime):
        return await rt.perform("book", {"day": "Fri"}, patience_s=200.0)

    async def serve(rt: Runtime):
        return await by_webhook(rt, Receipt(operation="op-a1", outcome=outcome), delivery="w1")

    process = rig.start(own, book)
    rig.world.pass_time(after_s)
    web = rig.start(serve)
    rig.world.wait(web)
    settled = State.CONFIRMED if kind is Confirmed else State.FAILED
    assert rig.states() == [settled]
    rig.world.wait(process)
    assert isinstance(process.result(), kind)
    assert rig.states() == [settled]
    assert rig.far.sends == ["op-a1"]


# Evidence that comes by itself.


@pytest.mark.req("S4-08")
@pytest.mark.fault("X61")
@pytest.mark.parametrize(("outcome", "kind"), [(YES, Confirmed), (Absent(), Failed)])
@pytest.mark.parametrize("named", ["operation", "key"])
def test_a_receipt_settles_what_nobody_can_ask_about(
    rig: Rig, outcome: Found | Absent, kind: type, named: str
) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime):
        id = await doubt(rt, ask=Ask(session="s7"))
        evidence = Receipt(outcome=outcome, **{named: id})
        heard = await by_webhook(rt, evidence, delivery="w1")
        return heard, await rt.status(id), await rt.history("s7", view=View.CACHE)

    heard, value, shown = rig.run(script, mailing(rig))
    assert isinstance(value, kind)
    assert heard.session == "s7"
    assert [item for item in shown if "{delivered}" in item.text]


@pytest.mark.fault("X61")
def test_the_same_delivery_twice_is_one_input_and_one_event(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime):
        evidence = Receipt(operation=await doubt(rt), outcome=YES)
        first = await by_webhook(rt, evidence, delivery="w1")
        later = await by_webhook(rt, evidence, delivery="w1")
        both = await asyncio.gather(*(by_webhook(rt, evidence, delivery="w2") for _ in range(3)))
        return first, later, both

    first, later, both = rig.run(script, mailing(rig))
    assert later.id == first.id
    assert len({one.id for one in both}) == 1
    assert rig.events("op-a1").count("found") == 1


@pytest.mark.fault("X61")
def test_a_webhook_that_overtakes_the_reply_is_not_lost(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime):
        waiting = asyncio.ensure_future(rt.perform("mail", ANA, patience_s=60.0))
        await asyncio.sleep(1.0)  # virtual time
        assert rig.far.sends == ["op-a1"]
        await by_webhook(rt, Receipt(operation="op-a1", outcome=YES), delivery="w1")
        value = await waiting
        await asyncio.sleep(60.0)  # virtual time
        return value, await rt.status("op-a1"), await rt.inbox()

    value, after, waiting = rig.run(script, mailing(rig))
    assert isinstance(value, Confirmed)
    assert isinstance(after, Confirmed)
    assert waiting == ()


def test_what_is_about_nothing_known_is_an_input_and_one_case(rig: Rig) -> None:
    async def script(rt: Runtime):
        for n in range(3):
            await by_webhook(rt, Receipt(key="pi_7", outcome=YES), delivery=f"w{n}")
        again = await by_webhook(rt, Receipt(key="pi_7", outcome=YES), delivery="w0")
        await by_webhook(rt, Receipt(outcome=YES))
        return again, await rt.inbox(), await rt.history()

    again, waiting, shown = rig.run(script, mailing(rig))
    assert (waiting[0].why, waiting[0].key) == (Why.UNRECORDED, "pi_7")
    assert len(waiting) == 2
    assert (len(shown), again.delivery) == (4, "w0")


def test_a_yes_for_what_was_taken_back_unsent_is_a_case(rig: Rig) -> None:
    async def script(rt: Runtime):
        value = await rt.perform("mail", ANA, ask=Ask(send_by=0.0))
        await by_webhook(rt, Receipt(operation=value.operation, outcome=Absent()))
        assert await rt.inbox() == ()
        await by_webhook(rt, Receipt(operation=value.operation, outcome=YES))
        return await rt.inbox()

    (case,) = rig.run(script, mailing(rig))
    assert (case.why, case.key) == (Why.UNRECORDED, "op-a1")


def test_another_tenants_operation_is_not_touched_and_not_told_of(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)

    async def script(rt: Runtime):
        id = await doubt(rt)
        theirs = Receipt(operation=id, outcome=YES)
        await by_webhook(rt, theirs, tenant="other")
        (case,) = await rt.inbox(tenant="other")
        return case, await rt.status(id), await rt.inbox()

    case, value, mine = rig.run(script, mailing(rig))
    assert (case.why, case.tenant, case.arguments, case.operation) == (
        Why.UNRECORDED,
        "other",
        None,
        "",
    )
    assert isinstance(value, Undecided)
    assert [one.operation for one in mine] == ["op-a1"]


@pytest.mark.req("S4-52")
def test_a_receipt_against_a_ruling_is_in_front_of_a_person_and_rewrites_nothing(
    rig: Rig,
) -> None:
    rig.far.wire.append(REPLY_LOST)

    async def script(rt: Runtime):
        id = await doubt(rt)
        await rt.resolve(id, ruling=Ruling.ABSENT, by="bo", note="not in the outbox")
        await by_webhook(rt, Receipt(operation=id, outcome=YES))
        (case,) = await rt.inbox()
        after = await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="ana", note="it is fine")
        return case, after, await rt.inbox()

    case, after, waiting = rig.run(script, mailing(rig))
    assert (case.why, case.operation, waiting) == (Why.CONTRADICTED, "op-a1", ())
    assert isinstance(after, Failed)
    assert [one.says for one in case.evidence][-2:] == [
        "bo said so: not in the outbox",
        "it took effect after all: this contradicts what was settled",
    ]


# An unexplained find.


@pytest.mark.req("S4-31")
def test_a_probe_that_fails_three_times_and_then_passes_needs_a_signature(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    looks: list[str] = []

    async def look(call: Call) -> Found | Absent | NoAnswer:
        looks.append(call.operation)
        return Absent() if len(looks) <= 4 else Found(result={"id": "R1"})

    book = booking(rig.far, keyed="key", compares_payload=False, lookup=look, close=None)

    async def script(rt: Runtime):
        value = await rt.perform("book", {"day": "Fri"}, patience_s=100.0)
        (case,) = await rt.inbox()
        await rt.resolve(case.id, ruling=Ruling.SIGN_OFF, by="ana", note="replica was stale")
        return value, case, await rt.inbox()

    value, case, after = rig.run(script, book)
    assert isinstance(value, Confirmed)
    assert (case.why, after) == (Why.UNEXPLAINED, ())
    assert "looks that had to see it and did not" in case.says
    assert isinstance(case, Standing)


@pytest.mark.parametrize("page", [1, 2, 3, 500])
def test_reading_the_inbox_claims_nothing_and_a_page_is_not_the_end(
    rig: Rig, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "PAGE", page)
    count = 3

    async def script(rt: Runtime):
        rig.far.wire.extend([DROPPED] * count)
        calls = (rt.perform("mail", {"to": f"p{n}"}) for n in range(count))
        await asyncio.gather(*calls)
        before = [(one.operation, one.since) for one in await rt.inbox()]
        return before, await rt.inbox()

    before, after = rig.run(script, mailing(rig))
    assert [one.operation for one in after] == [f"op-a{n}" for n in range(1, count + 1)]
    assert sorted(before, key=lambda one: one[1]) == before
    other = rig.run(lambda rt: rt.inbox())
    assert [one.id for one in other] == [one.id for one in after]
    assert {one.worker for one in rig.operations()} == {"w1"}


def test_an_unknown_call_of_a_wire_that_never_answers_stays_open(rig: Rig) -> None:
    rig.far.wire.append(Wire(arrives_s=None))
    value = rig.run(lambda rt: rt.perform("mail", ANA), unkeyed(rig.far))
    assert isinstance(value, Unknown)
