"""Each fault in a contract is found and told with what will happen; a sound one is left alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

import landed
from landed.catalogue.entry import Fact
from landed.catalogue.lint import Problem, Severity, Subject, lint, lint_file, lint_tools, span
from landed.core.contract import REFUSALS, UNDECLARED, Contract, Effect
from landed.core.doubt import LookUp, SendAgain, doubt
from landed.core.operation import State
from landed.tools.http import HttpTool
from tests.core.build import operation

# Nothing is to be said about this one.
SOUND = Contract(
    effect=Effect.IRREVERSIBLE,
    service="bank",
    keyed="Reference",
    compares_payload=True,
    retention_s=172_800.0,
    lookup=True,
)


def found(contract: Contract, **beside: object) -> list[Problem]:
    return list(lint([Subject(where="pay", contract=contract, **beside)]))  # type: ignore[arg-type]


def texts(contract: Contract, **beside: object) -> str:
    return "\n".join(map(str, found(contract, **beside)))


def test_of_a_sound_contract_nothing_is_said() -> None:
    assert found(SOUND) == []
    assert found(Contract(effect=Effect.NONE, service="bank")) == []


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        (replace(SOUND, keyed="", compares_payload=False), "promises about a key"),
        (replace(SOUND, key_form="{session}"), "key_form must contain {operation}"),
        (replace(SOUND, says={"fr": {}}), "says has no words in 'fr'"),
    ],
)
def test_what_must_be_mended_is_an_error_and_hides_what_follows_from_it(
    contract: Contract, told: str
) -> None:
    (problem,) = found(contract)
    assert problem.severity is Severity.ERROR
    assert told in problem.text


@pytest.mark.field("A10")
def test_a_write_without_key_lookup_or_close_is_told_to_end_with_a_person() -> None:
    told = texts(Contract(effect=Effect.IRREVERSIBLE, service="bank"))
    assert told == (
        "warning  pay: it has no key, and there is no lookup, close or assume_after_s: a lost"
        " answer can be settled by nobody, and goes to a person after 15 min; it is not sent again"
    )


@pytest.mark.parametrize(
    "settled",
    [
        Contract(effect=Effect.IRREVERSIBLE, service="bank", lookup=True),
        Contract(effect=Effect.IRREVERSIBLE, service="bank", assume_after_s=9.0),
        replace(SOUND, lookup=False, close=True),
        replace(SOUND, lookup=False),
    ],
)
def test_a_write_whose_doubt_can_end_is_not_told_so(settled: Contract) -> None:
    assert "settled by nobody" not in texts(settled)


def test_a_key_that_is_not_compared_settles_nothing() -> None:
    told = texts(replace(SOUND, lookup=False, compares_payload=False))
    assert "its key is not compared with a payload" in told


def test_a_read_back_cannot_ask_after_a_lost_answer() -> None:
    assert "where the answer was lost" in texts(replace(SOUND, lookup=False, read_back=True))
    assert found(replace(SOUND, read_back=True)) == []


def test_a_deadline_of_the_service_needs_a_last_look() -> None:
    told = texts(replace(SOUND, lookup=False, refuses_after_s=60.0))
    assert "settles nothing without a lookup" in told
    assert found(replace(SOUND, refuses_after_s=60.0)) == []


@pytest.mark.field("G2")
def test_keys_that_count_as_remembered_for_ever_are_told() -> None:
    for_ever = replace(SOUND, retention_s=None)
    assert "count as remembered for ever" in texts(for_ever)
    page = Fact(source="https://bank.example/keys")
    assert found(for_ever, facts={"retention_s": page}) == []
    unsure = {"retention_s": replace(page, verified=False)}
    assert "count as remembered for ever" in texts(for_ever, facts=unsure)


def test_a_key_that_is_forgotten_within_one_send_is_told() -> None:
    soon = replace(SOUND, retention_s=30.0, deadline_s=30.0)
    assert "remembers a key for 30 s, and one send may take 30 s" in texts(soon)


@pytest.mark.fault("X60")
@pytest.mark.parametrize("code", [408, 409, 425, 500, 503])
def test_a_refusal_that_usually_leaves_doubt_is_told(code: int) -> None:
    told = texts(replace(SOUND, refusals=(*REFUSALS, code)))
    assert f"a {code} usually leaves doubt" in told


@pytest.mark.fault("X60")
def test_a_replayed_failure_is_no_refusal_and_needs_a_lookup() -> None:
    (problem,) = found(replace(SOUND, refusals=(*REFUSALS, 500)), replays_failures=True)
    assert problem.severity is Severity.ERROR
    assert "give a lookup" in texts(replace(SOUND, lookup=False), replays_failures=True)
    assert found(SOUND, replays_failures=True) == []


def test_a_key_that_is_longer_than_the_service_takes_is_an_error() -> None:
    (problem,) = found(SOUND, key_max=28)
    assert problem.severity is Severity.ERROR
    assert "makes keys of 29 characters or more, the service takes 28" in problem.text
    assert found(SOUND, key_max=29) == []


@pytest.mark.field("A11")
@pytest.mark.parametrize(
    "name", ["idempotency_key", "idempotencyKey", "client_token", "requestId", "dedup_id"]
)
def test_a_key_that_the_model_fills_is_told(name: str) -> None:
    told = texts(SOUND, arguments={name: "A string.", "cents": "How much."})
    assert f"the model fills '{name}', so that a retry carries another key" in told
    assert found(SOUND, arguments={"cents": "How much.", "request": "What for."}) == []


@pytest.mark.field("A11")
def test_the_words_that_make_a_model_mint_keys_are_told() -> None:
    square = (
        "A unique string that identifies this CreatePayment request. Keys can be any valid string"
        " but must be unique for every CreatePayment request."
    )
    told = texts(SOUND, arguments={"idempotency_key": square})
    assert "and is told to make a new one for each call" in told
    keyed = replace(SOUND, keyed="idempotency_key")
    told = texts(keyed, arguments={"idempotency_key": square})
    assert "the operation's key goes there instead" in told
    assert found(keyed, arguments={"idempotency_key": "The key of the operation."}) == []


@pytest.mark.field("G5")
def test_retention_outranks_a_hint_that_knows_no_time() -> None:
    """The hint says "safe to retry"; the contract says for how long, and that is what is done."""
    (problem,) = found(SOUND, hints={"idempotent": True})
    assert "its keys are forgotten after 2 days: the contract holds" in problem.text
    lost = operation(
        State.UNKNOWN, first_sent_at=0.0, last_sent_at=0.0, send_by=1e9, looked="Absent", looks=1
    )
    patient = replace(SOUND, escalate_after_s=1e9)
    assert doubt(lost, patient, 86_400.0) == SendAgain()
    assert doubt(lost, patient, 172_801.0) == LookUp()


@pytest.mark.field("G5")
def test_a_hint_is_no_key() -> None:
    told = texts(Contract(effect=Effect.REVERSIBLE, lookup=True), hints={"idempotent": True})
    assert "nothing is sent again on the strength of a hint" in told


def test_hints_that_deny_the_effect_are_told() -> None:
    assert "treats it as a write" in texts(SOUND, hints={"read_only": True})
    (problem,) = found(Contract(effect=Effect.NONE), hints={"destructive": True})
    assert problem.severity is Severity.ERROR
    assert found(Contract(effect=Effect.NONE), hints={"read_only": True, "idempotent": True}) == []


def test_a_promise_that_nobody_verified_is_told_where_a_second_effect_hangs_on_it() -> None:
    told = texts(replace(SOUND, close=True), unverified=("compares_payload", "close", "lookup"))
    assert "nobody verified compares_payload and close" in told
    assert found(SOUND, unverified=("lookup", "settlement_lag_s")) == []


@pytest.mark.field("A10")
def test_a_write_that_forgot_the_key_of_its_siblings_is_told() -> None:
    forgot = Contract(effect=Effect.REVERSIBLE, service="bank", lookup=True)
    subjects = [
        Subject(where="pay", contract=SOUND),
        Subject(where="transfer", contract=forgot),
        Subject(where="balance", contract=Contract(effect=Effect.NONE, service="bank")),
        Subject(where="text", contract=replace(forgot, service="texts")),
    ]
    (problem,) = lint(subjects)
    assert problem.where == "transfer"
    assert "carries no key, and others of the same service do (pay)" in problem.text


# Tools, as they are registered.


@landed.tool(effect="irreversible", keyed="reference", compares_payload=True, retention_s=99_000)
async def pay(cents: int, reference: str) -> str:
    return reference


@landed.tool(effect="irreversible", service="bank")
async def charge(cents: int, idempotency_key: str) -> str:
    return idempotency_key


async def wire(cents: int) -> str:
    return "sent"


@dataclass(frozen=True)
class Foreign:
    """A tool of another server, for which nobody wrote a contract."""

    name: str = "drop_table"
    contract: Contract = UNDECLARED
    schema: Mapping[str, object] = field(default_factory=dict)


@pytest.mark.field("A10", "A11")
def test_the_tools_of_an_app_are_linted_as_they_are() -> None:
    found = {(one.where, one.severity.value): one.text for one in lint_tools([pay, charge, wire])}
    assert ("pay", "warning") not in found
    assert "the model fills 'idempotency_key'" in found["charge", "warning"]
    assert "it has no contract: wrap it with @landed.tool" in found["wire", "error"]


@pytest.mark.field("A10")
@pytest.mark.parametrize("service", ["", "the server"])
def test_a_foreign_tool_without_a_contract_is_an_error(service: str) -> None:
    (problem,) = lint_tools([Foreign(contract=replace(UNDECLARED, service=service))])
    assert (problem.where, problem.severity) == ("drop_table", Severity.ERROR)
    assert "a write without a contract" in problem.text


def test_a_tool_that_was_declared_to_promise_nothing_is_only_warned_of() -> None:
    @landed.tool(effect="irreversible", risk="confirm")
    async def mail(to: str) -> None: ...

    (problem,) = lint_tools([mail])
    assert problem.severity is Severity.WARNING
    assert "goes to a person" in problem.text


def test_a_key_in_a_header_is_not_filled_by_the_model() -> None:
    tool = HttpTool(
        name="book",
        effect="reversible",
        url="https://far.test/bookings",
        arguments={"day": str},
        keyed="Idempotency-Key",
        compares_payload=True,
        retention_s=99_000,
    )
    assert lint_tools([tool]) == ()


def test_a_broken_file_is_one_error() -> None:
    (problem,) = lint_file("service = ", origin="bank.toml")
    assert (problem.where, problem.severity) == ("bank.toml", Severity.ERROR)
    assert problem.text.startswith("contract file bank.toml is no TOML")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "0.5 s"), (90, "90 s"), (900, "15 min"), (86_400, "24 h"), (3_888_000, "45 days")],
)
def test_times_are_told_as_a_person_says_them(seconds: float, said: str) -> None:
    assert span(seconds) == said
