"""What each reply is an event of: the one place where a message from outside becomes evidence.

The rules worth knowing: a refusal settles a first send only; "nothing there" is a no only when
nothing can still arrive; a key that the service may have forgotten proves nothing by its absence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from landed.core.contract import Contract
from landed.core.operation import MOVES, Evidence, Happened, Operation, Source, State, moved
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    LookOutcome,
    NotSent,
    NotYet,
    Refused,
    SendOutcome,
)

# How much of a key's retention is trusted: the service's clock and ours need not agree.
RETENTION_TRUSTED = 0.9

# How many looks must have missed it before a find needs somebody's signature: a probe that fails
# three times and then passes, with nothing done in between, is a debt and not a recovery.
UNEXPLAINED_AFTER = 3


class Question(StrEnum):
    """What the service can be asked about an operation in doubt."""

    LOOKUP = "lookup"
    CLOSE = "close"
    READ_BACK = "read-back"
    RECEIPT = "receipt"  # Not asked for: the service says it by itself, in a webhook.


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The outcome of send number `attempt`; `at` is when it came back (UTC seconds)."""

    operation: str
    attempt: int
    outcome: SendOutcome
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The outcome of a question put at `asked_at`, after send number `attempt` (UTC seconds)."""

    operation: str
    question: Question
    attempt: int
    outcome: LookOutcome
    asked_at: float
    at: float


CameBack = Replied | Looked
Moved = tuple[Happened, Operation]


def absorb(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Return the event that `back` is, and the operation after it; None where it says nothing new.

    The operation is taken as it is *now*, which may be long after the send: a late reply settles
    the same operation, and one that contradicts what is settled is kept without rewriting it.
    """
    if operation.final:
        return _late(operation, contract, back)
    if isinstance(back, Looked):
        return _look(operation, contract, back)
    outcome = back.outcome
    if isinstance(outcome, Acknowledged):
        return _acknowledged(operation, contract, back, outcome)
    if isinstance(outcome, Refused):
        return _refused(operation, back, outcome)
    if isinstance(outcome, NotSent):
        return _not_sent(operation, contract, back, outcome)
    if not _awaited(operation, back):
        return None
    return _move(operation, Happened.ANSWER_LOST, back, outcome.reason)


def remembers(operation: Operation, contract: Contract, *, at: float) -> bool:
    """Whether the service surely still knows the operation's key at the time `at`."""
    if contract.retention_s is None:
        return True
    return at < operation.first_sent_at + contract.retention_s * RETENTION_TRUSTED


def nothing_can_arrive(operation: Operation, contract: Contract, *, at: float) -> bool:
    """Whether a look made at `at` is after all that the service may still take and show."""
    if contract.refuses_after_s is None:
        return False
    return at > operation.last_sent_at + contract.refuses_after_s + contract.settlement_lag_s


def _move(
    operation: Operation,
    event: Happened,
    back: CameBack,
    says: str,
    seen_at: int | None = None,
    **held: object,
) -> Moved:
    """Return the event and the operation after it; `seen_at` is the service's position."""
    evidence = Evidence(source=_source(back), at=back.at, says=says, position=seen_at)
    return event, moved(operation, event, at=back.at, evidence=evidence, **held)


def _source(back: CameBack) -> Source:
    if isinstance(back, Looked):
        return Source(back.question.value)
    outcome = back.outcome
    asked = isinstance(outcome, NotSent) and outcome.wait_s > 0
    heard = asked or isinstance(outcome, Acknowledged | Refused)
    return Source.REPLY if heard else Source.RUNTIME


def _is_receipt(contract: Contract, yes: Acknowledged) -> bool:
    """Whether a yes says only that the service took it."""
    return yes.accepted or contract.read_back


