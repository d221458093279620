"""What a person is shown of a plan, and what they may do about it: from its stored record alone.

The figures, the facts and the look-alikes are those that the tools' own previews gave and that the
plan's hash covers. What the agent wrote is kept apart from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from landed.console.shown import rows
from landed.console.visit import Visit
from landed.core.approval import ApprovalState, Purpose, approval_from, approval_id
from landed.core.contract import Contract, Effect
from landed.core.erased import erased_on
from landed.core.key import ask_name, targets_of
from landed.core.operation import Operation
from landed.core.plan import PLAN_MOVES, At, Place, Plan, PlanEvent, PlanState, Step
from landed.core.plan_sentences import PREVIEW, plan_question, progress_line
from landed.core.preview import Begins, Changed, Preview, Similar
from landed.core.session import input_of
from landed.core.telling import as_of_now, is_ended, summaries, to_person
from landed.core.undo import UNDO_WITHIN_S, undoable
from landed.runtime.permissions import is_in_charge
from landed.runtime.planning import typed_words

# Which colour goes with the word for a state; no colour stands without its word.
TONES: Mapping[PlanState, str] = {
    PlanState.PROPOSED: "warn",
    PlanState.RUNNING: "good",
    PlanState.IN_DOUBT: "doubt",
    PlanState.DONE: "good",
    PlanState.PARTIAL: "warn",
    PlanState.STOPPING: "warn",
    PlanState.UNDOING: "warn",
    PlanState.UNDO_PARTIAL: "bad",
    PlanState.INVALID: "bad",
}
STEP_TONES: Mapping[At, str] = {At.OUT: "warn", At.DONE: "good", At.BROKEN: "bad"}

# Where a plan is once it was shown anew, or may have been.
_SHOWN_AGAIN = frozenset({PlanState.PARTIAL, PlanState.EXPIRED, PlanState.SUPERSEDED})

UNDER_WAY = frozenset(
    {PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.STOPPING, PlanState.UNDOING}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCard:
    """One step: what it does in its own figures, where, at what cost, and how far it is.

    `facts` are what the figures stand on, `alike` what is there already. `is_previewed` is False
    where the tool gives no preview: then its arguments are all that there is to see.
    """

    number: int
    tool: str
    summary: str
    cost_cents: int | None
    facts: Sequence[tuple[str, str]]
    alike: tuple[Similar, ...]
    arguments: Sequence[tuple[str, str]]
    targets: tuple[str, ...]
    is_final: bool
    is_previewed: bool
    at: At
    tone: str
    type: str
    made: str
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCard:
    """A plan as it is shown. `may` are the verbs that whoever looks may press now.

    `text` says how it stands, `question` what is asked; `typed` are the words of which one has to
    be typed. `again` is the newer preview of one that could not be carried out as it was shown.
    `said` is what the person asked for, in their words, `intent` what the agent made of it.
    """

    plan: Plan
    state: PlanState
    tone: str
    steps: tuple[StepCard, ...]
    total_cents: int | None
    text: str
    question: str
    typed: tuple[str, ...]
    may: frozenset[str]
    is_theirs: bool
    is_live: bool
    in_flight: int
    undo_by: float
    changed: tuple[Changed, ...]
    again: str
    said: str
    intent: Sequence[tuple[str, str]]

    @property
    def first(self) -> str:
        """What its first step does."""
        return self.steps[0].summary


async def plan_card(visit: Visit, plan: Plan) -> PlanCard:
    """Return a plan as whoever is signed in is shown it; nothing but its own records is read."""
    reader, language = visit.rt.driver.reader, visit.console.language
    held = [place.record for place in plan.places if place.record]
    operations = await reader.operations(*held) if held else {}
    contracts = [await reader.contract(step.contract, of=plan.id) for step in plan.steps]
    can_undo = undoable(plan, operations, reader.contracts, visit.console.now)
    plan = as_of_now(plan, visit.console.now)
    is_theirs = plan.principal in ("", visit.who.principal)
    may = await _may(visit, plan, is_theirs=is_theirs, can_undo=can_undo)
    typed = typed_words(plan) if "approve" in may else ()
    asked = plan_question("confirm", typed=typed, language=language) if "approve" in may else ""
    return PlanCard(
        plan=plan,
        state=plan.state,
        tone=TONES.get(plan.state, ""),
        steps=_steps(plan, contracts),
        total_cents=_total(plan.previews),
        text=_text(visit, plan, operations, may),
        question=asked,
        typed=typed,
        may=may,
        is_theirs=is_theirs,
        is_live=plan.state in UNDER_WAY,
        in_flight=sum(place.at is At.OUT for place in plan.places),
        undo_by=plan.ended_at + UNDO_WITHIN_S if can_undo else 0.0,
        changed=plan.changed,
        again=await _again(visit, plan),
        said=await _said(visit, plan.input),
        intent=rows(plan.intent),
    )


def waits_for_yes(plan: Plan) -> bool:
    """Whether a person's yes is what it waits for, and not the program that had it previewed."""
    return plan.state is PlanState.PROPOSED and plan.needs_yes and not plan.agreed_by


