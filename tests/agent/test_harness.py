"""The harness: one record, one run at a time, and what the user says meanwhile."""

import asyncio
import gc
from contextlib import aclosing

import pytest

from landed.agent.harness import Harness
from landed.agent.messages import Message, error_message, text_of, user_message
from landed.agent.repair import INTERRUPTED
from landed.agent.validate import transcript_problems
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, ticks
from tests.agent.simulated import simulated
from tests.agent.tools import deaf, reading

READ_A = call("c1", "read", path="a.py")
READ_B = call("c2", "read", path="b.py")
BUSY = "already running; use steer\\(\\) or follow_up\\(\\)"


def harness_of(*replies, **given) -> Harness:
    model = ScriptedReplies(*replies, forever=says("Answer."))
    return Harness(model=model, **{"tools": [reading()], **given})


def said(harness: Harness) -> list[str]:
    return [text_of(message) for message in harness.messages if message["role"] == "user"]


@pytest.mark.req("S2-38")
def test_what_is_given_out_is_a_snapshot() -> None:
    harness = harness_of()
    before = harness.messages

    simulated(driven(harness.prompt("Hello.")))

    assert before == ()
    assert isinstance(harness.messages, tuple)
    assert shape(harness.messages) == "U A"


async def exhausted(harness: Harness) -> None:
    await driven(harness.prompt("Hello."))


async def closed(harness: Harness) -> None:
    run = harness.prompt("Hello.")
    await anext(run)
    await run.aclose()


async def closed_before_it_began(harness: Harness) -> None:
    await harness.prompt("Hello.").aclose()


async def dead(harness: Harness) -> None:
    def broken(event) -> None:
        raise OSError("disk full")

    remove = harness.subscribe(broken)
    with pytest.raises(OSError, match="disk full"):
        await driven(harness.prompt("Hello."))
    remove()


async def dropped(harness: Harness) -> None:
    async for _ in harness.prompt("Hello."):
        break
    gc.collect()
    await ticks(5)


async def dropped_before_it_began(harness: Harness) -> None:
    harness.prompt("Hello.")
    gc.collect()


ENDINGS = [exhausted, closed, closed_before_it_began, dead, dropped, dropped_before_it_began]


@pytest.mark.req("S2-39", "S2-44")
@pytest.mark.parametrize("ending", ENDINGS)
def test_one_run_at_a_time_until_it_is_exhausted_closed_or_dead(ending) -> None:
    async def program() -> None:
        harness = harness_of()
        run = harness.prompt("Hello.")
        seen = [harness.is_running]
        with pytest.raises(RuntimeError, match=BUSY):
            harness.prompt("And me?")
        await run.aclose()

        await ending(harness)

        assert [*seen, harness.is_running] == [True, False]
        await driven(harness.prompt("Again."))
        assert shape(harness.messages).endswith("U A")

    simulated(program())


@pytest.mark.req("S2-44")
def test_closing_after_each_event_ends_the_run() -> None:
    async def program(taken: int) -> int:
        harness = harness_of(asks(READ_A, READ_B))
        async with aclosing(harness.prompt("Go.")) as run:
            for _ in range(taken):
                await anext(run)
        assert not harness.is_running
        await driven(harness.prompt("And now?"))
        assert transcript_problems(harness.messages) == []
        return len(asyncio.all_tasks())

    for taken in range(16):
        assert simulated(program(taken)) == 1


@pytest.mark.req("S2-39")
def test_an_old_run_that_is_closed_again_does_not_end_a_new_one() -> None:
    async def program() -> None:
        harness = harness_of()
        old = harness.prompt("Hello.")
        await driven(old)
        new = harness.prompt("Hello?")
        await old.aclose()
        assert harness.is_running
        await driven(new)
        assert shape(harness.messages) == "U A U A"

    simulated(program())


@pytest.mark.req("S2-40", "S2-33")
def test_steering_goes_in_when_the_whole_batch_is_answered() -> None:
    harness = harness_of(asks(READ_A, READ_B), says("Both read."))

    def listener(event) -> None:
        if event["type"] == "tool_execution_start" and event["call"]["id"] == "c1":
            harness.steer("Only names, please.")
            assert "Only names, please." not in said(harness)

    harness.subscribe(listener)
    simulated(driven(harness.prompt("Read.")))

    assert shape(harness.messages) == "U A[c1,c2] R(c1) R(c2) U A"


@pytest.mark.req("S2-34")
def test_two_steers_are_two_turns() -> None:
    harness = harness_of()
    harness.steer("First.")
    harness.steer("Second.")
    assert harness.messages == ()

    simulated(driven(harness.prompt("Go.")))

    assert said(harness) == ["Go.", "First.", "Second."]
    assert shape(harness.messages) == "U U A U A"


@pytest.mark.req("S2-33", "S2-40")
def test_a_follow_up_waits_until_the_run_would_end() -> None:
    harness = harness_of(asks(READ_A), says("Read."))
    harness.follow_up("And then?")

    simulated(driven(harness.prompt("Read.")))

    assert shape(harness.messages) == "U A[c1] R(c1) A U A"


