"""A plan: its table, its record, and how its steps follow one another, each once."""

from dataclasses import fields, replace
from json import dumps, loads

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.advancing import operation_for
from landed.core.arrival import AskPerson, Planned
from landed.core.errors import IllegalEventError
from landed.core.key import ask_name
from landed.core.next import what_next
from landed.core.operation import State
from landed.core.outcome import Absent, Acknowledged, AnswerLost, Found, NotSent, Refused
from landed.core.plan import (
    BORN,
    OPEN,
    PLAN_MOVES,
    At,
    Place,
    Plan,
    PlanEvent,
    PlanState,
    Step,
    Wanted,
    placed,
    plan_from,
    plan_moved,
    plan_record,
)
from landed.core.preview import Changed, Preview, Similar
from landed.core.question import About
from landed.core.rules import RULES
from landed.core.scope import Scope
from tests.core.build import READ_BACK, SENT_AT
from tests.core.conversation import RESERVE, TOOLS, Conversation, book, check, text, wanting

LOST = AnswerLost(reason="timed out")
SEEN = Acknowledged(result={"free": True})
FULL = Refused(reason="fully booked")

# DESIGN.md, "Life of a plan". What it was before it was stored, `drafted`, has its moves too: what
# the record says first is the event by which it was born.
LIFE = """
drafted    planned         > running
drafted    proposed        > proposed
drafted    found_invalid   > invalid
proposed   plan_approved   > running
proposed   committed       > running
proposed   plan_agreed     > proposed
proposed   plan_declined   > declined
proposed   expired         > expired
proposed   abandoned       > abandoned
proposed   superseded      > superseded
running    stepped         > running
running    doubted         > in_doubt
running    finished        > done
running    broke_off       > partial
running    stop_asked      > stopping
running    superseded      > superseded
in_doubt   stepped         > running
in_doubt   finished        > done
in_doubt   broke_off       > partial
in_doubt   stop_asked      > stopping
in_doubt   superseded      > superseded
stopping   stepped         > stopping
stopping   stopped         > stopped
stopping   superseded      > superseded
partial    retried         > running
partial    undo_asked      > undoing
partial    superseded      > superseded
stopped    undo_asked      > undoing
stopped    superseded      > superseded
done       undo_asked      > undoing
undoing    stepped         > undoing
undoing    undone          > undone
undoing    undo_broke_off  > undo_partial
"""
TOLD = {
    (before, event): after
    for before, event, after in (
        line.replace(">", "").split() for line in LIFE.strip().splitlines()
    )
}


# The table.


def test_the_table_tells_the_story_of_the_design():
    moves = {(s, e): after for s, ways in PLAN_MOVES.items() for e, after in ways.items()}
    assert moves == TOLD
    assert set(PLAN_MOVES) == set(PlanState)


@pytest.mark.parametrize("state", PlanState)
@pytest.mark.parametrize("event", PlanEvent)
def test_every_event_either_moves_a_plan_as_the_story_says_or_is_illegal(state, event):
    plan = replace(wanting([book()], TOOLS), state=state, version=4)
    if (state, event) in TOLD:
        after = plan_moved(plan, event, why="so it is")
        assert after == replace(
            plan, state=PlanState(TOLD[state, event]), version=5, why="so it is"
        )
    else:
        with pytest.raises(IllegalEventError, match=f"plan-T1 is {state}: it cannot be {event}"):
            plan_moved(plan, event)


def test_the_loop_has_work_for_a_plan_that_is_under_way():
    works = {"running", "in_doubt", "stopping", "undoing"}
    for state in PlanState:
        plan = replace(wanting([book()], TOOLS), state=state)
        assert plan.open is (state in OPEN) is (state in works)
        assert plan_record(plan).open is plan.open


def reached(*starts: PlanState) -> set[PlanState]:
    """The states that can follow these, one after another."""
    found = set(starts)
    while more := {after for s in found for after in PLAN_MOVES[s].values()} - found:
        found |= more
    return found


