"""Wrong designs, each wrong in one thing, that the explorer must catch; out of reach of `open`.

A safeguard that can be taken out without anybody noticing is not one. Each mutant replaces one of
core's rules, or what the core relies on the loop and the store for.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from landed.core.absorb import CameBack, Looked, Moved, Replied, absorb
from landed.core.changes import Changes, Move, Record, Stored, apply
from landed.core.contract import Contract
from landed.core.doubt import Ask, Verdict, WaitUntil, doubt
from landed.core.incarnation import NEVER_RESTORED
from landed.core.next import what_next
from landed.core.operation import Happened, Operation, State, moved
from landed.core.outcome import Absent, Acknowledged, NoAnswer, Refused
from landed.core.rules import RULES, Rules
from landed.core.scope import Next, Scope
from landed.testing.designs import absent_is_no, cancel_is_cancelled, lost_is_refused
from landed.testing.explored.cases import NARROW, SHORTER, WIDE
from landed.testing.explored.properties import (
    CAN_STILL_LAND,
    CLOSED_UNRECORDED,
    CORE_RAISED,
    LOOK_MISREAD,
    NAMES_ADRIFT,
    NO_IS_A_NO,
    REFUSAL_LOST,
    SENT_AFTER_CLOSING,
    SENT_AGAIN_REFUSED,
    SENT_FORGOTTEN,
    SENT_ON_MAYBE,
    SENT_UNCOMPARED,
    SENT_UNRECORDED,
    SENT_UNWANTED,
    SETTLED_MOVED,
    STALE_WRITE,
    STUCK,
    TWO_EFFECTS,
    YES_IS_A_YES,
)
from landed.testing.explored.world import Bounds, Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A wrong design; `breaks` are promises that it breaks under the contract of `case`.

    The last of them is the one worth showing.
    """

    case: str
    breaks: tuple[str, ...]
    rules: Rules = RULES
    driver: Driver = field(default_factory=Driver)
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """A safeguard taken out that nothing notices, and why that is no hole in the search."""

    case: str
    reason: str
    bounds: Bounds
    rules: Rules = RULES
    driver: Driver = field(default_factory=Driver)


# Rules.


