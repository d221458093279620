"""An HTTP endpoint as a tool: which request leaves, and what each reply says about the effect."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.contract import REFUSALS
from landed.core.errors import ContractError, ProposalError
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
from landed.testing.loop import VirtualLoop
from landed.tools.http import HttpTool
from landed.tools.reading import Reading
from tests.tools.calls import SENT_AT, call_of, run

FAR = "http://far.test"
Answers = Callable[[httpx2.Request], httpx2.Response]


class Far:
    """A far side that answers each request by `answers`, and remembers the requests."""

    def __init__(self, answers: Answers | httpx2.Response) -> None:
        self.requests: list[httpx2.Request] = []
        self._answers = answers
        self.transport = httpx2.MockTransport(self._take)

    def _take(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return (
            self._answers if isinstance(self._answers, httpx2.Response) else self._answers(request)
        )

    @property
    def last(self) -> httpx2.Request:
        return self.requests[-1]


def booking(far: Far, **promises: Any) -> HttpTool:
    told: dict[str, Any] = {
        "name": "book",
        "effect": "reversible",
        "url": f"{FAR}/reservations",
        "arguments": {"day": str, "people": int, "note": (str | None, None)},
        "keyed": "Idempotency-Key",
        "lookup": f"{FAR}/keys/{{key}}",
        "close": f"{FAR}/keys/{{key}}/close",
        "read_back": f"{FAR}/reservations/{{result.id}}",
        "transport": far.transport,
    }
    return HttpTool(**(told | promises))


def far_json(status: int, body: Json, **headers: str) -> Far:
    return Far(httpx2.Response(status, json=body, headers=headers))


ARGUMENTS: dict[str, Json] = {"day": "Fri", "people": 4, "note": None}
CALL = call_of(ARGUMENTS, key="s:op/1")


# The request.


def test_it_is_a_tool_with_a_schema_and_its_questions_in_the_contract() -> None:
    far = far_json(200, {})
    declared: Tool = booking(far, description="Book a table.")
    assert declared.schema["description"] == "Book a table."
    assert declared.contract.lookup
    assert declared.contract.close
    assert declared.contract.read_back
    assert declared.interruptible
    assert declared.check({"day": "Fri", "people": 4}) == ARGUMENTS


@pytest.mark.req("S4-03")
def test_every_send_is_the_same_bytes_under_the_key_of_the_call() -> None:
    far = far_json(201, {"id": "R1"})
    book = booking(far)
    shuffled: dict[str, Json] = {"people": 4, "note": None, "day": "Fri"}
    run(book.send(CALL))
    run(book.send(call_of(shuffled, key="s:op/1", attempt=2)))
    first, second = far.requests
    assert (first.method, str(first.url)) == ("POST", f"{FAR}/reservations")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == "s:op/1"
    assert first.content == second.content == b'{"day":"Fri","note":null,"people":4}'
    assert first.headers["content-type"] == "application/json"
    assert first.headers["accept-encoding"] == "identity"


def test_epoch_and_time_of_the_send_go_into_the_headers_that_were_named() -> None:
    far = far_json(201, {"id": "R1"})
    run(booking(far, fence="X-Epoch", sent_at_header="X-Sent-At").send(CALL))
    assert far.last.headers["x-epoch"] == "7"
    assert float(far.last.headers["x-sent-at"]) == SENT_AT
    run(booking(far).send(CALL))
    assert "x-sent-at" not in far.last.headers


def test_a_read_carries_no_key_and_puts_its_arguments_into_the_query() -> None:
    far = far_json(200, {"free": True})
    search = HttpTool(
        name="search",
        effect="none",
        url=f"GET {FAR}/tables?lang=en",
        arguments={"day": str, "times": list[str], "quiet": bool, "note": (str | None, None)},
        transport=far.transport,
    )
    arguments = search.check({"day": "a&b=c", "times": ["19:00", "20:00"], "quiet": True})
    assert run(search.send(call_of(arguments, key=""))) == Acknowledged(result={"free": True})
    assert far.last.method == "GET"
    assert far.last.content == b""
    assert far.last.url.query == b"lang=en&day=a%26b%3Dc&times=19%3A00&times=20%3A00&quiet=true"


@pytest.mark.parametrize(
    ("in_body", "body"), [(False, {"fee": 0}), (True, {"id": "R/1", "fee": 0})]
)
def test_an_argument_in_the_url_is_encoded_whole(in_body: bool, body: Json) -> None:
    far = far_json(200, {"id": "R1"})
    cancel = HttpTool(
        name="cancel",
        effect="irreversible",
        url=f"{FAR}/reservations/{{id}}/cancel",
        arguments={"id": str, "fee": int},
        url_in_body=in_body,
        transport=far.transport,
    )
    run(cancel.send(call_of({"id": "R/1", "fee": 0}, key="")))
    assert far.last.url.raw_path == b"/reservations/R%2F1/cancel"
    assert json.loads(far.last.content) == body


@pytest.mark.parametrize("value", ["", ".", "..", None, True, 1.5, ["R1"], {"id": "R1"}])
def test_what_would_make_another_address_is_refused_before_it_is_recorded(value: Json) -> None:
    far = far_json(200, {})
    free = HttpTool(
        name="free",
        effect="reversible",
        url=f"DELETE {FAR}/tables/{{table}}",
        arguments={"table": str | int | float | bool | list[str] | dict[str, str] | None},
        transport=far.transport,
    )
    assert free.check({"table": 4}) == {"table": 4}
    with pytest.raises(ProposalError, match="table goes into an address"):
        free.check({"table": value})
    assert isinstance(run(free.send(call_of({"table": value}, key=""))), NotSent)
    assert far.requests == []


@pytest.mark.req("S4-04")
def test_a_key_that_the_caller_gives_is_refused() -> None:
    with pytest.raises(ProposalError, match="filled by the runtime"):
        booking(far_json(200, {})).check({"day": "Fri", "people": 4, "Idempotency-Key": "mine"})


def test_headers_may_depend_on_the_principal_and_are_never_repeated_as_evidence() -> None:
    def headers(call: Call) -> dict[str, str]:
        return {"Authorization": f"Bearer secret-of-{call.ask.principal}"}

    far = Far(lambda request: httpx2.Response(500, text=request.headers["authorization"]))
    outcome = run(booking(far, headers=headers).send(CALL))
    assert far.last.headers["authorization"] == "Bearer secret-of-ana"
    assert outcome == AnswerLost(reason="500 Bearer ***")


def test_a_request_that_cannot_be_made_is_not_sent() -> None:
    def headers(call: Call) -> dict[str, str]:
        raise KeyError("no token")

    far = far_json(200, {})
    assert isinstance(run(booking(far, headers=headers).send(CALL)), NotSent)
    assert far.requests == []


def test_no_cookie_goes_from_one_call_to_the_next() -> None:
    far = far_json(201, {"id": "R1"}, **{"set-cookie": "session=ana; Path=/"})
    book = booking(far)
    run(book.send(CALL))
    run(book.send(CALL))
    assert "cookie" not in far.last.headers


# What the reply says.

YES = {"id": "R1"}


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("status", [200, 201, 203])
def test_a_yes_with_its_json_is_acknowledged(status: int) -> None:
    assert run(booking(far_json(status, YES)).send(CALL)) == Acknowledged(result=YES)


def test_a_202_is_a_receipt_with_or_without_a_body() -> None:
    assert run(booking(far_json(202, YES)).send(CALL)) == Acknowledged(result=YES, accepted=True)
    empty = Far(httpx2.Response(202))
    assert run(booking(empty).send(CALL)) == Acknowledged(result=None, accepted=True)


def test_a_204_has_no_result() -> None:
    assert run(booking(Far(httpx2.Response(204))).send(CALL)) == Acknowledged(result=None)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_of_the_contract_is_refused_in_the_services_words(status: int) -> None:
    outcome = run(booking(far_json(status, {"why": "full"})).send(CALL))
    assert outcome == Refused(reason=f'{status} {{"why":"full"}}')


@pytest.mark.req("S4-01")
@pytest.mark.fault("X60")
@pytest.mark.parametrize(
    "status", [206, 207, 304, 402, 407, 408, 409, 410, 423, 425, 500, 502, 503, 504, 599]
)
def test_every_other_status_is_an_answer_that_was_lost(status: int) -> None:
    assert isinstance(run(booking(far_json(status, YES)).send(CALL)), AnswerLost)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    ("status", "refusals", "expected"),
    [(503, (503,), Refused), (400, (422,), AnswerLost), (404, (), AnswerLost)],
)
def test_the_contract_says_which_statuses_are_refusals(
    status: int, refusals: tuple[int, ...], expected: type
) -> None:
    book = booking(far_json(status, {}), refusals=refusals)
    assert isinstance(run(book.send(CALL)), expected)


@pytest.mark.fault("X65")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    far = far_json(status, {}, location="http://elsewhere.test/take")
    outcome = run(booking(far).send(CALL))
    where = "redirects to http://elsewhere.test/take, not followed"
    assert outcome == AnswerLost(reason=f"{status} {where}")
    assert len(far.requests) == 1


@pytest.mark.fault("X63")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><h1>Thank you</h1></html>",
        b'{"id": "R1"',
        b'{"id": "R1", "id": "R2"}',
        b'{"id": NaN}',
        b'{"id": 12345678901234567890}',
        b'{"name": "no id"}',
        b'["R1"]',
        b'"R1"',
        b"12",
        b"null",
        b'{"id": "\xff"}',
        b'\xef\xbb\xbf{"id": "R1"}',
        b'{"id": ' + b"[" * 500 + b"]" * 500 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_yes_that_cannot_be_read_is_no_yes(body: bytes) -> None:
    reading = Reading(requires=("id",))
    outcome = run(booking(Far(httpx2.Response(201, content=body)), reading=reading).send(CALL))
    assert isinstance(outcome, AnswerLost)
    assert outcome.reason.startswith("201 but ")


@pytest.mark.fault("X63")
@pytest.mark.parametrize("body", [b"12", b'"R1"', b"null", b"true"])
def test_a_bare_value_is_no_yes_for_it_may_have_been_cut_short(body: bytes) -> None:
    outcome = run(booking(Far(httpx2.Response(200, content=body))).send(CALL))
    assert isinstance(outcome, AnswerLost)


@pytest.mark.fault("X64")
@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, gzip"])
def test_an_encoded_reply_is_not_unpacked(encoding: str) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"\x1f\x8bnot gzip"

    far = Far(httpx2.Response(201, content=stream(), headers={"content-encoding": encoding}))
    outcome = run(booking(far).send(CALL))
    assert isinstance(outcome, AnswerLost)
    assert encoding in outcome.reason


@pytest.mark.fault("X64")
def test_a_reply_that_trickles_in_ends_at_the_deadline_of_the_call() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            await asyncio.sleep(1.0)  # virtual time
            yield b" "

    async def main() -> float:
        book = booking(Far(httpx2.Response(201, content=trickle())))
        assert await book.send(CALL) == AnswerLost(reason="no whole reply within 20 s")
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == 20.0


@pytest.mark.parametrize(
    ("reading", "body", "headers", "position"),
    [
        (Reading(yes_position="meta.seq"), {"meta": {"seq": 41}}, {}, 41),
        (Reading(yes_position="meta.seq"), {"meta": {}}, {}, None),
        (Reading(yes_position="meta.seq"), {"meta": 3}, {}, None),
        (Reading(position_header="X-Position"), {"position": 1}, {"x-position": "41"}, 41),
        (Reading(position_header="X-Position"), {"position": 1}, {}, None),
        (Reading(), {"position": 1}, {}, None),
    ],
)
def test_a_yes_may_have_a_position(
    reading: Reading, body: Json, headers: dict[str, str], position: int | None
) -> None:
    outcome = run(booking(far_json(200, body, **headers), reading=reading).send(CALL))
    assert outcome == Acknowledged(result=body, position=position)


@pytest.mark.parametrize("seq", ["41", 4.5, True, [41]])
@pytest.mark.fault("X63")
def test_a_position_of_another_kind_makes_the_yes_unreadable(seq: Json) -> None:
    book = booking(far_json(200, {"seq": seq}), reading=Reading(yes_position="seq"))
    assert isinstance(run(book.send(CALL)), AnswerLost)
    header = {"x-position": str(seq)}
    book = booking(far_json(200, {}, **header), reading=Reading(position_header="x-position"))
    kind = Acknowledged if seq == "41" else AnswerLost
    assert isinstance(run(book.send(CALL)), kind)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx2.ConnectError("refused"), NotSent),
        (httpx2.ConnectTimeout("no connection"), NotSent),
        (httpx2.PoolTimeout("no connection free"), NotSent),
        (httpx2.ReadTimeout("no answer"), AnswerLost),
        (httpx2.WriteError("reset"), AnswerLost),
        (TimeoutError("no answer"), AnswerLost),
        (RuntimeError("a bug in the transport"), AnswerLost),
    ],
)
@pytest.mark.req("S4-01")
def test_what_the_transport_raises_becomes_a_value(error: Exception, expected: type) -> None:
    def raises(request: httpx2.Request) -> httpx2.Response:
        raise error

    far = Far(raises)
    assert isinstance(run(booking(far).send(CALL)), expected)
    assert isinstance(run(booking(far).lookup(CALL)), NoAnswer)


# What the answer to a question says.


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        (200, {"found": True, "result": YES, "position": 4}, Found(result=YES, position=4)),
        (200, {"found": True, "result": None}, Found(result=None)),
        (200, {"found": False, "position": 4}, Absent(position=4)),
        (200, {"found": False}, Absent()),
        (200, {"found": None}, NotYet(reason='{"found":null}')),
        (202, {}, NotYet(reason="202 {}")),
        (409, {}, NotYet(reason="409 {}")),
        (425, {}, NotYet(reason="425 {}")),
    ],
)
def test_an_answer_of_the_usual_shape_is_read(status: int, body: Json, answer: object) -> None:
    book = booking(far_json(status, body))
    assert run(book.lookup(CALL)) == answer
    assert run(book.close(CALL)) == answer
    assert run(book.read_back(CALL, YES)) == answer


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"found": False}),
        (410, {}),
        (500, {"found": False}),
        (201, {"found": False}),
        (204, None),
        (302, {"found": False}),
        (200, {}),
        (200, []),
        (200, {"found": "no"}),
        (200, {"found": 0}),
        (200, {"found": True}),
        (200, {"found": False, "position": "4"}),
    ],
    ids=str,
)
def test_what_is_no_clear_answer_is_no_answer(status: int, body: Json) -> None:
    assert isinstance(run(booking(far_json(status, body)).lookup(CALL)), NoAnswer)


def test_the_contract_may_say_that_a_404_means_nothing_there() -> None:
    reading = Reading(found="", result="", absent_on=(404,))
    assert run(booking(far_json(404, {}), reading=reading).lookup(CALL)) == Absent()
    assert run(booking(far_json(200, YES), reading=reading).lookup(CALL)) == Found(result=YES)
    assert isinstance(run(booking(far_json(410, {}), reading=reading).lookup(CALL)), NoAnswer)


def test_questions_go_to_their_urls_without_the_key_header() -> None:
    far = far_json(200, {"found": False})
    book = booking(far, read_back=f"HEAD {FAR}/reservations/{{result.id}}?day={{day}}")
    run(book.lookup(CALL))
    assert (far.last.method, far.last.url.raw_path) == ("GET", b"/keys/s%3Aop%2F1")
    run(book.close(CALL))
    assert (far.last.method, far.last.url.raw_path) == ("POST", b"/keys/s%3Aop%2F1/close")
    run(book.read_back(CALL, {"id": "R 1"}))
    assert (far.last.method, far.last.url.raw_path) == ("HEAD", b"/reservations/R%201?day=Fri")
    assert all("idempotency-key" not in request.headers for request in far.requests)


def test_a_read_back_of_a_result_without_its_id_is_no_answer() -> None:
    far = far_json(200, {"found": False})
    assert isinstance(run(booking(far).read_back(CALL, {"name": "Ana"})), NoAnswer)
    assert far.requests == []


def test_a_question_that_was_not_declared_is_no_answer() -> None:
    book = booking(far_json(200, {"found": True}), lookup="", close="", read_back="")
    assert not book.contract.lookup
    for answer in (book.lookup(CALL), book.close(CALL), book.read_back(CALL, YES)):
        assert isinstance(run(answer), NoAnswer)


# What is refused when it is registered.


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        ({"url": "/reservations"}, "no absolute http(s) URL"),
        ({"url": "ftp://far.test/"}, "no absolute http(s) URL"),
        ({"url": f"{FAR}/{{table}}"}, "names {table}"),
        ({"url": f"{FAR}/{{day!r}}"}, "names {day}"),
        ({"url": f"{FAR}/{{day"}, "is no template"),
        ({"lookup": f"{FAR}/{{result.id}}"}, "names {result.id}"),
        ({"keyed": "", "close": ""}, "names {key}"),
        (
            {"arguments": {"day": str, "key": str}},
            "in a URL or a template {key} is not an argument",
        ),
        ({"effect": "perhaps"}, "effect"),
        ({"effect": "none"}, "promises no effect"),
    ],
)
def test_promises_that_do_not_fit_are_refused_at_once(promises: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError) as raised:
        booking(far_json(200, {}), **promises)
    assert says in str(raised.value)


def test_without_httpx2_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landed.tools.http.find_spec", lambda name: None)
    with pytest.raises(ContractError, match=r"install landed\[http\]"):
        HttpTool(name="book", effect="none", url=FAR)
