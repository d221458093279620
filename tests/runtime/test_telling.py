"""What can be asked and told afterwards: resolve, status, history, report, and the inputs."""

import asyncio

import pytest

from landed.core.errors import ProposalError
from landed.core.history import View
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.value import Accepted, Blocked, Confirmed, Undecided, Unknown
from landed.runtime.opened import Settings
from landed.runtime.runtime import INPUT_MAX, Runtime
from landed.tools.function import tool
from tests.runtime.rig import (
    REFUSED,
    REPLY_LOST,
    RESET,
    TAKEN,
    Rig,
    Wire,
    booking,
    told_nothing_wrong,
    unkeyed,
)

FRIDAY = {"day": "Fri"}


# Resolve: look now.


@pytest.mark.req("S4-08", "S4-09")
def test_resolve_looks_now_and_does_not_wait_its_turn(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 2

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=5.1)
        before, asked = rig.world.timeline.now_s, len(rig.far.questions)
        values = [await rt.resolve(early.operation) for _ in range(2)]
        return early, values, rig.world.timeline.now_s - before, len(rig.far.questions) - asked

    early, (first, second), took_s, asked = rig.run(script, booking(rig.far))
    assert isinstance(early, Unknown)
    assert isinstance(first, Unknown)
    assert isinstance(second, Confirmed)
    assert (took_s, asked) == (0.0, 2)


def test_resolve_of_what_is_settled_asks_nobody(rig: Rig) -> None:
    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY)
        return value, await rt.resolve(value.operation)

    value, again = rig.run(script, booking(rig.far))
    assert again == value
    assert rig.far.questions == []


def test_resolve_of_a_call_in_flight_waits_for_its_answer(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=3.0))

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=0.5)
        return await rt.resolve(early.operation), rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert at_s == pytest.approx(3.0)
    assert rig.far.questions == []


def test_resolve_is_bounded_by_its_patience(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=0.5)
        return await rt.resolve(early.operation, patience_s=1.0), rig.world.timeline.now_s

    value, at_s = rig.run(script, booking(rig.far))
    assert isinstance(value, Unknown)
    assert at_s == pytest.approx(1.5)


@pytest.mark.req("S4-09")
def test_resolve_looks_again_at_what_a_person_was_asked_about(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**9

    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY, patience_s=500.0)
        rig.far.silent_questions = 0
        return value, await rt.resolve(value.operation)

    before, after = rig.run(script, booking(rig.far, escalate_after_s=60.0))
    assert isinstance(before, Undecided)
    assert isinstance(after, Confirmed)
    assert rig.far.sends == ["op-a1"]


def test_resolve_leaves_what_another_process_holds_to_it(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))
    mine = booking(rig.far)
    one = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    two = rig.start(lambda rt: rt.resolve("op-a1"), mine)
    rig.world.wait(one, two)
    assert isinstance(two.result(), Unknown)
    assert isinstance(one.result(), Confirmed)
    assert rig.far.questions == []


@pytest.mark.parametrize("verb", ["resolve", "status"])
@pytest.mark.parametrize("id", ["op-99", "", "in-1", "contract/x"])
def test_an_id_that_is_no_operation_is_a_proposal_error(rig: Rig, verb: str, id: str) -> None:
    async def script(rt: Runtime):
        await rt.receive("hello")
        with pytest.raises(ProposalError):
            await getattr(rt, verb)(id)

    rig.run(script, booking(rig.far))


