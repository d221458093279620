"""The agent's half of a two-phase write: what leaves, what never does, and what answers mean."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
)
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.refunds.tools import refund_tool
from landed.testing.worlds import payments
from landed.testing.worlds.payments import Payments
from landed.tools.dry_run import MEANS, NEXT, Layout, Meaning
from landed.tools.dry_run import planned as read_plan
from landed.tools.two_phase import COMMIT_WITHIN_S, FREEZE, TwoPhaseTool
from tests.testing.far_sides import FarSide, SetClock, Sleeps
from tests.tools.calls import SENT_AT, call_of, run

URL = "http://far.test/plans"
INPUTS: dict[str, Json] = {"invoice": "4412", "cents": 48_000}
PLAN: dict[str, Json] = {
    "plan_id": "plan_8f21c",
    "plan_token": "ptk_/+=\u00e9{0}%s ; DROP",
    "expires_at": "2023-11-14T22:23:20Z",  # 600 s after 1_700_000_000.
    "input_fingerprint": "sha256:6b1f",
    "actions": [{"op": "update", "target": "invoice/4412", "field": "status", "to": "paid"}],
}
COMMITTED: dict[str, Json] = {"id": "RF1", "cents": 48_000}
CHANGED: dict[str, Json] = {"field": "refunded_cents", "was": 0, "now": 20_000}
EXPIRES_AT = 1_700_000_600.0
Answer = tuple[int, Json]


class Recorded(httpx2.AsyncBaseTransport):
    """Keeps each request that leaves, and answers by its path's last part and its method."""

    def __init__(self, **answers: Answer | Exception) -> None:
        self.answers: dict[str, Answer | Exception] = {"dry_run": (201, PLAN), **answers}
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        last = request.url.path.rsplit("/", 1)[-1]
        name = {"plans": "dry_run", "commit": "commit", "abandon": "abandon"}.get(last, "plan")
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        return httpx2.Response(status, content=json.dumps(body).encode())

    @property
    def left(self) -> list[str]:
        return [f"{one.method} {one.url.path}" for one in self.requests]


def paying(transport: httpx2.AsyncBaseTransport, **more: Any) -> TwoPhaseTool:
    told: dict[str, Any] = {
        "name": "pay",
        "effect": "irreversible",
        "dry_run": URL,
        "commit": f"{URL}/{{plan_id}}/commit",
        "plan": f"{URL}/{{plan_id}}",
        "abandon": f"{URL}/{{plan_id}}/abandon",
        "arguments": {"invoice": str, "cents": int},
        "transport": transport,
    }
    return TwoPhaseTool(**(told | more))


async def planned(tool: TwoPhaseTool, **more: Any) -> Call:
    call = call_of(tool.check(INPUTS))
    ready = await tool.prepare(call)
    assert isinstance(ready, Prepared), ready
    return replace(call, prepared=ready.value, **more)


def previewing(held: Any = None, now: float = SENT_AT) -> Previewing:
    return Previewing(tool="pay", arguments=INPUTS, ask=Ask(), now=now, held=held or {})


def preview(tool: TwoPhaseTool, held: Any = None, now: float = SENT_AT) -> Preview:
    seen = run(tool.foresight.preview(previewing(held, now)))
    assert isinstance(seen, Preview), seen
    return seen


@pytest.mark.req("S3-01", "S3-02", "S3-03", "S3-12", "S3-17", "S3-18", "S3-31")
def test_a_commit_carries_token_fingerprint_plan_and_key_unchanged_and_nothing_else() -> None:
    wire = Recorded(commit=(200, COMMITTED))
    tool = paying(wire)

    async def both() -> Any:
        call = await planned(tool)
        return await tool.send(call), await tool.send(replace(call, attempt=2))

    assert run(both()) == (Acknowledged(result=COMMITTED), Acknowledged(result=COMMITTED))
    dry, first, again = wire.requests
    assert "idempotency-key" not in dry.headers
    assert json.loads(dry.content) == INPUTS
    assert (first.content, first.headers["idempotency-key"]) == (
        again.content,
        again.headers["idempotency-key"],
    )
    assert json.loads(first.content) == {
        name: PLAN[name] for name in ("plan_id", "plan_token", "input_fingerprint")
    }
    assert first.headers["idempotency-key"] == "op-1"


