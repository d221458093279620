"""What the catalogue says of well-known services: sourced, sound, and safe to act on."""

import asyncio
from dataclasses import fields
from datetime import date
from importlib.resources import files

import httpx2
import pytest

import landed
from landed import catalogue
from landed.catalogue.entry import BESIDE, FACTUAL, Entry
from landed.catalogue.files import shipped
from landed.catalogue.lint import Severity, lint_file
from landed.catalogue.schema import read
from landed.core.absorb import RETENTION_TRUSTED
from landed.core.contract import UNDECLARED, Contract, Effect, Risk
from landed.core.declared import from_values, values
from landed.core.doubt import Close, LookUp, SendAgain, doubt
from landed.core.errors import ContractError, ProposalError
from landed.core.operation import Operation, State
from landed.core.outcome import Acknowledged
from landed.tools.http import HttpTool
from tests.core.build import operation
from tests.tools.calls import call_of

EVERY = catalogue.contracts()
HOUR_S = 3_600.0
PROVIDERS = {
    *("adyen", "alipay", "checkout", "github", "google_calendar", "kubernetes", "paypal"),
    *("ses", "slack", "smtp", "square", "stripe", "twilio"),
}
KEYED = [name for name, entry in EVERY.items() if entry.contract.keyed]
FORGETTING = [name for name in KEYED if EVERY[name].contract.retention_s is not None]


def in_doubt(*, looked: str = "Absent") -> Operation:
    """An operation whose answer was lost at 0, still wanted, and not found by a look."""
    return operation(
        State.UNKNOWN, first_sent_at=0.0, last_sent_at=0.0, send_by=1e9, looked=looked, looks=1
    )


def patient(entry: Entry) -> Contract:
    """The contract of an entry, under which no person is asked before the test is over."""
    plain = {**values(entry.contract), "escalate_after_s": 1e12}
    return from_values(plain, tool=entry.name)


def test_each_provider_has_a_file_and_each_file_a_provider() -> None:
    assert {name.removesuffix(".toml") for name in shipped()} == PROVIDERS
    assert {name.split(".")[0] for name in EVERY} == PROVIDERS


def test_the_files_are_beside_the_code_as_they_are_in_a_wheel() -> None:
    """Hatchling packs all of `src/landed`; the loader must read nowhere else."""
    there = {one.name for one in files("landed.catalogue").iterdir()}
    assert set(shipped()) <= there


@pytest.mark.req("S0-40")
@pytest.mark.parametrize("name", EVERY)
def test_each_fact_has_a_source_and_a_day_or_says_that_nobody_verified_it(name: str) -> None:
    entry = EVERY[name]
    told = {*entry.stated, *(each for each in BESIDE if getattr(entry, each))}
    assert told & {*FACTUAL, *BESIDE} <= set(entry.facts)
    for field, fact in entry.facts.items():
        assert fact.verified != (field in entry.unverified)
        if fact.verified:
            assert fact.source.startswith("https://")
            assert isinstance(fact.checked, date)
        else:
            assert fact.why, f"{name}.{field}: say what is missing"


def test_each_source_is_cited() -> None:
    for origin, text in shipped().items():
        cited = {
            fact.source
            for entry in read(text, origin=origin).values()
            for fact in entry.facts.values()
        }
        said = [line for line in text.splitlines() if line.startswith("[sources.")]
        assert len(cited - {""}) == len(said), origin


@pytest.mark.req("S0-40")
def test_the_schema_has_a_place_for_what_a_service_offers_in_doubt() -> None:
    """Keys, lookup, close, the service's own deadline, and for how long keys are remembered."""
    named = {one.name for one in fields(Contract)}
    offers = {"keyed", "retention_s", "compares_payload", "lookup", "close", "refuses_after_s"}
    assert offers <= named
    assert offers <= set(FACTUAL)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_not_stated_promises_nothing(name: str) -> None:
    entry = EVERY[name]
    bare = values(Contract(effect=Effect.REVERSIBLE))
    for field, value in values(entry.contract).items():
        assert field in entry.stated or value == bare[field], field