def test_every_state_can_be_reached():
    assert reached(PlanState.DRAFTED) == set(PlanState)


@pytest.mark.parametrize("state", PlanState)
def test_every_state_ends_where_the_loop_has_nothing_left_to_do(state):
    assert reached(state) - OPEN - {PlanState.PROPOSED, PlanState.DRAFTED}
    if state in OPEN | {PlanState.DRAFTED, PlanState.PROPOSED}:
        assert PLAN_MOVES[state]


@pytest.mark.req("K21")
def test_a_plan_that_has_run_cannot_end_as_if_it_had_not():
    never = {PlanState.INVALID, PlanState.DECLINED, PlanState.EXPIRED, PlanState.ABANDONED}
    assert not reached(PlanState.RUNNING) & never
    assert reached(PlanState.PROPOSED) >= never - {PlanState.INVALID}


@pytest.mark.parametrize("state", PLAN_MOVES[PlanState.DRAFTED].values())
def test_what_the_record_says_first_is_the_event_that_it_was_born_by(state):
    assert PLAN_MOVES[PlanState.DRAFTED][BORN[state]] is state
    talk = Conversation()
    plan = wanting([book()], TOOLS, state=state, why="which day?")
    (born, *_) = talk.lap(Planned(plan=plan))
    assert born == f"plan-T1 {BORN[state]}"
    assert talk.moves[0].after.state == state


def test_a_plan_that_lacks_something_runs_nothing():
    talk = Conversation()
    talk.ask(book(), state=PlanState.INVALID, why="which day?")
    assert talk.leaves == []
    assert (talk.lap(after_s=1e4), talk.states("plan-T1")) == ([], ["invalid"])


# Its record.

words = st.text(max_size=4)
steps = st.builds(
    Step,
    tool=words,
    arguments=st.dictionaries(words, st.integers(0, 9) | words, max_size=2),
    contract=words,
    identity=words,
    names=st.lists(words, max_size=2).map(tuple),
    call_id=words,
    reads=st.booleans(),
    risk=words,
    permission=words,
    needs=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    keeps=words,
    replaces=words,
    corrects=words,
)
values = st.none() | st.integers(0, 9) | words
facts = st.dictionaries(words, values, max_size=2)
previews = st.builds(
    Preview,
    summary=words,
    cost_cents=st.none() | st.integers(0, 9),
    basis=facts,
    questions=st.lists(words, max_size=2).map(tuple),
    makes=facts,
    typed=st.lists(words, max_size=2).map(tuple),
    similar=st.lists(st.builds(Similar, id=words, text=words), max_size=2).map(tuple),
)
places = st.builds(
    Place,
    at=st.sampled_from(At),
    record=words,
    attempt=st.integers(1, 3),
    made=values,
    how=words,
)
moved = st.builds(Changed, step=st.integers(0, 9), field=words, was=values, now=values)
plans = st.builds(
    Plan,
    id=words,
    tenant=words,
    session=words,
    turn=words,
    input=words,
    principal=words,
    origin=words,
    call_id=words,
    revises=words,
    intent=st.dictionaries(words, words, max_size=2),
    steps=st.lists(steps, max_size=3).map(tuple),
    made_at=st.floats(0, 1e9),
    send_by=st.floats(0, 1e9),
    answer_by=st.floats(0, 1e9),
    previews=st.lists(previews, max_size=2).map(tuple),
    supersedes=words,
    independent=st.booleans(),
    state=st.sampled_from(PlanState),
    version=st.integers(0, 9),
    epoch=st.integers(0, 9),
    worker=words,
    places=st.lists(places, max_size=3).map(tuple),
    attempt=st.integers(1, 3),
    ended_at=st.floats(0, 1e9),
    by=words,
    why=words,
    changed=st.lists(moved, max_size=2).map(tuple),
)


