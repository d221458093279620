"""What is in doubt is found out: on demand and at recovery; by one at a time, once."""

import asyncio
from typing import Any

import pytest

from landed.core.contract import WhenUnknown
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    NoAnswer,
    NotYet,
)
from landed.core.tool import Call
from landed.core.value import Confirmed, Failed, Undecided, Unknown
from landed.runtime.runtime import Runtime
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import (
    DROPPED,
    FINE,
    REFUSED,
    REPLY_LOST,
    RESET,
    SELDOM,
    TAKEN,
    Rig,
    Wire,
    booking,
    never,
    told_nothing_wrong,
    unkeyed,
)
from tests.runtime.stores import Fails, TroubledStore

FRIDAY = {"day": "Fri"}
LATER = Wire(arrives_s=20.0)


async def book_friday(rt: Runtime):
    return await rt.perform("book", FRIDAY, ask=Ask(call_id="c1"))


# Three triggers.


@pytest.mark.req("S4-08", "S4-09")
@pytest.mark.parametrize(("wire", "kind"), [(REPLY_LOST, Confirmed), (DROPPED, Failed)])
def test_on_demand_both_answers_are_found_out(rig: Rig, wire: Wire, kind: type) -> None:
    rig.far.wire.append(wire)
    blocks = booking(rig.far, when_unknown="block", refuses_after_s=1.0)

    async def script(rt: Runtime):
        value = await book_friday(rt)
        assert isinstance(value, Unknown)
        assert rig.far.questions == []
        return await rt.resolve(value.operation)

    assert isinstance(rig.run(script, blocks), kind)
    assert (rig.far.questions, rig.far.total) == (["lookup"], kind is Confirmed)


@pytest.mark.req("S4-09", "S0-40")
@pytest.mark.field("F5")
@pytest.mark.parametrize("crash_s", [0.5, 5.5, 7.0])
def test_at_recovery_what_a_crash_left_is_found_out(rig: Rig, crash_s: float) -> None:
    rig.far.wire.append(REPLY_LOST)
    process = rig.start(book_friday, booking(rig.far, max_tries=1))
    rig.world.pass_time(crash_s)
    rig.kill(process)

    async def script(rt: Runtime):
        await asyncio.sleep(30.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script, booking(rig.far, max_tries=1)), Confirmed)
    assert (rig.far.total, rig.far.sends) == (1, ["op-a1"])


# Two processes at once.


@pytest.mark.req("S4-09")
def test_two_processes_ask_one_question_at_a_time_and_settle_it_once(rig: Rig) -> None:
    """An open operation belongs to one worker; the other one looks on."""
    rig.far.wire.append(REPLY_LOST)
    asked: list[str] = []
    at_once = 0

    async def look(call: Call) -> Found:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        asked.append(call.operation)
        await asyncio.sleep(2.0)  # virtual time
        at_once -= 1
        return Found(result={"id": "R1"})

    book = booking(rig.far, lookup=look, when_unknown="block")

    async def own(rt: Runtime):
        value = await rt.perform("book", FRIDAY)
        return await asyncio.gather(*(rt.resolve(value.operation) for _ in range(3)))

    async def watch(rt: Runtime):
        await asyncio.sleep(11.0)  # virtual time
        return await asyncio.gather(*(rt.resolve("op-a1") for _ in range(3)))

    owner, other = rig.start(own, book), rig.start(watch, book)
    rig.world.wait(owner)
    rig.world.wait(other)
    assert asked == ["op-a1"]
    assert rig.events("op-a1").count("found") == 1
    assert all(isinstance(value, Confirmed) for value in owner.result())


