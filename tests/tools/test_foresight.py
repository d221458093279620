"""What a tool says beforehand: functions of its author, whose exceptions become values."""

from typing import Any, cast

import pytest

from landed.core.contract import Effect, LookAlike, Risk
from landed.core.errors import ContractError, ProposalError, RefusedError
from landed.core.key import Ask
from landed.core.outcome import NoAnswer
from landed.core.preview import SIMILAR_MAX, Preview, Previewing, Similar
from landed.tools.foresight import Foresight, foresight
from landed.tools.function import FunctionTool, tool
from landed.tools.http import HttpTool
from tests.tools.calls import run

ASKED = Previewing(tool="pay", arguments={"cents": 100}, ask=Ask(), now=0.0)
SEEN = Preview(summary="Pay 1.00", cost_cents=100, basis={"balance": 500})


def paying(**promises: Any) -> FunctionTool[Any, Any]:
    kept: dict[str, Any] = {"effect": "irreversible", **promises}

    @tool(**kept)
    async def pay(cents: int) -> None: ...

    return pay


# Risk.


@pytest.mark.parametrize(("said", "risk"), [("safe", Risk.SAFE), ("confirm", Risk.CONFIRM)])
def test_a_declared_risk_is_the_same_for_each_call(said: str, risk: Risk) -> None:
    pay = paying(risk=said)
    assert pay.contract.risk is risk
    assert not pay.contract.risk_varies
    assert pay.foresight.risk({"cents": 1}, "timer") is risk


def test_without_a_word_a_call_is_safe() -> None:
    assert paying().foresight.risk({}, "user") is Risk.SAFE
    assert paying().contract.risk is Risk.SAFE


@pytest.mark.req("S1-09")
def test_a_function_says_the_risk_from_the_arguments_and_who_started_the_turn() -> None:
    def risky(arguments: Any, origin: str) -> Any:
        return "confirm" if arguments["cents"] > 100 or origin != "user" else Risk.SAFE

    pay = paying(risk=risky)
    assert pay.contract.risk_varies
    assert pay.contract.risk is Risk.CONFIRM  # Who reads only the contract asks.
    said = {(c, o): pay.foresight.risk({"cents": c}, o) for c in (1, 101) for o in ("user", "t")}
    assert [each for each, risk in said.items() if risk is Risk.SAFE] == [(1, "user")]


@pytest.mark.parametrize("said", ["perhaps", None, True, ValueError("no idea")])
def test_a_risk_that_cannot_be_told_needs_a_yes(said: Any) -> None:
    def risky(arguments: Any, origin: str) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    assert paying(risk=risky).foresight.risk({"cents": 1}, "user") is Risk.CONFIRM


# The preview.


def preview_of(function: Any) -> Preview | NoAnswer:
    return run(paying(preview=function).foresight.preview(ASKED))


def test_a_preview_function_may_wait_or_not() -> None:
    async def waits(asked: Previewing) -> Preview:
        assert asked is ASKED
        return SEEN

    assert preview_of(waits) == preview_of(lambda asked: SEEN) == SEEN
    assert paying(preview=waits).contract.preview


def test_a_tool_without_a_preview_says_so() -> None:
    pay = paying()
    assert not pay.contract.preview
    assert run(pay.foresight.preview(ASKED)) == NoAnswer(reason="pay has no preview")


@pytest.mark.parametrize("kind", [ProposalError, RefusedError])
def test_what_a_preview_function_refuses_is_a_question(kind: type[Exception]) -> None:
    def refuses(asked: Previewing) -> Preview:
        raise kind("whose account?")

    seen = preview_of(refuses)
    assert isinstance(seen, Preview)
    assert seen.summary == ""
    (question,) = seen.questions
    assert "whose account?" in question


@pytest.mark.parametrize(
    "said",
    [
        TimeoutError("late"),
        None,
        "Pay 1.00",
        {"summary": "Pay 1.00"},
        Preview(summary="", basis=cast("Any", {"when": object()})),
        Preview(summary="", makes={"total": float("nan")}),
    ],
    ids=["late", "nothing", "text", "a table", "no JSON", "no number"],
)
def test_figures_that_nobody_knows_are_no_preview(said: Any) -> None:
    def says(asked: Previewing) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    assert isinstance(preview_of(says), NoAnswer)


# What looks alike.

ALIKE = [Similar(id=f"i{n}", text="the same") for n in range(9)]


def alike_of(function: Any) -> tuple[Similar, ...] | NoAnswer:
    return run(paying(look_alike=function).foresight.look_alike(ASKED))


def test_what_looks_alike_is_told_up_to_a_bound() -> None:
    async def waits(asked: Previewing) -> Any:
        return iter(ALIKE)

    assert alike_of(waits) == alike_of(lambda asked: ALIKE) == tuple(ALIKE[:SIMILAR_MAX])
    assert alike_of(lambda asked: []) == ()
    assert run(paying().foresight.look_alike(ASKED)) == ()


@pytest.mark.parametrize("said", [None, 3, ConnectionError("down")])
def test_what_cannot_be_looked_up_is_no_answer(said: Any) -> None:
    def says(asked: Previewing) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    assert isinstance(alike_of(says), NoAnswer)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, LookAlike.NONE),
        ({"look_alike": lambda asked: []}, LookAlike.WARN),
        ({"look_alike": lambda asked: [], "if_alike": "warn"}, LookAlike.WARN),
        ({"look_alike": lambda asked: [], "if_alike": "block"}, LookAlike.BLOCK),
    ],
)
def test_what_is_done_about_it_is_in_the_contract(given: Any, kept: LookAlike) -> None:
    assert paying(**given).contract.look_alike is kept


def test_what_to_do_about_what_is_never_looked_for_is_refused() -> None:
    with pytest.raises(ContractError, match="if_alike needs look_alike, which finds them"):
        paying(if_alike="block")


# As both kinds of tool have it.


def seeing(asked: Previewing) -> Preview:
    return SEEN


def test_the_plain_values_go_on_to_the_contract() -> None:
    seen, plain = foresight("pay", {"effect": "none", "permission": "pay", "preview": seeing})
    assert plain == {
        "effect": "none",
        "permission": "pay",
        "risk": Risk.SAFE,
        "risk_varies": False,
        "preview": True,
        "look_alike": LookAlike.NONE,
    }
    assert seen == Foresight(tool="pay", preview_of=seeing)


def test_an_http_tool_takes_the_same_words() -> None:
    pay = HttpTool(
        name="pay",
        effect="irreversible",
        url="https://bank.example/pay",
        risk=lambda arguments, origin: "safe",
        preview=lambda asked: SEEN,
        look_alike=lambda asked: ALIKE[:1],
        if_alike="block",
        permission="pay",
    )
    assert (pay.contract.effect, pay.contract.permission) == (Effect.IRREVERSIBLE, "pay")
    assert (pay.contract.risk_varies, pay.contract.look_alike) == (True, LookAlike.BLOCK)
    assert pay.foresight.risk({}, "timer") is Risk.SAFE
    assert run(pay.foresight.preview(ASKED)) == SEEN
    assert run(pay.foresight.look_alike(ASKED)) == (ALIKE[0],)