@pytest.mark.parametrize("name", EVERY)
def test_nothing_rests_on_a_promise_that_nobody_verified(name: str) -> None:
    """Such a promise would send a key again, or take silence for a no."""
    entry = EVERY[name]
    for field in {"compares_payload", "close", "refuses_after_s"} & set(entry.unverified):
        assert not getattr(entry.contract, field)


@pytest.mark.parametrize("name", EVERY)
def test_what_cannot_be_taken_back_asks_first(name: str) -> None:
    entry = EVERY[name]
    asks = entry.contract.risk is Risk.CONFIRM
    assert asks == (entry.contract.effect is Effect.IRREVERSIBLE)


@pytest.mark.fault("X60")
@pytest.mark.parametrize("name", EVERY)
def test_no_answer_that_leaves_doubt_is_called_a_refusal(name: str) -> None:
    refusals = EVERY[name].contract.refusals
    assert [code for code in refusals if code >= 500 or code in (408, 409, 425)] == []


@pytest.mark.fault("X60")
def test_a_service_that_replays_its_failures_is_known_for_it_and_can_be_asked() -> None:
    refund = catalogue.contract("stripe.refund")
    assert refund.replays_failures
    assert refund.contract.lookup
    text = shipped()["stripe.toml"].replace("415, 422]", "415, 422, 500]")
    (first, *_) = lint_file(text, origin="stripe.toml")
    assert first.severity is Severity.ERROR
    assert "replays a 500" in first.text


def test_codes_that_may_mean_still_running_are_no_refusals_where_the_service_says_so() -> None:
    assert 422 not in catalogue.contract("adyen.payment").contract.refusals
    assert all(429 not in entry.contract.refusals for entry in EVERY.values())
    assert {402, 422} <= set(catalogue.contract("stripe.refund").contract.refusals)


# Keys are forgotten.


@pytest.mark.req("S4-38")
@pytest.mark.fault("X56")
def test_stripe_forgets_after_a_day_so_at_25_hours_one_looks_and_does_not_send() -> None:
    refund = patient(catalogue.contract("stripe.refund"))
    assert refund.retention_s == 24 * HOUR_S
    assert doubt(in_doubt(), refund, 12 * HOUR_S) == SendAgain()
    assert doubt(in_doubt(), refund, 25 * HOUR_S) == LookUp()


@pytest.mark.req("S4-38")
@pytest.mark.field("G3")
@pytest.mark.fault("X56")
@pytest.mark.parametrize("name", FORGETTING)
def test_past_the_retention_of_a_provider_no_key_is_sent_again(name: str) -> None:
    contract = patient(EVERY[name])
    assert contract.retention_s is not None
    last = contract.retention_s * RETENTION_TRUSTED
    for age in (last, contract.retention_s - 1, contract.retention_s + 1, 3 * contract.retention_s):
        assert not isinstance(doubt(in_doubt(), contract, age), SendAgain | Close), age


@pytest.mark.field("G3")
def test_square_publishes_no_retention_so_little_is_trusted_and_it_is_marked() -> None:
    for name in ("square.payment", "square.refund", "square.inventory_change"):
        entry = catalogue.contract(name)
        assert entry.contract.retention_s == HOUR_S
        assert "retention_s" in entry.unverified
    forgotten = catalogue.contract("square.inventory_change").facts["retention_s"]
    assert forgotten.source == "https://github.com/square/connect-api-examples/issues/135"


@pytest.mark.field("G2")
@pytest.mark.parametrize("name", KEYED)
def test_for_how_long_a_key_is_kept_is_said_of_each(name: str) -> None:
    """Nobody expects a key to work for ever without having been told."""
    entry = EVERY[name]
    assert entry.contract.retention_s is not None or "retention_s" in entry.facts


