"""What one lap decides: which unit is written, what leaves after it, and when to come back."""

from dataclasses import replace

import pytest

from landed.core.absorb import Question
from landed.core.arrival import AskedAgain, LookNow, Proposed, Told, Withdraw
from landed.core.changes import Hold
from landed.core.doubt import PAUSES_S
from landed.core.next import what_next, what_was_said
from landed.core.operation import Operation, Source, State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
)
from landed.core.rules import RULES, Rules
from landed.core.scope import Asking, Put, Send, Sending
from tests.core.build import (
    BARE,
    CLOSE_ONLY,
    FULL,
    LOOKUP_ONLY,
    READ_BACK,
    RESENDABLE,
    SEND_BY,
    SENT_AT,
    TABLE,
    commands,
    events,
    lap,
    looked,
    operation,
    replied,
    scope,
    stored,
)

NEW = operation(version=1, epoch=0, worker="")
SENT = operation(State.SENT)
UNKNOWN = operation(State.UNKNOWN)
IN_FLIGHT = frozenset({Sending(operation="op-a1", attempt=1)})
ASKING = frozenset({Asking(operation="op-a1")})
YES = Acknowledged(result={"id": "R1"})
SOON = SENT_AT + 2.0
MINE = Hold(name=TABLE, record="op-a1")
OTHERS = Hold(name=TABLE, record="op-a2")


def another(id: str = "op-a2", op: Operation = NEW) -> Operation:
    """An operation like `op` under another id and key."""
    return replace(op, id=id, key=id)


# A first run.


@pytest.mark.req("S4-03")
def test_a_call_is_made_and_sent_in_one_unit_and_leaves_only_after_it():
    decided = lap(arrivals=(Proposed(operation=NEW, ask_name="ask/1"),))
    assert events(decided) == ["op-a1 made", "op-a1 sent"]
    assert commands(decided) == ["send op-a1 1"]
    assert decided.changes.takes == (Hold(name="ask/1", record="op-a1"), MINE)
    store, held = stored(decided)
    assert held["op-a1"].state is State.SENT
    assert held["op-a1"].epoch == 1
    assert store.names == {"ask/1": "op-a1", TABLE: "op-a1"}


def test_a_send_counts_its_try_and_its_time():
    sent = lap(arrivals=(Proposed(operation=NEW),), now=SOON).operations["op-a1"]
    assert (sent.tries, sent.first_sent_at, sent.last_sent_at) == (1, SOON, SOON)
    assert sent.version == 2


def test_a_call_without_an_ask_name_takes_none():
    decided = lap(arrivals=(Proposed(operation=NEW),))
    assert decided.changes.takes == (MINE,)


def test_with_nothing_to_do_nothing_is_written():
    decided = lap(SENT, running=IN_FLIGHT)
    assert not decided.changes
    assert (decided.commands, dict(decided.wakes)) == ((), {})
    assert decided.operations == {"op-a1": SENT}


def test_a_yes_settles_and_frees_the_name():
    decided = lap(SENT, arrivals=(replied(YES),), running=IN_FLIGHT, now=SOON)
    assert events(decided) == ["op-a1 acknowledged"]
    assert decided.changes.frees == (MINE,)
    assert decided.operations["op-a1"].state is State.CONFIRMED


def test_an_event_has_the_time_at_which_it_came_back_and_not_that_of_the_lap():
    decided = lap(SENT, arrivals=(replied(YES, at=SOON),), running=IN_FLIGHT, now=SOON + 9.0)
    assert [move.event.at for move in decided.changes.moves] == [SOON]
    sent = lap(arrivals=(Proposed(operation=NEW),), now=SOON)
    assert [move.event.at for move in sent.changes.moves] == [SOON, SOON]


@pytest.mark.req("K8", "S1-33")
@pytest.mark.parametrize(
    ("outcome", "freed"),
    [
        (YES, True),
        (Refused(reason="full"), True),
        (NotSent(reason="no route"), True),
        (AnswerLost(reason="timed out"), False),
        (Acknowledged(result=None, accepted=True), False),
    ],
)
def test_its_names_are_freed_only_by_what_leaves_no_doubt(outcome, freed):
    decided = lap(SENT, contract=BARE, arrivals=(replied(outcome),), now=SOON)
    assert decided.changes.frees == ((MINE,) if freed else ())