@pytest.mark.req("S4-53")
def test_two_processes_that_look_at_what_a_person_has_settle_it_once(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**6
    book = booking(rig.far, escalate_after_s=20.0, close=None, max_tries=1)

    async def give_up(rt: Runtime):
        await rt.perform("book", FRIDAY, patience_s=100.0)
        rig.far.silent_questions = 0

    async def look(rt: Runtime):
        return await asyncio.gather(*(rt.resolve("op-a1") for _ in range(3)))

    rig.run(give_up, book)
    assert rig.states() == [State.UNDECIDED]
    both = [rig.start(look, book), rig.start(look, book)]
    for process in both:
        rig.world.wait(process)
    assert rig.events("op-a1").count("found") == 1
    assert rig.states() == [State.CONFIRMED]


# Policies, at the runtime.


@pytest.mark.req("S4-49", "S4-20", "S4-41")
@pytest.mark.parametrize(
    ("promises", "day", "kind", "questions"),
    [
        ({}, "10", Confirmed, 1),
        ({"when_unknown": WhenUnknown.BLOCK}, "10", Unknown, 0),
        ({"when_unknown": WhenUnknown.ESCALATE}, "10", Undecided, 0),
        ({"amount": "day", "escalate_above": 1_000.0}, "10", Confirmed, 1),
        ({"amount": "day", "escalate_above": 1_000.0}, "10000", Undecided, 0),
    ],
    ids=["reconcile", "block", "escalate", "10 is reconciled", "10,000 is queued"],
)
def test_each_strategy_by_the_tool_and_the_amount(
    rig: Rig, promises: dict[str, Any], day: str, kind: type, questions: int
) -> None:
    rig.far.wire.append(REPLY_LOST)
    book = booking(rig.far, **promises)

    async def script(rt: Runtime):
        return await rt.perform("book", {"day": day}), await rt.inbox()

    value, inbox = rig.run(script, book)
    assert isinstance(value, kind)
    assert (len(rig.far.questions), len(rig.far.sends)) == (questions, 1)
    assert len(inbox) == (kind is Undecided)


@pytest.mark.req("S4-36", "S4-50")
def test_past_its_deadline_it_is_undecided_a_case_and_never_sent_again(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**6
    book = booking(rig.far, escalate_after_s=60.0)

    async def script(rt: Runtime):
        value = await rt.perform("book", FRIDAY, patience_s=300.0)
        sends = len(rig.far.sends)
        await asyncio.sleep(3_000.0)  # virtual time
        return value, await rt.inbox(), len(rig.far.sends) - sends

    value, (case,), more = rig.run(script, book)
    assert isinstance(value, Undecided)
    assert (case.operation, case.why, more, len(rig.far.sends)) == ("op-a1", "undecided", 0, 1)


@pytest.mark.req("S4-50")
def test_an_unknown_has_an_age_that_can_be_watched_and_an_owner(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    rig.far.silent_questions = 10**6
    book = booking(rig.far, escalate_after_s=60.0, deadline_s=5.0)

    async def script(rt: Runtime):
        before = await rt.in_doubt()
        await rt.perform("book", FRIDAY, patience_s=10.0)
        (record,) = await rt.driver.store.load("op-a1")
        owner = record.worker
        during = await rt.in_doubt()
        await asyncio.sleep(100.0)  # virtual time
        return owner, before, during, await rt.in_doubt()

    owner, before, during, after = rig.run(script, book)
    assert owner == "w1"
    assert (before.unknown, before.oldest_unknown_s, before.cases) == (0, 0.0, 0)
    assert (during.unknown, during.cases) == (1, 0)
    assert 5.0 < during.oldest_unknown_s <= 10.0
    assert (after.unknown, after.cases) == (0, 1)
    assert after.oldest_case_s == pytest.approx(during.oldest_unknown_s + 100.0)


@pytest.mark.req("S4-23", "S4-51")
def test_what_a_model_hears_of_a_doubt_has_the_id_and_no_invitation_to_retry(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    blocks = booking(rig.far, when_unknown="block")

    async def script(rt: Runtime):
        value = await book_friday(rt)
        again = await book_friday(rt)
        other = await rt.perform("book", FRIDAY, ask=Ask(call_id="c2"))
        return value, again, other

    value, again, other = rig.run(script, blocks)
    assert isinstance(value, Unknown)
    assert value.operation in value.text
    assert told_nothing_wrong(value.text)
    assert (again.operation, again.replayed) == (value.operation, True)
    assert type(other).__name__ == "Blocked"
    assert rig.far.sends == ["op-a1"]


# Positions, retention, and services that break their word.


@pytest.mark.req("S4-35")
@pytest.mark.fault("X55", "X59")
@pytest.mark.parametrize(
    ("seen", "state"),
    [(Found(result={"id": "R1"}), State.CONFIRMED), (Absent(position=9), State.FAILED)],
    ids=["yes", "no"],
)
def test_a_lagging_replica_says_maybe_until_it_has_caught_up(
    rig: Rig, seen: Found | Absent, state: State
) -> None:
    answers: list[Found | Absent] = [Absent(position=3), Absent(position=6), seen]
    asked: list[int] = []

    async def read(call: Call, result: object) -> Found | Absent:
        asked.append(1)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @tool(effect="irreversible", read_back=read, settlement_lag_s=60.0, deadline_s=5.0)
    async def write(what: str, call: Call) -> object:
        """Write something."""
        return Acknowledged(result={"id": "R1"}, position=7)

    rig.run(lambda rt: rt.perform("write", {"what": "x"}, patience_s=60.0), write)
    assert (rig.states(), len(asked)) == ([state], 3)


@pytest.mark.field("G3")
@pytest.mark.fault("X56")
def test_after_a_key_may_be_forgotten_it_is_not_sent_again_and_its_absence_says_nothing(
    rig: Rig,
) -> None:
    rig.far.wire.append(REPLY_LOST)
    down_until: list[float] = []

    async def look(call: Call) -> Found | Absent | NoAnswer:
        if rig.world.clock.now() < down_until[0]:
            return NoAnswer(reason="down")
        rig.far.results.clear()  # The service forgot.
        return Absent()

    book = booking(rig.far, lookup=look, close=None, retention_s=100.0, escalate_after_s=300.0)

    async def script(rt: Runtime):
        down_until.append(rig.world.clock.now() + 150.0)
        return await rt.perform("book", FRIDAY, patience_s=1_000.0)

    assert isinstance(rig.run(script, book), Undecided)
    assert (rig.far.total, len(rig.far.sends)) == (1, 1)


@pytest.mark.field("F7")
def test_a_ledger_that_fails_after_the_post_posts_it_once(rig: Rig) -> None:
    """The disk is full when the answer comes, and then the process is gone."""
    rig.wrap = lambda store: TroubledStore(store, Fails("acknowledged"))
    process = rig.start(book_friday, booking(rig.far))
    rig.world.pass_time(20.0)
    rig.kill(process)
    assert (rig.far.total, rig.states()) == (1, [State.SENT])
    rig.wrap = lambda store: store
    assert isinstance(rig.run(book_friday, booking(rig.far)), Confirmed)
    assert (rig.far.questions, rig.far.sends) == (["lookup"], ["op-a1"])


@pytest.mark.req("S4-09")
def test_a_round_over_many_asks_one_question_about_each(rig: Rig) -> None:
    count = 500
    rig.far.wire.extend([REPLY_LOST] * count)
    book = booking(rig.far, concurrency=0)

    async def script(rt: Runtime):
        calls = (
            rt.perform("book", {"day": f"d{n}"}, ask=Ask(session=f"s{n % 50}"), patience_s=60.0)
            for n in range(count)
        )
        return await asyncio.gather(*calls)

    values = rig.run(script, book)
    assert {type(value) for value in values} == {Confirmed}
    assert (rig.far.questions.count("lookup"), len(rig.far.sends)) == (count, count)


@pytest.mark.fault("X60")
def test_what_says_failed_and_landed_is_found_out_and_not_sent_again(rig: Rig) -> None:
    rig.far.wire.append(RESET)
    value = rig.run(book_friday, booking(rig.far))
    assert isinstance(value, Confirmed)
    assert (rig.far.total, rig.far.sends) == (1, ["op-a1"])


@pytest.mark.fault("X59", "X61")
@pytest.mark.parametrize("shown_s", [0.0, 20.0, None], ids=["seen", "seen later", "never"])
def test_taken_is_not_landed_before_it_is_seen(rig: Rig, shown_s: float | None) -> None:
    rig.far.wire.append(TAKEN)
    rig.far.shown_s = 10.0**9 if shown_s is None else shown_s
    book = booking(
        rig.far,
        read_back=rig.far.read_back,
        settlement_lag_s=60.0,
        close=None,
        max_tries=1,
        escalate_after_s=200.0,
    )
    value = rig.run(lambda rt: rt.perform("book", FRIDAY, patience_s=1_000.0), book)
    assert isinstance(value, Undecided if shown_s is None else Confirmed)
    assert len(rig.far.sends) == 1


# What is wanted by now.


@pytest.mark.req("S4-29", "S4-18")
@pytest.mark.field("D7")
def test_an_operation_that_nobody_wants_any_more_is_closed_and_not_sent_again(rig: Rig) -> None:
    """The desired state is read again before the correction: it was cancelled while in doubt."""
    rig.far.wire.append(DROPPED)
    rig.far.silent_questions = 3

    async def script(rt: Runtime):
        waiting = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=100.0))
        await asyncio.sleep(5.1)  # virtual time
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(100.0)  # virtual time
        return await rt.status("op-a1")

    assert isinstance(rig.run(script, booking(rig.far)), Failed)
    assert (rig.far.sends, rig.far.closed, rig.far.total) == (["op-a1"], {"op-a1"}, 0)


@pytest.mark.req("S4-29")
def test_the_same_doubt_that_is_still_wanted_is_sent_again(rig: Rig) -> None:
    rig.far.wire.append(DROPPED)
    rig.far.silent_questions = 3
    value = rig.run(lambda rt: rt.perform("book", FRIDAY, patience_s=100.0), booking(rig.far))
    assert isinstance(value, Confirmed)
    assert (rig.far.sends, rig.far.closed) == (["op-a1", "op-a1"], set())


# Attempts are counted before they are made.


@pytest.mark.fault("X71")
def test_a_call_that_kills_its_worker_is_in_front_of_a_person_after_its_tries(rig: Rig) -> None:
    """Each process dies in the middle of the send, and writes nothing any more."""
    sent: list[str] = []
    book = poisoned(sent)

    async def first(rt: Runtime):
        return await rt.perform("book", {"day": "poison"}, ask=Ask(send_by=10.0**12))

    async def again(rt: Runtime):
        await asyncio.sleep(300.0)  # virtual time

    for n, script in enumerate([first, again, again], 1):
        process = rig.start(script, book)
        while len(sent) < n:
            rig.world.pass_time(0.5)
        assert rig.operation().tries == n
        rig.kill(process)

    async def last(rt: Runtime):
        other = await rt.perform("book", {"day": "Sat"}, ask=Ask(session="s2"))
        await asyncio.sleep(900.0)  # virtual time
        return other, await rt.inbox()

    other, (case,) = rig.run(last, book)
    assert isinstance(other, Confirmed)
    assert (case.operation, len(sent)) == ("op-a1", 3)


def poisoned(sent: list[str]) -> FunctionTool[Any, Any]:
    async def look(call: Call) -> Absent:
        return Absent()

    @tool(
        effect="irreversible",
        keyed="key",
        compares_payload=True,
        lookup=look,
        max_tries=3,
        deadline_s=5.0,
        escalate_after_s=400.0,
    )
    async def book(day: str, key: str) -> dict[str, str]:
        if day == "poison":
            sent.append(key)
            await never()
        return {"id": "R1"}

    return book


# What is true of every record.

WIRES = (FINE, REPLY_LOST, RESET, DROPPED, LATER, REFUSED, TAKEN)
ENDS = (State.CONFIRMED, State.FAILED, State.ASSUMED, State.ACCEPTED, State.UNDECIDED)
PROMISES: dict[str, dict[str, Any]] = {
    "keeps all": {"keyed": "key"},
    "lookup only": {"keyed": "key", "compares_payload": False, "close": None},
    "refuses late": {"keyed": "key", "refuses_after_s": 30.0},
    "nothing": {},
    "harmless": {"assume_after_s": 30.0},
}


@pytest.mark.req("S4-52", "S4-22", "S4-37", "K8", "K9", "K10", "K11")
@pytest.mark.parametrize("promises", PROMISES.values(), ids=PROMISES)
@pytest.mark.parametrize("questions", [0, 2, 10**6])
@pytest.mark.parametrize("wire", WIRES)
def test_nothing_is_settled_without_evidence_and_no_send_follows_a_maybe(
    rig: Rig, wire: Wire, questions: int, promises: dict[str, Any]
) -> None:
    """`Rig.check` fails on a send after a maybe; the rest is what the world and the record say."""
    rig.lease = SELDOM
    rig.far.wire.append(wire)
    rig.far.silent_questions = questions
    made = booking if "keyed" in promises else unkeyed
    tool = made(rig.far, escalate_after_s=120.0, **promises)
    arguments = FRIDAY if made is booking else {"to": "ana"}
    rig.run(lambda rt: rt.perform(tool, arguments, patience_s=600.0), tool)
    rig.world.settle()
    held = rig.operation()
    assert held.state in ENDS
    assert held.evidence
    assert held.state is not State.ASSUMED or "assume_after_s" in promises
    if held.final:
        assert rig.far.total == (held.state is State.CONFIRMED)


def test_what_is_not_knowable_yet_is_asked_again(rig: Rig) -> None:
    rig.far.wire.append(REPLY_LOST)
    answers: list[Found | NotYet] = [NotYet(reason="running"), NotYet(), Found(result={"id": "R1"})]

    async def look(call: Call) -> Found | NotYet:
        return answers.pop(0)

    value = rig.run(
        lambda rt: rt.perform("book", FRIDAY, patience_s=60.0), booking(rig.far, lookup=look)
    )
    assert isinstance(value, Confirmed)
    assert (answers, rig.far.sends) == ([], ["op-a1"])
