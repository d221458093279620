"""The audit of a plan is read from records and their journal alone, and says what was so then."""

import json
from collections import defaultdict
from dataclasses import replace

import pytest

from landed.core.approval import ApprovalEvent, Problem, Purpose
from landed.core.audit import audit
from landed.core.audit_rows import Audit
from landed.core.canonical import fingerprint
from landed.core.changes import Changes, Move
from landed.core.event import Event
from landed.core.journal import Entry, body_of
from landed.core.outcome import AnswerLost, Refused
from landed.core.plan import PlanEvent, PlanState
from landed.core.preview import Changed
from tests.core.conversation import wanting
from tests.core.plans import (
    ANSWER_S,
    DRAFT,
    ISSUE,
    OFFICE,
    WHOLE,
    Office,
    draft,
    find,
    issue,
    note,
    shown,
)

STEADY = {
    **OFFICE,
    "draft": replace(DRAFT, preview=True),
    "issue": replace(ISSUE, preview=True, permission="invoice.issue"),
}


def audited(
    office: Office, *, plan: str = "", erased: tuple[str, ...] = (), at: float | None = None
) -> Audit:
    """The audit of the latest plan; bodies of events named in `erased` are gone."""
    entries: dict[str, list[Entry]] = defaultdict(list)
    for seq, move in enumerate(office.moves, 1):
        entries[move.after.id].append(
            Entry(
                seq=seq,
                id=move.after.id,
                version=move.after.version,
                before=0,
                event=move.event.name,
                state=move.after.state,
                at=move.event.at,
                body=None if move.event.name in erased else body_of(move),
                body_digest="",
                prev="",
                hash="",
            )
        )
    records = [*office.store.records.values()]
    now = office.now if at is None else at
    record = office.store.records[plan or office.plan.id]
    return audit(record, records, entries, office.contracts, now=now)


def story(told: Audit) -> list[tuple[str, str]]:
    return [(row.event, row.actor) for row in told.events]


def statuses(told: Audit) -> list[tuple[int, int, str]]:
    return [(row.attempt, row.step, row.status) for row in told.steps]


@pytest.mark.req("S1-59", "S1-65")
def test_a_second_attempt_shows_what_the_first_did_as_replayed_and_without_effects() -> None:
    office = Office()
    office.run(*WHOLE)
    office.carried_out("D1", Refused(reason="series closed"))
    office.press(token="", purpose=Purpose.RETRY)
    office.carried_out("F1", "M1")
    told = audited(office)
    assert statuses(told) == [
        (1, 1, "done"),
        (1, 2, "failed"),
        (1, 3, "not done"),
        (2, 1, "replayed"),
        (2, 2, "done"),
        (2, 3, "done"),
    ]
    effects = [[(effect.type, effect.id) for effect in row.effects] for row in told.steps]
    assert effects == [[("draft", "D1")], [], [], [], [("invoice", "F1")], [("mail", "M1")]]
    assert [row.operation for row in told.steps] == ["op-1", "op-2", "", "op-1", "op-3", "op-4"]
    assert told.steps[4].arguments == {"draft": "D1"}
    assert told.steps[1].reason == "the service refused: series closed"
    assert [each.event for each in told.events] == [
        "proposed",
        "approved",
        "broke off",
        "offered",
        "retried",
        "approved",
        "finished",
    ]


# Of the problems, those that a yes cannot have.
NO_YES = frozenset({"", "absent", "fingerprint", "not_agreed"})


@pytest.mark.req("S1-62")
@pytest.mark.parametrize("reason", [each for each in Problem if each not in NO_YES])
def test_each_reason_for_which_a_yes_is_not_taken_is_in_a_row(reason: Problem) -> None:
    office = Office()
    match reason:
        case Problem.TAMPERED:
            office.propose(issue("D1"), hash="sha256:of-something-else")
            office.press()
        case Problem.MISMATCH:
            office.propose(issue("D1"))
            office.press(principal="mallory")
        case Problem.USED:
            office.run(issue("D1"))
            office.press()
        case Problem.DECLINED:
            office.propose(issue("D1"))
            office.press(yes=False)
            office.press()
        case Problem.EXPIRED:
            office.propose(issue("D1"))
            office.now += ANSWER_S
            office.press()
        case Problem.OVER:
            office.propose(issue("D1"))
            office.tell(PlanEvent.ABANDONED)
            office.press()
    (row,) = [row for row in audited(office).events if row.event == "rejected"]
    who = "mallory" if reason is Problem.MISMATCH else "ann"
    assert (row.reason, row.actor, row.purpose) == (reason, who, "confirm")


