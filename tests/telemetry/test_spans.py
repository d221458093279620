"""Each call that leaves is a span of its own, under whoever asked, on the runtime's clock."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.outcome import AnswerLost
from landed.core.tool import Call
from landed.core.value import Confirmed, Failed, Value
from landed.runtime.runtime import Runtime
from landed.telemetry import remembered
from landed.tools.function import FunctionTool, tool
from landed.tools.http import HttpTool
from tests.runtime.plan_rig import ANA, calls, propose, shelf
from tests.runtime.rig import (
    DEADLINE_S,
    FINE,
    REFUSED,
    REPLY_LOST,
    Wire,
    booking,
    never,
    unkeyed,
    with_day,
)
from tests.telemetry.watched import Watched, ended, names_of, own, started, told

SLOW = Wire(replies_s=2.0)


async def book(rt: Runtime) -> Value:
    """A call that a model made, by its id."""
    return await rt.perform("book", {"day": "Fri"}, ask=Ask(call_id="c1", session="s1"))


def test_a_send_is_a_span_on_the_clock_of_the_runtime(rig: Watched) -> None:
    rig.far.wire.append(SLOW)

    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    (span,) = rig.spans
    assert span.name == "execute_tool book"
    assert told(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "s1",
        "landed.operation": "op-a1",
        "landed.tenant": "default",
        "landed.attempt": 1,
        "landed.worker": "w1",
        "landed.epoch": 1,
        "landed.outcome": "acknowledged",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert ended(rig.world, span) - started(rig.world, span) == pytest.approx(2.0, abs=0.01)


def test_a_refusal_is_no_error(rig: Watched) -> None:
    rig.far.wire.append(REFUSED)

    assert isinstance(rig.run(book, booking(rig.far)), Failed)

    (span,) = rig.spans
    assert told(span)["landed.outcome"] == "refused"
    assert span.status.status_code is StatusCode.UNSET


def test_doubt_is_no_error_and_its_question_is_linked_to_the_send(rig: Watched) -> None:
    rig.far.wire.append(REPLY_LOST)

    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    sent, asked = rig.spans
    assert names_of([sent, asked]) == ["execute_tool book", "lookup book"]
    assert told(sent)["landed.outcome"] == "answer_lost"
    assert told(asked)["landed.outcome"] == "found"
    assert "gen_ai.operation.name" not in told(asked)
    assert {s.status.status_code for s in (sent, asked)} == {StatusCode.UNSET}
    assert [link.context for link in asked.links] == [own(sent)]
    assert own(asked).trace_id == own(sent).trace_id
    assert ended(rig.world, sent) == pytest.approx(started(rig.world, sent) + DEADLINE_S, abs=0.01)


def test_the_same_key_again_is_another_span(rig: Watched) -> None:
    rig.far.wire.extend([Wire(arrives_s=None), FINE])

    assert isinstance(rig.run(book, booking(rig.far)), Confirmed)

    sends = [span for span in rig.spans if span.name == "execute_tool book"]
    assert [told(span)["landed.attempt"] for span in sends] == [1, 2]
    assert [link.context for link in sends[1].links] == [own(sends[0])]


def test_each_call_is_under_the_span_of_its_own_caller(rig: Watched) -> None:
    """The loop runs in the context of whoever woke it; that one is not everybody's parent."""
    tracer = rig.tracing.get_tracer("agent")

    async def turn(rt: Runtime, name: str, day: str) -> None:
        with tracer.start_as_current_span(name):
            await rt.perform("book", with_day(day))

    async def script(rt: Runtime) -> None:
        await turn(rt, "first", "Fri")
        await turn(rt, "second", "Sat")
        await rt.perform("book", with_day("Sun"))

    rig.run(script, booking(rig.far))

    parents = {
        own(span).span_id: span.name for span in rig.spans if span.name in ("first", "second")
    }
    sends = [span for span in rig.spans if span.name == "execute_tool book"]
    assert [parents.get(s.parent.span_id) if s.parent else None for s in sends] == [
        "first",
        "second",
        None,
    ]


def test_after_a_crash_the_adopter_asks_in_a_trace_of_its_own(rig: Watched) -> None:
    rig.far.wire.append(REPLY_LOST)
    first = rig.start(book, booking(rig.far))
    rig.world.timeline.drive(lambda: bool(rig.far.sends))
    rig.kill(first)

    async def later(rt: Runtime) -> None:
        await asyncio.sleep(60.0)  # virtual time

    rig.run(later, booking(rig.far))

    asked = rig.span("lookup book")
    assert told(asked)["landed.operation"] == rig.operation("s1").id
    assert told(asked)["landed.worker"] == "w2"
    assert (asked.parent, asked.links) == (None, ())


def test_a_plan_and_its_undo_are_under_the_span_that_asked_for_them(rig: Watched) -> None:
    tracer = rig.tracing.get_tracer("agent")

    async def script(rt: Runtime) -> str:
        with tracer.start_as_current_span("turn"):
            done = await propose(rt, calls("put", "a", "b"))
        await rt.undo(done.plan, principal=ANA)
        return done.plan

    plan = rig.run(script, *shelf(rig.far))

    turn = own(rig.span("turn"))
    put = [span for span in rig.spans if span.name == "execute_tool put"]
    back = [span for span in rig.spans if span.name == "execute_tool take_off"]
    assert [told(s)["landed.plan"] for s in put] == [plan, plan]
    assert [s.parent and s.parent.span_id for s in put] == [turn.span_id] * 2
    undone = [told(s)["landed.undoes"] for s in back]
    assert undone == [told(s)["landed.operation"] for s in reversed(put)]