@pytest.mark.fault("X57")
@pytest.mark.parametrize("name", EVERY)
def test_a_key_that_is_not_compared_with_its_payload_is_never_sent_twice(name: str) -> None:
    contract = patient(EVERY[name])
    sends = [
        age
        for looked in ("", "Absent", "NotYet")
        for age in (1.0, 60.0, HOUR_S / 2, 12 * HOUR_S)
        if isinstance(doubt(in_doubt(looked=looked), contract, age), SendAgain)
    ]
    assert contract.compares_payload or sends == []


def test_cancel_by_key_is_not_taken_for_a_close() -> None:
    payment = catalogue.contract("square.payment")
    assert payment.cancel_by_key == "POST /v2/payments/cancel {idempotency_key}"
    assert not payment.contract.close
    assert any("success for keys it never saw" in note for note in payment.notes)


# Handing it on to a tool.


def refund_over_http(transport: httpx2.AsyncBaseTransport) -> HttpTool:
    entry = catalogue.contract("checkout.refund")
    return HttpTool(
        name="refund",
        url="https://api.test/payments/{payment}/refunds",
        arguments={"payment": str, "amount": int},
        lookup="https://api.test/payments/{payment}/actions",
        transport=transport,
        **entry.promises,
    )


def test_an_entry_makes_an_http_tool_that_sends_the_key_in_the_header_of_the_service() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(202, json={"action_id": "act_1"})

    tool = refund_over_http(httpx2.MockTransport(answer))
    asyncio.run(tool.send(call_of({"payment": "pay_1", "amount": 5}, key="op-7")))
    assert seen[0].headers["Cko-Idempotency-Key"] == "op-7"
    assert values(tool.contract) == values(catalogue.contract("checkout.refund").contract)


@pytest.mark.field("A11")
def test_an_entry_makes_a_function_a_tool_whose_key_no_model_fills() -> None:
    entry = catalogue.contract("square.refund")

    @landed.tool(**entry.promises)
    async def refund(payment_id: str, cents: int, idempotency_key: str) -> dict[str, str]:
        return {"id": idempotency_key}

    assert "idempotency_key" not in str(refund.schema)
    with pytest.raises(ProposalError, match="idempotency_key"):
        refund.check({"payment_id": "p1", "cents": 5, "idempotency_key": "minted by a model"})
    sent = asyncio.run(refund.send(call_of({"payment_id": "p1", "cents": 5}, key="op-7")))
    assert sent == Acknowledged(result={"id": "op-7"})
    assert refund.contract.keyed == "idempotency_key"
    assert refund.contract.retention_s == HOUR_S
    # The means to look were not given, so it has no lookup, whatever the service offers.
    assert entry.questions == ("lookup",)
    assert not refund.contract.lookup


def test_a_name_that_is_not_there_is_an_error_that_names_the_closest() -> None:
    with pytest.raises(ContractError, match=r"no 'stripe.refnd'; did you mean 'stripe.refund'\?"):
        catalogue.contract("stripe.refnd")
    with pytest.raises(ContractError, match=r"no 'acme\.pay'; `landed contract list`"):
        catalogue.contract("acme.pay")


def test_what_no_file_knows_is_irreversible_unkeyed_and_asks() -> None:
    assert (UNDECLARED.effect, UNDECLARED.risk) == (Effect.IRREVERSIBLE, Risk.CONFIRM)
    assert not UNDECLARED.keyed


def test_nobody_can_change_the_catalogue() -> None:
    with pytest.raises(TypeError):
        EVERY["stripe.refund"] = EVERY["smtp.send"]  # type: ignore[index]


@pytest.mark.parametrize("origin", shipped())
def test_the_catalogue_has_no_error(origin: str) -> None:
    found = lint_file(shipped()[origin], origin=origin)
    assert [one for one in found if one.severity is Severity.ERROR] == []
