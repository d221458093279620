"""When two explored worlds are the same: when nothing that decides differs between them.

Without this there would be no end to the search. What is left out, and why that is no loss:

- Evidence, journal positions and the times of settling decide nothing.
- Versions and epochs are only ever compared with those that are stored.
- A tick is longer than every pause. So of the time of the last look it matters whether it was in
  this tick, and on which side of a contract's deadlines; and of `looks`, whether there was one.
- Where the store refuses every write under a lost claim (which is checked at each of them), what
  the worker that lost it would write does not matter.
- Nothing depends on which worker is called A.
"""

from collections.abc import Hashable
from operator import attrgetter

from landed.core.absorb import CameBack, Looked, Replied
from landed.core.arrival import Proposed
from landed.core.contract import Contract
from landed.core.operation import Operation
from landed.core.outcome import Absent
from landed.core.scope import Send
from landed.testing.explored.ledger import Line
from landed.testing.explored.world import NOBODY, WORKERS, Heard, Request, World

Key = tuple[int, ...]

# Every field of an operation is in one of these. A new one that decides something and is not in
# the key would let the search end too early without a word.
DECIDING = (
    "id",
    "state",
    "tries",
    "unsent",
    "first_sent_at",
    "wanted",
    "blocked_by",
    "closing",
    "resend_refused",
    "position",
    "contradicted",
    "restored",
)
JUDGED = ("version", "epoch", "last_sent_at", "looks", "looked_at", "looked", "acknowledged_at")
SAME_FOR_ALL = (
    *("tenant", "session", "turn", "tool", "arguments", "ask", "key", "contract", "identity"),
    *("names", "made_at", "send_by", "plan", "undoes", "result", "complete", "told"),
    # Nobody is asked to wait there, and nobody rules.
    *("retries", "unique", "prepared", "not_before", "lifted"),
)
# `absences` and `unexplained` put a case before a person, `conflict` says what the service found to
# have moved; they decide nothing about the operation.
INERT = ("worker", "unwanted_at", "settled_at", "evidence", "absences", "unexplained", "conflict")

_deciding = attrgetter(*DECIDING)


class Naming:
    """Gives all worlds that behave alike one short key, under one contract.

    Large values are replaced by running numbers, so that a million keys fit into memory.
    """

    def __init__(self, contract: Contract, *, fenced: bool) -> None:
        self._ages_matter = contract.refuses_after_s is not None
        self._sends_age = self._ages_matter or contract.assume_after_s is not None
        self._keys_age = contract.retention_s is not None
        self._contract = contract
        self._fenced = fenced
        self._numbers: dict[Hashable, int] = {}

    def key(self, world: World) -> Key:
        """Return the key of a world."""
        first, second = sorted(self._worker(world, which) for which in range(len(WORKERS)))
        unheard = frozenset(self._unheard(r) for r in world.requests if r.to == NOBODY)
        return (
            world.now,
            self._number(tuple(self._gist(each, world.at) for each in world.known.values())),
            first,
            second,
            self._number(unheard),
            self._number(tuple(self._line(line) for line in world.ledger.values())),
            self._number(self._counters(world)),
        )

    def _counters(self, world: World) -> Hashable:
        """What trouble is left to come, as far as it can still make a difference."""
        copies, let_gos = world.copies, world.let_gos
        if not self._keys_age and all(line.known for line in world.ledger.values()):
            copies = copies if not world.ledger else 0
        if not any(each.open and each.wanted for each in world.known.values()):
            let_gos = let_gos if not world.known else 0
        saved = world.backup.known.values() if world.backup else ()
        backup = tuple(self._gist(each, world.at) for each in saved)
        return (copies, let_gos, world.looks, world.restores, world.restored, backup)

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _worker(self, world: World, which: int) -> int:
        worker, at = world.workers[which], world.at
        decided = worker.decided.changes.moves if worker.decided else ()
        return self._number(
            (
                tuple(self._held(each, world) for each in worker.operations.values()),
                tuple(self._arrived(each) for each in worker.inbox),
                tuple(_to_leave(each) for each in worker.outbox),
                worker.running,
                tuple(move.event.name for move in decided),
                frozenset(self._heard(r) for r in world.requests if r.to == which),
                frozenset(self._came(reply.came) for reply in world.replies_to(which)),
                at if decided else 0.0,
            )
        )

    def _held(self, held: Operation, world: World) -> Hashable:
        stored = world.known.get(held.id)
        if held is stored or stored is None:
            return held.id
        claimed = held.epoch == stored.epoch
        if self._fenced and not claimed:
            return False
        return (self._gist(held, world.at), held.version == stored.version, claimed)

    def _gist(self, operation: Operation, at: float) -> Hashable:
        contract, looked_at = self._contract, operation.looked_at
        sent_at = operation.last_sent_at
        settles_at = sent_at + (contract.refuses_after_s or 0.0) + contract.settlement_lag_s
        shows_at = operation.acknowledged_at + contract.settlement_lag_s
        asks_since = sent_at if operation.restored else operation.first_sent_at
        return (
            *_deciding(operation),
            operation.looked == Absent.__name__,
            operation.looks > 0 and looked_at == at,
            looked_at >= asks_since + contract.escalate_after_s,
            self._ages_matter and looked_at > settles_at,
            sent_at if self._sends_age or operation.restored else sent_at == at,
            (operation.acknowledged_at, looked_at >= shows_at) if contract.read_back else (),
        )

    def _line(self, line: Line) -> Hashable:
        lags = self._contract.settlement_lag_s > 0
        ages = self._keys_age or self._contract.read_back
        times = (line.since if ages else 0.0, line.landed_at if lags else 0.0)
        return (line.effects, line.known, line.closed, times)

    # What is on its way.

    def _heard(self, request: Request) -> Hashable:
        times = (request.sent_at if self._ages_matter else 0.0, request.from_at)
        return (request.operation, request.question, request.attempt, request.copy, times)

    def _unheard(self, request: Request) -> Hashable:
        if request.question is not None:
            return (request.operation, request.question)
        return self._heard(request)

    def _arrived(self, arrival: Heard) -> Hashable:
        match arrival:
            case Proposed(operation=operation):
                return operation.id
            case Looked() | Replied():
                return (self._came(arrival), arrival.at)
            case _:
                return type(arrival).__name__

    def _came(self, came: CameBack) -> Hashable:
        if isinstance(came, Looked):
            asked_at = came.asked_at if self._ages_matter else 0.0
            return (came.question, came.attempt, came.outcome, asked_at)
        return (came.attempt, type(came.outcome))


def _to_leave(command: Send) -> Hashable:
    return (command.operation.id, command.operation.tries, command.operation.last_sent_at)