@pytest.mark.req("S3-07")
def test_the_inputs_are_written_in_one_form() -> None:
    wire = Recorded()
    tool = paying(wire)
    for inputs in (INPUTS, dict(reversed(INPUTS.items()))):
        run(tool.prepare(call_of(inputs)))
    assert wire.requests[0].content == wire.requests[1].content


@pytest.mark.req("S3-05", "S3-14")
@pytest.mark.parametrize(("late_s", "leaves"), [(-1.0, True), (0.0, False), (1.0, False)])
def test_past_its_time_nothing_leaves(late_s: float, leaves: bool) -> None:
    wire = Recorded(commit=(200, COMMITTED))
    tool = paying(wire)

    async def late() -> Any:
        return await tool.send(await planned(tool, sent_at=EXPIRES_AT + late_s, deadline_at=2e9))

    outcome = run(late())
    assert (len(wire.requests) == 2) is leaves
    if not leaves:
        assert isinstance(outcome, NotSent)
        assert outcome.reason.startswith("expired: plan_8f21c expired at 2023-11-14 22:23:20Z")


TIMES = [
    ("2023-11-14T23:23:20+01:00", EXPIRES_AT),
    (1_700_000_600, EXPIRES_AT),
    (1_700_000_600.5, EXPIRES_AT + 0.5),
]


@pytest.mark.req("S3-05")
@pytest.mark.parametrize(("said", "at"), TIMES)
def test_its_time_is_converted_once_when_it_is_received(said: Json, at: float) -> None:
    tool = paying(Recorded(dry_run=(201, {**PLAN, "expires_at": said})))
    assert preview(tool).held["expires_at"] == at


NO_PLANS: list[tuple[Json, str]] = [
    ({**PLAN, "plan_token": ""}, "no plan_token"),
    ({**PLAN, "input_fingerprint": None}, "no input_fingerprint"),
    ({name: PLAN[name] for name in PLAN if name != "plan_id"}, "no plan_id"),
    ({**PLAN, "expires_at": "soon"}, "when it expires"),
    ({**PLAN, "expires_at": True}, "when it expires"),
    ({**PLAN, "expires_at": "2023-11-14T22:23:20"}, "no offset from UTC"),
    ({**PLAN, "actions": "pay"}, "no list of actions"),
    ([PLAN], "when it expires"),
    ("ptk_secret", "no object"),
]


@pytest.mark.req("S3-29", "S3-31")
@pytest.mark.parametrize(("said", "lacks"), NO_PLANS)
def test_what_lacks_a_part_of_a_plan_is_none_and_nothing_is_committed(
    said: Json, lacks: str
) -> None:
    wire = Recorded(dry_run=(201, said))
    tool = paying(wire)
    why = run(tool.prepare(call_of(INPUTS)))
    assert isinstance(why, NoAnswer)
    assert lacks in why.reason
    assert "ptk_" not in why.reason
    for held in (None, {}, {"said": said, "expires_at": "x", "inputs": "{}"}, {"said": said}):
        call = call_of(INPUTS, prepared=held)
        assert isinstance(run(tool.send(call)), NotSent)
        assert isinstance(run(tool.lookup(call)), NoAnswer)
        assert isinstance(run(tool.close(call)), NoAnswer)
    assert wire.left == ["POST /plans"]


@pytest.mark.req("S3-29")
def test_half_of_a_stored_plan_is_not_sent() -> None:
    wire = Recorded()
    held: Json = {"said": {**PLAN, "plan_token": ""}, "expires_at": EXPIRES_AT, "inputs": "{}"}
    assert isinstance(run(paying(wire).send(call_of(INPUTS, prepared=held))), NotSent)
    assert wire.left == []