async def _may(visit: Visit, plan: Plan, *, is_theirs: bool, can_undo: bool) -> frozenset[str]:
    may: set[str] = set()
    if is_theirs and waits_for_yes(plan):
        may |= {"approve", "decline"}
    if is_theirs and plan.state is PlanState.PARTIAL and not _is_outdated(plan):
        may |= await _once_more(visit, plan)
    if plan.state is PlanState.PROPOSED and not may:
        may.add("abandon")
    if PlanEvent.STOP_ASKED in PLAN_MOVES[plan.state]:
        may.add("cancel")
    if plan.state is PlanState.STOPPING:
        may.add("hard")
    if can_undo:
        may.add("undo")
    if is_theirs or not may:
        return frozenset(may)
    permissions = visit.rt.planner.foreseer.permissions
    is_theirs = await is_in_charge(permissions, visit.who.principal, tenant=visit.who.tenant)
    return frozenset(may) if is_theirs else frozenset()


async def _once_more(visit: Visit, plan: Plan) -> set[str]:
    """Return what may be said to running a partial plan once more; a no to that stays a no."""
    if not plan.needs_yes:
        return {"retry"}
    offered = approval_id(plan.id, Purpose.RETRY, plan.attempt + 1)
    states = [approval_from(each).state for each in await visit.rt.driver.store.load(offered)]
    if ApprovalState.DECLINED in states:
        return set()
    return {"retry", "decline"} if ApprovalState.OPEN in states else {"retry"}


def _is_outdated(plan: Plan) -> bool:
    return bool(plan.changed or erased_on(plan.intent))


def _text(
    visit: Visit, plan: Plan, operations: Mapping[str, Operation], may: frozenset[str]
) -> str:
    """Return how it stands, in the runtime's own sentences."""
    language = visit.console.language
    if is_ended(plan):
        return to_person(
            plan,
            operations,
            visit.rt.driver.reader.contracts,
            language=language,
            can_undo="undo" in may,
            can_retry="retry" in may,
        )
    if plan.state is PlanState.PROPOSED:
        return _waits(visit, plan)
    if plan.state is PlanState.UNDOING:
        return PREVIEW[language]["undoing"]
    index = _shown(plan.places)
    what = summaries(plan)[index]
    return progress_line(step=index + 1, of=len(plan.steps), what=what, language=language)


def _waits(visit: Visit, plan: Plan) -> str:
    if plan.agreed_by:
        return visit.say("card.agreed", by=plan.agreed_by)
    if not plan.needs_yes:
        return visit.say("card.by_token")
    if plan.principal not in ("", visit.who.principal):
        return visit.say("card.waits_for", principal=plan.principal)
    return ""


def _shown(places: Sequence[Place]) -> int:
    """Return the step to speak of: one in flight, else the first not done, else the last."""
    for wanted in (At.OUT, At.BROKEN, At.WAITING):
        for index, place in enumerate(places):
            if place.at is wanted:
                return index
    return len(places) - 1


def _steps(plan: Plan, contracts: Sequence[Contract]) -> tuple[StepCard, ...]:
    lines = summaries(plan)
    previews: Sequence[Preview | None] = plan.previews or (None,) * len(plan.steps)
    every = zip(plan.steps, plan.places, previews, contracts, strict=True)
    return tuple(
        _step(number, step, place, preview, contract, summary=lines[number - 1])
        for number, (step, place, preview, contract) in enumerate(every, 1)
    )


def _step(
    number: int,
    step: Step,
    place: Place,
    preview: Preview | None,
    contract: Contract,
    *,
    summary: str,
) -> StepCard:
    return StepCard(
        number=number,
        tool=step.tool,
        summary=summary,
        cost_cents=preview.cost_cents if preview else None,
        facts=rows(preview.basis) if preview else (),
        alike=preview.similar if preview else (),
        arguments=rows(step.arguments),
        targets=targets_of(step.names),
        is_final=contract.effect is Effect.IRREVERSIBLE,
        is_previewed=preview is not None,
        at=place.at,
        tone=STEP_TONES.get(place.at, ""),
        type=contract.makes_type,
        made="" if place.made is None else str(place.made),
        operation="" if step.reads else place.record,
    )


def _total(previews: Sequence[Preview]) -> int | None:
    costs = [preview.cost_cents for preview in previews if preview.cost_cents is not None]
    return sum(costs) if costs else None


async def _again(visit: Visit, plan: Plan) -> str:
    """Return the newer preview of a plan that could not be carried out as it was shown."""
    if plan.state not in _SHOWN_AGAIN or plan.begins != Begins.ITSELF:
        return ""
    name = ask_name(replace(plan.ask, call_id=f"again/{plan.id}"))
    return (await visit.rt.driver.store.holders(name)).get(name, "")


async def _said(visit: Visit, heard: str) -> str:
    """Return what somebody said, in their own words, "" where nobody said anything."""
    records = await visit.rt.driver.store.load(heard) if heard else ()
    return "".join(input_of(record).text for record in records)
