"""The claim check: the common misreports are noticed, and nothing true is ever taken for one."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.agent.claims.check import CLAIMS, READ_CHARS, Claim, Wrong, effects_of, unsupported
from landed.core.contract import LANGUAGES, Contract
from landed.core.operation import Evidence, Operation, Source, State
from landed.core.operation_record import to_record
from landed.core.outcome import Refused
from landed.core.report import report
from landed.core.sentences import corrected, fact, held, sentence, to_model, to_person
from tests.agent.claiming import (
    ARGUMENTS,
    BOOKED,
    LEDGERS,
    RESULTS,
    SUPPORTED,
    TOOLS,
    UNDOING,
    UNSUPPORTED,
    an_operation,
    ledger,
)
from tests.core.conversation import Conversation, book
from tests.core.conversation import text as send_text


def claims(text: str, over: str, **options: object) -> tuple[Claim, ...]:
    return unsupported(text, LEDGERS[over], tools=TOOLS, **options)  # type: ignore[arg-type]


# The table.


@pytest.mark.parametrize(("over", "text", "wrong"), UNSUPPORTED)
def test_what_the_records_do_not_support_is_flagged(over: str, text: str, wrong: Wrong) -> None:
    assert [claim.wrong for claim in claims(text, over)] == [wrong]


@pytest.mark.parametrize(("over", "text"), SUPPORTED)
def test_what_they_support_or_cannot_tell_is_not(over: str, text: str) -> None:
    assert claims(text, over) == ()


# What a claim says.


def test_a_claim_says_what_is_wrong_to_the_person_and_to_the_model() -> None:
    (claim,) = claims("All went well. I refunded 580. Anything else?", "refunded")
    assert claim.sentence == "I refunded 580."
    assert claim.to_person == "The records of it do not have 580."
    assert claim.to_model == (
        "You said: “I refunded 580.” The records of it do not have 580. The records say: Done:"
        " refund_order(order=A17, amount_cents=48000): id RF1."
    )
    assert claim.operations == ("op-refund_order",)


def test_without_a_record_a_model_is_told_to_keep_to_the_records() -> None:
    (claim,) = claims("I refunded 480.", "nothing")
    assert claim.to_model.endswith("is in the records. Say only what the records say.")
    assert claim.operations == ()


def test_the_person_is_told_in_their_language() -> None:
    (claim,) = claims("He reservado la mesa.", "unknown", language="es")
    assert claim.to_person == "No se sabe si eso se hizo (op-reserve_table)."
    assert "It is not known" in claim.to_model


def test_claims_come_in_the_order_of_the_text_each_sentence_as_often_as_it_is_wrong() -> None:
    text = "I paid the deposit and emailed Ana. La mesa está reservada."
    found = claims(text, "failed")
    assert [(claim.sentence[:6], claim.wrong) for claim in found] == [
        ("I paid", Wrong.ABSENT),
        ("I paid", Wrong.ABSENT),
        ("La mes", Wrong.FAILED),
    ]


# What it compares with.


def test_a_word_of_a_contract_is_known_as_well_as_the_name_of_its_tool() -> None:
    says = {"en": {"confirmed": "whitelisted {who}"}, "es": {"confirmed": "autorizado {who}"}}
    tools = {"admit_guest": Contract(effect=TOOLS["refund_order"].effect, says=says)}
    for text in ("I whitelisted Ana.", "Ana was admitted.", "He autorizado a Ana."):
        assert [claim.wrong for claim in unsupported(text, (), tools=tools)] == [Wrong.ABSENT]
        assert unsupported(text, ()) == ()


def test_the_name_of_a_call_is_no_word_of_a_sentence() -> None:
    tools = {"put": TOOLS["refund_order"]}
    assert len(unsupported("It was put there.", (), tools=tools)) == 1
    assert unsupported("The call was put(what=a).", (), tools=tools) == ()


def test_what_was_undone_is_the_original_and_not_what_undid_it() -> None:
    effects = ledger(BOOKED, UNDOING)
    assert [effect.state for effect in effects] == ["undone", "confirmed"]
    assert effects[1].undoes == effects[0].operation


def test_what_was_settled_and_then_contradicted_is_known_by_nobody() -> None:
    (effect,) = ledger(an_operation("text_group", State.FAILED, contradicted=True))
    assert effect.state == "unknown"


def test_work_that_leaves_no_record_is_not_judged_where_its_tools_were_called() -> None:
    text = "I deleted your old file."
    assert [claim.wrong for claim in unsupported(text, ())] == [Wrong.ABSENT]
    assert unsupported(text, (), beside=["bash"]) == ()
    assert len(unsupported("I refunded 480.", (), beside=["bash"])) == 1


def test_how_things_are_may_have_been_read_but_what_one_did_may_not() -> None:
    seen = ['{"id": "F7", "status": "paid", "total": "480.00"}']
    for text in ("The invoice F7 is paid.", "It is paid.", "La factura F7 está pagada."):
        assert len(unsupported(text, ())) == 1
        assert unsupported(text, (), seen=seen) == ()
    assert len(unsupported("The invoice F8 is paid.", (), seen=seen)) == 1
    assert len(unsupported("I paid F7.", (), seen=seen)) == 1


# No false alarm on what is true.


texts = st.text("abz ñé.,:;!?'\"“”«»()\n0123456789", max_size=24) | st.sampled_from(
    (
        *("I refunded 480.", "booked", "not sent", "Done: it was cancelled", "He reservado 7."),
        *("Nothing was sent", "“paid”", "no answer: it was refunded", "1. Booked R9? Sent."),
    )
)
values = texts | st.integers(-(10**12), 10**12) | st.booleans() | st.none()
mappings = st.dictionaries(st.sampled_from(("day", "id", "amount_cents", "text")), values)


@st.composite
def operations(draw: st.DrawFn, number: int = 0) -> Operation:
    tool = draw(st.sampled_from(sorted(TOOLS)))
    says = Evidence(source=Source.REPLY, at=1.0, says=draw(texts))
    return an_operation(
        tool,
        draw(st.sampled_from(State)),
        id=f"op-{number}",
        arguments=draw(mappings | st.just(ARGUMENTS[tool])),
        result=draw(mappings | st.just(RESULTS[tool]) | st.none()),
        complete=draw(st.booleans()),
        contradicted=draw(st.booleans()),
        blocked_by=draw(st.sampled_from(("", "op-9"))),
        undoes=draw(st.sampled_from(("", f"op-{number - 1}"))),
        evidence=(says,) if draw(st.booleans()) else (),
        turn="T1",
    )


ledgers = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*(operations(number) for number in range(count)))
)


def test_a_sentence_that_quotes_the_records_may_say_more_than_they_do_of_one_operation() -> None:
    says = {"en": {"confirmed": "the refund was paid for {order}: the account was charged 7.50"}}
    tools = {"refund_order": replace(TOOLS["refund_order"], says=says)}
    effects = effects_of([an_operation("refund_order")], tools)
    quoted = "Done: the refund was paid for A17: the account was charged 7.50; as you wished."
    assert unsupported(quoted, effects, tools=tools) == ()
    assert len(unsupported(f"{quoted[:-1]} and Ana was emailed.", effects, tools=tools)) > 0


@given(every=ledgers, language=st.sampled_from(LANGUAGES))
def test_a_report_is_never_flagged_over_its_own_records(
    every: Sequence[Operation], language: str
) -> None:
    effects = effects_of(every, TOOLS)
    told = report("T1", [to_record(each) for each in every], TOOLS, language=language).text
    assert unsupported(told, effects, tools=TOOLS) == ()
    assert unsupported(f"{told}\n\nShall I go on?", effects, tools=TOOLS) == ()


def test_nor_is_a_report_of_a_change_of_mind_that_came_to_nothing() -> None:
    """It tells of plans too, of what stays, of what is asked, and of what was never begun."""
    talk = Conversation()
    talk.ask(book("Fri"), send_text("Fri"))
    talk.lands("op-1", "R1")
    talk.lands("op-2")
    talk.revise(book("Sat"), send_text("Sat"))
    talk.reply("op-3", Refused(reason="the table was booked by others"))
    records = [*talk.store.records.values()]
    effects = effects_of(talk.operations.values(), talk.contracts)
    for turn, language in product(("T1", "T2"), LANGUAGES):
        told = report(turn, records, talk.contracts, language=language).text
        assert unsupported(told, effects, tools=talk.tools) == (), told
    assert unsupported("I booked Saturday.", effects, tools=talk.tools) != ()


@settings(max_examples=60)
@given(operation=operations(), language=st.sampled_from(LANGUAGES))
def test_nor_is_any_sentence_of_core_about_an_operation(
    operation: Operation, language: str
) -> None:
    contract = TOOLS[operation.tool]
    effects = effects_of([operation], TOOLS)
    for said in (
        to_model(operation, contract),
        to_person(operation, contract, language=language),
        sentence(fact(operation, contract, language=language)),
        sentence(held(operation, contract, language=language)),
        corrected(operation, contract, language=language),
    ):
        assert unsupported(said, effects, tools=TOOLS) == (), said


@settings(max_examples=30)
@given(text=st.text() | texts, every=ledgers)
def test_any_text_is_read_and_each_claim_is_a_sentence_of_it(
    text: str, every: Sequence[Operation]
) -> None:
    flat = " ".join(text.split())
    for claim in unsupported(text, effects_of(every, TOOLS), tools=TOOLS):
        assert re.sub(r"\s+", " ", claim.sentence) in flat


# Bounds.


@pytest.mark.parametrize(
    "unit",
    [
        "I booked R9. ",
        "booked ",
        "a,",
        "a" * 1_000 + "(",
        "“",
        '"x ',
        "1.1.",
        "x'",
        ".\"'",
        "not ever ",
        "I, ",
        "se le ",
        "successfully ",
        "\n",
        "```\n",
        "and ",
        "no se ha ",
        "'" * 50 + " ",
        "1,000" * 20 + " ",
    ],
)
def test_a_text_is_read_up_to_a_bound_in_time_that_grows_with_it(unit: str) -> None:
    """No form of words makes a regular expression go back over it again and again.

    What it is to notice takes minutes, and so ends by the time-out that every test has.
    """
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    assert len(unsupported(text, LEDGERS["failed"], tools=TOOLS)) <= CLAIMS


def test_what_is_said_after_the_bound_is_not_judged() -> None:
    assert unsupported(f"{' ' * (READ_CHARS - 15)}I refunded 480.", ()) != ()
    assert unsupported(f"{' ' * READ_CHARS}I refunded 480.", ()) == ()


def test_there_are_no_more_claims_than_anybody_reads() -> None:
    text = "\n".join(f"I refunded {n}.25." for n in range(3 * CLAIMS))
    assert len(unsupported(text, ())) == CLAIMS