@pytest.mark.req("S3-12", "F3-07", "S3-31")
def test_a_plan_for_other_inputs_is_not_sent() -> None:
    wire = Recorded(commit=(200, COMMITTED))
    tool = paying(wire)

    async def other() -> Any:
        call = await planned(tool)
        return await tool.send(replace(call, arguments={**INPUTS, "cents": 1}))

    assert isinstance(run(other()), Refused)
    assert wire.left == ["POST /plans"]


@pytest.mark.req("S3-06")
def test_a_plan_that_repeats_other_inputs_is_said_to_be_a_bug() -> None:
    layout = Layout(inputs="inputs")
    right = paying(Recorded(dry_run=(201, {**PLAN, "inputs": INPUTS})), layout=layout)
    assert isinstance(run(right.prepare(call_of(INPUTS))), Prepared)
    for echo in ({"inputs": {**INPUTS, "cents": 1}}, {}):
        wrong = paying(Recorded(dry_run=(201, {**PLAN, **echo})), layout=layout)
        why = run(wrong.prepare(call_of(INPUTS)))
        assert isinstance(why, NoAnswer)
        assert why.reason.startswith("a bug:")


# What each answer to a commit means.

CONFLICT: Json = {"changed": [CHANGED], "plan_created_at": "2023-11-14T22:13:20Z"}
ANSWERS: list[tuple[Any, Json, type, str]] = [
    (200, COMMITTED, Acknowledged, "ok"),
    (201, COMMITTED, Acknowledged, "ok"),
    *((code, {"detail": "no"}, Refused, "refused") for code in (400, 401, 403, 404, 422)),
    (409, CONFLICT, Refused, "conflict"),
    (409, {"detail": "in use"}, AnswerLost, ""),
    (410, {"detail": "over"}, Refused, "expired"),
    (429, {"detail": "slow"}, NotSent, ""),
    *((code, {"detail": "oh"}, AnswerLost, "") for code in (302, 408, 425, 500, 502, 503)),
    (httpx2.ReadTimeout("no"), None, AnswerLost, ""),
    (httpx2.ConnectError("no"), None, NotSent, ""),
]


@pytest.mark.req("S3-23", "S3-13", "S3-25")
@pytest.mark.parametrize(("answer", "body", "outcome", "begins"), ANSWERS, ids=str)
def test_each_answer_to_a_commit_means_one_thing(
    answer: Any, body: Json, outcome: type, begins: str
) -> None:
    wire = Recorded(commit=answer if isinstance(answer, Exception) else (answer, body))
    tool = paying(wire)

    async def once() -> Any:
        return await tool.send(await planned(tool))

    came = run(once())
    assert type(came) is outcome
    assert wire.left == ["POST /plans", "POST /plans/plan_8f21c/commit"]  # No retry of its own.
    if isinstance(came, Refused):
        meaning = Meaning(begins)
        assert came.reason.startswith(f"{begins}: ")
        assert came.reason.endswith(NEXT[meaning])
        assert came.changed == ((CHANGED,) if meaning is Meaning.CONFLICT else ())


@pytest.mark.req("S3-23")
def test_each_meaning_has_its_next_step() -> None:
    assert set(NEXT) == set(Meaning)
    assert set(MEANS.values()) <= set(Meaning)


def test_a_yes_that_cannot_be_read_is_a_lost_answer() -> None:
    tool = paying(Recorded(commit=(200, "RF1")))

    async def once() -> Any:
        return await tool.send(await planned(tool))

    assert isinstance(run(once()), AnswerLost)


@pytest.mark.req("S3-13")
def test_a_service_may_call_a_conflict_stale_and_much_of_it_is_cut() -> None:
    many: list[Json] = [{**CHANGED, "field": f"f{n}"} for n in range(30)]
    layout = Layout(means={412: Meaning.STALE}, changed="moved")
    tool = paying(Recorded(commit=(412, {"moved": [*many, 7, {"was": 1}]})), layout=layout)

    async def once() -> Any:
        return await tool.send(await planned(tool))

    no = run(once())
    assert isinstance(no, Refused)
    assert no.reason.startswith("stale: ")
    assert len(no.changed) == 20
    assert len(no.reason) <= 300


