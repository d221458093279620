"""What a model is shown of a session: from its records, where it was told or where it happened."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from landed.core.arrival import Told
from landed.core.changes import Changes, Kind
from landed.core.history import (
    Item,
    View,
    compacted,
    history,
    turn_of,
    was_told_before,
    when_it_happened,
)
from landed.core.journal import Entry, body_of
from landed.core.operation import State
from landed.core.outcome import Acknowledged, AnswerLost, Found, Refused
from landed.core.session import Input, Observation, observing, opening, saying
from tests.core.build import SENT_AT, operation
from tests.core.conversation import (
    CANCEL,
    READS,
    RESERVE,
    TEXT,
    TOOLS,
    Conversation,
    book,
    check,
    digest,
    text,
)

LOST = AnswerLost(reason="timed out")
SAID = {
    "check": replace(READS, says={"en": {"answered": "{day} available"}}),
    "reserve": replace(
        RESERVE,
        says={
            "en": {
                "confirmed": "booked {id} ({day})",
                "held": "{id} ({day})",
                "failed": "no table on {day}: {why}",
            }
        },
    ),
    "cancel": replace(CANCEL, says={"en": {"confirmed": "cancelled {id}"}}),
    "text": replace(TEXT, wait_s=60.0, says={"en": {"confirmed": "texted group '{text}'"}}),
}


def start() -> Conversation:
    return Conversation(tools={**TOOLS, **SAID})


def hear(talk: Conversation, words: str, origin: str = "user") -> None:
    """The user says something: an input of its own, durable before anything else."""
    number = len([each for each in talk.moves if each.after.kind is Kind.INPUT]) + 1
    talk.write(
        opening(
            Input(
                id=f"in-{number}",
                tenant="default",
                session="s1",
                principal="ann",
                text=words,
                origin=origin,
                delivery="",
                turn=f"turn-{number}",
                at=talk.now,
            )
        )
    )


def entries(talk: Conversation, id: str) -> list[Entry]:
    """The journal's entries of one record."""
    return [
        Entry(
            seq=seq,
            id=id,
            version=move.after.version,
            before=0,
            event=move.event.name,
            state=move.after.state,
            at=move.event.at,
            body=body_of(move),
            body_digest="",
            prev="",
            hash="",
        )
        for seq, move in enumerate(talk.moves, 1)
        if move.after.id == id
    ]


def shown(talk: Conversation, view: View = View.CACHE) -> tuple[Item, ...]:
    told = {id: entries(talk, id) for id, op in talk.operations.items() if was_told_before(op)}
    records = sorted(talk.store.records.values(), key=lambda each: each.made)
    return history(records, told, talk.contracts, view=view)


def lines(talk: Conversation, view: View = View.CACHE) -> list[str]:
    return [f"{item.role}: {item.text}" for item in shown(talk, view)]


def story() -> Conversation:
    """Friday is booked and the group told; the receipt comes after the change of mind."""
    talk = start()
    hear(talk, "book Friday for four and tell the group")
    talk.ask(check("Fri"), book("Fri"), text("Fri"))
    talk.see(Acknowledged(result={}))
    talk.now += 1.0
    talk.lands("op-1", "R1")
    talk.lap(Told(operation="op-2", state="sent"))
    talk.now += 1.0
    hear(talk, "Actually, Saturday")
    talk.revise(check("Sat"), book("Sat"), text("Sat"))
    talk.see(Acknowledged(result={}))
    talk.now += 1.0
    talk.lands("op-3", "R2")
    talk.now += 1.0
    talk.lands("op-4", "R1")
    talk.now += 1.0
    talk.lands("op-2")
    talk.lands("op-5")
    talk.now += 1.0
    talk.write(
        saying(
            id="m-1",
            tenant="default",
            session="s1",
            turn="T2",
            text="Booked Saturday.",
            at=talk.now,
        )
    )
    return talk


@pytest.mark.req("S0-58", "S0-59", "S0-60")
def test_the_story_has_each_thing_where_it_happened():
    assert lines(story(), View.STORY) == [
        "user: book Friday for four and tell the group",
        "tool: Fri available.",
        "tool: Booked R1 (Fri).",
        "tool: Texted group 'table on Fri'.",
        "user: Actually, Saturday",
        "tool: Sat available.",
        "tool: Booked R2 (Sat).",
        "tool: Cancelled R1.",
        "tool: Texted group 'table on Sat'.",
        "assistant: Booked Saturday.",
    ]


