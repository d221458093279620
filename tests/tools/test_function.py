"""A function as a tool: what the decorator refuses, what it is given, what its end says."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, fields
from datetime import date
from functools import partial
from typing import Any, cast

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.contract import Contract, Effect
from landed.core.errors import ContractError, NotSentError, ProposalError, RefusedError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
)
from landed.core.tool import Call, Tool
from landed.tools.classify import one_request
from landed.tools.function import FunctionTool, tool
from landed.tools.promises import Promises
from tests.tools.calls import call_of, run


@tool(effect="reversible", keyed="idempotency_key", fence="epoch", undo="cancel")
async def book(
    day: date, people: int, *, call: Call, idempotency_key: str, epoch: int, name: str = "Ana"
) -> dict[str, Json]:
    """Book a table."""
    return {
        "said": [day.isoformat(), people, name],
        "key": idempotency_key,
        "epoch": epoch,
        "attempt": call.attempt,
    }


def test_it_is_a_tool_with_the_contract_that_was_declared() -> None:
    declared: Tool = book
    assert declared.name == "book"
    assert declared.interruptible
    assert declared.contract == Contract(
        effect=Effect.REVERSIBLE,
        service="book",
        keyed="idempotency_key",
        fence="epoch",
        undo="cancel",
    )


@pytest.mark.req("S4-04")
def test_a_model_sees_neither_key_nor_epoch_nor_call_and_cannot_set_them() -> None:
    assert book.schema["description"] == "Book a table."
    properties: Any = book.schema["properties"]
    assert sorted(properties) == ["day", "name", "people"]
    for name in ("idempotency_key", "epoch", "call"):
        with pytest.raises(ProposalError, match=name):
            book.check({"day": "2031-05-02", "people": 4, name: "mine"})


@pytest.mark.req("S4-04")
def test_key_epoch_and_call_reach_their_parameters_and_the_rest_its_types() -> None:
    stored = book.check({"day": "2031-05-02", "people": 4})
    outcome = run(book.send(call_of(stored, key="op-9", epoch=12, attempt=3)))
    assert outcome == Acknowledged(
        result={"said": ["2031-05-02", 4, "Ana"], "key": "op-9", "epoch": 12, "attempt": 3}
    )


def test_calling_it_calls_the_plain_function() -> None:
    @tool(effect="none")
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert not double.interruptible


# What the decorator refuses.


@pytest.mark.req("S0-37")
@pytest.mark.field("A10")
def test_a_tool_without_an_effect_is_refused() -> None:
    def pay(amount_cents: int) -> None: ...

    for declare in (tool, tool()):
        with pytest.raises(ContractError, match="pay: say what it does to the world"):
            declare(pay)


def lookup(call: Call) -> Found:
    return Found(result=None)


def starred(*days: str) -> None: ...


def positional(day: str, /) -> None: ...


def unannotated(day) -> None: ...


def plain(day: str) -> None: ...


async def generator(day: str) -> AsyncIterator[str]:
    yield day


@pytest.mark.parametrize(
    ("function", "promises", "says"),
    [
        (plain, {"effect": "harmless"}, "effect: 'harmless' is not a valid Effect"),
        (plain, {"effect": "none", "keyed": "day"}, "promises no effect"),
        (plain, {"effect": "reversible", "keyed": "key"}, "keyed='key' names no parameter"),
        (plain, {"effect": "reversible", "fence": "epoch"}, "fence='epoch' names no parameter"),
        (plain, {"effect": "reversible", "retries": 3}, "no field 'retries'"),
        (plain, {"effect": "reversible", "close": lookup}, "close shuts a key"),
        (plain, {"effect": "reversible", "assume_after_s": 9.0}, "assume_after_s"),
        (starred, {"effect": "none"}, "cannot be passed by name"),
        (positional, {"effect": "none"}, "cannot be passed by name"),
        (unannotated, {"effect": "none"}, "annotate the parameter day"),
        (generator, {"effect": "none"}, "is a generator"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_promises_that_do_not_fit_are_refused_at_once(
    function: Callable[..., object], promises: dict[str, Any], says: str
) -> None:
    with pytest.raises(ContractError) as raised:
        tool(**promises)(function)
    assert says in str(raised.value)


def test_types_that_cannot_be_resolved_are_refused_when_they_are_needed() -> None:
    def later(day: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    made = tool(effect="none")(later)
    with pytest.raises(ContractError, match="Nowhere"):
        made.check({"day": "Fri"})


def test_a_function_whose_types_cannot_be_resolved_is_not_called() -> None:
    async def later(day: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    outcome = run(tool(effect="reversible")(later).send(call_of({"day": "Fri"})))
    assert isinstance(outcome, NotSent)
    assert "Nowhere" in outcome.reason


def test_promises_offers_every_field_of_the_contract_that_is_not_asked_for_itself() -> None:
    asked = {"effect", "prepare", "lookup", "close", "read_back", "list_effects"}
    # What follows from a function that is given for it; `if_alike` is the contract's `look_alike`.
    follows = {"risk_varies"}
    promised = {each.name for each in fields(Contract)} - asked - follows
    assert set(Promises.__annotations__) == promised | {"if_alike"}


def test_registering_loads_neither_pydantic_nor_an_http_client() -> None:
    code = (
        "import sys\n"
        "import landed.tools.function, landed.tools.http\n"
        "@landed.tools.function.tool(effect='none')\n"
        "def read(day: str) -> str: return day\n"
        "landed.tools.http.HttpTool(name='r', effect='none', url='https://far.test/')\n"
        "print({'pydantic', 'pydantic_core', 'httpx2', 'httpx'} & set(sys.modules))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=20, check=True
    )
    assert ended.stdout == "set()\n"


# What its end says. Each case runs as an async and as a synchronous function.


def both(body: Callable[[], object], **promises: Any) -> list[FunctionTool[..., object]]:
    async def waits() -> object:
        return body()

    def blocks() -> object:
        return body()

    declare = tool(effect="reversible", **promises)
    return [declare(waits), declare(blocks)]


def raising(error: BaseException) -> Callable[[], object]:
    def raises() -> object:
        raise error

    return raises


def refused_by_status(status: int) -> Exception:
    request = httpx2.Request("POST", "http://far.test/")
    reply = httpx2.Response(status, request=request)
    return httpx2.HTTPStatusError("no", request=request, response=reply)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    ("error", "promises", "outcome"),
    [
        (RefusedError("Friday is full"), {}, Refused(reason="Friday is full")),
        (NotSentError("offline"), {}, NotSent(reason="offline")),
        (KeyError("id"), {}, AnswerLost(reason="KeyError: 'id'")),
        (TimeoutError(), {}, AnswerLost(reason="TimeoutError")),
        (httpx2.ConnectError("no"), {}, AnswerLost(reason="ConnectError: no")),
        (httpx2.ConnectError("no"), {"raises": one_request}, NotSent(reason="ConnectError: no")),
        (refused_by_status(422), {}, AnswerLost(reason="HTTPStatusError: no")),
        (refused_by_status(422), {"raises": one_request}, Refused(reason="422 no")),
        (
            refused_by_status(422),
            {"raises": one_request, "refusals": (400,)},
            AnswerLost(reason="422 no"),
        ),
    ],
)
def test_what_it_raises_becomes_a_value(error: Exception, promises: Any, outcome: object) -> None:
    for each in both(raising(error), **promises):
        assert run(each.send(call_of())) == outcome


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_no_exception_goes_through(error: BaseException) -> None:
    async def send(each: FunctionTool[..., object]) -> str:
        # Caught inside, for a task that lets out an exit takes its whole loop down.
        try:
            await each.send(call_of())
        except BaseException as raised:
            return type(raised).__name__
        return "nothing"

    for each in both(raising(error)):
        assert run(send(each)) == type(error).__name__


@dataclass
class Booking:
    day: date


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


class Mute:
    def __repr__(self) -> str:
        raise ValueError("no words")


LOOP: list[object] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"id": "R1"}, {"id": "R1"}),
        (None, None),
        (("R1", 2), ["R1", 2]),
        (Booking(day=date(2031, 5, 2)), {"day": "2031-05-02"}),
        (float("nan"), {"repr": "nan"}),
        (2**60, {"repr": str(2**60)}),
        (Odd(), {"repr": "<odd>"}),
        (Mute(), {"repr": "Mute"}),
        (LOOP, {"repr": "[[...]]"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_it_returns_is_a_yes_also_when_it_is_not_json(value: object, result: Json) -> None:
    for each in both(lambda: value):
        assert run(each.send(call_of())) == Acknowledged(result=result)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (Acknowledged(result="R1", position=3), Acknowledged(result="R1", position=3)),
        (
            Acknowledged(result=cast(Any, date(2031, 5, 2)), accepted=True, complete=False),
            Acknowledged(result="2031-05-02", accepted=True, complete=False),
        ),
        (Refused(reason="full"), Refused(reason="full")),
        (NotSent(reason="offline"), NotSent(reason="offline")),
        (AnswerLost(reason="lost"), AnswerLost(reason="lost")),
    ],
)
def test_it_may_return_an_outcome(value: object, outcome: object) -> None:
    for each in both(lambda: value):
        assert run(each.send(call_of())) == outcome


def test_a_plain_function_around_an_async_one_is_awaited_and_not_taken_for_done() -> None:
    async def inner() -> str:
        return "R1"

    @tool(effect="reversible")
    def outer() -> object:
        return inner()

    assert run(outer.send(call_of())) == Acknowledged(result="R1")


def test_arguments_that_no_longer_fit_are_not_sent() -> None:
    assert isinstance(run(book.send(call_of({"table": 4}))), NotSent)


def test_a_synchronous_tool_that_is_busy_is_not_called_and_gives_up_before_its_deadline() -> None:
    started, go_on, calls = threading.Event(), threading.Event(), []

    @tool(effect="reversible", concurrency=1)
    def slow() -> str:
        calls.append(threading.current_thread())
        started.set()
        assert go_on.wait(20)
        return "R1"

    async def main() -> None:
        first = asyncio.create_task(slow.send(call_of()))
        assert await asyncio.to_thread(started.wait, 20)
        clock = asyncio.get_running_loop().time
        began_at = clock()
        second = await slow.send(call_of(deadline_s=0.4))
        assert isinstance(second, NotSent)
        assert clock() - began_at < 0.4
        go_on.set()
        assert await first == Acknowledged(result="R1")

    run(main())
    assert len(calls) == 1


# Questions.


def asking(question: Callable[..., object]) -> FunctionTool[..., object]:
    @tool(effect="reversible", keyed="key", lookup=question, close=question, read_back=question)
    def pay(key: str) -> None: ...

    return pay


@pytest.mark.parametrize(
    "answer",
    [Found(result={"id": "R1"}, position=4), Absent(position=4), NotYet(), NoAnswer(reason="down")],
)
def test_what_a_question_returns_is_the_answer(answer: object) -> None:
    async def waits(call: Call, result: Json = None) -> object:
        return answer

    def blocks(call: Call, result: Json = None) -> object:
        return answer

    for question in (waits, blocks, partial(waits)):
        pay = asking(question)
        assert run(pay.lookup(call_of())) == answer
        assert run(pay.close(call_of())) == answer
        assert run(pay.read_back(call_of(), {"id": "R1"})) == answer


def test_a_question_is_handed_the_call_and_a_read_back_the_result_too() -> None:
    seen: list[object] = []

    def question(*handed: object) -> Absent:
        seen.extend(handed)
        return Absent()

    call = call_of()
    run(asking(question).read_back(call, "R1"))
    run(asking(question).lookup(call))
    assert seen == [call, "R1", call]


@pytest.mark.parametrize("value", [None, True, {"found": True}])
def test_a_question_that_returns_anything_else_is_unanswered_and_told_so(value: object) -> None:
    answer = run(asking(lambda call: value).lookup(call_of()))
    assert isinstance(answer, NoAnswer)
    assert "must return Found, Absent, NotYet or NoAnswer" in answer.reason


def test_a_question_that_raises_is_unanswered() -> None:
    def fails(call: Call) -> object:
        raise RefusedError("404")

    assert run(asking(fails).close(call_of())) == NoAnswer(reason="RefusedError: 404")


def test_a_question_that_was_not_declared_is_unanswered() -> None:
    for answer in (book.lookup(call_of()), book.close(call_of()), book.read_back(call_of(), None)):
        assert isinstance(run(answer), NoAnswer)


def test_sends_that_hang_do_not_keep_anybody_from_asking() -> None:
    started, go_on = threading.Event(), threading.Event()

    @tool(effect="reversible", concurrency=1, lookup=lambda call: Absent())
    def hangs() -> None:
        started.set()
        assert go_on.wait(20)

    async def main() -> None:
        sending = asyncio.create_task(hangs.send(call_of()))
        assert await asyncio.to_thread(started.wait, 20)
        assert await hangs.lookup(call_of(deadline_s=2.0)) == Absent()
        go_on.set()
        await sending

    run(main())
