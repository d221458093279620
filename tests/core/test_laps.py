"""Many laps over random arrivals, lost answers, crashes and clocks: what is true of every one."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.absorb import Looked, Question, Replied
from landed.core.arrival import (
    Arrival,
    AskedAgain,
    LetGo,
    LookNow,
    Proposed,
    Told,
    Withdraw,
)
from landed.core.changes import Kind, Stored, apply
from landed.core.contract import Contract, Interrupt
from landed.core.next import what_next
from landed.core.operation import MOVES, STATES, Happened, Operation, State
from landed.core.operation_record import from_record
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
from landed.core.rules import RULES
from landed.core.scope import Asking, Next, Put, Scope, Send, Sending
from tests.core.build import (
    BARE,
    CLOSE_ONLY,
    DIGEST,
    FULL,
    LOOKUP_ONLY,
    READ_BACK,
    RESENDABLE,
    SENT_AT,
    operation,
)

IDS = ("op-a1", "op-a2", "op-a3")
NAMES = (("table",), ("table", "chair"), ("chair",))

CONTRACTS = [
    BARE,
    LOOKUP_ONLY,
    CLOSE_ONLY,
    RESENDABLE,
    FULL,
    READ_BACK,
    replace(FULL, read_back=True, settlement_lag_s=2.0, retention_s=100.0),
    replace(FULL, refuses_after_s=5.0, max_tries=2, on_interrupt=Interrupt.FINISH),
    replace(LOOKUP_ONLY, refuses_after_s=5.0, on_interrupt=Interrupt.WAIT, wait_s=2.0),
    replace(BARE, assume_after_s=3.0),
]
# Ten of each, by the digits of an act; what leaves doubt comes more often.
LOST = AnswerLost(reason="timed out")
REPLIES: list[SendOutcome] = [
    *(LOST, LOST, LOST, LOST),
    *(Acknowledged(result={"id": "R1"}), Acknowledged(result=None, complete=False)),
    *(Refused(reason="full"), Refused(reason="closed")),
    *(NotSent(reason="no route"), NotSent(reason="no name")),
]
SILENT = NoAnswer(reason="timed out")
ANSWERS: list[LookOutcome] = [
    *(Absent(), Absent(), Absent(), Absent(position=3)),
    *(Found(result={"id": "R1"}), Found(result={"id": "R1"}, position=4)),
    *(NotYet(), NotYet(), SILENT, SILENT),
]
PAUSES_S = [0.1, 0.3, 0.5, 1.0, 1.0, 2.0, 3.0, 6.0, 15.0, 950.0]


@dataclass
class Walk:
    """One session: its store, its operations as stored, and what this process waits for."""

    contract: Contract
    now: float = SENT_AT
    store: Stored = field(default_factory=Stored)
    operations: dict[str, Operation] = field(default_factory=dict)
    sends: list[Sending] = field(default_factory=list)
    puts: list[tuple[Operation, Question, float]] = field(default_factory=list)
    running: set[Sending | Asking] = field(default_factory=set)


@dataclass(frozen=True)
class Lap:
    """One lap: what there was, what was decided, and what a store held after it."""

    before: dict[str, Operation]
    decided: Next
    after: dict[str, Operation]
    store: Stored
    contract: Contract
    now: float


Act = tuple[str, int, int]

# What happens next: the more often it is named, the more often it happens.
KINDS = (
    *("reply", "answer", "wait") * 4,
    *("propose", "propose", "let_go", "again", "look", "told", "withdraw", "crash"),
)


def _walk(seed: int) -> tuple[Contract, list[Act]]:
    """A contract and a program, from a seed: long programs of much variety, quickly drawn."""
    chance = Random(seed)
    program = [
        (chance.choice(KINDS), chance.randrange(10), chance.randrange(10)) for _ in range(40)
    ]
    return chance.choice(CONTRACTS), [("propose", 0, 1), *program]


walks = st.integers(0, 2**32).map(_walk)


def laps(walk: tuple[Contract, list[Act]]) -> Iterator[Lap]:
    """Run a program, one lap after each act."""
    contract, program = walk
    state = Walk(contract=contract)
    for act in program:
        arrivals = tuple(_arrivals(state, act))
        before = dict(state.operations)
        scope = Scope(
            operations=before,
            contracts={DIGEST: contract},
            arrivals=arrivals,
            running=frozenset(state.running),
        )
        decided = what_next(scope, RULES, state.now)
        state.store, records = apply(state.store, decided.changes)
        state.operations = dict(decided.operations)
        state.operations |= {
            each.id: from_record(each) for each in records if each.kind is Kind.OPERATION
        }
        _start(state, decided)
        yield Lap(before, decided, state.operations, state.store, contract, state.now)


def _arrivals(state: Walk, act: Act) -> Iterator[Arrival]:
    kind, which, choice = act
    id = IDS[which % len(IDS)]
    match kind:
        case "propose" if id not in state.operations:
            names = NAMES[choice % len(NAMES)]
            made = operation(id=id, key=id, names=names, version=1, epoch=0, send_by=SENT_AT + 60)
            yield Proposed(operation=made, ask_name=f"ask/{id}")
        case "reply" if state.sends:
            yield _reply(state, which, choice)
        case "answer" if state.puts:
            yield _answer(state, which, choice)
        case "wait":
            state.now += PAUSES_S[choice]
        case "crash":
            state.running.clear()
            state.sends.clear()
            state.puts.clear()
        case _ if id in state.operations:
            yield from _said(kind, state, id)


def _reply(state: Walk, which: int, choice: int) -> Replied:
    """A reply to any send of this process, also one that it no longer waits for, also twice."""
    sending = state.sends[which % len(state.sends)]
    state.running.discard(sending)
    outcome = REPLIES[choice]
    return Replied(
        operation=sending.operation, attempt=sending.attempt, outcome=outcome, at=state.now
    )


def _answer(state: Walk, which: int, choice: int) -> Looked:
    op, question, asked_at = state.puts.pop(which % len(state.puts))
    state.running.discard(Asking(operation=op.id))
    return Looked(
        operation=op.id,
        question=question,
        attempt=op.tries,
        outcome=ANSWERS[choice],
        asked_at=asked_at,
        at=state.now,
    )


def _said(kind: str, state: Walk, id: str) -> Iterator[Arrival]:
    match kind:
        case "let_go":
            yield LetGo(operation=id, reason="changed their mind", at=state.now)
        case "again":
            yield AskedAgain(operation=id)
        case "look":
            yield LookNow(operation=id)
        case "told":
            yield Told(operation=id, state=state.operations[id].state)
        case "withdraw":
            yield Withdraw(operation=id, reason="this process ends")


def _start(state: Walk, decided: Next) -> None:
    for each in decided.commands:
        match each:
            case Send(operation=op):
                sending = Sending(operation=op.id, attempt=op.tries)
                state.sends.append(sending)
                state.running.add(sending)
            case Put(operation=op, question=question):
                state.puts.append((op, question, state.now))
                state.running.add(Asking(operation=op.id))


def _sent(lap: Lap) -> list[Operation]:
    return [each.operation for each in lap.decided.commands if isinstance(each, Send)]


def _steps(lap: Lap) -> Iterator[tuple[Operation | None, Happened, Operation]]:
    """Every move of a lap, with the operation before and after it."""
    held: dict[str, Any] = dict(lap.before)
    for move in lap.decided.changes.moves:
        if move.after.kind is not Kind.OPERATION:
            continue
        after = from_record(move.after)
        yield held.get(after.id), Happened(move.event.name), after
        held[after.id] = after


def test_the_walks_come_to_every_state_and_to_most_moves():
    moves = {
        (before.state, event)
        for seed in range(200)
        for lap in laps(_walk(seed))
        for before, event, _ in _steps(lap)
        if before is not None
    }
    assert {MOVES[state][event] for state, event in moves} == set(State)
    assert len(moves) >= 40


# What is true of every lap.


@given(walks)
def test_nothing_leaves_that_the_same_unit_does_not_record_as_sent(walk):
    for lap in laps(walk):
        recorded = {
            (move.after.id, move.after.changing["tries"])
            for move in lap.decided.changes.moves
            if move.event.name in {Happened.SENT, Happened.RESENT}
        }
        assert {(op.id, op.tries) for op in _sent(lap)} == recorded


@pytest.mark.req("S4-06")
@given(walks)
def test_every_move_is_one_of_the_table_and_counts_one_version(walk):
    for lap in laps(walk):
        for before, event, after in _steps(lap):
            if before is None:
                assert (event, after.state, after.version) == (Happened.MADE, State.RECORDED, 1)
            else:
                assert after.state is MOVES[before.state][event]
                assert after.version == before.version + 1


@given(walks)
def test_the_scope_after_a_lap_is_what_a_store_reads_back(walk):
    for lap in laps(walk):
        for id, op in lap.decided.operations.items():
            held = lap.after[id]
            assert replace(held, epoch=op.epoch, blocked_by=op.blocked_by) == op


@given(walks)
def test_the_names_taken_are_those_of_the_operations_that_hold(walk):
    for lap in laps(walk):
        holds = {name: op.id for op in lap.after.values() if op.holds for name in op.names}
        asks = {f"ask/{id}": id for id in lap.after}
        assert lap.store.names == holds | asks


@given(walks)
def test_no_operation_is_sent_while_another_holds_a_name_that_it_needs(walk):
    for lap in laps(walk):
        for op in _sent(lap):
            others = [each for each in lap.after.values() if each.holds and each.id != op.id]
            assert not {name for each in others for name in each.names} & set(op.names)


@given(walks)
def test_what_is_blocked_says_by_whom_and_is_not_sent(walk):
    for lap in laps(walk):
        for op in lap.after.values():
            if op.blocked_by:
                assert op.state in {State.RECORDED, State.WITHDRAWN}
                assert op.blocked_by in lap.after


@pytest.mark.req("S0-29", "S4-03")
@given(walks)
def test_every_send_of_an_operation_carries_its_own_key(walk):
    for lap in laps(walk):
        for op in _sent(lap):
            assert op.key == op.id == lap.store.records[op.id].frozen["key"]


@pytest.mark.req("S4-37")
@given(walks)
def test_nothing_is_sent_that_nobody_wants_or_whose_time_or_key_is_over(walk):
    for lap in laps(walk):
        for op in _sent(lap):
            assert op.wanted
            assert lap.now < op.send_by
            assert not op.closing
            assert not op.resend_refused
            assert op.tries <= lap.contract.max_tries


@pytest.mark.req("S4-12", "K9")
@given(walks)
def test_what_may_have_left_is_sent_again_only_where_the_service_compares_keys(walk):
    for lap in laps(walk):
        for _, event, _ in _steps(lap):
            if event is Happened.RESENT:
                assert lap.contract.resendable


@pytest.mark.req("S0-19", "S4-22", "S4-52")
@given(walks)
def test_no_operation_is_settled_or_given_up_without_evidence_for_it(walk):
    for lap in laps(walk):
        for before, event, after in _steps(lap):
            if before is None or after.state is before.state or STATES[after.state].open:
                continue
            assert after.evidence[-1] not in before.evidence, event
            assert after.evidence[-1].says


@given(walks)
def test_what_is_settled_stays_as_it_was(walk):
    for lap in laps(walk):
        for before, _, after in _steps(lap):
            if before is not None and before.final:
                assert (after.state, after.result) == (before.state, before.result)
                assert after.settled_at == before.settled_at


@given(walks)
def test_a_lap_comes_back_later_and_only_for_what_is_not_settled(walk):
    for lap in laps(walk):
        for id, at in lap.decided.wakes.items():
            assert at > lap.now
            assert not lap.after[id].final


@given(walks)
def test_a_second_lap_at_the_same_moment_starts_nothing(walk):
    for lap in laps(walk):
        waits = {Sending(operation=op.id, attempt=op.tries) for op in lap.after.values()}
        asks = {Asking(operation=id) for id in lap.after}
        scope = Scope(
            operations=lap.after,
            contracts={DIGEST: lap.contract},
            running=frozenset(waits | asks),
        )
        assert what_next(scope, RULES, lap.now).commands == ()
