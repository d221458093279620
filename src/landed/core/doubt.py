"""What to do about one operation in doubt: the retry decision, made by the runtime, never a model.

Still wanted: look, and where the look finds nothing send the *same key* again, as long as the
service compares payloads, still remembers the key, and the key was never closed. No longer wanted:
close the key, never send. Then for both: wait for the service's own deadline and look, read back,
assume where the contract declares it harmless, ask a person. The question "did it land?" has three
answers, and a send follows only a no.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from landed.core.absorb import remembers
from landed.core.contract import Contract, WhenUnknown
from landed.core.operation import Operation, State
from landed.core.outcome import Absent

# Seconds before the next question or send, by how many went before; the last one repeats.
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the service whether the key landed."""


@dataclass(frozen=True, slots=True)
class Close:
    """Ask the same, and have the service refuse the key from now on."""


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Send the same key once more: a way of finding out, not a second call."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read the result where it must become visible."""


@dataclass(frozen=True, slots=True)
class LagOver:
    """What was accepted did not become visible in time: it is in doubt from now on."""


@dataclass(frozen=True, slots=True)
class Assume:
    """Treat it as landed, as the contract allows, and say so."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Nobody can tell, or is to try: put it in front of a person; `why` where it is by policy."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing to do before `at` (UTC, seconds since the epoch)."""

    at: float


Verdict = LookUp | Close | SendAgain | ReadBack | LagOver | Assume | Ask | WaitUntil


def pause_s(times: int) -> float:
    """Return how long to wait before the next try after `times` tries, in seconds."""
    return PAUSES_S[min(times, len(PAUSES_S) - 1)]


def doubt(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Return the next step towards knowing whether `operation`, in doubt, took effect.

    It sees one operation and its contract only. For a state that is not in doubt there is nothing
    to do but wait.
    """
    if operation.state is State.UNKNOWN and (verdict := _by_policy(operation, contract, now)):
        return verdict
    ways = _WAYS.get(operation.state, ())
    waits: list[float] = []
    for way in ways:
        verdict = way(operation, contract, now)
        match verdict:
            case None:
                continue
            case WaitUntil(at=at):
                waits.append(at)
            case _:
                return verdict
    return WaitUntil(min(waits, default=float("inf")))


def _by_policy(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    """Return what the contract says of a doubt whatever could be found out about it."""
    if contract.when_unknown is WhenUnknown.ESCALATE:
        return Ask(why="its contract puts every doubt in front of a person")
    if is_above(operation, contract):
        return Ask(why=f"{contract.amount} is above {contract.escalate_above:g}")
    if contract.when_unknown is WhenUnknown.BLOCK:
        return _ask(operation, contract, now)
    return None


def is_above(operation: Operation, contract: Contract) -> bool:
    """Whether the amount is one that a person decides about; one that can't be read is."""
    if contract.escalate_above is None:
        return False
    try:
        return Decimal(str(operation.arguments.get(contract.amount))) > contract.escalate_above
    except InvalidOperation:
        return True


def still_sendable(operation: Operation, now: float) -> bool:
    """Whether a send of it, first or again, may leave: it is wanted and its time is not over."""
    return operation.wanted and now < operation.send_by


def _when_due(operation: Operation, verdict: Verdict, now: float) -> Verdict:
    due = operation.looked_at + pause_s(operation.looks)
    return verdict if now >= due else WaitUntil(due)


def _send_again(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    may = (
        _may_be_sent(operation, contract, now)
        and contract.resendable
        and not operation.closing
        and remembers(operation, contract, at=now + contract.deadline_s)
    )
    if not may:
        return None
    if contract.lookup and operation.looked != Absent.__name__:
        return None
    due = max(operation.last_sent_at + pause_s(operation.tries - 1), operation.not_before)
    return SendAgain() if now >= due else WaitUntil(due)


def _may_be_sent(operation: Operation, contract: Contract, now: float) -> bool:
    """Whether another send is possible at all, now or later; what it never is again, is closed."""
    tries_left = operation.tries < contract.max_tries
    return still_sendable(operation, now) and tries_left and not operation.resend_refused


def _close(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    if contract.read_back and operation.acknowledged_at:
        return None  # The key has landed; what is open is where its result can be seen.
    given_up = not _may_be_sent(operation, contract, now)
    if not contract.close or not remembers(operation, contract, at=now):
        return None
    if not given_up and not operation.closing:
        return WaitUntil(operation.send_by)
    return _when_due(operation, Close(), now)


def _look_up(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    if not contract.lookup:
        return None
    if contract.refuses_after_s is None:
        return _when_due(operation, LookUp(), now)
    verdict = _when_due(operation, LookUp(), now)
    last = operation.last_sent_at + contract.refuses_after_s + contract.settlement_lag_s
    if now <= last:
        # A look just after the service's own deadline is the one that can settle it.
        return _earlier(verdict, WaitUntil(last + _AFTER_DEADLINE_S))
    return LookUp() if operation.looked_at <= last else verdict


_AFTER_DEADLINE_S = 0.001


def _earlier(verdict: Verdict, wait: WaitUntil) -> Verdict:
    return wait if isinstance(verdict, WaitUntil) and wait.at < verdict.at else verdict


def _read_back(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    if not contract.read_back or not operation.acknowledged_at:
        return None
    return _when_due(operation, ReadBack(), now)


def _lag_over(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    bound = contract.settlement_lag_s if contract.read_back else contract.escalate_after_s
    at = operation.acknowledged_at + bound
    seen_since = operation.looked_at >= at or not contract.read_back
    if now >= at and seen_since:
        return LagOver()
    return WaitUntil(at) if now < at else None


def _assume(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    if contract.assume_after_s is None:
        return None
    at = operation.last_sent_at + contract.assume_after_s
    return Assume() if now >= at else WaitUntil(at)


def _ask(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    at = _asks_at(operation, contract)
    return Ask() if now >= at else WaitUntil(at)


def _ask_in_time(operation: Operation, contract: Contract, now: float) -> Verdict | None:
    """Past the age of escalation, and asked once more since, a person is asked."""
    at = _asks_at(operation, contract)
    return Ask() if now >= at and operation.looked_at >= at else None


def _asks_at(operation: Operation, contract: Contract) -> float:
    """Return when a person is asked: of what a restore put in doubt, counted from that."""
    since = operation.last_sent_at if operation.restored else operation.first_sent_at
    return since + contract.escalate_after_s


Way = Callable[[Operation, Contract, float], Verdict | None]

# Tried in order; the first that is due wins, else the earliest of what is to come.
_WAYS: dict[State, tuple[Way, ...]] = {
    State.UNKNOWN: (_ask_in_time, _send_again, _close, _read_back, _look_up, _assume, _ask),
    State.ACCEPTED: (_lag_over, _read_back),
    # A person was asked already: only a question that somebody asks for, and never a send.
    State.UNDECIDED: (_close, _look_up, _read_back),
}