def _late(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """What was settled stays settled; that it landed after all is kept beside it."""
    if isinstance(back, Looked) and _is_older(operation, back):
        return None
    match back.outcome:
        case Acknowledged() as yes if not _is_receipt(contract, yes):
            landed_after_all = True
        case outcome:
            landed_after_all = isinstance(outcome, Found)
    never = _receipt_says_no(operation, contract, back) and operation.state is State.CONFIRMED
    against = never if operation.state is State.CONFIRMED else landed_after_all
    if not against or operation.contradicted:
        return None
    if Happened.CONTRADICTED not in MOVES[operation.state]:
        return None
    says = "it did not take effect after all" if never else "it took effect after all"
    says = f"{says}: this contradicts what was settled"
    return _move(operation, Happened.CONTRADICTED, back, says, contradicted=True)


# Replies to a send.


def _awaited(operation: Operation, back: Replied) -> bool:
    """Whether this is the send whose answer the operation is still waiting for."""
    return operation.state in (State.SENT, State.RESENT) and back.attempt == operation.tries


def _acknowledged(
    operation: Operation, contract: Contract, back: Replied, yes: Acknowledged
) -> Moved | None:
    if operation.state is State.RECORDED:
        return None  # A reply to a send that is recorded as not sent: the next send will replay it.
    held: dict[str, object] = {"result": yes.result, "acknowledged_at": back.at}
    if yes.position is not None:
        held["position"] = yes.position
    if not yes.complete:
        held["complete"] = False
        if operation.state is State.SENT:
            says = "ended early by us: it may have run in part"
            return _move(operation, Happened.STOPPED_MIDWAY, back, says, yes.position, **held)
    if not _is_receipt(contract, yes):
        says = "the service answered yes"
        return _move(operation, Happened.ACKNOWLEDGED, back, says, yes.position, **held)
    says = "the service took it; whether it landed is still to be seen"
    event = Happened.LOOKED
    if operation.state in (State.SENT, State.RESENT):
        event = Happened.ACCEPTED
    return _move(operation, event, back, says, yes.position, **held)


def _is_only_send(operation: Operation) -> bool:
    """Whether no other send of it than one can have left this machine."""
    return operation.tries - len(operation.unsent) == 1 and not operation.restored


def _refused(operation: Operation, back: Replied, no: Refused) -> Moved | None:
    if _is_only_send(operation) and Happened.REFUSED in MOVES[operation.state]:
        says, changed = f"the service refused: {no.reason}", [*map(dict, no.changed)]
        return _move(operation, Happened.REFUSED, back, says, conflict=changed or None)
    if operation.state is State.RESENT and back.attempt == operation.tries:
        says = f"the service refused the resend: {no.reason}; that says nothing of the first send"
        return _move(operation, Happened.REFUSED_AGAIN, back, says, resend_refused=True)
    return None


def _not_sent(
    operation: Operation, contract: Contract, back: Replied, outcome: NotSent
) -> Moved | None:
    says = f"nothing left this machine: {outcome.reason}"
    unsent = tuple(sorted({*operation.unsent, back.attempt}))
    not_before = operation.not_before
    if outcome.wait_s > 0:
        says = f"the service did not take it up: {outcome.reason}"
        not_before = max(not_before, back.at + outcome.wait_s)
    if _awaited(operation, back):
        over = operation.tries >= contract.max_tries or not operation.wanted
        never = operation.state is State.SENT and over
        event = Happened.NEVER_SENT if never else Happened.NOT_SENT
        return _move(operation, event, back, says, unsent=unsent, not_before=not_before)
    if len(unsent) == operation.tries and Happened.NEVER_SENT in MOVES[operation.state]:
        return _move(operation, Happened.NEVER_SENT, back, says, unsent=unsent)
    return None


# Answers to a question.


def _look(operation: Operation, contract: Contract, back: Looked) -> Moved | None:
    outcome = back.outcome
    if back.question is Question.RECEIPT:
        if _is_older(operation, back):
            return None
        if operation.state in (State.SENT, State.RESENT):
            return _before_the_answer(operation, contract, back)
    if Happened.LOOKED not in MOVES[operation.state]:
        return None  # Overtaken by another send, which will be asked about in its turn.
    if isinstance(outcome, Found):
        return _found(operation, contract, back, outcome)
    if isinstance(outcome, Absent):
        return _absent(operation, contract, back, outcome.position)
    if isinstance(outcome, NotYet):
        return _undecisive(operation, contract, back, f"not knowable yet {outcome.reason}".rstrip())
    return _undecisive(operation, contract, back, f"no answer: {outcome.reason}")


def _is_older(operation: Operation, back: Looked) -> bool:
    """Whether a receipt speaks of an earlier moment than one that came before it."""
    if back.question is not Question.RECEIPT or not isinstance(back.outcome, Found | Absent):
        return False
    seen = back.outcome.position
    heard = (one.position for one in operation.evidence if one.source is Source.RECEIPT)
    return seen is not None and any(known is not None and known > seen for known in heard)


def _before_the_answer(operation: Operation, contract: Contract, back: Looked) -> Moved | None:
    """A receipt that overtakes the reply is the service's answer; nobody will send it twice.

    Where the same key is out once more, a no is kept as a refusal of that one: no send follows it,
    and what the first one did is found out as ever.
    """
    outcome = back.outcome
    if isinstance(outcome, Found):
        says = "the service says that it happened"
        held: dict[str, object] = {"result": outcome.result, "acknowledged_at": back.at}
        if outcome.position is not None:
            held["position"] = outcome.position
        event = Happened.ACCEPTED if contract.read_back else Happened.ACKNOWLEDGED
        return _move(operation, event, back, says, outcome.position, **held)
    if not isinstance(outcome, Absent) or not _receipt_says_no(operation, contract, back):
        return None
    says = "the service says that it did not happen"
    if operation.state is State.SENT:
        return _move(operation, Happened.REFUSED, back, says, outcome.position)
    says = f"{says}; that may be the answer to one of two sends"
    return _move(
        operation, Happened.REFUSED_AGAIN, back, says, outcome.position, resend_refused=True
    )


def _found(operation: Operation, contract: Contract, back: Looked, found: Found) -> Moved:
    """A find settles it, but for a contract that says where the result must become visible."""
    if contract.read_back and back.question is not Question.READ_BACK:
        says = "the service knows it; whether it is visible is still to be seen"
        event, after = _undecisive(operation, contract, back, says, found.position)
        at = operation.acknowledged_at or back.at
        return event, replace(after, result=found.result, acknowledged_at=at)
    event = Happened.READ_BACK if operation.state is State.ACCEPTED else Happened.FOUND
    says, held = "it is there", {"result": found.result}
    if operation.absences >= UNEXPLAINED_AFTER and back.question is not Question.RECEIPT:
        says = f"it is there, after {operation.absences} looks that had to see it and did not"
        held["unexplained"] = True
    return _move(operation, event, back, says, found.position, **held)


def _absent(
    operation: Operation, contract: Contract, back: Looked, position: int | None
) -> Moved | None:
    if back.question is not Question.RECEIPT and not remembers(operation, contract, at=back.at):
        says = "nothing under that key, but the service may have forgotten it"
        return _undecisive(operation, contract, back, says, position)
    for settles, event, says in ABSENCE:
        if settles(operation, contract, back) and event in MOVES[operation.state]:
            return _move(operation, event, back, says, position)
    return _undecisive(operation, contract, back, "nothing has landed", position)


def _closed(operation: Operation, contract: Contract, back: Looked) -> bool:
    return back.question is Question.CLOSE


def _behind(operation: Operation, contract: Contract, back: Looked) -> bool:
    """Whether a read-back was made at or after the position the service acknowledged.

    That says something about the send which it answered; another may still be on its way.
    """
    if back.question is not Question.READ_BACK or not isinstance(back.outcome, Absent):
        return False
    if not _is_only_send(operation):
        return False
    seen, acknowledged = back.outcome.position, operation.position
    return seen is not None and acknowledged is not None and seen >= acknowledged


def _receipt_says_no(operation: Operation, contract: Contract, back: CameBack) -> bool:
    """Whether the service says by itself that it did not happen, and not of something older."""
    if not isinstance(back, Looked) or back.question is not Question.RECEIPT:
        return False
    if not isinstance(back.outcome, Absent):
        return False
    seen, known = back.outcome.position, operation.position
    return seen is None or known is None or seen >= known


def _out_of_time(operation: Operation, contract: Contract, back: Looked) -> bool:
    return nothing_can_arrive(operation, contract, at=back.asked_at)


# When "nothing there" is a no. A position alone, or a deadline alone, never settles a lost answer:
# `read_absent` is a move of an *acknowledged* operation only.
ABSENCE: tuple[tuple[Callable[[Operation, Contract, Looked], bool], Happened, str], ...] = (
    (_closed, Happened.CLOSED_EMPTY, "nothing has landed; key closed"),
    (
        _behind,
        Happened.READ_ABSENT,
        "not there, read at or after the position that the service acknowledged",
    ),
    (_receipt_says_no, Happened.ABSENT_FOR_GOOD, "the service says that it did not happen"),
    (_receipt_says_no, Happened.READ_ABSENT, "the service says that it did not happen"),
    (
        _out_of_time,
        Happened.ABSENT_FOR_GOOD,
        "nothing has landed, and requests of that age are refused by now",
    ),
)


def _had_to_see_it(operation: Operation, contract: Contract, back: Looked) -> bool:
    """Whether what landed by the last send had to be visible when this look was made."""
    visible_at = operation.last_sent_at + contract.deadline_s + contract.settlement_lag_s
    asked = back.question is not Question.RECEIPT and back.asked_at > visible_at
    return asked and remembers(operation, contract, at=back.at)


def _undecisive(
    operation: Operation,
    contract: Contract,
    back: Looked,
    says: str,
    position: int | None = None,
) -> Moved:
    held: dict[str, object] = {"looks": operation.looks + 1, "looked_at": back.at}
    if back.attempt == operation.tries:
        held["looked"] = type(back.outcome).__name__
    if isinstance(back.outcome, Absent) and _had_to_see_it(operation, contract, back):
        held["absences"] = operation.absences + 1
    return _move(operation, Happened.LOOKED, back, says, position, **held)
