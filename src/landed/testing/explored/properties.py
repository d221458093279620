"""What must hold in every world that can be reached, and at every write: the promises, as checks.

Each check returns "" or one sentence that says what is wrong. They know the contract and what
really happened, and nothing of the rules that decide.
"""

from collections.abc import Iterator, Mapping

from landed.core.absorb import Looked, Question, Replied
from landed.core.changes import Move
from landed.core.contract import Contract
from landed.core.operation import Happened, Operation, State
from landed.core.operation_record import from_record
from landed.core.outcome import Absent, Refused
from landed.testing.explored.ledger import Line, could_land
from landed.testing.explored.world import Heard, Request, World

# What really happened in the world, against what the record says of it.
TWO_EFFECTS = "one operation has two effects"
NO_IS_A_NO = "failed, and yet it has an effect"
CAN_STILL_LAND = "failed, and yet a request on its way can still land"
YES_IS_A_YES = "confirmed, and yet it has no effect"

# What was written or sent.
SENT_UNRECORDED = "a request leaves for which no durable record stands"
CLOSED_UNRECORDED = "a close is asked for, and no durable record says that the key is spent"
SENT_UNWANTED = "sent, although nobody wants it any more or its time is over"
SENT_AFTER_CLOSING = "sent, although its key is spent"
SENT_AGAIN_REFUSED = "sent again after a resend was refused"
SENT_FORGOTTEN = "sent again when the service may have forgotten the key"
SENT_UNCOMPARED = "sent again, although nobody promised that this is harmless"
SENT_ON_MAYBE = "sent again, although no look had said that nothing is there"
LOOK_MISREAD = "the record says that nothing is there, and no look at the last send said so"
STALE_WRITE = "a worker that lost its claim has written"
SETTLED_MOVED = "what was settled for good was moved"
REFUSAL_LOST = "the only send that left was refused, and yet it is in doubt"
NAMES_ADRIFT = "who holds its names does not agree with its state"
CORE_RAISED = "the core raised"

# What never happened.
STUCK = "once all trouble is over it is neither settled nor with a person"

PROMISES = (
    TWO_EFFECTS,
    NO_IS_A_NO,
    CAN_STILL_LAND,
    YES_IS_A_YES,
    SENT_UNRECORDED,
    CLOSED_UNRECORDED,
    SENT_UNWANTED,
    SENT_AFTER_CLOSING,
    SENT_AGAIN_REFUSED,
    SENT_FORGOTTEN,
    SENT_UNCOMPARED,
    SENT_ON_MAYBE,
    LOOK_MISREAD,
    STALE_WRITE,
    SETTLED_MOVED,
    REFUSAL_LOST,
    NAMES_ADRIFT,
    CORE_RAISED,
    STUCK,
)


def wrong_world(world: World, contract: Contract) -> str:
    """Return what is wrong with a world as it stands."""
    for operation in world.known.values():
        line = world.line(operation.id)
        if line.effects > 1:
            return TWO_EFFECTS
        wrong = _wrong_end(world, contract, operation, line)
        if wrong:
            return wrong
        held = all(world.stored.names.get(name) == operation.id for name in operation.names)
        if held != operation.holds:
            return NAMES_ADRIFT
    return ""


def _wrong_end(world: World, contract: Contract, operation: Operation, line: Line) -> str:
    match operation.state:
        case State.CONFIRMED if not line.effects:
            return YES_IS_A_YES
        case State.FAILED | State.WITHDRAWN if line.effects:
            return NO_IS_A_NO
        case State.FAILED | State.WITHDRAWN:
            departures = _departures(world, operation.id)
            can = any(could_land(line, contract, sent_at=t, now=world.at) for t in departures)
            return CAN_STILL_LAND if can else ""
        case _:
            return ""


def _departures(world: World, operation: str) -> Iterator[float]:
    """Yield the time on every send that is on its way, and on those about to leave."""
    for request in world.requests:
        if request.operation == operation and request.question is None:
            yield request.sent_at
    for worker in world.workers:
        for command in worker.outbox:
            if command.operation.id == operation:
                yield command.operation.last_sent_at


def wrong_start(world: World, sent: Operation) -> str:
    """Return what is wrong with a send that leaves now."""
    record = world.known.get(sent.id)
    return SENT_UNRECORDED if record is None or record.tries < sent.tries else ""


def wrong_question(world: World, asked: Request) -> str:
    """Return what is wrong with a question that leaves now."""
    closes = asked.question is Question.CLOSE
    return CLOSED_UNRECORDED if closes and not world.known[asked.operation].closing else ""


def wrong_write(
    before: Mapping[str, Operation],
    moves: tuple[Move, ...],
    arrivals: tuple[Heard, ...],
    contract: Contract,
    *,
    now: float,
) -> str:
    """Return what is wrong with a unit that a store took; `before` is what was stored."""
    stands = dict(before)
    for move in moves:
        after = from_record(move.after)
        earlier = stands.get(after.id)
        wrong = _wrong_move(earlier, after, arrivals)
        if not wrong and move.event.name in (Happened.SENT, Happened.RESENT):
            wrong = _wrong_send(earlier, after, contract, now=now)
        if wrong:
            return wrong
        stands[after.id] = after
    return ""


def _wrong_move(earlier: Operation | None, after: Operation, arrivals: tuple[Heard, ...]) -> str:
    if earlier is None:
        return ""
    if earlier.final and after.state != earlier.state:
        return SETTLED_MOVED
    said_before = earlier.looked == Absent.__name__ and earlier.tries == after.tries
    if after.looked == Absent.__name__ and not said_before:
        return "" if _said_absent(arrivals, after.tries) else LOOK_MISREAD
    refused = earlier.state is State.SENT and _was_refused(arrivals, earlier.tries)
    return REFUSAL_LOST if refused and after.state is State.UNKNOWN else ""


def _said_absent(arrivals: tuple[Heard, ...], attempt: int) -> bool:
    looks = (arrival for arrival in arrivals if isinstance(arrival, Looked))
    return any(isinstance(each.outcome, Absent) and each.attempt == attempt for each in looks)


def _was_refused(arrivals: tuple[Heard, ...], attempt: int) -> bool:
    replies = (arrival for arrival in arrivals if isinstance(arrival, Replied))
    return any(isinstance(each.outcome, Refused) and each.attempt == attempt for each in replies)


def _wrong_send(
    earlier: Operation | None, after: Operation, contract: Contract, *, now: float
) -> str:
    if after.closing:
        return SENT_AFTER_CLOSING
    if not after.wanted or now >= after.send_by:
        return SENT_UNWANTED
    if after.state is State.RESENT and earlier is not None:
        return _wrong_resend(earlier, after, contract, now=now)
    return ""


def _wrong_resend(earlier: Operation, after: Operation, contract: Contract, *, now: float) -> str:
    if after.resend_refused:
        return SENT_AGAIN_REFUSED
    if not (contract.keyed and contract.compares_payload):
        return SENT_UNCOMPARED
    if contract.lookup and earlier.looked != Absent.__name__:
        return SENT_ON_MAYBE
    if contract.retention_s is not None:
        forgets_at = after.first_sent_at + contract.retention_s
        if now + contract.deadline_s >= forgets_at:
            return SENT_FORGOTTEN
    return ""
