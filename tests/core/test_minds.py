"""Random changes of mind, answers, crashes and late replies: what is true of every conversation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landed.core.changes import Move
from landed.core.contract import Contract, Interrupt, Order, WhileUnknown
from landed.core.operation import Operation, State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
    SendOutcome,
)
from landed.core.plan import At, PlanState, Wanted
from landed.core.question import QuestionState
from landed.core.scope import Asking, Pricing, Send, Sending, Watching
from landed.core.undo import ENDED, ReleaseState, release_id
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

DEAF: dict[str, Any] = {"keyed": "", "compares_payload": False, "lookup": False, "close": False}
RESERVES: list[Contract] = [
    RESERVE,
    PRICED,
    replace(RESERVE, **DEAF),
    replace(RESERVE, **DEAF, while_unknown=WhileUnknown.REPLACE),
    replace(PRICED, on_interrupt=Interrupt.FINISH),
    replace(RESERVE, on_interrupt=Interrupt.WAIT, wait_s=2.0, refuses_after_s=5.0),
    replace(RESERVE, order=Order.RELEASE_FIRST, order_why="two holds cost twice"),
    replace(PRICED, order=Order.RELEASE_FIRST, order_why="two holds cost twice"),
    replace(RESERVE, identity=("day",), undo_within_s=60.0),
]
CANCELS: list[Contract] = [CANCEL, replace(CANCEL, **DEAF), replace(CANCEL, max_tries=1)]
TEXTS: list[Contract] = [TEXT, replace(TEXT, correct_arguments={"text": "Change of plan: {text}"})]

LOST = AnswerLost(reason="timed out")
SEEN = Acknowledged(result={})
READS: list[SendOutcome] = [SEEN, SEEN, LOST]
PRICES: list[SendOutcome | int] = [0, 0, 2000, 3000, LOST]
DAYS = ["Fri", "Sat", "Sun"]

# What happens next: the more often it is named, the more often it happens.
KINDS = (
    *("reply", "reply", "look", "look", "read", "price", "wait", "wait", "answer") * 2,
    *("revise", "crash", "late"),
)


@dataclass(frozen=True)
class Lap:
    """One lap: the conversation after it, and what was there before it."""

    talk: Conversation
    before: dict[str, Operation]

    @property
    def sends(self) -> list[Operation]:
        return [each.operation for each in self.talk.decided.commands if isinstance(each, Send)]

    @property
    def moves(self) -> tuple[Move, ...]:
        return self.talk.decided.changes.moves


def _conversation(chance: Random) -> Conversation:
    picked = {
        "reserve": chance.choice(RESERVES),
        "cancel": chance.choice(CANCELS),
        "text": chance.choice(TEXTS),
    }
    return Conversation(tools={**TOOLS, **picked})


def _calls(chance: Random) -> list[Wanted]:
    """One to three calls, of tools with different promises."""
    calls = [
        chance.choice((check, book, book, text))(chance.choice(DAYS))
        for _ in range(chance.randrange(1, 4))
    ]
    return [*{str(each): each for each in calls}.values()]


def _sent(chance: Random, op: Operation) -> SendOutcome:
    made = Acknowledged(result={"id": f"R-{op.id}"})
    same = Acknowledged(result={"id": "R-1"})
    outcomes: list[SendOutcome] = [made, made, made, same, LOST, LOST]
    return chance.choice([*outcomes, Refused(reason="no"), NotSent(reason="no route")])


def _looked(chance: Random, op: Operation) -> LookOutcome:
    found = Found(result={"id": f"R-{op.id}"})
    outcomes: list[LookOutcome] = [found, found, Absent(), Absent(), NotYet()]
    return chance.choice([*outcomes, NoAnswer(reason="lost")])


def _act(chance: Random, talk: Conversation, kind: str) -> None:
    """Have one thing happen, if it can."""
    match kind:
        case "crash":
            talk.crash()
        case "wait":
            talk.lap(after_s=chance.choice([0.1, 0.5, 2.0, 6.0, 30.0, 950.0]))
        case _:
            _hear(chance, talk, kind)


def _hear(chance: Random, talk: Conversation, kind: str) -> None:
    """Have something come back, if something is out, or the person answer."""
    match kind:
        case "reply" if sends := _running(talk, Sending):
            sending = chance.choice(sends)
            op = talk.operations[sending.operation]
            talk.reply(op.id, _sent(chance, op), attempt=sending.attempt)
        case "late" if late := [o for o in talk.operations.values() if o.tries and not o.final]:
            op = chance.choice(late)
            attempt = chance.randrange(1, op.tries + 1)
            talk.reply(op.id, Acknowledged(result={"id": f"R-{op.id}"}), attempt=attempt)
        case "look" if asks := _running(talk, Asking):
            op = talk.operations[chance.choice(asks).operation]
            talk.look(op.id, _looked(chance, op))
        case "read" if _running(talk, Watching):
            talk.see(chance.choice(READS))
        case "price" if prices := _running(talk, Pricing):
            id = chance.choice(prices).release.removeprefix("release/")
            talk.price(chance.choice(PRICES), operation=id)
        case "answer" if opened := _open(talk):
            said = chance.choice(["", "so they said"])
            yes = chance.choice([True, True, False, None])
            talk.answer(yes, question=chance.choice(opened), said=said)
        case _:
            talk.lap()


def _running(talk: Conversation, kind: type) -> list:
    return sorted((each for each in talk.running if isinstance(each, kind)), key=str)


def _open(talk: Conversation) -> list[str]:
    return [id for id, q in talk.questions.items() if q.state is QuestionState.OPEN]


def _revise(chance: Random, talk: Conversation) -> None:
    mine = [o.id for o in talk.operations.values() if o.turn == talk.plan.turn and not o.undoes]
    drop = [id for id in mine if chance.random() < 0.2]
    talk.revise(*_calls(chance), drop=drop, origin=chance.choice(["user", "user", "timer"]))


def conversation(seed: int, *, revisions: int = 3) -> Iterator[Lap]:
    """Play one random conversation, and at its end let it come to rest."""
    chance = Random(seed)
    talk = _conversation(chance)
    before: dict[str, Operation] = {}
    talk.ask(*_calls(chance))
    yield Lap(talk, before)
    for _ in range(25):
        kind = chance.choice(KINDS)
        before = talk.operations
        if kind == "revise" and revisions and talk.plan.state is not PlanState.DONE:
            revisions -= 1
            _revise(chance, talk)
        else:
            _act(chance, talk, kind)
        yield Lap(talk, before)
    yield from _to_rest(chance, talk)


def _to_rest(chance: Random, talk: Conversation) -> Iterator[Lap]:
    """Let everything that is out come back, and time pass, until nothing happens any more."""
    for _ in range(200):
        before, written = talk.operations, len(talk.moves)
        for kind in ("reply", "look", "read", "price"):
            if talk.running:
                _act(chance, talk, kind)
                yield Lap(talk, before)
                before = talk.operations
        talk.lap(after_s=60.0)
        yield Lap(talk, before)
        if not talk.running and len(talk.moves) == written and not talk.decided.wakes:
            return
    pytest.fail("it does not come to rest")


seeds = st.integers(0, 2**32)
EXAMPLES = max(40, settings().max_examples // 4)


def test_the_conversations_come_to_every_state_of_a_release_and_a_plan():
    releases, plans = set(), set()
    for seed in range(60):
        for lap in conversation(seed):
            releases |= {each.state for each in lap.talk.releases.values()}
            plans |= {each.state for each in lap.talk.plans.values()}
    assert releases == set(ReleaseState)
    # Nobody is asked about a plan here, nobody stops one, and none is taken back as a whole.
    assert plans == {
        PlanState.RUNNING,
        PlanState.IN_DOUBT,
        PlanState.DONE,
        PlanState.PARTIAL,
        PlanState.SUPERSEDED,
    }


# What is true of every lap.


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_nothing_with_an_effect_leaves_that_the_same_unit_does_not_record_as_sent(seed):
    for lap in conversation(seed):
        recorded = {
            (move.after.id, move.after.changing["tries"])
            for move in lap.moves
            if move.event.name in {"sent", "resent"}
        }
        assert {(op.id, op.tries) for op in lap.sends} == recorded


@pytest.mark.field("H1")
@settings(max_examples=EXAMPLES)
@given(seeds)
def test_no_operation_has_two_undos_that_may_both_have_an_effect(seed):
    for lap in conversation(seed):
        live = [
            op.undoes
            for op in lap.talk.operations.values()
            if op.undoes and op.state not in {State.FAILED, State.WITHDRAWN}
        ]
        assert len(live) == len(set(live))


@pytest.mark.req("S0-44")
@settings(max_examples=EXAMPLES)
@given(seeds)
def test_nothing_is_undone_before_what_replaces_it_is_confirmed(seed):
    for lap in conversation(seed):
        for release in _started(lap):
            old = lap.talk.operations[release.operation]
            assert old.state is State.CONFIRMED
            if not release.plan or lap.talk.contracts[old.contract].order is Order.RELEASE_FIRST:
                continue
            place = lap.talk.plans[release.plan].places[release.step]
            new = lap.talk.operations[place.record]
            assert (place.at, new.state) == (At.DONE, State.CONFIRMED)
            assert new.result != old.result


@pytest.mark.req("S0-47", "S0-49")
@settings(max_examples=EXAMPLES)
@given(seeds)
def test_nothing_is_undone_at_a_price_that_nobody_agreed_to(seed):
    for lap in conversation(seed):
        for release in _started(lap):
            cents = lap.talk.operations[release.undo].arguments.get("fee_cents", 0)
            if cents:
                agreed = lap.talk.questions[release.question]
                assert (agreed.state, agreed.amount_cents) == (QuestionState.YES, cents)


def _started(lap: Lap) -> list:
    """The releases whose undo this lap made."""
    news = [op for op in lap.talk.operations.values() if op.undoes and op.id not in lap.before]
    return [lap.talk.releases[release_id(op.undoes)] for op in news]


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_what_waits_for_a_person_has_an_open_question_that_speaks_of_it(seed):
    for lap in conversation(seed):
        for release in lap.talk.releases.values():
            if release.state in {ReleaseState.ASKED, ReleaseState.QUESTIONED}:
                asked = lap.talk.questions[release.question]
                assert (asked.state, asked.subject) == (QuestionState.OPEN, release.id)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_what_is_left_of_a_superseded_plan_is_never_started(seed):
    for lap in conversation(seed):
        for op in lap.sends:
            if op.plan and op.tries == 1 and op.id not in lap.before:
                assert lap.talk.plans[op.plan].state is not PlanState.SUPERSEDED


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_each_step_has_at_most_one_operation_that_may_have_an_effect(seed):
    for lap in conversation(seed):
        for plan in lap.talk.plans.values():
            mine = [op for op in lap.talk.operations.values() if op.plan == plan.id]
            live = [op for op in mine if op.state not in {State.FAILED, State.WITHDRAWN}]
            assert {op.id for op in live} <= {place.record for place in plan.places}


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_what_a_lap_decided_is_what_a_store_reads_back(seed):
    for lap in conversation(seed):
        talk = lap.talk
        for decided, held in (
            (talk.decided.plans, talk.plans),
            (talk.decided.releases, talk.releases),
            (talk.decided.questions, talk.questions),
        ):
            assert {id: replace(each, epoch=0) for id, each in decided.items()} == {
                id: replace(each, epoch=0) for id, each in held.items()
            }


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_a_second_lap_at_the_same_moment_writes_and_starts_nothing(seed):
    for lap in conversation(seed):
        talk = lap.talk
        after, running = talk.store, set(talk.running)
        assert talk.lap() == []
        assert (talk.leaves, talk.store) == ([], after)
        talk.running = running


# What is true at rest.


def _unsettled(talk: Conversation) -> list[str]:
    """The releases that are neither at their end nor in front of a person."""
    left = []
    for release in talk.releases.values():
        waits_for = [talk.operations[release.operation]]
        if release.undo:
            waits_for.append(talk.operations[release.undo])
        if release.plan:
            plan = talk.plans[release.plan]
            step = plan.steps[release.step]
            waits_for += [
                talk.operations[id]
                for id in (step.replaces, *(place.record for place in plan.places))
                if id in talk.operations
            ]
        person = any(op.state is State.UNDECIDED for op in waits_for) or release.state in {
            ReleaseState.ASKED,
            ReleaseState.QUESTIONED,
        }
        if release.state not in ENDED and not person:
            left.append(f"{release.id} {release.state}")
    return left


def _at_rest(seed: int, *, revisions: int) -> Conversation:
    *_, last = conversation(seed, revisions=revisions)
    return last.talk


@pytest.mark.fault("X06")
@settings(max_examples=EXAMPLES)
@given(seeds)
def test_after_one_change_of_mind_every_release_ends_or_is_before_a_person(seed):
    assert _unsettled(_at_rest(seed, revisions=1)) == []


@pytest.mark.fault("X06")
@settings(max_examples=2 * EXAMPLES)
@given(seeds)
def test_after_many_changes_of_mind_every_release_ends_or_is_before_a_person(seed):
    assert _unsettled(_at_rest(seed, revisions=4)) == []


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_at_rest_no_operation_is_open_but_for_what_is_blocked(seed):
    talk = _at_rest(seed, revisions=3)
    assert [op.id for op in talk.operations.values() if op.open and not op.blocked_by] == []


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_at_rest_a_plan_has_ended_or_waits_for_a_person(seed):
    talk = _at_rest(seed, revisions=3)
    person = [op.id for op in talk.operations.values() if op.state is State.UNDECIDED]
    person += [r.id for r in talk.releases.values() if r.state in {"asked", "questioned"}]
    assert person or not [plan.id for plan in talk.plans.values() if plan.open]