@given(plans)
def test_a_plan_is_read_back_from_its_record_as_it_was(plan):
    record = plan_record(plan)
    assert plan_from(record) == plan
    # A store keeps text: what is a tuple here is a list there.
    written = loads(dumps({"frozen": record.frozen, "changing": record.changing}))
    assert plan_from(replace(record, **written)) == plan


def test_every_field_of_a_plan_is_in_its_record():
    record = plan_record(wanting([book()], TOOLS))
    named = {"id", "tenant", "session", "state", "version", "epoch", "worker"}
    assert {*record.frozen, *record.changing, *named} == {each.name for each in fields(Plan)}


@given(plans, st.data())
def test_a_move_leaves_what_was_fixed_when_it_was_planned(plan, data):
    if ways := PLAN_MOVES[plan.state]:
        after = plan_moved(plan, data.draw(st.sampled_from([*ways])), places=(), why="so")
        assert plan_record(after).frozen == plan_record(plan).frozen


def test_the_current_step_is_the_first_that_is_not_done():
    plan = wanting([check(), book(), text()], TOOLS)
    assert plan.current == 0
    done = Place(at=At.DONE, record="ob-1")
    assert replace(plan, places=placed(plan, 0, done)).current == 1
    assert replace(plan, places=(done, done, done)).current is None
    assert placed(plan, 1, done) == (Place(), done, Place())


def test_a_call_is_told_in_one_line():
    assert str(Wanted(tool="reserve", arguments={"day": "Fri", "covers": 4})) == (
        "reserve(day=Fri, covers=4)"
    )


def test_a_read_holds_no_name_and_a_step_with_an_effect_holds_its_own():
    reads, books = wanting([check(), book()], TOOLS).steps
    assert reads.names == ()
    assert books.names == (f"same/default/s1/reserve/{books.identity}",)


def test_the_operation_of_a_step_is_the_plans_and_has_a_key_of_its_own():
    plan = wanting([book()], TOOLS)
    op = operation_for(plan, plan.steps[0], RESERVE, id="op-7", now=SENT_AT + 3.0)
    assert (op.id, op.key, op.plan, op.turn, op.worker) == ("op-7", "op-7", "plan-T1", "T1", "w1")
    assert (op.made_at, op.send_by) == (SENT_AT + 3.0, plan.send_by)
    assert (op.arguments, op.names) == ({"day": "Fri"}, plan.steps[0].names)
    assert (op.ask, op.ask.principal, op.ask.input) == (plan.ask, "ann", "in-T1")
    assert (op.state, op.version) == (State.RECORDED, 1)


# One step after another.


def test_steps_follow_one_another_and_the_plan_is_done():
    talk = Conversation()
    assert talk.ask(check(), book(), text()) == ["plan-T1 planned"]
    assert talk.leaves == ["watch plan-T1 0"]
    assert talk.see(SEEN)[-2:] == ["op-1 made", "op-1 sent"]
    assert talk.leaves == ["send op-1 1"]
    assert talk.lands("op-1")[-2:] == ["op-2 made", "op-2 sent"]
    assert talk.lands("op-2") == ["op-2 acknowledged", "plan-T1 stepped", "plan-T1 finished"]
    assert [place.record for place in talk.plan.places] == ["ob-1", "op-1", "op-2"]
    assert talk.done()
    assert talk.observed() == [("check", "answered", {"free": True})]


def test_a_plan_takes_the_name_of_its_ask_for_ever():
    talk = Conversation()
    talk.ask(book())
    assert talk.store.names[ask_name(talk.plan.ask)] == "plan-T1"
    talk.lands("op-1")
    assert talk.store.names == {ask_name(talk.plan.ask): "plan-T1"}


def test_a_plan_without_an_ask_name_takes_none():
    talk = Conversation()
    talk.lap(Planned(plan=wanting([check()], TOOLS)))
    assert talk.store.names == {}


@pytest.mark.req("S0-43")
def test_the_operation_is_recorded_as_sent_in_the_unit_after_which_it_leaves():
    talk = Conversation()
    written = talk.ask(book())
    assert written == ["plan-T1 planned", "plan-T1 stepped", "op-1 made", "op-1 sent"]
    assert talk.plan.places == (Place(at=At.OUT, record="op-1"),)


