"""Random lives of a plan: whatever people, services and crashes do, each step happens once at most.

A program is a list of things that happen. A small world stands behind the sends: what landed there
is what a look finds, so that what the records say can be held against what is so.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.absorb import Question as Put
from landed.core.approval import Purpose
from landed.core.arrival import LookNow
from landed.core.changes import Kind
from landed.core.contract import Interrupt
from landed.core.operation import Operation, State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotSent,
    Refused,
)
from landed.core.plan import OPEN, At, Plan, PlanEvent, PlanState, plan_from
from landed.core.preview import Changed
from landed.core.question import About, Question, QuestionState
from landed.core.scope import Asking, Checking, Pricing, Sending, Watching
from tests.core.plans import (
    ANSWER_S,
    DELETE,
    OFFICE,
    WHOLE,
    Office,
    draft,
    find,
    issue,
    note,
    shown,
)

TOOLS = {
    **OFFICE,
    "note": replace(OFFICE["note"], on_interrupt=Interrupt.FINISH),
    "issue": replace(OFFICE["issue"], permission="issue", preview=True),
    "delete": replace(DELETE, permission="delete"),
}
SAFE = (find(), draft("$1"), note("a"), note("b"))
FINAL = (draft(), issue("$1"), note("a"))
SHAPES = {
    "safe": (SAFE, False, False),
    "safe and independent": (SAFE, False, True),
    "final": (FINAL, True, False),
    "final and independent": (FINAL, True, True),
    "agreed to": ((*WHOLE[:1], note("a")), True, False),
}
RAN = frozenset({PlanState.DECLINED, PlanState.EXPIRED, PlanState.INVALID, PlanState.ABANDONED})
ROUNDS_MAX = 60
R = TypeVar("R")


@dataclass
class Life:
    """One plan, the world behind it, and what has been seen of both."""

    office: Office
    landed: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    seen: int = 0
    runs: dict[tuple[int, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    done: dict[int, str] = field(default_factory=dict)
    approved: bool = False
    stopped: bool = False

    @property
    def plan(self) -> Plan:
        return self.office.plans["plan-T1"]

    def out(self, kind: type[R]) -> list[R]:
        return [each for each in self.office.waiting if isinstance(each, kind)]

    def open_questions(self, *about: About) -> list[Question]:
        every = self.office.questions.values()
        return [q for q in every if q.state is QuestionState.OPEN and q.about in about]

    # The world.

    def arrives(self, operation: Operation) -> None:
        """A send is carried out there, unless its key is closed or was seen."""
        if operation.key not in self.closed:
            self.landed.add(operation.id)

    def is_known(self, operation: Operation, question: Put) -> LookOutcome:
        if question is Put.CLOSE:
            self.closed.add(operation.key)
        made = {"id": f"M-{operation.id}"}
        return Found(result=made) if operation.id in self.landed else Absent()


# What happens. Each does nothing where it cannot happen now.

Happens = Callable[[Life, int], object]


def sends(mode: str) -> Happens:
    def reply(life: Life, which: int) -> None:
        out = life.out(Sending)
        if not out:
            return
        sent = out[which % len(out)]
        operation = life.office.operations[sent.operation]
        match mode:
            case "yes":
                life.arrives(operation)
                there = operation.id in life.landed
                came = Acknowledged(result={"id": f"M-{operation.id}"})
                life.office.reply(operation.id, came if there else Refused(reason="closed"))
            case "no" if operation.id not in life.landed:
                life.office.reply(operation.id, Refused(reason="fully booked"))
            case "lost":
                life.arrives(operation)
                life.office.reply(operation.id, AnswerLost(reason="timed out"))
            case "lost on the way":
                life.office.reply(operation.id, AnswerLost(reason="timed out"))
            case "never left":
                life.office.reply(operation.id, NotSent(reason="no route"))

    return reply


def looks(life: Life, which: int) -> None:
    out = life.out(Asking)
    if out:
        operation = life.office.operations[out[which % len(out)].operation]
        question, _ = life.office.asked_at[operation.id]
        life.office.look(operation.id, life.is_known(operation, question))


def looks_in_vain(life: Life, which: int) -> None:
    out = life.out(Asking)
    if out:
        life.office.look(out[which % len(out)].operation, NoAnswer(reason="timed out"))


def reads(life: Life, which: int) -> None:
    if life.out(Watching):
        life.office.see(AnswerLost(reason="timed out")) if which % 4 == 0 else life.office.finds()


def checks(life: Life, which: int) -> None:
    if not life.out(Checking):
        return
    match which % 6:
        case 0:
            life.office.may(refused="not allowed any more")
        case 1:
            life.office.may(changed=(Changed(step=2, field="rate", was=21, now=10),))
        case _:
            life.office.may()


def says(yes: bool | None) -> Happens:
    """The person answers a question about the plan, in words."""

    def answer(life: Life, which: int) -> None:
        asked = life.open_questions(About.PLAN)
        if asked:
            question = asked[which % len(asked)].id
            life.office.answer(yes, question=question, said="so they said")

    return answer


def presses(life: Life, which: int) -> None:
    by = "ann" if which % 3 else "bob"
    purpose = (Purpose.CONFIRM, Purpose.RETRY, Purpose.UNDO)[which % 3]
    of = f"approval/plan-T1/{purpose}/{1 + which % 3}"
    if of in life.office.approvals:
        life.office.press("" if which % 2 else "tok", of=of, purpose=purpose, principal=by)


def decides(yes: bool) -> Happens:
    """The person answers a question about something that is to be taken back."""

    def answer(life: Life, which: int) -> None:
        asked = life.open_questions(About.KEPT, About.PRICE)
        if asked:
            life.office.answer(yes, question=asked[which % len(asked)].id)

    return answer


def offers(life: Life, which: int) -> None:
    life.office.offer((Purpose.RETRY, Purpose.UNDO)[which % 2], f"tok{life.seen}")


def waits(after_s: float) -> Happens:
    return lambda life, _: life.office.lap(after_s=after_s)


HAPPENS: Mapping[str, Happens] = {
    "yes": says(True),
    "no": says(False),
    "other words": says(None),
    "a button": presses,
    "an offer": offers,
    "lands": sends("yes"),
    "is refused": sends("no"),
    "answer lost": sends("lost"),
    "lost on the way": sends("lost on the way"),
    "never left": sends("never left"),
    "a look": looks,
    "a look in vain": looks_in_vain,
    "a read": reads,
    "a check": checks,
    "stop": lambda life, _: life.office.stop(),
    "hard stop": lambda life, _: life.office.stop(hard=True),
    "retry": lambda life, _: life.office.retry(),
    "undo": lambda life, _: life.office.undo(),
    "abandon": lambda life, _: life.office.tell(PlanEvent.ABANDONED),
    "take it back": decides(True),
    "keep it": decides(False),
    "a second": waits(1.0),
    "too long": waits(ANSWER_S),
    "a crash": lambda life, _: life.office.crash(),
}
# What a plan meets more often than the rest, so that programs get somewhere.
OFTEN = ("yes", "lands", "a look", "a read", "a check", "answer lost", "is refused", "undo")
programs = st.lists(
    st.tuples(st.sampled_from([*HAPPENS, *OFTEN, *OFTEN]), st.integers(0, 11)),
    min_size=5,
    max_size=40,
)


# What has to be so after each of them.


def watch(life: Life) -> None:
    """Look at what was written since the last time, move by move."""
    for move in life.office.moves[life.seen :]:
        if move.after.kind is Kind.PLAN and move.after.id == "plan-T1":
            _watch_plan(life, plan_from(move.after), move.event.name)
        elif move.after.kind is Kind.OPERATION:
            _watch_operation(life, move.after.id, move.event.name)
    life.seen = len(life.office.moves)


def _watch_plan(life: Life, plan: Plan, event: str) -> None:
    life.approved |= event == PlanEvent.APPROVED
    life.stopped |= event == PlanEvent.STOP_ASKED
    if life.runs:
        assert plan.state not in RAN, "a plan that ran ended as if it had not"
    for index, place in enumerate(plan.places):
        if index in life.done:
            assert place.at in (At.DONE, At.UNDONE), "what was done was begun anew"
            assert place.record == life.done[index]
        elif place.at is At.DONE:
            life.done[index] = place.record
        if place.at is At.OUT:
            life.runs[index, place.attempt].add(place.record)
            assert len(life.runs[index, place.attempt]) == 1, "a step was begun twice"


def _watch_operation(life: Life, id: str, event: str) -> None:
    operation = life.office.operations[id]
    if event not in ("made", "sent", "resent"):
        return
    if operation.undoes:
        _watch_undo(life, operation, event)
        return
    assert life.approved or not life.plan.answer_by, f"{event} before the yes"
    assert not life.stopped, f"{event} after the stop"


def _watch_undo(life: Life, operation: Operation, event: str) -> None:
    if event != "made" or life.plan.state is not PlanState.UNDOING:
        return
    records = [place.record for place in life.plan.places]
    after = life.plan.places[records.index(operation.undoes) + 1 :]
    steps = life.plan.steps[records.index(operation.undoes) + 1 :]
    still = [p for s, p in zip(steps, after, strict=True) if p.at is At.DONE and not s.reads]
    assert not still, "something was taken back before what was done after it"


def once(life: Life) -> None:
    """Hold the records against the world: each step has one effect there at most."""
    effects: dict[int, set[str]] = defaultdict(set)
    for (index, _), ids in life.runs.items():
        effects[index] |= ids & life.landed
    assert all(len(ids) <= 1 for ids in effects.values()), effects
    for operation in life.office.operations.values():
        if operation.state is State.CONFIRMED:
            assert operation.id in life.landed
        if operation.state in (State.FAILED, State.WITHDRAWN):
            assert operation.id not in life.landed


def born(shape: str) -> Life:
    calls, needs_yes, independent = SHAPES[shape]
    office = Office(tools=TOOLS)
    if needs_yes:
        office.propose(*calls, previews=shown(*calls, rate=21), independent=independent)
    else:
        office.ask(*calls, independent=independent)
    life = Life(office=office)
    watch(life)
    return life


def lived(shape: str, program: list[tuple[str, int]]) -> Life:
    life = born(shape)
    for name, which in program:
        HAPPENS[name](life, which)
        watch(life)
        once(life)
    return life


def answered(life: Life) -> None:
    """From now on the world answers: each send, look, read and check, and each person."""
    for _ in range(ROUNDS_MAX):
        if life.plan.state not in OPEN:
            return
        for happens in (sends("yes"), looks, reads, decides(False)):
            happens(life, 1)
        if life.out(Checking):
            life.office.may()
        for operation in life.office.operations.values():
            if operation.state is State.UNDECIDED:
                life.office.lap(LookNow(operation=operation.id))
        life.office.lap(after_s=60.0)
        watch(life)
    raise AssertionError(f"{life.plan.state} does not end: {life.plan}")


@pytest.mark.req("S1-39", "S1-40", "S1-49", "S1-52", "K7", "K21")
@pytest.mark.parametrize("shape", SHAPES)
@given(program=programs)
def test_whatever_happens_each_step_happens_once_at_most_and_every_open_state_ends(shape, program):
    life = lived(shape, program)
    answered(life)
    once(life)


def test_the_programs_come_to_every_state_of_a_plan_that_was_drawn_up():
    """So that what is said above of all of them is said of something."""
    missing = set(PlanState) - {PlanState.DRAFTED, PlanState.INVALID, PlanState.SUPERSEDED}
    for seed in range(400):
        for shape in SHAPES:
            missing -= _states_of(shape, seed)
        if not missing:
            return
    assert not missing


def _states_of(shape: str, seed: int) -> set[PlanState]:
    names = [*HAPPENS, *OFTEN, *OFTEN]
    chance = seed * 2654435761 + len(shape)
    life = born(shape)
    for _ in range(25):
        chance = (chance * 6364136223846793005 + 1442695040888963407) % 2**64
        HAPPENS[names[(chance >> 33) % len(names)]](life, (chance >> 20) % 12)
        watch(life)
    moves = (m.after for m in life.office.moves if m.after.id == "plan-T1")
    return {PlanState(record.state) for record in moves}


def test_no_read_and_no_price_is_left_out_of_what_is_waited_for():
    kinds = {Sending, Asking, Watching, Checking, Pricing}
    life = born("safe")
    assert {type(each) for each in life.office.waiting} <= kinds
    assert len(life.out(Watching)) == 1
