"""`check_tool` finds each promise that a far side breaks, and lets an honest one pass."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.contract import Contract, Effect
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotYet,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.testing.check_tool import Findings, Verdict, check_tool
from landed.tools.foresight import Foresight
from landed.tools.http import HttpTool
from tests.tools.calls import SENT_AT, run

PROMISES = Contract(
    effect=Effect.REVERSIBLE,
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
    read_back=True,
    refuses_after_s=60.0,
    fence="epoch",
    deadline_s=5.0,
)
FRIDAY: Mapping[str, Json] = {"day": "Fri"}
SATURDAY: Mapping[str, Json] = {"day": "Sat"}
FULL: Mapping[str, Json] = {"day": "Sun"}


@dataclass
class Restaurant:
    """A far side in memory, and the tool that reaches it. `breaks` names the promise it breaks."""

    breaks: str = ""
    contract: Contract = PROMISES
    name: str = "book"
    foresight: Foresight = field(default_factory=lambda: Foresight(tool="book"))
    interruptible: bool = True
    schema: Mapping[str, Json] = field(default_factory=dict)
    bookings: list[str] = field(default_factory=list)
    keys: dict[str, tuple[Mapping[str, Json], dict[str, Json]]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    epoch: int = 0
    lagging: set[str] = field(default_factory=set)

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        if self.breaks == "check":
            return {"day": f"{arguments['day']}!"}
        if self.breaks == "check raises":
            raise ProposalError("never fits")
        return dict(arguments)

    async def prepare(self, call: Call) -> NoAnswer:
        return NoAnswer(reason="nothing to prepare")

    async def list_effects(self, since: float) -> NoAnswer:
        return NoAnswer(reason="no list")

    async def send(self, call: Call) -> SendOutcome:
        if self.breaks == "hangs":
            await asyncio.get_running_loop().create_future()
        refusal = self._refusal(call)
        if refusal and self.breaks.startswith("doubtful refusals"):
            return AnswerLost(reason="409")
        if refusal and self.breaks == "refuses and acts":
            self.bookings.append("in secret")
        if refusal and self.breaks != refusal:
            return Refused(reason=refusal)
        known = self.keys.get(call.key)
        if known and self.breaks not in ("key", "payload"):
            return self._replay(known[1])
        if known and self.breaks == "payload" and known[0] == call.arguments:
            return self._replay(known[1])
        return self._booked(call)

    def _refusal(self, call: Call) -> str:
        known = self.keys.get(call.key)
        checks = {
            "closed": call.key in self.closed,
            "payload": known is not None and known[0] != call.arguments,
            "late": SENT_AT - call.sent_at > 60.0,
            "stale": call.epoch < self.epoch,
            "full": call.arguments == FULL,
        }
        return next((name for name, holds in checks.items() if holds), "")

    def _replay(self, result: dict[str, Json]) -> SendOutcome:
        match self.breaks:
            case "replay":
                return Acknowledged(result={"id": "R0"})
            case "replay lost" | "replay lost, not found":
                return AnswerLost(reason="500")
            case _:
                return Acknowledged(result=result)

    def _booked(self, call: Call) -> SendOutcome:
        if self.breaks == "does nothing":
            return Acknowledged(result={"id": "R1"})
        self.epoch = max(self.epoch, call.epoch)
        self.bookings.append(str(call.arguments["day"]))
        result: dict[str, Json] = {"id": f"R{len(self.bookings)}"}
        self.keys.setdefault(call.key, (call.arguments, result))
        self.lagging.add(call.key)
        if self.breaks == "never answers":
            return AnswerLost(reason="500")
        return Acknowledged(result=result)

    async def lookup(self, call: Call) -> LookOutcome:
        if self.breaks == "lookup raises":
            raise RuntimeError("a bug in the tool")
        if self.breaks == "lookup lags" and call.key in self.lagging:
            return NotYet()
        if (
            self.breaks in ("unused found", "doubtful refusals, unseen")
            and call.key not in self.keys
        ):
            return NotYet()
        if self.breaks in ("not found", "replay lost, not found"):
            return Absent()
        if self.breaks == "other found" and call.key in self.keys:
            return Found(result={"id": "R9"})
        return self._seen(call)

    async def close(self, call: Call) -> LookOutcome:
        if self.breaks == "close forgets" and call.key in self.keys:
            return Absent()
        if self.breaks == "close invents" and call.key not in self.keys:
            return Found(result=None)
        if self.breaks == "close once" and call.key in self.closed:
            return NotYet()
        self.closed.add(call.key)
        return self._seen(call)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        return Absent() if self.breaks == "read back" else Found(result=result)

    def _seen(self, call: Call) -> LookOutcome:
        known = self.keys.get(call.key)
        return Found(result=known[1]) if known else Absent()

    async def holds(self) -> Json:
        return list(self.bookings)


def ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"op-check-{next(numbers)}"


def checked(tool: Any, *, counting: bool = True, **told: Any) -> Findings:
    return run(
        check_tool(
            tool,
            FRIDAY,
            changed=SATURDAY,
            refused=FULL,
            holds=tool.holds if counting else None,
            clock=lambda: SENT_AT,
            new_id=ids(),
            **told,
        )
    )


ALL = {
    "stored arguments read back as they are",
    "a send is acknowledged, and does what its effect says",
    "one key, one effect",
    "another payload under one key is refused",
    "a lookup finds what landed",
    "a lookup of an unused key is absent",
    "what was acknowledged can be read back",
    "a refusal comes before any effect",
    "a request that is too old is refused",
    "an older epoch is refused",
    "a closed key refuses what comes late",
    "a close finds what landed",
}


@pytest.mark.parametrize("counting", [True, False], ids=["counted", "uncounted"])
def test_a_far_side_that_keeps_its_promises_passes(counting: bool) -> None:
    findings = checked(Restaurant(), counting=counting)
    assert findings.ok, findings
    assert findings.of(Verdict.KEPT) == ALL


@pytest.mark.parametrize("counting", [True, False], ids=["counted", "uncounted"])
@pytest.mark.parametrize(
    ("breaks", "broken"),
    [
        ("check", "stored arguments read back as they are"),
        ("check raises", "stored arguments read back as they are"),
        ("never answers", "a send is acknowledged, and does what its effect says"),
        ("key", "one key, one effect"),
        ("replay", "one key, one effect"),
        ("replay lost, not found", "one key, one effect"),
        ("payload", "another payload under one key is refused"),
        ("not found", "a lookup finds what landed"),
        ("other found", "a lookup finds what landed"),
        ("lookup lags", "a lookup finds what landed"),
        ("lookup raises", "a lookup finds what landed"),
        ("unused found", "a lookup of an unused key is absent"),
        ("read back", "what was acknowledged can be read back"),
        ("full", "a refusal comes before any effect"),
        ("late", "a request that is too old is refused"),
        ("stale", "an older epoch is refused"),
        ("closed", "a closed key refuses what comes late"),
        ("close invents", "a closed key refuses what comes late"),
        ("close once", "a closed key refuses what comes late"),
        ("close forgets", "a close finds what landed"),
    ],
)
def test_each_broken_promise_is_found(breaks: str, broken: str, counting: bool) -> None:
    findings = checked(Restaurant(breaks=breaks), counting=counting)
    assert not findings.ok
    assert broken in findings.of(Verdict.BROKEN), findings


@pytest.mark.parametrize(
    "breaks", ["key", "replay", "payload", "full", "late", "stale", "closed", "close forgets"]
)
def test_only_the_broken_promise_is_blamed(breaks: str) -> None:
    assert len(checked(Restaurant(breaks=breaks)).of(Verdict.BROKEN)) == 1


def test_nothing_more_is_asked_of_a_tool_that_does_not_even_answer() -> None:
    findings = checked(Restaurant(breaks="never answers"))
    assert len(findings.each) == 2


@pytest.mark.parametrize("breaks", ["replay lost", "doubtful refusals"])
def test_a_doubtful_reply_is_settled_by_a_lookup(breaks: str) -> None:
    findings = checked(Restaurant(breaks=breaks))
    assert findings.ok, findings


def test_a_doubtful_reply_that_a_lookup_does_not_settle_breaks_the_promise() -> None:
    broken = checked(Restaurant(breaks="doubtful refusals, unseen")).of(Verdict.BROKEN)
    assert "a refusal comes before any effect" in broken
    assert "another payload under one key is refused" not in broken


@pytest.mark.parametrize("breaks", ["replay lost", "doubtful refusals"])
def test_a_doubtful_reply_keeps_no_promise_where_there_is_no_lookup(breaks: str) -> None:
    contract = replace(PROMISES, lookup=False)
    assert not checked(Restaurant(breaks=breaks, contract=contract)).ok


def test_a_yes_that_did_nothing_is_found_where_effects_can_be_counted() -> None:
    broken = checked(Restaurant(breaks="does nothing")).of(Verdict.BROKEN)
    assert broken == {"a send is acknowledged, and does what its effect says"}


def test_a_refusal_that_took_effect_is_found_where_effects_can_be_counted() -> None:
    broken = checked(Restaurant(breaks="refuses and acts")).of(Verdict.BROKEN)
    assert broken == {
        "another payload under one key is refused",
        "a refusal comes before any effect",
        "a request that is too old is refused",
        "an older epoch is refused",
        "a closed key refuses what comes late",
    }


@pytest.mark.req("S0-38")
def test_a_read_that_places_a_hold_is_found() -> None:
    reads = Contract(effect=Effect.NONE)
    findings = checked(Restaurant(contract=reads))
    assert "promises no effect" in str(findings)
    assert not findings.ok
    honest = checked(Restaurant(contract=reads, breaks="does nothing"))
    assert "a send is acknowledged, and does what its effect says" in honest.of(Verdict.KEPT)


def test_what_it_was_given_no_arguments_for_is_skipped_and_said() -> None:
    findings = run(check_tool(Restaurant(), FRIDAY))
    assert findings.of(Verdict.SKIPPED) == {
        "another payload under one key is refused",
        "a refusal comes before any effect",
    }
    assert "give changed= to check it" in str(findings)


def test_what_the_contract_does_not_promise_is_not_checked() -> None:
    contract = Contract(effect=Effect.IRREVERSIBLE)
    findings = checked(Restaurant(contract=contract))
    assert {one.promise for one in findings.each} == {
        "stored arguments read back as they are",
        "a send is acknowledged, and does what its effect says",
        "a refusal comes before any effect",
    }


def test_a_lookup_is_given_its_settlement_lag() -> None:
    restaurant = Restaurant(
        breaks="lookup lags", contract=replace(PROMISES, settlement_lag_s=3600.0)
    )
    waited: list[float] = []

    async def settle(lag_s: float) -> None:
        waited.append(lag_s)
        restaurant.lagging.clear()

    findings = checked(restaurant, sleep=settle)
    assert findings.ok, findings
    assert set(waited) == {3600.0}


def test_a_tool_that_hangs_is_given_up_at_its_deadline() -> None:
    findings = checked(Restaurant(breaks="hangs", contract=replace(PROMISES, deadline_s=0.01)))
    assert "no answer within 0.01 s" in str(findings)
    assert not findings.ok


class Wire(httpx2.AsyncBaseTransport):
    """The same restaurant, over HTTP."""

    def __init__(self, restaurant: Restaurant) -> None:
        self.restaurant = restaurant

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.split("/")
        if path[1] == "keys":
            call = self._call(request, key=path[2])
            looks = self.restaurant.close if path[-1] == "close" else self.restaurant.lookup
            match await looks(call):
                case Found(result=result):
                    return httpx2.Response(200, json={"found": True, "result": result})
                case _:
                    return httpx2.Response(200, json={"found": False})
        match await self.restaurant.send(self._call(request)):
            case Acknowledged(result=result):
                return httpx2.Response(201, json=result)
            case other:
                assert isinstance(other, Refused)
                return httpx2.Response(422, json={"why": other.reason})

    def _call(self, request: httpx2.Request, key: str = "") -> Call:
        return Call(
            operation="",
            tool="book",
            key=key or request.headers["idempotency-key"],
            arguments=httpx2.Response(200, content=request.content or b"{}").json(),
            ask=Ask(),
            epoch=int(request.headers.get("x-epoch", "0")),
            attempt=1,
            sent_at=float(request.headers.get("x-sent-at", "0")),
            deadline_at=0.0,
        )


@pytest.mark.parametrize("breaks", ["", "key", "payload", "late", "stale", "closed"])
def test_it_checks_a_tool_over_http(breaks: str) -> None:
    restaurant = Restaurant(breaks=breaks)
    book = HttpTool(
        name="book",
        effect="reversible",
        url="http://far.test/bookings",
        arguments={"day": str},
        keyed="Idempotency-Key",
        fence="X-Epoch",
        sent_at_header="X-Sent-At",
        compares_payload=True,
        refuses_after_s=60.0,
        lookup="http://far.test/keys/{key}",
        close="http://far.test/keys/{key}/close",
        transport=Wire(restaurant),
    )
    tried: dict[str, Any] = {"changed": SATURDAY, "refused": FULL, "holds": restaurant.holds}
    findings = run(check_tool(book, FRIDAY, clock=lambda: SENT_AT, **tried))
    assert findings.ok == (not breaks), findings
