"""What is left of each kind of record, and that what is left still reads as what it was."""

import json
from dataclasses import replace

import pytest

from landed.core.case import about, case_from, case_record
from landed.core.changes import Kind, Move, Record
from landed.core.erased import MARK, erased, erased_arguments, erased_on, is_same
from landed.core.erasing import ERASABLE, WHY_MAX, Erasure, erasing, erasure_in
from landed.core.event import Event
from landed.core.journal import Entry, as_of, bodies, body_digest, body_of
from landed.core.key import Ask
from landed.core.operation import Evidence, Source, State
from landed.core.operation_record import from_record, to_record
from landed.core.plan import At, Place, plan_from, plan_record
from landed.core.preview import Changed, Preview
from landed.core.question import About, Question, question_from, question_record
from landed.core.sentences import held, to_model, to_person
from landed.core.session import Observation, observation_of, observing, saying
from landed.core.telling import summaries
from landed.core.undo import can_undo, made_by
from tests.core.build import FULL as CONTRACT
from tests.core.build import operation
from tests.core.conversation import RESERVE, book, wanting

ERASURE = Erasure(by="ana", why="she asked", at=86_400.0)
DAY = "1970-01-02"
SECRET = "4111-1111"
GONE = {MARK: {"on": DAY}}


def left_of(record: Record) -> Record:
    move = erasing(record, ERASURE)
    assert move is not None
    assert SECRET not in body_of(move).decode()
    frozen, changing = bodies(body_of(move), None)
    return replace(move.after, frozen=frozen, changing=changing)


# The mark.


def test_a_value_is_replaced_by_one_that_says_so() -> None:
    assert erased("words", at=86_400.0) == f"(erased on {DAY})"
    for value in ({"a": 1}, ["a"], 5, False, {}, []):
        assert erased(value, at=86_400.0) == GONE
    assert erased_on(GONE) == DAY


@pytest.mark.parametrize("value", [None, "", GONE, f"(erased on {DAY})"])
def test_what_is_empty_or_erased_already_stays(value: object) -> None:
    assert erased(value, at=9e9) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        {MARK: {"on": DAY}, "to": SECRET},
        {MARK: {"on": DAY, "to": SECRET}},
        {MARK: {"on": DAY, "digest": SECRET}},
        {MARK: {"on": SECRET}},
        {MARK: {}},
        {MARK: SECRET},
        {"to": SECRET},
        [MARK],
        MARK,
    ],
)
def test_what_only_looks_erased_is_erased(value: object) -> None:
    assert erased_on(value) == ""  # type: ignore[arg-type]
    assert SECRET not in json.dumps(erased(value, at=86_400.0))  # type: ignore[arg-type]


def test_arguments_are_known_again_by_their_digest() -> None:
    gone = erased_arguments({"to": SECRET, "n": 1}, at=86_400.0)
    assert isinstance(gone, dict)
    assert SECRET not in json.dumps(gone)
    assert erased_arguments(gone, at=9e9) == gone
    assert is_same(gone, {"n": 1, "to": SECRET})
    assert not is_same(gone, {"n": 2, "to": SECRET})
    assert is_same({"n": 1}, {"n": 1})
    assert not is_same({"n": 1}, {"n": 2})


# Kinds.


def test_approvals_turns_and_contracts_hold_no_details() -> None:
    whole = {Kind.APPROVAL, Kind.TURN, Kind.CONTRACT}
    assert not whole & ERASABLE
    for kind in whole:
        assert erasing(replace(to_record(operation()), kind=kind), ERASURE) is None


def test_an_operation_keeps_what_an_audit_rests_on() -> None:
    whole = replace(
        operation(),
        arguments={"to": SECRET},
        names=(f"target/default/{SECRET}",),
        state=State.CONFIRMED,
        result={"id": SECRET},
        prepared={"signed": SECRET},
        settled_at=5.0,
        evidence=(Evidence(source=Source.PERSON, at=5.0, says=SECRET, position=7, by="bob"),),
    )
    left = from_record(left_of(to_record(whole)))
    (seen,) = left.evidence
    assert (seen.source, seen.at, seen.position, seen.by) == (Source.PERSON, 5.0, 7, "bob")
    assert (left.id, left.key, left.state, left.ask) == (
        whole.id,
        whole.key,
        whole.state,
        whole.ask,
    )
    assert (left.result, left.prepared, left.names) == (GONE, None, ())
    assert made_by(left, CONTRACT) == f"(erased on {DAY})"
    for text in (to_model(left, CONTRACT), to_person(left, CONTRACT, language="es")):
        assert DAY in text
        assert SECRET not in text
    assert to_model(left, CONTRACT) == f"Done: {left.tool} (its details were erased on {DAY})."
    assert held(left, CONTRACT, language="es").endswith(f"(sus detalles se borraron el {DAY})")


