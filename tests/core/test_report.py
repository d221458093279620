"""What the person is told of a turn: every effect of it, and only what its records say."""

from dataclasses import replace

import pytest

from landed.core.contract import LANGUAGES, WhileUnknown
from landed.core.outcome import AnswerLost, Found, Refused
from landed.core.report import report
from landed.core.sentences import NOTHING_DONE
from tests.core.conversation import (
    CANCEL,
    PRICED,
    RESERVE,
    TEXT,
    TOOLS,
    Conversation,
    book,
    check,
    text,
)

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="fully booked")

BOOKED = {
    "confirmed": "booked {day} ({id})",
    "held": "{id} ({day})",
    "unknown": "I may have booked {day}",
    "undecided": "I may have booked {day}: the restaurant never confirmed, and I can't check",
    "failed": "no table on {day}: {why}",
}
WORDS = {"en": BOOKED}
SAID = {
    "reserve": replace(RESERVE, says=WORDS),
    "cancel": replace(CANCEL, says={"en": {"confirmed": "cancelled {id}"}}),
    "text": replace(
        TEXT,
        says={
            "en": {
                "confirmed": "texted '{text}'",
                "corrected": "the earlier text had already gone out",
                "assumed": "I couldn't confirm '{text}', so I've treated it as sent",
            }
        },
    ),
}
PAID = replace(PRICED, says=WORDS)
# Nobody can be asked what became of it, and a replacement need not wait for that.
DEAF = replace(
    SAID["reserve"],
    keyed="",
    compares_payload=False,
    lookup=False,
    close=False,
    while_unknown=WhileUnknown.REPLACE,
)


def start(**tools) -> Conversation:
    return Conversation(tools={**TOOLS, **SAID, **tools})


def told(talk: Conversation, turn: str = "", language: str = "en") -> str:
    records = [*talk.store.records.values()]
    return report(turn or talk.plan.turn, records, talk.contracts, language=language).text


@pytest.mark.req("S0-63")
def test_every_effect_of_the_turn_is_told_and_none_of_another():
    talk = start()
    talk.ask(book("Fri"), text("Fri"))
    talk.lands("op-1", "R1")
    talk.lands("op-2")
    talk.ask(book("Mon"))
    talk.lands("op-3", "R3")
    assert told(talk, "T1") == "Booked Fri (R1). Texted 'table on Fri'."
    assert told(talk, "T2") == "Booked Mon (R3)."
    came = report("T1", [*talk.store.records.values()], talk.contracts)
    assert (came.turn, came.operations, came.questions) == ("T1", ("op-1", "op-2"), ())


@pytest.mark.req("S0-34", "S0-63")
def test_a_change_of_mind_tells_what_had_gone_out_what_was_booked_and_what_was_cancelled():
    talk = start()
    talk.ask(book("Fri"), text("Fri"))
    talk.lands("op-1", "R1")
    talk.lands("op-2")
    talk.revise(book("Sat"), text("Sat"))
    talk.lands("op-3", "R2")
    talk.lands("op-4", "R1")
    talk.lands("op-5")
    assert told(talk) == (
        "The earlier text had already gone out. Booked Sat (R2). Cancelled R1."
        " Texted 'table on Sat'."
    )


@pytest.mark.req("S0-35")
@pytest.mark.fault("X69")
def test_what_was_never_confirmed_is_said_to_be_treated_as_sent():
    talk = start()
    talk.ask(text("Fri"))
    talk.revise(text("Sat"))
    talk.lap(after_s=0.05)
    talk.lands("op-2")
    assert told(talk) == (
        "I couldn't confirm 'table on Fri', so I've treated it as sent. Texted 'table on Sat'."
    )


def test_an_earlier_text_that_never_went_out_is_not_spoken_of():
    talk = start()
    talk.ask(text("Fri"))
    talk.reply("op-1", FULL)
    talk.revise(text("Sat"))
    talk.lands("op-2")
    assert told(talk) == "Texted 'table on Sat'."


@pytest.mark.req("S0-13")
def test_what_is_kept_of_an_earlier_turn_is_said_to_stay():
    talk = start()
    talk.ask(book("Fri"), text("Fri"))
    talk.lands("op-1", "R1")
    talk.lands("op-2")
    talk.revise(book("Fri"), text("Sat"))
    talk.lands("op-3")
    assert told(talk) == (
        "R1 (Fri) stays as it is. The earlier text had already gone out. Texted 'table on Sat'."
    )


