"""What is told of a plan as it stands: to the person with what was done, to the model without ids.

The sentences are in `core.plan_sentences`; here it is decided what goes into them. A model is told
from the plan's own record alone, so that what it was once told can be computed again as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from landed.core.contract import Contract, Effect
from landed.core.operation import Operation, State
from landed.core.plan import CLOCK, PLAN_MOVES, At, Plan, PlanEvent, PlanState
from landed.core.plan_sentences import (
    BY_THE_CLOCK,
    ENDINGS,
    NOT_COMMITTED,
    ended,
    ended_to_model,
)
from landed.core.sentences import call_text, fact, sayable

Contracts = Mapping[str, Contract]
Operations = Mapping[str, Operation]

LATE_YES_S = 86_400.0  # how long after its time what a person was asked about is left alone

# The events after which a model is told of a plan: it came to rest, and not by all being done.
TOLD_ON = frozenset(
    {
        PlanEvent.FOUND_INVALID,
        PlanEvent.DECLINED,
        PlanEvent.EXPIRED,
        PlanEvent.ABANDONED,
        PlanEvent.BROKE_OFF,
        PlanEvent.STOPPED,
        PlanEvent.UNDONE,
        PlanEvent.UNDO_BROKE_OFF,
    }
)

# What is said after a step that is done, where that is not the whole truth.
QUALIFIED: Mapping[str, Mapping[str, str]] = {
    "en": {
        "partly": "ended early, it may have run in part",
        "assumed": "treated as done, though nobody could confirm it",
    },
    "es": {
        "partly": "cortado antes de terminar, puede haberse hecho en parte",
        "assumed": "se da por hecho, aunque nadie pudo confirmarlo",
    },
}

WAITING = (
    "The person has been shown this and is asked; only they can say yes. Do not propose it again,"
    " and do not say that it was done."
)
KEPT = (
    "This is a look ahead: nothing was done. It is begun by committing it as it was shown; nobody"
    " has to agree to it."
)
AGREED = (
    "The person said yes to this. It is begun by committing it as it was shown; do not say that it"
    " was done."
)
PREVIEWED = (
    "This is a look ahead: nothing was done, and nobody was asked. Propose it to have it done."
)
STOPPING = (
    "The person has it stopped ({count} of {of} done): what is in flight is waited for or found"
    " out, and no more of it is begun. Do not do any of it on your own."
)
UNDOING = "The person is having it taken back. Neither undo nor redo any of it on your own."
GOES_ON = "It is being carried out ({count} of {of} done); do not propose any of it again."


_ON_THE_WAY = {PlanState.STOPPING: STOPPING, PlanState.UNDOING: UNDOING}


def summaries(plan: Plan) -> tuple[str, ...]:
    """Return each step in a line: as its preview put it, or as the call that it is."""
    if plan.previews:
        return tuple(preview.summary for preview in plan.previews)
    return tuple(call_text(step.tool, step.arguments) for step in plan.steps)


def as_of_now(plan: Plan, now: float) -> Plan:
    """Return a plan as it reads at a moment: what nobody answered or committed in time is over."""
    if not plan.expired(now):
        return plan
    state = PLAN_MOVES[plan.state][lapses_as(plan)]
    return replace(plan, state=state, by=CLOCK, why=too_late(plan))


def lapses_as(plan: Plan) -> PlanEvent:
    """Return how a plan ends that did not begin in time: what code kept is dropped, by its side."""
    return PlanEvent.ABANDONED if plan.begins else PlanEvent.EXPIRED


def is_orphan(plan: Plan, now: float) -> bool:
    """Whether a plan waits that nobody can begin any more, and nobody is to be told so."""
    grace_s = LATE_YES_S if plan.needs_yes and not plan.agreed_by else 0.0
    return plan.expired(now - grace_s)


def too_late(plan: Plan) -> str:
    """Return why a plan that waited is over by the clock."""
    waited_for_code = plan.begins and (plan.agreed_by or not plan.needs_yes)
    return NOT_COMMITTED if waited_for_code else BY_THE_CLOCK


def previewed_to_model(plan: Plan) -> str:
    """Return what a model is told of a plan that was only previewed."""
    if plan.state is PlanState.INVALID:
        return to_model(plan)
    return f"{'; '.join(summaries(plan))}. {PREVIEWED}"


def is_ended(plan: Plan) -> bool:
    """Whether it has come to rest, so that there is an ending to tell."""
    return plan.state in ENDINGS


def to_model(plan: Plan) -> str:
    """Return what a model is told of a plan; never that it failed while nobody knows."""
    if plan.state is PlanState.PROPOSED:
        asked = WAITING if plan.needs_yes else KEPT
        return f"{'; '.join(summaries(plan))}. {AGREED if plan.agreed_by else asked}"
    if not is_ended(plan):
        on_the_way = _ON_THE_WAY.get(plan.state, GOES_ON)
        return on_the_way.format(count=plan.done, of=len(plan.steps))
    lines = summaries(plan)
    said = [f"{line}{_qualified(plan, n)}" for n, line in enumerate(lines)]
    return ended_to_model(
        plan.state,
        **_parts(plan, said, lines),
        why=_why(plan),
        questions=_questions(plan),
        changed=bool(plan.changed),
    )


def to_person(
    plan: Plan,
    operations: Operations,
    contracts: Contracts,
    *,
    language: str,
    can_undo: bool = False,
    can_retry: bool = False,
) -> str:
    """Return how a plan ended, for the person; what was done is told with its real outcome."""
    lines = [
        _line(plan, n, operations, contracts, language=language) for n in range(len(plan.steps))
    ]
    final = _is_final(plan, operations, contracts)
    offers = (("correct", final), ("undo", can_undo), ("retry", can_retry))
    return ended(
        plan.state,
        **_parts(_since(plan, operations), lines, summaries(plan)),
        why=_why(plan),
        questions=_questions(plan),
        can=[name for name, there in offers if there],
        language=language,
    )


class _Parts(TypedDict):
    """What an ending is made of, by the names that `plan_sentences` has for it."""

    done: Sequence[str]
    failed: str
    unknown: Sequence[str]
    not_done: Sequence[str]


def _parts(plan: Plan, lines: Sequence[str], planned: Sequence[str]) -> _Parts:
    """Return the steps by what became of them; `lines` tell what is done, `planned` the rest."""
    if plan.state in _TAKEN_BACK:
        # Last to first: what could not be taken back is the last that is still there.
        left = [lines[n] for n in _at(plan, At.DONE)]
        undone = [lines[n] for n in _at(plan, At.UNDONE)]
        stuck = left.pop() if left else ""
        return _Parts(done=undone, failed=stuck, unknown=(), not_done=left)
    return _Parts(
        done=[lines[n] for n in _at(plan, At.DONE)],
        failed=next((planned[n] for n in _at(plan, At.BROKEN)), ""),
        unknown=[lines[n] for n in _at(plan, At.OUT)],
        not_done=[planned[n] for n in _at(plan, At.WAITING)],
    )


_TAKEN_BACK = frozenset({PlanState.UNDONE, PlanState.UNDO_PARTIAL})
_LANDED = frozenset({State.CONFIRMED, State.ASSUMED})


def _since(plan: Plan, operations: Operations) -> Plan:
    """Return a plan with what was taken back after all, by a person's word, once it had ended."""
    every = operations.values()
    back = {each.undoes for each in every if each.undoes and each.state in _LANDED}
    places = [replace(p, at=At.UNDONE) if p.record in back else p for p in plan.places]
    return replace(plan, places=tuple(places)) if plan.state in _TAKEN_BACK else plan