# Finding out.

STATES: list[tuple[Answer, type, type]] = [
    ((200, {"state": "applied", "result": COMMITTED}), Found, Found),
    ((200, {"state": "open"}), Absent, NotYet),
    ((200, {"state": "expired"}), Absent, Absent),
    ((200, {"state": "abandoned"}), Absent, Absent),
    ((200, {"state": "applied"}), NoAnswer, NoAnswer),
    ((200, {"state": "odd"}), NoAnswer, NoAnswer),
    ((200, "open"), NoAnswer, NoAnswer),
    ((404, {"detail": "gone"}), NoAnswer, NoAnswer),
]


@pytest.mark.req("S3-24")
@pytest.mark.parametrize(("answer", "looked", "closed"), STATES, ids=str)
def test_a_plan_is_read_by_its_id_and_closed_only_when_it_can_land_no_more(
    answer: Answer, looked: type, closed: type
) -> None:
    wire = Recorded(plan=answer, abandon=(500, {}))
    tool = paying(wire)

    async def ask() -> Any:
        call = await planned(tool)
        return await tool.lookup(call), await tool.close(call)

    look, close = run(ask())
    assert (type(look), type(close)) == (looked, closed)
    assert wire.left[1:] == [
        "GET /plans/plan_8f21c",
        "POST /plans/plan_8f21c/abandon",
        "GET /plans/plan_8f21c",
    ]


def test_without_an_abandon_a_close_only_reads() -> None:
    wire = Recorded(plan=(200, {"state": "open"}))
    tool = paying(wire, abandon="")

    async def ask() -> Any:
        return await tool.close(await planned(tool))

    assert isinstance(run(ask()), NotYet)
    assert wire.left[1:] == ["GET /plans/plan_8f21c"]


def test_a_question_that_is_not_answered_is_no_answer() -> None:
    tool = paying(Recorded(plan=httpx2.ReadTimeout("no")))

    async def ask() -> Any:
        return await tool.lookup(await planned(tool))

    assert isinstance(run(ask()), NoAnswer)


# The preview.


@pytest.mark.req("S3-04", "S3-11", "K13", "S3-33")
def test_the_preview_is_the_dry_run_and_its_basis_the_plan_and_the_services_fingerprint() -> None:
    wire = Recorded()
    seen = preview(paying(wire))
    assert seen.summary == "update invoice/4412 (status: paid) (plan plan_8f21c)"
    assert seen.basis == {"plan": "plan_8f21c", "fingerprint": "sha256:6b1f"}
    again = preview(paying(wire), held=seen.held)
    assert again == seen
    assert wire.left == ["POST /plans"]  # What is held is shown again, and not planned again.


@pytest.mark.req("S3-05", "K15")
def test_a_held_plan_whose_time_is_over_is_a_fact_that_changed_and_asks_nobody() -> None:
    wire = Recorded()
    tool = paying(wire)
    seen = preview(tool)
    over = preview(tool, held=seen.held, now=EXPIRES_AT)
    assert over.basis["plan"] == "plan_8f21c, expired at 2023-11-14 22:23:20Z"
    assert wire.left == ["POST /plans"]


REFUSED: list[tuple[Any, Callable[[Any], bool]]] = [
    (
        (422, {"detail": "28000 cents are left"}),
        lambda p: p.questions == ("422 28000 cents are left",),
    ),
    ((500, {}), lambda p: isinstance(p, NoAnswer)),
    (httpx2.ReadTimeout("no"), lambda p: isinstance(p, NoAnswer)),
    ((200, []), lambda p: isinstance(p, NoAnswer)),
]


@pytest.mark.parametrize(("answer", "is_so"), REFUSED, ids=["no", "broken", "silent", "empty"])
def test_a_dry_run_that_is_refused_is_a_question_and_another_no_figures(
    answer: Any, is_so: Callable[[Any], bool]
) -> None:
    tool = paying(Recorded(dry_run=answer))
    assert is_so(run(tool.foresight.preview(previewing())))
    assert isinstance(run(tool.prepare(call_of(INPUTS))), NoAnswer)