def test_words_of_a_contract_are_not_said_of_what_is_gone() -> None:
    talks = replace(CONTRACT, says={"en": {"failed": "no mail to {to}: {why}"}})
    whole = replace(
        operation(),
        arguments={"to": SECRET},
        state=State.FAILED,
        evidence=(Evidence(source=Source.REPLY, at=5.0, says=SECRET),),
    )
    left = from_record(left_of(to_record(whole)))
    said = to_model(left, talks)
    assert said == f"It had no effect: {left.tool} (its details were erased on {DAY})."


def test_what_is_gone_cannot_be_taken_back() -> None:
    undoable = replace(CONTRACT, undo="cancel", undo_arguments={"to": "{to}"})
    whole = replace(operation(), arguments={"to": SECRET}, state=State.CONFIRMED)
    assert can_undo(whole, undoable, 1.0)
    assert not can_undo(from_record(left_of(to_record(whole))), undoable, 1.0)


def test_words_and_notes_go() -> None:
    said = saying(id="m", tenant="t", session="s", turn="T", text=SECRET, at=1.0).moves[0].after
    assert left_of(said).frozen["text"] == f"(erased on {DAY})"
    empty = saying(id="m", tenant="t", session="s", turn="T", text="", at=1.0).moves[0].after
    assert erasing(empty, ERASURE) is None
    case = about(operation(), why="contradicted", at=1.0)  # type: ignore[arg-type]
    noted = case_record(replace(case, says=SECRET, note=SECRET, by="bob", ruling="sign_off"))
    left = case_from(left_of(noted))
    assert (left.says, left.note, left.by) == (f"(erased on {DAY})",) * 2 + ("bob",)


def test_a_read_and_a_question_keep_who_and_when() -> None:
    seen = Observation(
        id="o",
        ask=Ask(principal="ana"),
        tool="look",
        contract="c",
        arguments={"to": SECRET},
        state="answered",
        result=SECRET,
        why="",
        at=1.0,
    )
    left = observation_of(left_of(observing(seen).moves[0].after))
    assert left == replace(seen, arguments=GONE, result=f"(erased on {DAY})")
    asked = Question(
        id="q",
        tenant="t",
        session="s",
        turn="T",
        principal="ana",
        about=About.PRICE,
        subject="release/op",
        text=SECRET,
        amount_cents=500,
        claim="",
        made_at=1.0,
        typed=(SECRET,),
    )
    gone = question_from(left_of(question_record(asked)))
    assert gone == replace(asked, text=f"(erased on {DAY})", typed=(), version=1)


def test_a_plan_keeps_its_hash_its_basis_and_where_its_steps_came_to() -> None:
    plan = wanting([book(SECRET), book("Sat")], {book().tool: RESERVE})
    preview = Preview(summary=SECRET, basis={"price": SECRET})
    places = (Place(at=At.DONE, record="op-1", made=SECRET), Place())
    changed = (Changed(step=1, field="price", was=SECRET, now=2),)
    whole = replace(
        plan, previews=(preview, preview), places=places, why=SECRET, changed=changed, version=2
    )
    left = plan_from(left_of(plan_record(whole)))
    assert (left.hash, left.basis) == (whole.hash, whole.basis)
    assert [(p.at, p.record) for p in left.places] == [(p.at, p.record) for p in places]
    assert (left.places[0].made, left.places[1].made) == (f"(erased on {DAY})", None)
    assert (left.previews, left.changed, left.why) == ((), (), f"(erased on {DAY})")
    said = f"{plan.steps[0].tool} (its details were erased on {DAY})"
    assert summaries(left) == (said, said)
    assert plan_from(left_of(plan_record(left))).hash == whole.hash


# The move.


def test_why_is_bounded_and_both_are_read_back() -> None:
    record = to_record(operation())
    move = erasing(record, replace(ERASURE, why="x" * 2000))
    assert move is not None
    told = erasure_in(entry_of(move))
    assert (told.by, told.why, told.at) == ("ana", "x" * WHY_MAX, 86_400.0)
    assert erasure_in(replace(entry_of(move), body=None)).by == ""


def test_a_record_reads_as_it_was_right_after_its_erasure() -> None:
    move = erasing(to_record(replace(operation(), result=SECRET)), ERASURE)
    assert move is not None
    then = as_of(move.after, entry_of(move))
    assert then.changing == move.after.changing
    assert move.after.version == 4


def entry_of(move: Move) -> Entry:
    body = body_of(move)
    event: Event = move.event
    return Entry(
        seq=9,
        id=event.record,
        version=move.after.version,
        before=1,
        event=event.name,
        state=move.after.state,
        at=event.at,
        body=body,
        body_digest=body_digest(body),
        prev="",
        hash="",
    )
