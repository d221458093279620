"""When two worlds of changing minds are the same: when nothing that decides differs between them.

Versions, epochs, evidence and positions decide nothing: there is one writer, and it knows the last
version. A tick is longer than every pause, so of a time it matters whether it was in this tick, and
where a bound of the contract can be reached, which tick it was. A question is known by what it
asks, or asked.
"""

from collections.abc import Hashable
from operator import attrgetter

from landed.core.advancing import SEND_WITHIN_S
from landed.core.operation import Operation
from landed.core.plan import Plan
from landed.core.question import Question, QuestionState
from landed.core.undo import Release
from landed.testing.explored.minds_world import TICK_S, Setup, World, asks

Key = tuple[int, ...]

OPERATION = (
    *("id", "key", "state", "tries", "unsent", "wanted", "blocked_by", "closing"),
    *("resend_refused", "contradicted", "turn", "plan", "undoes", "looked"),
)
RELEASE = (
    *("id", "state", "turn", "plan", "step", "price_cents", "agreed", "undo", "tries", "left_out"),
)
PLAN = ("id", "state", "places")
STEP = ("identity", "keeps", "replaces")

_operation = attrgetter(*OPERATION)
_release = attrgetter(*RELEASE)
_plan = attrgetter(*PLAN)
_step = attrgetter(*STEP)
_message = attrgetter("operation", "question", "attempt", "heard", "outcome")


class Naming:
    """Gives all worlds that behave alike one short key.

    Large values are replaced by running numbers, so that many keys fit into memory.
    """

    def __init__(self, setup: Setup) -> None:
        bounds, ends_s = setup.bounds, setup.bounds.ticks * TICK_S
        self._ends = min(bounds.send_by_ticks * TICK_S, SEND_WITHIN_S) <= ends_s
        self._ages = setup.reserve.escalate_after_s <= ends_s
        self._numbers: dict[Hashable, int] = {}

    def key(self, world: World) -> Key:
        """Return the key of a world."""
        return (
            world.now,
            self._number(tuple(self._operation(o, world) for o in world.operations.values())),
            self._number(tuple(_plan_gist(plan) for plan in world.plans.values())),
            self._number(tuple(_release_gist(r, world) for r in world.releases.values())),
            self._number(
                (
                    _asked(world.questions.get(world.last_question)),
                    frozenset(asks(question) for question in world.asked),
                    world.due,
                    world.wake,
                    world.pricing,
                    tuple(repr(_message(message)) for message in world.wire),
                )
            ),
            self._number((world.restaurant, world.agreed, world.allowed)),
            self._number(world.left),
        )

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _operation(self, operation: Operation, world: World) -> Hashable:
        at = world.at
        return (
            *_operation(operation),
            operation.looks > 0 and operation.looked_at == at,
            operation.last_sent_at == at,
            operation.first_sent_at if self._ages else 0.0,
            operation.send_by if self._ends else 0.0,
            operation.open and operation.worker == world.who,
            str(operation.result),
            str(operation.arguments),
        )


def _plan_gist(plan: Plan) -> Hashable:
    return (*_plan(plan), tuple(_step(step) for step in plan.steps))


def _release_gist(release: Release, world: World) -> Hashable:
    mine = release.open and release.worker == world.who
    return (*_release(release), mine, _asked(world.questions.get(release.question)))


def _asked(question: Question | None) -> Hashable:
    """Return what an open question asks."""
    if question is None or question.state is not QuestionState.OPEN:
        return None
    return asks(question)