def _at(plan: Plan, at: At) -> Sequence[int]:
    """Return the steps that stand there; reads change nothing, so only one that broke is told."""
    pairs = enumerate(zip(plan.steps, plan.places, strict=True))
    return [n for n, (step, p) in pairs if p.at is at and (at is At.BROKEN or not step.reads)]


def _why(plan: Plan) -> str:
    """Return why it ended so, with each fact that moved and what it is now."""
    if not plan.changed:
        return plan.why
    return "; ".join(f"{c.field}: {c.was} ▸ {c.now}" for c in plan.changed)


def _questions(plan: Plan) -> Sequence[str]:
    return plan.why.split("\n") if plan.state is PlanState.INVALID else ()


def _line(
    plan: Plan, index: int, operations: Operations, contracts: Contracts, *, language: str
) -> str:
    """Return what came of a step: in its contract's own words, else what was shown and its id."""
    planned, place = summaries(plan)[index], plan.places[index]
    operation = operations.get(place.record)
    if operation is None:
        return planned
    contract = contracts[operation.contract]
    if sayable(operation) in contract.says.get(language, {}):
        return fact(operation, contract, language=language)
    made = "" if place.made is None else f" ({place.made})"
    return f"{planned}{made}{_qualified(plan, index, language=language)}"


def _qualified(plan: Plan, index: int, *, language: str = "en") -> str:
    """Return what has to be said after a step that is done, "" where it is that and no less."""
    how = plan.places[index].how
    return f" ({QUALIFIED[language][how]})" if how else ""


def _is_final(plan: Plan, operations: Operations, contracts: Contracts) -> bool:
    """Whether something that cannot be taken back was done, and there is a way to correct it."""
    done = (operations.get(plan.places[n].record) for n in _at(plan, At.DONE))
    held = [contracts[operation.contract] for operation in done if operation is not None]
    return any(c.effect is Effect.IRREVERSIBLE and bool(c.correct) for c in held)