def refused_resend_is_no(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take the refusal of a resend for a word about the first send."""
    refused = isinstance(back, Replied) and isinstance(back.outcome, Refused)
    if refused and operation.state is State.RESENT:
        failed = replace(operation, state=State.FAILED, version=operation.version + 1)
        return Happened.REFUSED, failed
    return absorb(operation, contract, back)


def answered_is_asked(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take the time an answer came in for the time the question was put."""
    if isinstance(back, Looked):
        back = replace(back, asked_at=back.at)
    return absorb(operation, contract, back)


def never_forgets(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Believe that a key is remembered for ever."""
    return absorb(operation, replace(contract, retention_s=None), back)


def never_lags(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Believe that a lookup shows an effect the moment it happens."""
    return absorb(operation, replace(contract, settlement_lag_s=0.0), back)


def any_look_counts(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take the answer to an earlier question for a word about the send that came after it."""
    if isinstance(back, Looked):
        back = replace(back, attempt=operation.tries)
    return absorb(operation, contract, back)


def resend_after_close(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send a key again that a close was asked for."""
    if operation.closing:
        operation = replace(operation, closing=False, wanted=True)
    return doubt(operation, contract, now)


def closing_ignored(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Go by what led to the close, and not by the note that it was asked for."""
    return doubt(replace(operation, closing=False), contract, now)


def resend_unwanted(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send again what its caller has let go."""
    return doubt(replace(operation, wanted=True), contract, now)


def resend_refused(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send again after a resend was refused."""
    if operation.resend_refused:
        operation = replace(operation, resend_refused=False, tries=operation.tries - 1)
    return doubt(operation, contract, now)


def resend_forgotten(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send again however long ago the service first saw the key."""
    return doubt(operation, replace(contract, retention_s=None), now)


def resend_uncompared(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send again without anybody's promise that it is harmless."""
    return doubt(operation, replace(contract, keyed="key", compares_payload=True), now)


def resend_on_maybe(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Send again when nobody answered whether it landed."""
    if operation.looked == NoAnswer.__name__:
        operation = replace(operation, looked=Absent.__name__)
    return doubt(operation, contract, now)


def never_asks(operation: Operation, contract: Contract, now: float) -> Verdict:
    """Wait for ever where a person should be asked."""
    verdict = doubt(operation, contract, now)
    return WaitUntil(math.inf) if isinstance(verdict, Ask) else verdict


def receipt_is_yes(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Take "accepted" for "landed"."""
    return absorb(operation, replace(contract, read_back=False), back)


def counts_what_never_left(
    operation: Operation, contract: Contract, back: CameBack
) -> Moved | None:
    """Take a send for a resend because an earlier one came back as not sent."""
    refused = isinstance(back, Replied) and isinstance(back.outcome, Refused)
    if refused and operation.state is State.SENT and operation.tries > 1:
        return None
    return absorb(operation, contract, back)


def last_answer_wins(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Let a late refusal overwrite what was settled."""
    refused = isinstance(back, Replied) and isinstance(back.outcome, Refused)
    if refused and operation.state is State.CONFIRMED:
        failed = replace(operation, state=State.FAILED, version=operation.version + 1)
        return Happened.REFUSED, failed
    return absorb(operation, contract, back)


def refuses_a_late_yes(operation: Operation, contract: Contract, back: CameBack) -> Moved | None:
    """Know no move for a yes that comes when it is already known."""
    late = isinstance(back, Replied) and isinstance(back.outcome, Acknowledged)
    if late and operation.final:
        return Happened.ACKNOWLEDGED, moved(operation, Happened.ACKNOWLEDGED, at=back.at)
    return absorb(operation, contract, back)


# Drivers.


def closes_unrecorded(scope: Scope, rules: Rules, now: float) -> Next:
    """Ask for a close without a note that the key is spent."""
    decided = what_next(scope, rules, now)
    operations = dict(decided.operations)
    for move in decided.changes.moves:
        if move.event.name == Happened.CLOSING:
            noted = operations[move.after.id]
            operations[noted.id] = replace(noted, closing=False, version=noted.version - 1)
    moves = tuple(m for m in decided.changes.moves if m.event.name != Happened.CLOSING)
    return replace(decided, changes=replace(decided.changes, moves=moves), operations=operations)


# Stores.

Written = tuple[Stored, tuple[Record, ...]]


def unfenced(stored: Stored, changes: Changes) -> Written:
    """Write under whichever claim, as long as the versions are right."""
    return apply(stored, replace(changes, moves=tuple(_as_found(stored, changes, "epoch"))))


def unversioned(stored: Stored, changes: Changes) -> Written:
    """Write over whichever version, as long as the claim stands."""
    return apply(stored, replace(changes, moves=tuple(_as_found(stored, changes, "version"))))


def last_write_wins(stored: Stored, changes: Changes) -> Written:
    """Write whatever comes."""
    takes = tuple(hold for hold in changes.takes if stored.names.get(hold.name) != hold.record)
    moves = tuple(_as_found(stored, changes, "epoch", "version"))
    return apply(stored, replace(changes, moves=moves, takes=takes))


def _as_found(stored: Stored, changes: Changes, *conditions: str) -> Iterator[Move]:
    """Yield the moves with these conditions of theirs made to hold."""
    found = dict(stored.records)
    for move in changes.moves:
        after, before = move.after, found.get(move.after.id)
        if before is not None and "epoch" in conditions:
            after = replace(after, epoch=before.epoch)
        if before is not None and "version" in conditions:
            after = replace(after, version=before.version + 1)
        found[after.id] = after
        yield replace(move, after=after)


def restore_unnoticed(scope: Scope, rules: Rules, now: float) -> Next:
    """Go on with a store that was put back as if nothing had happened since the backup."""
    return what_next(replace(scope, incarnation=NEVER_RESTORED), rules, now)


def nameless(stored: Stored, changes: Changes) -> Written:
    """Write down nobody's names."""
    return apply(stored, replace(changes, takes=(), frees=()))


MUTANTS: Mapping[str, Mutant] = {
    "timeout-is-no": Mutant(
        case="bare", breaks=(CAN_STILL_LAND,), rules=Rules(absorb=lost_is_refused)
    ),
    "cancel-is-cancelled": Mutant(
        case="bare", breaks=(CAN_STILL_LAND,), driver=Driver(what_next=cancel_is_cancelled)
    ),
    "lookup-instead-of-close": Mutant(
        case="uncompared-lookup-close", breaks=(CAN_STILL_LAND,), rules=Rules(absorb=absent_is_no)
    ),
    "send-before-commit": Mutant(
        case="bare", breaks=(SENT_UNRECORDED,), driver=Driver(sends_first=True)
    ),
    "no-fencing": Mutant(case="keyed", breaks=(STALE_WRITE,), driver=Driver(commit=unfenced)),
    "last-write-wins": Mutant(
        case="bare", breaks=(TWO_EFFECTS,), driver=Driver(commit=last_write_wins)
    ),
    "no-names": Mutant(case="bare", breaks=(NAMES_ADRIFT,), driver=Driver(commit=nameless)),
    "refused-resend-is-failed": Mutant(
        case="keyed", breaks=(NO_IS_A_NO,), rules=Rules(absorb=refused_resend_is_no)
    ),
    "last-answer-wins": Mutant(
        case="keyed", breaks=(SETTLED_MOVED,), rules=Rules(absorb=last_answer_wins), bounds=WIDE
    ),
    "counts-what-never-left": Mutant(
        case="bare", breaks=(REFUSAL_LOST,), rules=Rules(absorb=counts_what_never_left)
    ),
    "resend-after-close": Mutant(
        case="keyed-lookup-close",
        breaks=(SENT_AFTER_CLOSING,),
        rules=Rules(doubt=resend_after_close),
        bounds=SHORTER,
    ),
    "closes-unrecorded": Mutant(
        case="uncompared-lookup-close",
        breaks=(CLOSED_UNRECORDED,),
        driver=Driver(what_next=closes_unrecorded),
    ),
    "any-look-counts": Mutant(
        case="keyed-lookup-stale", breaks=(LOOK_MISREAD,), rules=Rules(absorb=any_look_counts)
    ),
    "resend-unwanted": Mutant(
        case="keyed", breaks=(SENT_UNWANTED,), rules=Rules(doubt=resend_unwanted)
    ),
    "resend-refused": Mutant(
        case="keyed", breaks=(SENT_AGAIN_REFUSED,), rules=Rules(doubt=resend_refused)
    ),
    "resend-uncompared": Mutant(
        case="bare",
        breaks=(SENT_UNCOMPARED, TWO_EFFECTS),
        rules=Rules(doubt=resend_uncompared),
    ),
    "resend-on-maybe": Mutant(
        case="keyed-lookup", breaks=(SENT_ON_MAYBE,), rules=Rules(doubt=resend_on_maybe)
    ),
    "forget-too-early": Mutant(
        case="forgetful",
        breaks=(SENT_FORGOTTEN, TWO_EFFECTS),
        rules=Rules(doubt=resend_forgotten),
    ),
    "trusts-forgotten-keys": Mutant(
        case="forgetful-close", breaks=(NO_IS_A_NO,), rules=Rules(absorb=never_forgets)
    ),
    "waits-anew": Mutant(case="forgetful", breaks=(TWO_EFFECTS,), driver=Driver(waits_anew=True)),
    "stamped-when-leaving": Mutant(
        case="refuses-late", breaks=(CAN_STILL_LAND,), driver=Driver(stamps_leaving=True)
    ),
    "answered-is-asked": Mutant(
        case="refuses-late", breaks=(NO_IS_A_NO,), rules=Rules(absorb=answered_is_asked)
    ),
    "lag-ignored": Mutant(
        case="refuses-late-lagging", breaks=(NO_IS_A_NO,), rules=Rules(absorb=never_lags)
    ),
    "receipt-is-yes": Mutant(
        case="read-back", breaks=(YES_IS_A_YES,), rules=Rules(absorb=receipt_is_yes)
    ),
    "refuses-a-late-yes": Mutant(
        case="keyed", breaks=(CORE_RAISED,), rules=Rules(absorb=refuses_a_late_yes), bounds=WIDE
    ),
    "restore-unnoticed": Mutant(
        case="bare-restored",
        breaks=(TWO_EFFECTS,),
        driver=Driver(what_next=restore_unnoticed),
    ),
    "never-asks": Mutant(case="bare", breaks=(STUCK,), rules=Rules(doubt=never_asks)),
}

EQUIVALENTS: Mapping[str, Equivalent] = {
    "no-versions": Equivalent(
        case="keyed",
        driver=Driver(commit=unversioned),
        bounds=replace(SHORTER, troubled_ticks=2),
        reason="under one claim only one worker writes, and it always knows the last version;"
        " with the epochs gone as well (last-write-wins) an operation takes effect twice",
    ),
    "closing-ignored": Equivalent(
        case="keyed-lookup-close",
        rules=Rules(doubt=closing_ignored),
        bounds=NARROW,
        reason="a close is asked for only when the operation can never be sent again: it is let go,"
        " its time or its tries are over, or a resend was refused, and none of these is ever taken"
        " back",
    ),
}

# What no design survives, and what is therefore promised only without it.
LIMITS: Mapping[str, Mutant] = {
    "retrying-proxy": Mutant(
        case="keyed", breaks=(NO_IS_A_NO,), bounds=replace(SHORTER, proxy=True)
    ),
}