def test_what_did_not_leave_is_sent_again_after_a_pause_and_then_its_name_is_taken_again():
    back = replied(NotSent(reason="no route"), at=SENT_AT + 0.1)
    decided = lap(SENT, arrivals=(back,), now=SENT_AT + 0.1)
    assert events(decided) == ["op-a1 not_sent"]
    assert decided.wakes == {"op-a1": SENT_AT + 0.5}
    again = lap(*decided.operations.values(), now=SENT_AT + 0.5)
    assert commands(again) == ["send op-a1 2"]
    assert again.changes.takes == (MINE,)
    assert again.operations["op-a1"].first_sent_at == SENT_AT


def test_a_name_that_is_freed_and_taken_again_in_one_lap_goes_in_as_one_unit():
    sent = lap(arrivals=(Proposed(operation=NEW),))
    store, held = stored(sent)
    back = replied(NotSent(reason="no route"), at=SOON)
    again = lap(*held.values(), arrivals=(back,), now=SOON)
    assert events(again) == ["op-a1 not_sent", "op-a1 sent"]
    after, _ = stored(again, store)
    assert after.names == {TABLE: "op-a1"}


# Names: one holder at a time.


@pytest.mark.req("S4-07")
def test_two_equal_calls_in_one_lap_and_the_second_is_blocked_by_the_first():
    decided = lap(arrivals=(Proposed(operation=NEW), Proposed(operation=another())))
    assert events(decided) == ["op-a1 made", "op-a2 made", "op-a1 sent", "op-a2 blocked"]
    assert commands(decided) == ["send op-a1 1"]
    assert decided.operations["op-a2"].blocked_by == "op-a1"
    assert stored(decided)[0].names == {TABLE: "op-a1"}


@pytest.mark.req("S4-07")
@pytest.mark.parametrize(
    "state", [State.SENT, State.RESENT, State.ACCEPTED, State.UNKNOWN, State.UNDECIDED]
)
def test_a_call_is_blocked_while_another_may_still_have_an_effect_there(state):
    holder = another("op-a2", operation(state))
    running = frozenset({Sending(operation="op-a2", attempt=holder.tries)})
    decided = lap(holder, contract=BARE, running=running, arrivals=(Proposed(operation=NEW),))
    assert events(decided) == ["op-a1 made", "op-a1 blocked"]
    assert decided.operations["op-a1"].blocked_by == "op-a2"
    assert commands(decided) == []


@pytest.mark.parametrize("state", [State.RECORDED, State.CONFIRMED, State.FAILED, State.ASSUMED])
def test_a_call_is_not_blocked_by_what_holds_nothing(state):
    other = another("op-a2", operation(state, blocked_by="op-a9"))
    decided = lap(other, contract=BARE, arrivals=(Proposed(operation=NEW),))
    assert commands(decided) == ["send op-a1 1"]


def test_a_call_is_blocked_by_a_holder_of_elsewhere():
    decided = lap(arrivals=(Proposed(operation=NEW),), holders={TABLE: "op-z9"})
    assert decided.operations["op-a1"].blocked_by == "op-z9"
    assert commands(decided) == []


def test_its_own_hold_does_not_block_it():
    decided = lap(operation(State.RECORDED), holders={TABLE: "op-a1"})
    assert commands(decided) == ["send op-a1 1"]


def test_one_taken_name_of_several_is_enough_to_block():
    wants_two = replace(NEW, names=("target/free", TABLE))
    decided = lap(arrivals=(Proposed(operation=wants_two),), holders={TABLE: "op-z9"})
    assert decided.operations["op-a1"].blocked_by == "op-z9"
    assert decided.changes.takes == ()


def test_what_is_blocked_never_fires_by_itself():
    blocked = another("op-a2", operation(blocked_by="op-a1"))
    decided = lap(SENT, blocked, arrivals=(replied(YES),), running=IN_FLIGHT, now=SOON)
    assert events(decided) == ["op-a1 acknowledged"]
    assert decided.operations["op-a2"].blocked_by == "op-a1"


def test_what_was_asked_for_again_takes_the_name_that_its_holder_frees_in_the_same_unit():
    store, held = stored(lap(arrivals=(Proposed(operation=NEW), Proposed(operation=another()))))
    arrivals = (replied(YES), AskedAgain(operation="op-a2"))
    decided = lap(*held.values(), arrivals=arrivals, running=IN_FLIGHT, now=SOON)
    assert commands(decided) == ["send op-a2 1"]
    assert (decided.changes.frees, decided.changes.takes) == ((MINE,), (OTHERS,))
    assert decided.operations["op-a2"].blocked_by == ""
    assert stored(decided, store)[0].names == {TABLE: "op-a2"}