@pytest.mark.parametrize(
    "outcome", [FULL, NotSent(reason="no route")], ids=["refused", "never-sent"]
)
def test_the_first_step_that_did_not_land_ends_the_plan(outcome):
    talk = Conversation(tools={**TOOLS, "reserve": replace(RESERVE, max_tries=1)})
    talk.ask(book(), text())
    written = talk.reply("op-1", outcome)
    assert written[1:] == ["plan-T1 broke_off"]
    assert talk.leaves == []
    assert talk.states("plan-T1", "op-1") == ["partial", "failed"]
    assert [place.at for place in talk.plan.places] == [At.BROKEN, At.WAITING]
    assert outcome.reason in talk.plan.why


def test_an_unanswered_read_ends_the_plan_too_and_is_kept_as_unanswered():
    talk = Conversation()
    talk.ask(check(), book())
    assert talk.see(LOST) == ["ob-1 unanswered", "plan-T1 broke_off"]
    assert talk.observed() == [("check", "unanswered", None)]
    assert (talk.plan.why, talk.plan.places[0]) == ("timed out", Place(at=At.BROKEN, record="ob-1"))


def test_a_step_whose_time_to_be_sent_is_over_ends_the_plan():
    talk = Conversation(now=SENT_AT + 10.0)
    talk.ask(book(), send_by=SENT_AT + 5.0)
    assert talk.states("plan-T1", "op-1") == ["partial", "withdrawn"]
    assert talk.plan.why == "its time to be sent was over"


def test_a_step_that_another_call_stands_in_the_way_of_ends_the_plan():
    talk = Conversation()
    talk.ask(book())
    talk.ask(book())
    assert talk.states("plan-T2", "op-2") == ["partial", "withdrawn"]
    assert talk.plan.why == "op-1 touches the same thing and was not settled"


def test_what_is_recorded_and_waits_for_a_place_keeps_the_plan_where_it_is():
    talk = Conversation()
    plan = wanting([book()], TOOLS)
    talk.lap(Planned(plan=plan))
    back = talk.reply("op-1", NotSent(reason="no route"))
    assert back == ["op-1 not_sent"]
    assert talk.states("plan-T1", "op-1") == ["running", "recorded"]
    assert talk.lap(after_s=0.5) == ["op-1 sent"]


# In doubt.


def test_while_nobody_can_tell_the_plan_is_in_doubt_and_nothing_after_it_starts():
    talk = Conversation()
    talk.ask(book(), text())
    assert talk.reply("op-1", LOST) == ["op-1 answer_lost", "plan-T1 doubted"]
    assert talk.leaves == ["lookup op-1"]
    assert talk.plan.why == "timed out"
    assert talk.lap(after_s=3.0) == []


def test_what_is_found_goes_on_where_the_plan_was():
    talk = Conversation()
    talk.ask(book(), text())
    talk.reply("op-1", LOST)
    written = talk.look("op-1", Found(result={"id": "R1"}))
    assert written[0] == "op-1 found"
    assert written[-2:] == ["op-2 made", "op-2 sent"]
    assert talk.states("plan-T1") == ["running"]


def test_what_turns_out_not_to_have_landed_ends_the_plan_that_was_in_doubt():
    only_close = replace(RESERVE, lookup=False, compares_payload=False)
    talk = Conversation(tools={**TOOLS, "reserve": only_close})
    talk.ask(book(), text(), send_by=SENT_AT + 5.0)
    talk.reply("op-1", LOST)
    assert talk.lap(after_s=5.0) == ["op-1 closing"]
    assert talk.look("op-1", Absent()) == ["op-1 closed_empty", "plan-T1 broke_off"]