@pytest.mark.req("S0-58", "S0-59", "S0-61")
def test_the_other_view_appends_what_became_known_and_says_when_it_happened():
    talk = story()
    assert lines(talk) == [
        "user: book Friday for four and tell the group",
        "tool: Fri available.",
        "tool: Booked R1 (Fri).",
        "tool: Sent, no answer yet: text(text=table on Fri). Do not call it again; ask for the"
        " status of op-2.",
        "user: Actually, Saturday",
        "tool: Sat available.",
        "tool: Booked R2 (Sat).",
        "tool: Cancelled R1.",
        "tool: Texted group 'table on Fri'.",
        "tool: Texted group 'table on Sat'.",
        "assistant: Booked Saturday.",
    ]
    (late,) = [item for item in shown(talk) if item.text == "Texted group 'table on Fri'."]
    assert (late.happened_at, late.recorded_at) == (SENT_AT + 1.0, SENT_AT + 5.0)


@pytest.mark.req("S0-61")
def test_what_a_model_was_shown_stays_as_it_was_shown_whatever_follows():
    talk = start()
    hear(talk, "book Friday")
    talk.ask(book("Fri"))
    talk.lap(Told(operation="op-1", state="sent"))
    before = [shown(talk)]
    talk.reply("op-1", LOST)
    talk.lap(Told(operation="op-1", state="unknown"))
    before.append(shown(talk))
    hear(talk, "and?")
    before.append(shown(talk))
    talk.look("op-1", Found(result={"id": "R1"}))
    before.append(shown(talk))
    hear(talk, "thanks")
    after = shown(talk)
    for each in before:
        assert after[: len(each)] == each
    assert [item.text.split(":")[0] for item in after] == [
        "book Friday",
        "Sent, no answer yet",
        "Outcome unknown",
        "and?",
        "Booked R1 (Fri).",
        "thanks",
    ]


def test_what_a_model_was_shown_as_failed_stays_where_it_was_when_that_is_contradicted():
    talk = start()
    talk.ask(book("Fri"))
    talk.reply("op-1", Refused(reason="full"))
    hear(talk, "then not")
    before = shown(talk)
    talk.reply("op-1", Acknowledged(result={"id": "R1"}), attempt=1)
    after = shown(talk)
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_what_was_told_and_is_still_so_is_said_once():
    talk = start()
    talk.ask(book("Fri"))
    talk.reply("op-1", LOST)
    talk.lap(Told(operation="op-1", state="unknown"))
    assert len(shown(talk)) == 1
    assert shown(talk)[0].recorded_at == SENT_AT


def test_what_was_told_is_said_as_it_stands_where_the_journal_has_no_more_of_it():
    talk = start()
    talk.ask(book("Fri"))
    talk.lap(Told(operation="op-1", state="sent"))
    records = [each for each in talk.store.records.values() if each.kind is Kind.OPERATION]
    erased = [replace(each, body=None) for each in entries(talk, "op-1")]
    for told in ({}, {"op-1": erased}):
        (item,) = history(records, told, talk.contracts)
        assert item.text.startswith("Sent, no answer yet")


def test_a_plan_whose_details_were_erased_is_told_by_where_it_came_to():
    talk = start()
    talk.ask(book("Fri"))
    talk.reply("op-1", Refused(reason="full"))
    records = [each for each in talk.store.records.values() if each.kind is Kind.PLAN]
    whole = entries(talk, talk.plan.id)
    (item,) = history(records, {talk.plan.id: whole}, talk.contracts)
    assert "full" in item.text
    erased = [replace(each, body=None) for each in whole]
    (item,) = history(records, {talk.plan.id: erased}, talk.contracts)
    assert item.text == "A plan was partial; what was told of it here was erased since."


