"""How far a plan has come, step by step, for whoever shows it while it is carried out.

What this process carries out is told after each commit; a plan that another process has in hand is
read again and again, with bounded pauses. Watching is free: nothing is written for it.
"""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from landed.core.journal import as_of
from landed.core.plan import At, Plan, PlanState, plan_from
from landed.core.plan_sentences import PREVIEW, progress_line
from landed.core.telling import is_ended, summaries, to_person
from landed.runtime.committing import Committing
from landed.runtime.following import rests

EVENTS_MAX = 1000  # of one plan, that are read to tell somebody what they missed
MISSED_MAX = 200  # of these, that they are told
LOOK_S = 1.0  # how often a plan that another process carries out is read


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A plan at one moment: which step is being done, how far that is, and the line to show.

    `step` counts from 1 (0 where the plan waits for a yes), `of` is how many there are, `at` how
    far the step is (waiting, out, done, broken), `summary` what it does, `state` the plan's. `text`
    is "Step 2 of 4: …", and how the plan ended once it has. `version` is the plan's: where to go on
    from (`after`), and not what makes two of these differ.
    """

    plan: str
    step: int
    of: int
    at: At
    summary: str
    state: PlanState
    text: str
    version: int = field(default=0, compare=False)


@dataclass(slots=True, eq=False)
class Progressing(Committing):
    """The verb for whoever watches a plan."""

    async def progress(
        self, plan: str, *, tenant: str = "default", after: int | None = None
    ) -> AsyncGenerator[Progress, None]:
        """Yield how a plan stands now, and each time it has come further, until it is at rest.

        It is at rest once it is over, or waits for a person; the last thing that is yielded says
        how. It also ends when this runtime does. Who is slow to take what is yielded misses what
        lies in between, never the latest, and holds nothing up. With `after`, the `version` that
        was seen last, it goes on from there: what came since is yielded first, the latest
        `MISSED_MAX` of it. Raises `ProposalError` for an id that is none.
        """
        self._check_open()
        listeners = self.driver.setting.listeners
        shown: Progress | None = None
        with listeners.listening(plan) as listener:
            held = await self.driver.reader.plan(plan, tenant=tenant)
            listener.version = max(listener.version, held.version)
            missed = deque(await self._since(held, after))
            while True:
                while missed or listener.heard:
                    held = (missed or listener.heard).popleft()
                    now = await self._progress(held)
                    if now != shown:
                        shown = now
                        yield now
                if listeners.over or await rests(self.driver.store, held):
                    return
                await listener.wait(LOOK_S)
                if not listener.heard and not self._in_hand(held):
                    listener.hear(await self.driver.reader.plan(plan, tenant=tenant))

    async def _since(self, plan: Plan, after: int | None) -> Sequence[Plan]:
        """Return a plan as it was after each event since a version, up to how it stands now."""
        if after is None:
            return (plan,)
        (record,) = await self.driver.store.load(plan.id)
        entries = await self.driver.store.journal(record=plan.id, limit=EVENTS_MAX)
        since = [e for e in entries if after < e.version < plan.version and e.body is not None]
        then = [plan_from(as_of(record, entry)) for entry in since[-MISSED_MAX:]]
        return [*then, *((plan,) if plan.version > after else ())]

    def _in_hand(self, plan: Plan) -> bool:
        """Whether this process carries a plan out, so that each step of it is told."""
        loop = self.driver.loops.get((plan.tenant, plan.session))
        held = loop.memory.plans.get(plan.id) if loop is not None else None
        return held is not None and held.worker == self.driver.worker

    async def _progress(self, plan: Plan) -> Progress:
        language, of = self.settings.language, len(plan.steps)
        index = _shown(plan)
        lines = summaries(plan)
        if plan.state is PlanState.PROPOSED:
            step, summary, text = 0, "", "\n".join(lines)
        else:
            step, summary = index + 1, lines[index]
            text = progress_line(step=step, of=of, what=summary, language=language)
        if plan.state is PlanState.UNDOING:
            text = PREVIEW[language]["undoing"]
        if is_ended(plan) and plan.state is not PlanState.IN_DOUBT:
            held = await self.driver.reader.operations(*(p.record for p in plan.places if p.record))
            contracts = self.driver.reader.contracts
            text = to_person(plan, held, contracts, language=language)
        return Progress(
            plan=plan.id,
            step=step,
            of=of,
            at=plan.places[index].at,
            summary=summary,
            state=plan.state,
            text=text,
            version=plan.version,
        )


def _shown(plan: Plan) -> int:
    """Return the step to show: one that is out, else the first that is not done, else the last."""
    for wanted in (At.OUT, At.BROKEN, At.WAITING):
        for index, place in enumerate(plan.places):
            if place.at is wanted:
                return index
    return len(plan.places) - 1