def test_what_goes_to_a_person_stays_in_doubt_without_another_word():
    bare = replace(RESERVE, keyed="", compares_payload=False, lookup=False, close=False)
    talk = Conversation(tools={**TOOLS, "reserve": bare})
    talk.ask(book(), text())
    talk.reply("op-1", LOST)
    assert talk.lap(after_s=900.0) == ["op-1 gave_up"]
    assert talk.states("plan-T1", "op-1") == ["in_doubt", "undecided"]


@pytest.mark.fault("X02")
def test_after_a_crash_the_plan_goes_on_from_its_record():
    talk = Conversation()
    talk.ask(check(), book())
    assert talk.crash() == []
    assert talk.leaves == ["watch plan-T1 0"]
    talk.see(SEEN)
    assert talk.crash()[:2] == ["op-1 answer_lost", "plan-T1 doubted"]
    assert talk.leaves == ["lookup op-1"]
    talk.look("op-1", Found(result={"id": "R1"}))
    assert talk.done()
    assert len(talk.operations) == 1


@pytest.mark.req("S0-35")
def test_what_is_assumed_to_have_landed_lets_the_plan_go_on():
    talk = Conversation()
    talk.ask(text(), book())
    talk.reply("op-1", LOST)
    assert talk.lap(after_s=0.06)[0] == "op-1 assumed"
    assert talk.leaves == ["send op-2 1"]


@pytest.mark.parametrize(
    ("contract", "state"), [(RESERVE, "done"), (READ_BACK, "running")], ids=["202", "read-back"]
)
def test_a_receipt_is_enough_to_go_on_only_where_nothing_can_be_read_back(contract, state):
    talk = Conversation(tools={**TOOLS, "reserve": contract})
    talk.ask(book())
    talk.reply("op-1", Acknowledged(result={"id": "R1"}, accepted=True))
    assert talk.states("plan-T1", "op-1") == [state, "accepted"]


# What is out already, late or of no use any more.


def test_a_read_is_put_once_while_it_is_waited_for():
    talk = Conversation()
    talk.ask(check())
    assert (talk.lap(), talk.leaves) == ([], [])


def test_two_reads_of_two_plans_are_waited_for_side_by_side():
    talk = Conversation()
    talk.ask(check())
    talk.ask(check("Sat"))
    assert talk.leaves == ["watch plan-T2 0"]


def test_a_read_that_comes_back_after_its_plan_ended_writes_nothing():
    talk = Conversation()
    talk.ask(check(), book())
    talk.see(SEEN, late=True)
    assert talk.see(SEEN) == []
    talk.lands("op-1")
    assert talk.done()


def test_while_draining_no_step_is_started():
    talk = Conversation(draining=True)
    assert talk.ask(check(), book()) == ["plan-T1 planned"]
    assert talk.leaves == []
    talk.draining = False
    talk.lap()
    assert talk.leaves == ["watch plan-T1 0"]


def test_a_hundred_steps_are_taken_one_by_one():
    calls = [book(f"day {n}") for n in range(100)]
    talk = Conversation()
    talk.ask(*calls)
    for n in range(1, 101):
        assert talk.leaves == [f"send op-{n} 1"]
        talk.lands(f"op-{n}")
    assert talk.done()


def test_the_rounds_of_one_lap_are_bounded(monkeypatch):
    talk = Conversation()
    monkeypatch.setattr("landed.core.next.ROUNDS_MAX", 0)
    assert talk.ask(book()) == ["plan-T1 planned"]
    monkeypatch.setattr("landed.core.next.ROUNDS_MAX", 1)
    assert talk.lap() == ["plan-T1 stepped", "op-1 made", "op-1 sent"]


def test_nothing_is_made_where_nobody_gave_a_source_of_ids():
    asks = AskPerson(
        turn="T1",
        tenant="default",
        session="s1",
        principal="ann",
        text="Which day?",
        about=About.UNSURE,
    )
    bare = Scope(operations={}, contracts={}, arrivals=(asks,))
    with pytest.raises(LookupError, match="makes no records, but a lap wants an id for a question"):
        what_next(bare, RULES, SENT_AT)
