"""What is told of a plan: to the person with what was done, to the model from the plan alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import LANGUAGES, Effect, Interrupt
from landed.core.history import has_endings, history
from landed.core.journal import Entry, body_of
from landed.core.outcome import Acknowledged, AnswerLost, Refused
from landed.core.plan import At, Place, Plan, PlanEvent, PlanState
from landed.core.plan_sentences import ENDINGS, going_on, not_taken
from landed.core.preview import Changed, Preview
from landed.core.report import report
from landed.core.telling import (
    GOES_ON,
    PREVIEWED,
    QUALIFIED,
    STOPPING,
    TOLD_ON,
    UNDOING,
    WAITING,
    as_of_now,
    is_ended,
    previewed_to_model,
    summaries,
    to_model,
    to_person,
)
from tests.core.build import SENT_AT
from tests.core.conversation import wanting
from tests.core.plans import ANSWER_S, DRAFT, ISSUE, MAIL, OFFICE, WHOLE, Office, draft, find, note

LOST = AnswerLost(reason="timed out")
FULL = Refused(reason="the series is closed")
SAYS = (
    Preview(summary="Draft 500 € for Ada"),
    Preview(summary="Issue it with the next number"),
    Preview(summary="Mail it to ada@example.com"),
)
NOTES = tuple(Preview(summary=f"Note {each}") for each in "abc")
FINISH = replace(OFFICE["note"], on_interrupt=Interrupt.FINISH)


def ran(*outcomes: Any, previews: Sequence[Preview] = SAYS, **tools: Any) -> Office:
    """The whole plan, as it was shown and agreed to, with what each step came back with."""
    office = Office(tools={**OFFICE, **tools})
    office.run(*WHOLE, previews=tuple(previews))
    office.carried_out(*outcomes)
    return office


def noted(*texts: str, **fields: Any) -> Office:
    """A plan of notes that runs at once, and was previewed."""
    office = Office(tools={**OFFICE, "note": FINISH})
    office.ask(*(note(each) for each in texts), previews=NOTES[: len(texts)], **fields)
    return office


def told(office: Office, language: str = "en", turn: str = "T1") -> str:
    """What the person is told of a turn, from the records alone."""
    records = [*office.store.records.values()]
    return report(turn, records, office.contracts, language=language, now=office.now).text


def journal(office: Office, id: str) -> list[Entry]:
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
        for seq, move in enumerate(office.moves, 1)
        if move.after.id == id
    ]


def lines(office: Office) -> list[str]:
    """What the model is shown of what was done in the session."""
    records = sorted(office.store.records.values(), key=lambda each: each.made)
    rested = [plan.id for plan in office.plans.values() if has_endings(plan)]
    items = history(records, {id: journal(office, id) for id in rested}, office.contracts)
    return [item.text for item in items if item.role == "tool"]


# How a plan is known.


def test_a_step_is_told_as_its_preview_put_it_else_as_the_call_that_it_is():
    plan = wanting(WHOLE[:2], OFFICE)
    assert summaries(plan) == ("draft(client=C7, text=logo)", "issue(draft=$1)")
    assert summaries(replace(plan, previews=SAYS[:2])) == tuple(each.summary for each in SAYS[:2])


def test_a_plan_that_nobody_answered_in_time_reads_as_expired_before_anybody_wrote_that():
    plan = wanting(WHOLE, OFFICE, state=PlanState.PROPOSED, answer_by=SENT_AT + ANSWER_S)
    assert as_of_now(plan, SENT_AT + ANSWER_S - 0.1) is plan
    late = as_of_now(plan, SENT_AT + ANSWER_S)
    assert (late.state, late.by, late.why) == ("expired", "clock", "nobody answered in time")
    running = replace(plan, state=PlanState.RUNNING)
    assert as_of_now(running, SENT_AT + ANSWER_S) is running


def test_every_state_is_at_rest_or_under_way_or_waits_for_the_person():
    plan = wanting([note()], OFFICE)
    rest = {state for state in PlanState if is_ended(replace(plan, state=state))}
    assert rest == set(ENDINGS)
    assert set(PlanState) - rest == {"drafted", "proposed", "running", "stopping", "undoing"}


# What a model is told.


def test_while_the_person_is_asked_the_model_is_told_to_wait_and_claims_nothing():
    plan = wanting(WHOLE, OFFICE, state=PlanState.PROPOSED, previews=SAYS, answer_by=2e9)
    said = to_model(plan)
    assert said.startswith("Draft 500 € for Ada; Issue it with the next number; Mail it")
    assert said.endswith(WAITING)


@pytest.mark.parametrize(
    ("state", "said"),
    [(PlanState.RUNNING, GOES_ON), (PlanState.STOPPING, STOPPING), (PlanState.UNDOING, UNDOING)],
)
def test_while_it_goes_on_the_model_is_told_how_far_it_came(state, said):
    places = (Place(at=At.DONE, record="op-1"), Place(at=At.OUT, record="op-2"), Place())
    plan = wanting(WHOLE, OFFICE, state=state, places=places)
    assert to_model(plan) == said.format(count=1, of=3)


def test_a_look_ahead_is_said_to_have_done_nothing():
    plan = wanting(WHOLE[:1], OFFICE, previews=SAYS[:1])
    assert previewed_to_model(plan) == f"Draft 500 € for Ada. {PREVIEWED}"
    lacks = replace(plan, state=PlanState.INVALID, why="Which client?\nWhat text?")
    assert previewed_to_model(lacks) == to_model(lacks)
    assert "Which client?" in to_model(lacks)
    assert "What text?" in to_model(lacks)


states = st.sampled_from(PlanState)
ats = st.lists(st.sampled_from(At), min_size=3, max_size=3)


def standing(state: PlanState, where: Sequence[At], **fields: Any) -> Plan:
    places = tuple(
        Place(at=at, record=f"op-{n}" if at is not At.WAITING else "", made=f"X{n}")
        for n, at in enumerate(where, 1)
    )
    return wanting(WHOLE, OFFICE, state=state, places=places, previews=SAYS, **fields)


@given(states, ats)
def test_a_model_is_told_no_id_and_every_step_that_may_have_had_an_effect(state, where):
    said = to_model(standing(state, where, why="it was closed"))
    assert "op-" not in said
    assert "plan-T1" not in said
    assert "X1" not in said
    if state in (PlanState.PARTIAL, PlanState.STOPPED, PlanState.IN_DOUBT, PlanState.DONE):
        for at, preview in zip(where, SAYS, strict=True):
            if at in (At.DONE, At.OUT):
                assert preview.summary in said


@given(ats)
def test_while_nobody_knows_a_model_is_not_told_that_anything_failed(where):
    said = to_model(standing(PlanState.IN_DOUBT, where, why="timed out"))
    for word in ("Couldn't", "failed", "retry", "try again"):
        assert word not in said


# What the person is told.


@pytest.mark.req("S1-38")
def test_what_was_done_and_what_was_not_and_why_and_what_can_be_done_next():
    office = ran("D1", FULL)
    assert told(office) == (
        "Done: Draft 500 € for Ada (D1). Couldn't: Issue it with the next number (the service"
        " refused: the series is closed). Not done because of that: Mail it to ada@example.com."
        " It can be undone: tell me if you want that. Shall I retry?"
    )


def test_the_question_is_asked_once_and_not_after_it_was_answered():
    office = ran("D1", FULL)
    assert told(office).count("Shall I retry?") == 1
    office.answer(False, said="no")
    assert "Shall I retry?" not in told(office)


def test_a_question_that_has_a_number_is_told_with_it():
    office = Office()
    office.run(*WHOLE, previews=SAYS)
    office.propose(note("x"), token="tok2")
    office.lands("op-1", "D1")
    office.reply("op-2", FULL)
    assert office.question.number == 2
    assert "yes 2" in told(office)


def test_while_it_is_in_doubt_nobody_is_asked_to_retry_and_nothing_is_said_to_have_failed():
    office = ran("D1", LOST)
    said = told(office)
    assert "Not known yet: Issue it with the next number." in said
    assert "Not done before that is known: Mail it to ada@example.com." in said
    assert "Couldn't" not in said
    assert "retry" not in said


@pytest.mark.req("S1-53")
def test_a_plan_that_was_stopped_says_how_far_it_came():
    office = noted("a", "b", "c")
    office.stop()
    office.lands("op-1", "N1")
    assert told(office) == (
        "Stopped: 1 of 3 done. Done: Note a (N1). Not done: Note b; Note c. It can be undone:"
        " tell me if you want that."
    )


@pytest.mark.req("S1-53")
def test_a_plan_without_previews_that_was_stopped_is_told_as_a_whole_too():
    office = Office(tools={**OFFICE, "note": FINISH})
    office.ask(note("a"), note("b"))
    office.stop()
    office.lands("op-1", "N1")
    assert told(office).startswith("Stopped: 1 of 2 done. Done: note(text=a) (N1). Not done:")


@pytest.mark.req("S1-50")
def test_where_one_undo_fails_the_person_reads_what_is_undone_and_what_is_not():
    office = noted("a", "b", "c")
    office.carried_out("N1", "N2", "N3")
    office.undo()
    office.lands("op-4")
    office.reply("op-5", Refused(reason="it is locked"))
    assert office.states("plan-T1") == ["undo_partial"]
    said = told(office)
    assert said.startswith(
        "Not all of it could be undone. Undone: Note c (N3). Couldn't undo: Note b (N2) (the"
        " service refused: it is locked). Not undone: Note a (N1)."
    )
    assert "Done:" not in said
    model = to_model(office.plan)
    assert "Undone: Note c." in model
    assert "Couldn't undo: Note b (the service refused: it is locked)." in model
    assert "Not undone: Note a." in model


@pytest.mark.req("S1-50")
def test_what_a_person_had_undone_after_that_is_told_to_be_and_the_models_line_stays():
    office = noted("a", "b")
    office.carried_out("N1", "N2")
    office.undo()
    office.reply("op-3", Refused(reason="it is locked"))
    before = to_model(office.plan)
    asked = {q.subject: q.id for q in office.questions.values()}
    office.answer(True, question=asked["release/op-1"])
    office.lands("op-4")
    said = told(office)
    assert "Undone: Note a (N1)." in said
    assert "Couldn't undo: Note b (N2)" in said
    assert to_model(office.plan) == before
    assert any("delete" in line for line in lines(office))


def test_a_plan_that_was_taken_back_whole_says_so_and_nothing_that_was_never_done():
    office = noted("a", "b", "c")
    office.carried_out("N1", FULL)
    office.undo()
    office.lands("op-3")
    assert office.at == ["undone", "broken", "waiting"]
    assert told(office) == "Undone: Note a (N1). There is nothing left to do."
    for never_done in ("Note b", "Note c"):
        assert never_done not in to_model(office.plan)


def test_facts_that_moved_are_told_as_they_were_and_as_they_are():
    plan = standing(PlanState.PARTIAL, [At.DONE, At.BROKEN, At.WAITING])
    facts = (
        Changed(step=2, field="rate", was=21, now=10),
        Changed(step=2, field="total", was=605, now=550),
    )
    moved = replace(plan, why="rate has changed", changed=facts)
    assert "rate: 21 ▸ 10; total: 605 ▸ 550" in to_model(moved)


def test_what_its_contract_has_words_for_is_told_in_them():
    says = {"en": {"confirmed": "drafted {id}"}}
    office = ran("D1", FULL, draft=replace(DRAFT, says=says))
    assert told(office).startswith("Done: drafted D1. Couldn't:")
    spanish = told(office, "es")
    assert spanish.startswith("Hecho: Draft 500 € for Ada (D1).")


def test_what_is_final_can_be_corrected_where_its_contract_has_a_way():
    office = ran("D1", "F1", "M1", issue=replace(ISSUE, correct="credit"))
    assert "What was done is final; it can be corrected" in told(office)
    assert "It can be undone" not in told(office)
    plain = ran("D1", "F1", "M1")
    assert "corrected" not in told(plain)
    safe = ran("D1", "F1", "M1", issue=replace(ISSUE, correct="credit", effect=Effect.REVERSIBLE))
    assert "corrected" not in told(safe)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("how", QUALIFIED["en"])
def test_what_is_done_and_is_not_the_whole_truth_is_qualified(how, language):
    if how == "partly":
        office = ran("D1", "F1", Acknowledged(result={"id": "M1"}, complete=False))
    else:
        deaf = replace(MAIL, keyed="", compares_payload=False, lookup=False, close=False)
        office = ran("D1", "F1", LOST, mail=replace(deaf, assume_after_s=1.0))
        office.lap(after_s=1.0)
    assert (office.states("plan-T1"), office.plan.places[2].how) == (["done"], how)
    assert QUALIFIED[language][how] in told(office, language)
    assert QUALIFIED["en"][how] in to_model(office.plan)


def test_an_answer_that_is_no_answer_closes_the_question_and_is_told_to_have():
    office = Office()
    office.propose(*WHOLE, previews=SAYS)
    office.answer(None, said="make it two")
    assert told(office).startswith("That was neither a yes nor a no, so the question is closed.")
    late = Office()
    late.propose(*WHOLE, previews=SAYS)
    late.now += ANSWER_S
    assert told(late).startswith("Nobody answered in time.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_while_it_goes_on_the_person_is_told_how_far_it_came(language):
    office = noted("a", "b")
    office.lands("op-1", "N1")
    assert told(office, language).endswith(going_on(done=1, of=2, language=language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_that_was_not_taken_is_told_in_the_turn_it_came_in_and_why(language):
    office = Office()
    office.propose(*WHOLE, previews=SAYS)
    office.now += ANSWER_S
    office.answer(True, said="yes")
    too_late = not_taken("expired", asked=False, language=language)
    assert told(office, language, turn="T2") == too_late
    assert too_late.startswith(not_taken("expired", asked=True, language=language))


def test_an_answer_that_was_taken_is_told_with_what_it_came_to():
    office = ran("D1", "F1", "M1")
    assert told(office, turn="T2") == told(office, turn="T1")
    assert "(F1)" in told(office, turn="T2")


def test_reads_are_told_only_where_one_had_no_answer():
    office = Office()
    looks, drafts = Preview(summary="Find Ada"), SAYS[0]
    office.ask(find(), draft("$1"), previews=(looks, drafts))
    office.see(LOST)
    assert "Couldn't: Find Ada (timed out)." in told(office)
    office.retry()
    office.finds()
    office.carried_out("D1")
    assert "Find Ada" not in told(office)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("state", ENDINGS)
def test_every_ending_can_be_told_in_every_language(state, language):
    plan = standing(PlanState(state), [At.DONE, At.OUT, At.WAITING], why="so it is")
    said = to_person(plan, {}, {}, language=language)
    assert said
    assert "{" not in said


# The history.


@pytest.mark.req("S1-38")
def test_each_time_it_came_to_rest_is_a_line_that_stays_when_it_goes_on():
    office = ran("D1", FULL)
    before = lines(office)
    assert any(line.startswith("The plan ended at the first step") for line in before)
    office.answer(True, said="yes")
    assert lines(office)[: len(before)] == before
    office.carried_out("F1", "M1")
    after = lines(office)
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2


def test_a_plan_that_is_done_is_told_by_what_it_did():
    office = ran("D1", "F1", "M1")
    assert not has_endings(office.plan)
    assert len(lines(office)) == 3


@pytest.mark.parametrize(
    ("state", "has"),
    [
        (PlanState.RUNNING, False),
        (PlanState.IN_DOUBT, False),
        (PlanState.DONE, False),
        (PlanState.SUPERSEDED, False),
        (PlanState.PARTIAL, True),
        (PlanState.STOPPED, True),
        (PlanState.DECLINED, True),
    ],
)
def test_its_journal_is_needed_where_it_came_to_rest_before(state, has):
    plan = standing(state, [At.DONE, At.BROKEN, At.WAITING])
    assert has_endings(plan) is has
    assert has_endings(replace(plan, attempt=2))


def test_what_is_told_on_is_every_rest_but_being_done_and_being_taken_over():
    told_on = {PlanEvent.FINISHED, PlanEvent.SUPERSEDED, PlanEvent.DOUBTED}
    assert told_on & TOLD_ON == set()
    office = noted("a", "b")
    office.stop()
    office.lands("op-1", "N1")
    office.undo()
    office.lands("op-2")
    endings = [line for line in lines(office) if line.startswith("The person")]
    assert [line.split(":")[0].split(".")[0] for line in endings] == [
        "The person stopped the plan",
        "The person had the plan undone",
    ]