@pytest.mark.field("C20")
def test_an_expiry_is_the_clocks_and_other_words_are_the_persons() -> None:
    office = Office()
    office.propose(issue("D1"))
    assert story(audited(office)) == [("proposed", "ann")]
    late = audited(office, at=office.now + ANSWER_S)
    assert story(late) == [("proposed", "ann"), ("expired", "clock")]
    assert (late.plan.state, late.events[-1].seq) == ("expired", 0)
    office.answer(None, said="what about the other one?")
    told = audited(office)
    assert story(told) == [("proposed", "ann"), ("expired", "ann")]
    assert told.events[-1].reason == "something else was answered"


def test_a_step_that_nobody_can_tell_about_is_unknown_until_somebody_can() -> None:
    office = Office()
    office.run(issue("D1"))
    assert statuses(audited(office)) == [(1, 1, "under way")]
    office.carried_out(AnswerLost(reason="no reply"))
    told = audited(office)
    assert (statuses(told), told.plan.state) == ([(1, 1, "unknown")], PlanState.IN_DOUBT)
    assert told.steps[0].effects == ()
    assert (told.events[-1].event, told.events[-1].actor) == ("in doubt", "runtime")


def test_a_stop_says_who_and_what_was_not_done() -> None:
    office = Office()
    office.run(*WHOLE)
    office.stop()
    office.carried_out("D1")
    told = audited(office)
    assert story(told)[-2:] == [("stop asked", "ann"), ("stopped", "runtime")]
    assert [row.status for row in told.steps] == ["done", "not done", "not done"]


def test_an_undo_names_what_took_each_step_back() -> None:
    office = Office()
    office.run(draft())
    office.carried_out("D1")
    office.offer(Purpose.UNDO, "undo")
    office.press("undo", purpose=Purpose.UNDO)
    assert audited(office).steps[0].undone_by == ""
    undo = office.release().undo
    office.lands(undo, "D1")
    told = audited(office)
    assert told.steps[0].undone_by == undo
    assert [row.event for row in told.events if row.purpose == "undo"] == ["offered", "approved"]
    assert story(told)[-1] == ("undone", "runtime")
    assert [yes.purpose for yes in told.authorised] == ["confirm", "undo"]
    assert told.authorised[1].question == told.authorised[1].asked == ""


@pytest.mark.req("S4-48")
def test_the_hash_is_over_the_bytes_that_are_shown() -> None:
    office = Office()
    office.run(*WHOLE, previews=shown(*WHOLE, rate=21))
    told = audited(office)
    assert fingerprint(json.loads(told.plan.shown), domain="plan") == told.plan.hash
    assert told.plan.hash == office.plan.hash == told.authorised[0].hash
    assert json.loads(told.plan.shown)[0]["preview"]["basis"] == {"rate": 21}


@pytest.mark.req("S1-59")
def test_what_was_asked_again_before_a_step_is_there_with_what_came_of_it() -> None:
    office = Office(tools=STEADY)
    office.run(draft(), issue("$1"), previews=shown(draft(), issue(), rate=21))
    assert [[(c.check, c.came) for c in row.checks] for row in audited(office).steps] == [
        [("basis", "not asked")],
        [("permission", "not asked"), ("basis", "not asked")],
    ]
    office.may()
    office.carried_out("D1")
    office.may(changed=[Changed(step=2, field="rate", was=21, now=10)])
    told = audited(office)
    assert [[(c.check, c.about, c.came) for c in row.checks] for row in told.steps] == [
        [("basis", "", "passed")],
        [("permission", "invoice.issue", "passed"), ("basis", "rate: 21 ▸ 10", "changed")],
    ]
    assert told.steps[1].status == "failed"
    assert told.steps[1].reason == "rate has changed"