def test_a_read_is_shown_whatever_became_of_it():
    talk = start()
    for number, state in enumerate(["answered", "unanswered", "dropped"], 1):
        talk.write(_observed(talk, f"ob-{number}", state))
    assert lines(talk) == [
        "tool: Fri available.",
        "tool: No answer to check(day=Fri): timed out.",
        "tool: Not waited for, and it changes nothing: check(day=Fri).",
    ]


def _observed(talk: Conversation, id: str, state: str) -> Changes:
    return observing(
        Observation(
            id=id,
            ask=heard_ask(),
            tool="check",
            contract=digest("check"),
            arguments={"day": "Fri"},
            state=state,
            result=None,
            why="timed out",
            at=talk.now,
        )
    )


def heard_ask():
    return operation().ask


def test_a_question_to_the_person_is_something_that_was_said():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(text())
    assert lines(talk)[1:2] == [
        "assistant: You still hold R1 (Fri) (it was left out of what is wanted now)."
        " Shall I take it back?"
    ]


def test_a_turn_that_nobody_asked_for_is_shown_as_what_started_it():
    talk = start()
    hear(talk, "the restaurant moved us", origin="webhook")
    assert lines(talk) == ["webhook: the restaurant moved us"]


def test_plans_releases_and_contracts_are_no_lines_of_their_own():
    talk = start()
    talk.ask(book("Fri"))
    talk.lands("op-1", "R1")
    talk.revise(book("Sat"))
    records = [each.record for each in shown(talk)]
    assert records == ["op-1", "op-2"]


@pytest.mark.req("S0-59", "S0-63")
def test_every_effect_of_a_session_is_in_both_views():
    talk = story()
    for view in View:
        told = {item.record for item in shown(talk, view)}
        assert set(talk.operations) <= told


# A summary.


@pytest.mark.req("S0-62")
@pytest.mark.parametrize("last", [0, 1, 3, 7, 10])
def test_a_summary_takes_the_place_of_what_is_old_but_never_of_an_effect(last):
    whole = shown(story())
    short = compacted(whole, "They wanted a table.", last=last)
    assert (short[0].role, short[0].text) == ("assistant", "They wanted a table.")
    assert short[len(short) - last :] == whole[len(whole) - last :]
    effects = [item for item in whole if item.effect]
    assert [item for item in short if item.effect] == effects
    assert {"Booked R1 (Fri).", "Booked R2 (Sat)."} <= {item.text for item in short}
    old = whole[: len(whole) - last]
    assert (short[0].happened_at, short[0].recorded_at) == (
        old[0].happened_at,
        old[-1].recorded_at,
    )


@pytest.mark.parametrize("last", [11, 99])
def test_with_nothing_old_there_is_nothing_to_sum_up(last):
    whole = shown(story())
    assert compacted(whole, "x", last=last) == whole


def test_only_what_may_have_changed_the_world_is_marked_as_an_effect():
    talk = story()
    for item in shown(talk):
        assert item.effect is (item.record in talk.operations)


# When it happened, and to which turn it belongs.


@pytest.mark.parametrize(
    ("state", "when"),
    [
        (State.CONFIRMED, SENT_AT),
        (State.ACCEPTED, SENT_AT),
        (State.ASSUMED, SENT_AT),
        (State.FAILED, SENT_AT + 1.0),
        (State.WITHDRAWN, SENT_AT + 1.0),
        (State.UNKNOWN, SENT_AT - 5.0),
        (State.RECORDED, SENT_AT - 5.0),
    ],
)
def test_an_effect_happened_when_its_last_send_left(state, when):
    assert when_it_happened(operation(state, made_at=SENT_AT - 5.0)) == when


def test_what_was_ruled_to_have_landed_without_a_send_happened_when_it_was_made():
    ruled = operation(State.CONFIRMED, last_sent_at=0.0, made_at=7.0)
    assert when_it_happened(ruled) == 7.0


def test_a_call_without_a_turn_is_a_turn_of_its_own():
    assert turn_of(operation(turn="T1")) == "T1"
    assert turn_of(operation(turn="")) == "op-a1"


def test_the_views_order_what_happened_at_one_moment_as_it_was_recorded():
    talk = start()
    for word in ("one", "two", "three"):
        hear(talk, word)
    told: Sequence[str] = lines(talk)
    assert told == lines(talk, View.STORY) == ["user: one", "user: two", "user: three"]