@pytest.mark.req("S0-64")
def test_what_nobody_can_check_is_told_with_what_the_person_can_do_about_it():
    talk = start(reserve=DEAF)
    talk.ask(book("Fri"))
    talk.revise(book("Sat"), text("Sat"))
    talk.lands("op-2", "R2")
    talk.lands("op-3")
    talk.lap(after_s=900.0)
    assert talk.states("op-1") == ["undecided"]
    assert told(talk) == (
        "I may have booked Fri: the restaurant never confirmed, and I can't check."
        " Somebody has to look; its number is op-1."
        " If it turns out that it happened, tell me and I will take it back."
        " Booked Sat (R2). Texted 'table on Sat'."
    )


@pytest.mark.req("S0-45", "S0-63")
def test_when_nothing_replaces_it_the_question_stands_in_the_report():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"), text("Sat"))
    talk.reply("op-2", FULL)
    assert told(talk) == (
        "No table on Sat: the service refused: fully booked."
        " Not done: text(text=table on Sat)."
        " You still hold R1 (Fri) (nothing replaces it). Shall I take it back?"
    )
    came = report("T2", [*talk.store.records.values()], talk.contracts)
    assert came.questions == ("q-1",)


def test_what_was_not_done_is_named_but_for_the_reads():
    talk = start()
    talk.ask(book("Fri"), check("Fri"), book("Sat"), text("Fri"))
    talk.reply("op-1", FULL)
    assert told(talk).endswith("Not done: reserve(day=Sat); text(text=table on Fri).")


def test_a_plan_that_broke_off_at_its_last_step_left_nothing_undone():
    talk = start()
    talk.ask(book("Fri"))
    talk.reply("op-1", FULL)
    assert told(talk) == "No table on Fri: the service refused: fully booked."


# What it costs.


def asked() -> Conversation:
    """Both tables are held, and the person is asked whether Friday's is worth its fee."""
    talk = start(reserve=PAID)
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.price(2000)
    return talk


@pytest.mark.req("S0-47")
def test_a_fee_is_asked_about_at_the_end_of_the_report():
    assert told(asked()) == "Booked Sat (R2). Taking back R1 (Fri) costs 20.00. Shall I?"


@pytest.mark.req("S0-50")
def test_after_a_no_both_are_named():
    talk = asked()
    talk.answer(False, said="no")
    assert told(talk, "T3") == "R1 (Fri) stays, beside R2 (Sat)."


def test_after_a_no_to_what_nothing_replaces_only_that_is_named():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(check("Mon"))
    talk.answer(False, said="no")
    assert told(talk, "T3") == "R1 (Fri) stays."


def test_after_a_no_to_what_a_full_day_did_not_replace_only_that_is_named():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(check("Sat"), book("Sat"))
    talk.see(LOST)
    talk.answer(False, said="no")
    assert told(talk, "T3") == "R1 (Fri) stays."


def test_what_was_refused_is_not_named_as_if_it_were_held():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"))
    talk.reply("op-2", FULL)
    talk.answer(False, said="no")
    assert told(talk, "T3") == "R1 (Fri) stays."


@pytest.mark.req("S0-48")
def test_after_a_yes_the_turn_of_the_yes_tells_what_was_done():
    talk = asked()
    talk.answer(True, said="yes")
    talk.lands("op-3", "R1")
    assert told(talk, "T3") == "Cancelled R1."


def test_a_question_that_was_answered_is_not_asked_again_in_the_report():
    talk = asked()
    talk.answer(True, said="yes")
    assert "Shall I" not in told(talk, "T2")


# In doubt, in another language, or nothing at all.


def test_an_undo_in_doubt_is_told_as_what_it_is():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"))
    talk.lands("op-2", "R2")
    talk.reply("op-3", LOST)
    assert "Outcome unknown: cancel(id=R1): timed out." in told(talk)
    talk.look("op-3", Found(result={"id": "R1"}))
    assert told(talk) == "Booked Sat (R2). Cancelled R1."


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_turn_in_which_nothing_was_done_says_so(language):
    talk = start()
    talk.ask(check())
    assert told(talk, language=language) == NOTHING_DONE[language]


def test_the_report_is_in_the_language_of_the_person():
    talk = start(reserve=RESERVE)
    talk.language = "es"
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"), book("Fri"), text())
    talk.reply("op-2", FULL)
    assert told(talk, language="es") == (
        "Reserve(day=Fri) queda como está."
        " No tuvo efecto: reserve(day=Sat): the service refused: fully booked."
        " Sin hacer: text(text=table on Fri)."
    )