@pytest.mark.field("D8")
@pytest.mark.req("S2-40")
@pytest.mark.parametrize("queue", ["steer", "follow_up"])
def test_no_queued_word_is_lost_wherever_a_run_is_closed(queue) -> None:
    async def program(taken: int) -> list[str]:
        harness = harness_of(asks(READ_A))
        getattr(harness, queue)("Saturday.")
        async with aclosing(harness.prompt("Go.")) as run:
            for _ in range(taken):
                await anext(run, None)
        await driven(harness.prompt("And now?"))
        return said(harness)

    for taken in range(20):
        assert simulated(program(taken)).count("Saturday.") == 1


@pytest.mark.req("S2-41")
def test_a_listener_hears_after_the_record_and_before_the_consumer() -> None:
    harness = harness_of()
    order: list[str] = []

    def listener(event) -> None:
        if event["type"] == "message_end":
            assert harness.messages[-1] is event["message"]
        order.append(f"heard {event['type']}")

    async def program() -> None:
        async for event in harness.prompt("Hello."):
            order.append(f"took {event['type']}")

    remove = harness.subscribe(listener)
    simulated(program())
    assert order[0::2] == [one.replace("took", "heard") for one in order[1::2]]
    assert order[0].startswith("heard")
    assert len(order) == 12

    remove()
    remove()
    simulated(driven(harness.prompt("Hello?")))
    assert len(order) == 12


@pytest.mark.req("S2-41")
def test_listeners_may_go_while_they_are_called() -> None:
    harness = harness_of()
    heard: list[str] = []

    def first(event) -> None:
        heard.append("first")
        leave_first()
        leave_second()

    leave_first = harness.subscribe(first)
    leave_second = harness.subscribe(lambda event: heard.append("second"))
    harness.subscribe(lambda event: heard.append("third"))
    simulated(driven(harness.prompt("Hello.")))

    assert heard == ["first", *(["third"] * 6)]


@pytest.mark.req("S2-42", "K26")
def test_a_saver_that_fails_ends_the_run_and_an_onlooker_does_not() -> None:
    reported: list = []

    def broken(event) -> None:
        if event["type"] == "message_end":
            raise OSError("disk full")

    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, found: reported.append(found["exception"]))
        watched = harness_of()
        watched.observe(broken)
        await driven(watched.prompt("Hello."))
        assert shape(watched.messages) == "U A"
        assert [str(error) for error in reported] == ["disk full"] * 2

        saved = harness_of()
        saved.subscribe(broken)
        with pytest.raises(OSError, match="disk full"):
            await driven(saved.prompt("Hello."))
        assert shape(saved.messages) == "U"
        assert not saved.is_running

    simulated(program())


@pytest.mark.req("S2-43")
def test_the_record_is_replaced_at_rest_only() -> None:
    async def program() -> None:
        harness = harness_of()
        run = harness.prompt("Hello.")
        with pytest.raises(RuntimeError, match="during a run"):
            harness.replace_messages([])
        await driven(run)
        harness.replace_messages([user_message("Summary.")])
        assert shape(harness.messages) == "U"

    simulated(program())


@pytest.mark.req("S2-25")
def test_a_listener_hears_the_end_of_all_that_has_begun() -> None:
    heard: list[str] = []

    async def program() -> None:
        harness = harness_of(asks(call("c1", "wait")), tools=[deaf()])
        harness.subscribe(lambda event: heard.append(event["type"]))
        background = Background(harness.prompt("Go."))
        await background.until("tool_execution_start")
        await ticks(3)
        background.running.cancel()
        await asyncio.wait({background.running})
        assert not harness.is_running

    simulated(program())
    assert heard[-4:] == [
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
    ]


@pytest.mark.req("S2-100")
@pytest.mark.parametrize("repair", ["view", "durable"])
def test_a_hole_is_closed_in_the_view_or_for_good(repair) -> None:
    hole: list[Message] = [user_message("Go."), asks(READ_A)]
    model = ScriptedReplies(says("I see."))
    harness = Harness(model=model, messages=hole, repair=repair)
    saved = [*hole]
    harness.subscribe(lambda event: saved.append(event["message"]) if "message" in event else None)

    simulated(driven(harness.prompt("What happened?")))

    shown = model.calls[0].messages
    assert shape(shown) == "U A[c1] R(c1) U"
    assert shown[2]["content"] == INTERRUPTED
    assert transcript_problems(shown, "request") == []
    kept = {"view": "U A[c1] U A", "durable": "U A[c1] R(c1) U A"}[repair]
    assert shape(harness.messages) == kept
    assert tuple(saved) == harness.messages
    if repair == "durable":
        assert harness.messages[2].get("synthetic") is True


@pytest.mark.req("S2-96")
def test_a_failed_reply_and_a_stop_are_told_apart() -> None:
    harness = harness_of(OSError("no route"))
    simulated(driven(harness.prompt("Hello.")))
    run = harness.prompt("Hello?")
    harness.cancel()
    simulated(driven(run))

    assert shape(harness.messages) == "U A(error) U A(aborted)"
    assert harness.messages[1] == error_message("no route")