def test_a_plan_that_waited_for_a_yes_is_under_the_span_that_gave_it(rig: Watched) -> None:
    """It was proposed by another process, whose span nobody remembers."""
    tracer = rig.tracing.get_tracer("agent")
    tools = shelf(rig.far, risk="confirm")

    async def offer(rt: Runtime) -> str:
        offered = (await propose(rt, calls("put", "a"))).offer
        assert offered is not None
        return offered.token

    token = rig.run(offer, *tools)

    async def agree(rt: Runtime) -> None:
        with tracer.start_as_current_span("click"):
            await rt.approve(token=token, principal=ANA)

    rig.run(agree, *tools)

    parent = rig.span("execute_tool put").parent
    assert parent is not None
    assert parent.span_id == own(rig.span("click")).span_id


def test_a_tool_runs_inside_the_span_and_is_handed_its_headers(rig: Watched) -> None:
    seen: list[tuple[int, Mapping[str, str]]] = []

    @tool(effect="reversible")
    async def look_around(call: Call) -> str:
        seen.append((trace.get_current_span().get_span_context().span_id, call.trace))
        return "done"

    @tool(effect="reversible", name="in_a_thread")
    def threaded(call: Call) -> str:
        seen.append((trace.get_current_span().get_span_context().span_id, call.trace))
        return "done"

    async def script(rt: Runtime) -> None:
        await rt.perform("look_around")
        await rt.perform("in_a_thread")

    rig.run(script, look_around, threaded)

    for span, (inside, headers) in zip(rig.spans, seen, strict=True):
        assert inside == own(span).span_id
        assert headers == {"traceparent": header_of(span)}


def header_of(span: ReadableSpan) -> str:
    """A span as W3C's Trace Context spells it."""
    its = own(span)
    return f"00-{its.trace_id:032x}-{its.span_id:016x}-{its.trace_flags:02x}"


def test_http_requests_carry_the_trace(rig: Watched) -> None:
    carried: list[str | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        carried.append(request.headers.get("traceparent"))
        return httpx2.Response(201, json={"id": "R1"})

    pay = HttpTool(
        name="pay",
        effect="irreversible",
        url="http://far.test/payments",
        transport=httpx2.MockTransport(answer),
    )

    async def script(rt: Runtime) -> Value:
        return await rt.perform("pay")

    assert isinstance(rig.run(script, pay), Confirmed)
    assert carried == [header_of(rig.span("execute_tool pay"))]


def test_no_argument_is_in_a_span_unless_it_was_let_through(rig: Watched) -> None:
    rig.run(book, booking(rig.far))

    assert not any("Fri" in str(value) for value in told(rig.spans[0]).values())


def test_arguments_are_shown_as_far_as_they_were_let_through(rig: Watched) -> None:
    def redact(tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: f"{tool}: {len(str(value))} letters" for name, value in arguments.items()}

    rig.options = {"arguments": redact}
    rig.run(book, booking(rig.far))

    shown = told(rig.spans[0])["gen_ai.tool.call.arguments"]
    assert json.loads(str(shown)) == {"day": "book: 3 letters"}


class BrokenError(BaseException):
    """What nothing catches: a bug, of a tool or of ours."""


def test_a_call_that_broke_is_an_error(rig: Watched) -> None:
    book_ = broken(unkeyed(rig.far))

    async def script(rt: Runtime) -> Value:
        return await rt.perform("mail", {"to": "ana"}, patience_s=1.0)

    rig.run(script, book_)

    (span,) = rig.spans
    assert span.status.status_code is StatusCode.ERROR
    assert told(span)["error.type"] == "BrokenError"
    assert told(span)["landed.outcome"] == "answer_lost"


def broken(tool: FunctionTool[Any, Any]) -> FunctionTool[Any, Any]:
    """A tool whose send raises what it must not."""

    async def send(call: Call) -> AnswerLost:
        raise BrokenError

    tool.send = send  # type: ignore[method-assign]
    return tool


def test_a_call_whose_answer_is_late_ends_when_it_was_given_up(rig: Watched) -> None:
    @tool(effect="irreversible", deadline_s=DEADLINE_S, lookup=never_asked)
    async def crawl() -> None:
        await never()

    async def script(rt: Runtime) -> Value:
        return await rt.perform("crawl", patience_s=DEADLINE_S + 1.0)

    rig.run(script, crawl)

    sent = rig.span("execute_tool crawl")
    assert ended(rig.world, sent) == pytest.approx(started(rig.world, sent) + DEADLINE_S, abs=0.01)
    assert told(sent)["landed.outcome"] == "answer_lost"


async def never_asked(call: Call) -> Any:
    """A lookup that is never answered."""
    await never()


def test_what_is_remembered_of_callers_is_bounded(
    rig: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "REMEMBERED_MAX", 2)
    tracer = rig.tracing.get_tracer("agent")

    async def script(rt: Runtime) -> None:
        with tracer.start_as_current_span("turn"):
            for n in range(5):
                await rt.perform("book", with_day(f"day {n}"))

    rig.run(script, booking(rig.far))

    (watching,) = rig.watching
    kept = watching._spans  # pyright: ignore[reportPrivateUsage]
    assert (len(kept._askers), len(kept._sends), len(kept._out)) == (2, 2, 0)