def test_a_right_that_was_taken_away_is_a_check_that_was_refused() -> None:
    office = Office(tools=STEADY)
    office.run(issue("D1"), previews=shown(issue(), rate=21))
    office.may(refused="ann is not allowed invoice.issue")
    (row,) = audited(office).steps
    assert [(c.check, c.came) for c in row.checks] == [
        ("permission", "refused"),
        ("basis", "not asked"),
    ]
    assert (row.status, row.operation, row.reason) == (
        "failed",
        "",
        "ann is not allowed invoice.issue",
    )


def test_a_read_is_an_observation_and_has_no_effects() -> None:
    office = Office()
    office.run(find(), draft("$1"), issue("$2"))
    office.finds("C7")
    row = audited(office).steps[0]
    assert (row.status, row.operation, row.effects) == ("done", "", ())
    assert office.store.records[row.observation].state == "answered"
    assert row.evidence[0].says == "answered"


def test_what_was_kept_of_an_earlier_plan_is_not_its_own() -> None:
    office = Office()
    office.run(draft(), issue("$1"))
    office.carried_out("D1")
    first = office.plan.id
    office.tell(PlanEvent.STOP_ASKED)
    plan = office.plan
    kept = replace(plan.steps[0], keeps="op-1")
    again = wanting((draft(), issue("$1")), OFFICE, turn="T9", made_at=office.now)
    again = replace(again, steps=(kept, again.steps[1]), places=plan.places, supersedes=first)
    told = audited_of(office, replace(again, id="plan-kept", version=1))
    assert told.steps[0].status == "kept"
    assert (told.steps[0].operation, told.steps[0].effects, told.steps[0].sends) == ("op-1", (), 0)
    assert told.plan.supersedes == first


def audited_of(office: Office, plan: object) -> Audit:
    from landed.core.plan import Plan, plan_record

    assert isinstance(plan, Plan)
    event = Event(name=PlanEvent.PLANNED, record=plan.id, at=office.now)
    office.write(Changes(moves=(Move(after=plan_record(plan), event=event),)))
    return audited(office, plan=plan.id)


def test_what_needs_no_yes_says_so_and_a_plan_that_lacks_something_says_what() -> None:
    office = Office()
    safe = wanting((note(),), OFFICE, turn="T1", made_at=office.now, id="plan-safe")
    told = audited_of(office, replace(safe, version=1))
    assert (told.events[0].event, told.events[0].reason) == ("proposed", "it needs no yes")
    assert told.authorised == ()


def test_an_erased_event_leaves_its_place_and_its_time() -> None:
    office = Office()
    office.run(issue("D1"))
    office.carried_out("F1")
    office.press()
    told = audited(office, erased=("finished", ApprovalEvent.TAKEN, ApprovalEvent.REFUSED))
    gone = [(row.event, row.actor, row.reason) for row in told.events if not row.actor]
    said = "what was written then was erased"
    assert gone == [("approved", "", said), ("finished", "", said), ("rejected", "", said)]
    assert (told.authorised[0].by, told.authorised[0].at) == ("", 0.0)
    assert told.steps[0].status == "done"


@pytest.mark.req("S1-62")
def test_who_presents_a_yes_again_is_not_who_gave_it() -> None:
    office = Office()
    office.run(issue("D1"))
    office.press(principal="mallory")
    told = audited(office)
    assert [(yes.by, yes.said) for yes in told.authorised] == [("ann", "yes")]
    assert ("rejected", "mallory") in story(told)


def test_an_abandoned_plan_without_a_name_was_the_agents() -> None:
    office = Office()
    office.propose(issue("D1"))
    office.tell(PlanEvent.ABANDONED, by="")
    assert story(audited(office)) == [("proposed", "ann"), ("abandoned", "agent")]


def test_a_lapsed_retry_is_told_and_is_nobodys_no() -> None:
    office = Office()
    office.run(draft(), issue("$1"))
    office.carried_out("D1", Refused(reason="series closed"))
    office.answer(None, said="and mail it, too")
    rows = [(row.event, row.actor) for row in audited(office).events if row.purpose == "retry"]
    assert rows == [("offered", "runtime"), ("lapsed", "ann")]