def test_status_only_reads(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        value = await rt.perform("mail", {"to": "ana"})
        before = len(await rt.driver.store.journal())
        return value, await rt.status(value.operation), len(await rt.driver.store.journal()), before

    value, status, after, before = rig.run(script, unkeyed(rig.far))
    assert status == value
    assert after == before


# History.


async def texts(rt: Runtime, view: View = View.CACHE) -> list[str]:
    return [item.text for item in await rt.history(view=view)]


@pytest.mark.req("K3")
def test_what_was_told_stays_and_the_truth_is_appended(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=1.0)
        before = await texts(rt)
        other = await rt.perform("book", {"day": "Sat"})
        late = await rt.resolve(early.operation)
        return early, before, other, late, await rt.history()

    early, before, other, late, after = rig.run(script, booking(rig.far))
    assert before == [early.text]
    assert [item.text for item in after] == [early.text, other.text, late.text]
    assert after[2].happened_at < after[2].recorded_at
    assert after[2].happened_at == rig.world.start_at


def test_the_story_puts_it_where_it_happened(rig: Rig) -> None:
    rig.far.wire.append(Wire(replies_s=4.0))

    async def script(rt: Runtime):
        early = await rt.perform("book", FRIDAY, patience_s=1.0)
        other = await rt.perform("book", {"day": "Sat"})
        late = await rt.resolve(early.operation)
        return late, other, await texts(rt, View.STORY)

    late, other, story = rig.run(script, booking(rig.far))
    assert story == [late.text, other.text]


def blocked(rig: Rig):
    async def script(rt: Runtime):
        rig.far.wire.append(Wire(replies_s=4.0))
        first = asyncio.ensure_future(rt.perform("book", FRIDAY))
        await asyncio.sleep(1.0)  # virtual time
        value = await rt.perform("book", FRIDAY)
        assert isinstance(value, Blocked)
        await first
        return value, "op-a2"

    return booking(rig.far), script


def accepted(rig: Rig):
    async def script(rt: Runtime):
        rig.far.wire.append(TAKEN)
        value = await rt.perform("book", FRIDAY)
        assert isinstance(value, Accepted)
        await asyncio.sleep(2_000.0)  # virtual time
        return value, "op-a1"

    return booking(rig.far), script


def undecided(rig: Rig):
    async def script(rt: Runtime):
        rig.far.wire.append(REPLY_LOST)
        rig.far.silent_questions = 10**9
        value = await rt.perform("book", FRIDAY, patience_s=500.0)
        assert isinstance(value, Undecided)
        rig.far.silent_questions = 0
        await rt.resolve(value.operation)
        return value, "op-a1"

    return booking(rig.far, escalate_after_s=60.0), script


@pytest.mark.req("K3")
@pytest.mark.parametrize("case", [blocked, accepted, undecided])
def test_every_answer_that_was_not_final_stays_as_it_was_told(rig: Rig, case) -> None:
    mine, script = case(rig)

    async def tell(rt: Runtime):
        value, id = await script(rt)
        return value, id, [item.text for item in await rt.history() if item.record == id]

    value, _, told = rig.run(tell, mine)
    assert told[0] == value.text

    async def later(rt: Runtime):
        return [item.text for item in await rt.history() if item.record == value.operation]

    assert rig.run(later, mine)[0] == value.text


@pytest.mark.req("S4-23")
def test_a_history_says_that_it_does_not_know(rig: Rig) -> None:
    rig.far.wire.append(RESET)

    async def script(rt: Runtime):
        value = await rt.perform("mail", {"to": "ana"})
        return value.operation, await texts(rt)

    operation, (line,) = rig.run(script, unkeyed(rig.far))
    assert "unknown" in line
    assert operation in line
    assert told_nothing_wrong(line)


def test_reads_and_words_are_in_the_history_too(rig: Rig) -> None:
    @tool(effect="none")
    async def look(day: str) -> str:
        """Look."""
        return "free"

    async def script(rt: Runtime):
        received = await rt.receive("is Friday free?")
        await rt.perform("look", FRIDAY, ask=received.ask("c1"))
        return [(item.role, item.text) for item in await rt.history()]

    told = rig.run(script, look)
    assert told[0] == ("user", "is Friday free?")
    assert told[1][0] == "tool"
    assert "free" in told[1][1]


def test_sessions_and_tenants_have_histories_of_their_own(rig: Rig) -> None:
    async def script(rt: Runtime):
        for ask in (Ask(), Ask(session="s2"), Ask(tenant="t2")):
            await rt.perform("book", {"day": ask.session + ask.tenant}, ask=ask)
        return [
            len(await rt.history(session, tenant=tenant))
            for session, tenant in (("main", "default"), ("s2", "default"), ("main", "t2"))
        ]

    assert rig.run(script, booking(rig.far)) == [1, 1, 1]


def test_a_history_of_many_pages_is_whole(rig: Rig) -> None:
    async def script(rt: Runtime):
        for n in range(502):
            await rt.receive(f"word {n}")
        return await texts(rt)

    assert rig.run(script) == [f"word {n}" for n in range(502)]


# Report.


@pytest.mark.req("S4-23")
def test_a_report_tells_every_effect_of_a_turn_and_nothing_else(rig: Rig) -> None:
    rig.far.wire.extend([Wire(), REFUSED, RESET])

    async def script(rt: Runtime):
        turn = await rt.receive("book Friday, and tell Ana")
        other = await rt.receive("another turn")
        for call_id, day in (("c1", "Fri"), ("c2", "Sat")):
            await rt.perform("book", {"day": day}, ask=turn.ask(call_id))
        await rt.perform("mail", {"to": "ana"}, ask=turn.ask("c3"))
        await rt.perform("book", {"day": "Sun"}, ask=other.ask("c1"))
        return await rt.report(turn.turn), await rt.report(other.turn)

    report, other = rig.run(script, booking(rig.far), unkeyed(rig.far))
    assert report.operations == ("op-a1", "op-a2", "op-a3")
    assert "R1" in report.text
    assert "the day is full" in report.text
    assert "op-a3" in report.text
    assert "Sun" not in report.text
    assert other.operations == ("op-a4",)


def test_a_report_of_a_turn_without_effects_says_that_nothing_was_done(rig: Rig) -> None:
    async def script(rt: Runtime):
        turn = await rt.receive("thanks")
        return (await rt.report(turn.turn)).text, (await rt.report(turn.turn, language="es")).text

    assert rig.run(script) == ("Nothing was done.", "No se hizo nada.")


def test_a_call_without_an_input_is_a_turn_of_its_own(rig: Rig) -> None:
    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY)
        await rt.perform("book", {"day": "Sat"})
        return await rt.report(value.operation)

    report = rig.run(script, booking(rig.far))
    assert report.operations == ("op-a1",)