def test_what_was_asked_for_again_too_early_is_blocked_again():
    blocked = another("op-a2", operation(blocked_by="op-a1"))
    decided = lap(SENT, blocked, arrivals=(AskedAgain(operation="op-a2"),), running=IN_FLIGHT)
    assert events(decided) == ["op-a2 blocked"]


# Slots, drain and time.


def test_a_tool_with_one_place_sends_one_at_a_time():
    proposals = (
        Proposed(operation=replace(NEW, names=("one",))),
        Proposed(operation=replace(another(), names=("other",))),
    )
    decided = lap(arrivals=proposals, slots={"reserve_table": 1})
    assert commands(decided) == ["send op-a1 1"]
    assert decided.operations["op-a2"].state is State.RECORDED
    assert decided.operations["op-a2"].blocked_by == ""
    assert decided.starved == {"reserve_table"}
    later = lap(decided.operations["op-a2"], slots={"reserve_table": 1}, now=SOON)
    assert commands(later) == ["send op-a2 1"]
    assert later.starved == frozenset()


def test_a_resend_needs_a_place_too():
    decided = lap(UNKNOWN, contract=RESENDABLE, slots={"reserve_table": 0}, now=SOON)
    assert not decided.changes
    assert decided.starved == {"reserve_table"}


def test_the_places_of_another_tool_do_not_matter():
    decided = lap(arrivals=(Proposed(operation=NEW),), slots={"send_text": 0})
    assert commands(decided) == ["send op-a1 1"]


@pytest.mark.parametrize("op", [operation(), UNKNOWN, operation(State.ACCEPTED)])
def test_while_draining_nothing_new_is_started(op):
    decided = lap(op, contract=FULL, draining=True, now=SOON)
    assert not decided.changes
    assert decided.commands == ()


@pytest.mark.parametrize("state", [State.RECORDED, State.UNKNOWN])
def test_past_its_time_nothing_is_sent_first_or_again(state):
    decided = lap(operation(state), contract=RESENDABLE, now=SEND_BY)
    assert not any(isinstance(each, Send) for each in decided.commands)


def test_what_was_never_sent_in_its_time_is_withdrawn_with_the_reason():
    decided = lap(operation(State.RECORDED), now=SEND_BY)
    assert events(decided) == ["op-a1 withdrawn"]
    (why,) = decided.operations["op-a1"].evidence
    assert (why.source, why.at, why.says) == (
        Source.RUNTIME,
        SEND_BY,
        "its time to be sent was over",
    )


# In doubt.


@pytest.mark.fault("X02")
def test_after_a_crash_what_was_sent_is_unknown_and_is_looked_up_at_once():
    decided = lap(SENT, now=SOON)
    assert events(decided) == ["op-a1 answer_lost"]
    assert commands(decided) == ["lookup op-a1"]
    (why,) = decided.operations["op-a1"].evidence
    assert why.says == "the process that sent it ended before the answer came"


def test_a_wait_for_an_earlier_send_is_no_wait_for_this_one():
    decided = lap(operation(State.RESENT), running=IN_FLIGHT)
    assert events(decided) == ["op-a1 answer_lost"]


@pytest.mark.fault("X02")
def test_after_a_crash_what_was_recorded_is_sent_for_the_first_time():
    assert commands(lap(operation(State.RECORDED))) == ["send op-a1 1"]


@pytest.mark.req("S0-21", "S0-29")
@pytest.mark.fault("X02")
def test_a_lost_request_is_looked_up_and_then_sent_again_under_its_own_key():
    lost = lap(
        SENT, arrivals=(replied(AnswerLost(reason="timed out")),), running=IN_FLIGHT, now=SOON
    )
    assert events(lost) == ["op-a1 answer_lost"]
    assert commands(lost) == ["lookup op-a1"]
    nothing = looked(Absent(), asked_at=SOON)
    again = lap(*lost.operations.values(), arrivals=(nothing,), now=SOON + 1.0)
    assert events(again) == ["op-a1 looked", "op-a1 resent"]
    assert commands(again) == ["send op-a1 2"]
    (resend,) = again.commands
    assert isinstance(resend, Send)
    assert resend.operation.key == SENT.key
    after = again.operations["op-a1"]
    assert (after.tries, after.first_sent_at, after.last_sent_at) == (2, SENT_AT, SOON + 1.0)
    assert (after.looks, after.looked) == (0, "")


def test_a_lost_reply_is_looked_up_and_found_and_nothing_is_sent_again():
    there = looked(Found(result={"id": "R1"}), asked_at=SOON)
    decided = lap(UNKNOWN, arrivals=(there,), now=SOON + 1.0)
    assert events(decided) == ["op-a1 found"]
    assert decided.commands == ()
    assert decided.operations["op-a1"].result == {"id": "R1"}