@pytest.mark.req("S3-03", "S3-04", "S3-08", "S3-33", "K14")
def test_a_token_that_a_service_repeats_reaches_nobody() -> None:
    token = "ptk_canary_0123456789"
    told: Json = {"plan_token": token, "list": [token, {token: 1}], "id": f"for {token}", "n": None}
    said = {**PLAN, "plan_token": token, "actions": [{"op": f"pay with {token}"}]}
    shown: list[str] = []
    answers: list[Answer] = [
        (200, told),
        (409, {"changed": [{"field": token, "was": token, "now": [token]}]}),
        (400, {"detail": f"bad {token}"}),
        (500, {"detail": f"bad {token}"}),
        (410, token),
    ]
    for answer in answers:
        wire = Recorded(
            dry_run=(201, said), commit=answer, plan=(200, {"state": "applied", "result": told})
        )
        tool = paying(wire)

        async def all_of_it(tool: TwoPhaseTool = tool) -> Any:
            call = await planned(tool)
            seen = await tool.foresight.preview(previewing())
            return call, seen, await tool.send(call), await tool.lookup(call)

        call, seen, *outcomes = run(all_of_it())
        assert token in str(call.prepared)
        shown += [str(each) for each in (call, seen, Prepared(value=call.prepared), *outcomes)]
        shown += [str(previewing(held=seen.held))]
    shown.append(str(read_plan(said, Layout(), inputs="{}")))
    assert token not in " ".join(shown)
    assert "***" in " ".join(shown)


@pytest.mark.req("S3-29", "S3-30", "S3-35", "K14")
def test_no_argument_is_a_token_the_description_says_freeze_and_a_commit_has_its_time() -> None:
    tool = paying(Recorded(), description="Pay an invoice.")
    assert set(tool.schema["properties"]) == {"invoice", "cents"}  # type: ignore[arg-type]
    assert tool.schema["description"] == f"Pay an invoice. {FREEZE}"
    assert tool.contract.deadline_s == COMMIT_WITHIN_S == 30.0
    assert paying(Recorded(), deadline_s=5.0).contract.deadline_s == 5.0
    with pytest.raises(ProposalError):
        tool.check({**INPUTS, "plan_token": "ptk_quoted"})


def test_what_is_the_tools_own_cannot_be_given() -> None:
    for wrong in ({"arguments": {"plan_id": str}}, {"preview": lambda asked: None}):
        with pytest.raises(ContractError):
            paying(Recorded(), **wrong)
    tool = paying(Recorded(), dry_run=f"{URL}/of/{{invoice}}/plans")
    with pytest.raises(ProposalError):
        tool.check({**INPUTS, "invoice": ".."})
    assert isinstance(run(tool.list_effects(0.0)), NoAnswer)
    assert isinstance(run(tool.read_back(call_of(INPUTS), None)), NoAnswer)
    run(tool.aclose())


@pytest.mark.req("S3-24", "S3-31")
def test_check_tool_passes_over_it() -> None:
    async def checked() -> Any:
        clock, sleeps = SetClock(), Sleeps()
        clock.at = SENT_AT
        kept = Payments(orders={"4412": 48_000})
        own = payments.app(":memory:", clock, (), settings=kept, sleep=sleeps)
        async with FarSide(own, sleeps, witness=None, before=None) as far:
            return await check_tool(
                refund_tool("http://far.test", kept, far.transport),
                {"order": "4412", "cents": 100},
                changed={"order": "4412", "cents": 200},
                holds=lambda: _held(far),
                clock=clock.now,
            )

    findings = run(checked())
    assert [f for f in findings.each if f.verdict is Verdict.BROKEN] == []
    assert sum(f.verdict is Verdict.KEPT for f in findings.each) >= 8


async def _held(far: FarSide) -> Json:
    held: Json = (await far.client.get("/refunds")).json()["refunds"]
    return held