def test_the_language_of_the_settings_is_spoken(rig: Rig) -> None:
    rig.settings = Settings(language="es")

    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY)
        return await rt.report(value.operation)

    assert rig.run(script, booking(rig.far)).text.startswith("Hecho")


@pytest.mark.parametrize("turn", ["T99", "", "in-1"])
def test_a_report_of_what_is_no_turn_is_a_proposal_error(rig: Rig, turn: str) -> None:
    async def script(rt: Runtime):
        await rt.receive("hello")
        with pytest.raises(ProposalError):
            await rt.report(turn)

    rig.run(script)


# What an operation's words may break.


def test_words_that_cannot_be_filled_in_lose_no_record(rig: Rig) -> None:
    """A field that the result lacks: the effect is recorded, and is not done again."""
    odd = booking(rig.far, says={"en": {"confirmed": "booked for {price} euros"}})

    async def script(rt: Runtime):
        for _ in range(2):
            with_words = rt.perform("book", FRIDAY, ask=Ask(call_id="c1"))
            await asyncio.gather(with_words, return_exceptions=True)

    rig.run(script, odd)
    assert rig.states() == [State.CONFIRMED]
    assert rig.far.sends == ["op-a1"]


# What was received.


@pytest.mark.req("S0-71")
@pytest.mark.field("B9")
def test_an_input_is_durable_before_it_is_acknowledged(rig: Rig) -> None:
    async def script(rt: Runtime):
        received = await rt.receive("book Friday", session="s1", principal="ana", delivery="d1")
        process.kill()
        return received

    process = rig.start(script)
    rig.world.pass_time(1.0)
    assert not process.alive
    assert rig.events() == ["received", "opened"]


@pytest.mark.req("S0-71")
@pytest.mark.field("F6")
def test_one_delivery_is_one_input_however_often_it_comes(rig: Rig) -> None:
    async def script(rt: Runtime):
        words = [rt.receive("book Friday", delivery="d1") for _ in range(3)]
        return await asyncio.gather(*words)

    first = rig.run(script)
    second = rig.run(script)
    assert {(one.id, one.turn) for one in first + second} == {(first[0].id, first[0].turn)}
    assert rig.events() == ["received", "opened"]


@pytest.mark.field("F6")
def test_one_delivery_to_two_processes_is_one_input_and_one_call(rig: Rig) -> None:
    mine = booking(rig.far)
    rig.far.wire.append(Wire(replies_s=1.0))

    async def script(rt: Runtime):
        received = await rt.receive("book Friday", delivery="d1")
        return received, await rt.perform("book", FRIDAY, ask=received.ask("c1"))

    one, two = rig.start(script, mine), rig.start(script, mine)
    rig.world.wait(one, two)
    (first, value), (second, same) = one.result(), two.result()
    assert first == second
    assert value.operation == same.operation
    assert (rig.far.total, len(rig.operations())) == (1, 1)


def test_deliveries_without_an_id_are_each_their_own(rig: Rig) -> None:
    async def script(rt: Runtime):
        return [await rt.receive("yes") for _ in range(2)]

    first, second = rig.run(script)
    assert first.id != second.id
    assert first.turn != second.turn


def test_one_delivery_id_of_two_tenants_is_two_inputs(rig: Rig) -> None:
    async def script(rt: Runtime):
        return [await rt.receive("hello", delivery="d1", tenant=one) for one in ("t1", "t2")]

    first, second = rig.run(script)
    assert first.id != second.id


def test_the_origin_of_a_turn_is_kept(rig: Rig) -> None:
    async def script(rt: Runtime):
        received = await rt.receive("it is nine o'clock", origin="timer")
        return received.origin, [item.role for item in await rt.history()]

    assert rig.run(script) == ("timer", ["timer"])


def test_a_text_that_is_too_long_is_refused_with_what_to_do(rig: Rig) -> None:
    async def script(rt: Runtime):
        with pytest.raises(ProposalError, match="as a file"):
            await rt.receive("x" * (INPUT_MAX + 1))
        return await rt.receive("x" * INPUT_MAX)

    assert len(rig.run(script).text) == INPUT_MAX
    assert rig.events() == ["received", "opened"]