@pytest.mark.req("S0-21")
@pytest.mark.fault("X02")
def test_what_nobody_wants_is_closed_and_the_key_is_spent_before_the_service_is_asked():
    left = replace(UNKNOWN, wanted=False)
    decided = lap(left, now=SOON)
    assert events(decided) == ["op-a1 closing"]
    assert commands(decided) == ["close op-a1"]
    (put,) = decided.commands
    assert isinstance(put, Put)
    assert put.operation.closing
    again = lap(*decided.operations.values(), now=SOON + 9.0)
    assert events(again) == []
    assert commands(again) == ["close op-a1"]


def test_a_close_that_found_nothing_fails_it_and_frees_the_name():
    closing = replace(UNKNOWN, wanted=False, closing=True)
    empty = looked(Absent(), question=Question.CLOSE)
    decided = lap(closing, arrivals=(empty,), now=SOON)
    assert decided.operations["op-a1"].state is State.FAILED
    assert decided.changes.frees == (MINE,)


@pytest.mark.parametrize("op", [UNKNOWN, operation(State.ACCEPTED)])
def test_one_question_at_a_time_is_out_about_an_operation(op):
    decided = lap(op, contract=replace(FULL, read_back=True), running=ASKING, now=SOON)
    assert (decided.commands, dict(decided.wakes)) == ((), {})


def test_what_may_be_asked_later_says_when_to_come_back():
    waiting = replace(UNKNOWN, looks=3, looked_at=SOON)
    decided = lap(waiting, contract=LOOKUP_ONLY, now=SOON)
    assert decided.wakes == {"op-a1": SOON + PAUSES_S[3]}
    assert decided.commands == ()


@pytest.mark.parametrize(
    ("op", "contract", "question"),
    [
        (UNKNOWN, LOOKUP_ONLY, "lookup op-a1"),
        (operation(State.ACCEPTED), READ_BACK, "read-back op-a1"),
        (operation(State.UNDECIDED), LOOKUP_ONLY, "lookup op-a1"),
    ],
)
def test_who_wants_to_know_now_need_not_wait_for_the_next_turn(op, contract, question):
    waiting = replace(op, looks=7, looked_at=SOON - 0.5)
    assert commands(lap(waiting, contract=contract, now=SOON)) == []
    now = lap(waiting, contract=contract, arrivals=(LookNow(operation="op-a1"),), now=SOON)
    assert commands(now) == [question]
    assert now.operations["op-a1"].looked_at == SOON - 0.5


@pytest.mark.parametrize("state", [State.RECORDED, State.SENT, State.CONFIRMED])
def test_who_wants_to_know_now_what_is_not_in_doubt_asks_nothing(state):
    arrivals = (LookNow(operation="op-a1"),)
    decided = lap(operation(state, blocked_by="op-a9"), arrivals=arrivals, running=IN_FLIGHT)
    assert (decided.commands, bool(decided.changes)) == ((), False)


# Given up, assumed, or not visible in time.


@pytest.mark.req("S4-36", "S4-22")
def test_past_the_age_of_escalation_it_goes_to_a_person_and_nothing_is_sent():
    old = replace(UNKNOWN, looks=9, looked_at=SENT_AT + 900.0)
    decided = lap(old, contract=FULL, now=SENT_AT + 901.0)
    assert events(decided) == ["op-a1 gave_up"]
    assert decided.operations["op-a1"].state is State.UNDECIDED
    assert (decided.commands, decided.changes.frees) == ((), ())
    assert lap(*decided.operations.values(), now=SENT_AT + 1e6).commands == ()


@pytest.mark.req("K10")
def test_what_may_be_assumed_is_assumed_and_says_that_nobody_can_tell():
    contract = replace(BARE, assume_after_s=1.0)
    decided = lap(UNKNOWN, contract=contract, now=SOON)
    assert events(decided) == ["op-a1 assumed"]
    after = decided.operations["op-a1"]
    assert after.state is State.ASSUMED
    assert after.evidence[-1].source is Source.ASSUMPTION
    assert decided.changes.frees == (MINE,)


@pytest.mark.req("S4-32", "S4-33")
@pytest.mark.parametrize(
    ("contract", "leaves"),
    [(READ_BACK, []), (replace(READ_BACK, keyed="key", compares_payload=True), ["send op-a1 2"])],
)
def test_what_did_not_become_visible_in_time_is_unknown_and_never_confirmed(contract, leaves):
    unseen = operation(State.ACCEPTED, looks=1, looked_at=SENT_AT + 12.0, looked="NotYet")
    decided = lap(unseen, contract=contract, now=SENT_AT + 12.0)
    assert events(decided)[0] == "op-a1 lag_over"
    assert commands(decided) == leaves
    assert decided.operations["op-a1"].state in {State.UNKNOWN, State.RESENT}
    assert decided.changes.frees == ()


@pytest.mark.req("S4-32")
def test_what_is_read_back_is_confirmed():
    there = looked(Found(result={"id": "R1"}), question=Question.READ_BACK)
    decided = lap(operation(State.ACCEPTED), contract=READ_BACK, arrivals=(there,))
    assert decided.operations["op-a1"].state is State.CONFIRMED


# What else arrives.


def test_what_the_caller_was_told_is_written_once():
    told = Told(operation="op-a1", state="unknown")
    first = lap(UNKNOWN, contract=BARE, arrivals=(told,))
    assert events(first) == ["op-a1 told"]
    assert first.operations["op-a1"].told == "unknown"
    assert not lap(*first.operations.values(), contract=BARE, arrivals=(told,)).changes


@pytest.mark.parametrize("state", [State.CONFIRMED, State.FAILED, State.WITHDRAWN])
def test_what_is_settled_needs_no_note_of_what_was_told(state):
    assert not lap(operation(state), arrivals=(Told(operation="op-a1", state="x"),)).changes


@pytest.mark.parametrize(
    ("state", "written"), [(State.RECORDED, ["op-a1 withdrawn"]), (State.SENT, [])]
)
def test_only_what_was_not_sent_can_be_taken_back(state, written):
    arrivals = (Withdraw(operation="op-a1", reason="this process ends"),)
    assert events(lap(operation(state), arrivals=arrivals, running=IN_FLIGHT)) == written


def test_a_late_yes_to_what_failed_is_written_beside_it_and_put_before_a_person():
    decided = lap(operation(State.FAILED), arrivals=(replied(YES),))
    case = "case/contradicted/reserve_table/op-a1"
    assert events(decided) == ["op-a1 contradicted", f"{case} case_opened"]
    assert (decided.changes.frees, decided.changes.takes) == ((), ())


def test_a_reply_that_says_nothing_new_writes_nothing():
    assert not lap(operation(State.CONFIRMED), arrivals=(replied(YES),)).changes


@pytest.mark.parametrize(
    "outcome", [NotYet(reason="still running"), NoAnswer(reason="timed out"), Absent()]
)
def test_a_look_that_settles_nothing_is_not_asked_again_at_once(outcome):
    back = looked(outcome, asked_at=SOON)
    decided = lap(UNKNOWN, contract=LOOKUP_ONLY, arrivals=(back,), now=back.at)
    assert events(decided) == ["op-a1 looked"]
    assert decided.commands == ()
    assert decided.wakes == {"op-a1": back.at + PAUSES_S[1]}


@pytest.mark.parametrize(
    ("worker", "sends"), [("w1", ["send op-a1 1"]), ("w2", []), ("", ["send op-a1 1"])]
)
def test_only_the_worker_that_holds_an_operation_acts_on_it(worker, sends):
    assert commands(lap(operation(State.RECORDED), worker=worker)) == sends


# The rules are a value.


def test_the_rules_are_asked_and_nothing_else_decides():
    from_nowhere = Rules(absorb=lambda _op, _contract, _back: None)
    assert not lap(SENT, arrivals=(replied(YES),), running=IN_FLIGHT, rules=from_nowhere).changes


def test_a_lap_changes_nothing_that_it_was_given():
    given = {"op-a1": SENT, "op-a2": another("op-a2", operation(blocked_by="op-a1"))}
    before = dict(given)
    view = scope(*given.values(), contract=CLOSE_ONLY, arrivals=(replied(YES),))
    decided = what_next(view, RULES, SOON)
    assert what_next(view, RULES, SOON) == decided
    assert given == view.operations == before


# Who only writes down what was said.


def test_without_tools_what_arrived_is_written_down_and_nothing_is_begun():
    said = scope(SENT, arrivals=(replied(AnswerLost(reason="the line is dead")),))
    assert events(what_next(said, RULES, SOON)) == ["op-a1 answer_lost"]
    decided = what_was_said(said, RULES, SOON)
    assert (events(decided), commands(decided)) == (["op-a1 answer_lost"], [])
    idle = scope(NEW)
    assert commands(what_next(idle, RULES, SOON)) == ["send op-a1 1"]
    assert (events(what_was_said(idle, RULES, SOON)), decided.commands) == ([], ())
