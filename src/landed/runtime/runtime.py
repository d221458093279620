"""The verbs. Each writes one record, or hands one thing to a loop and rings; only loops act."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.changes import Kind
from landed.core.errors import ProposalError, StaleWriteError
from landed.core.history import Item, View
from landed.core.key import Ask
from landed.core.operation import from_record
from landed.core.plan import Plan, Wanted
from landed.core.question import About, Question, QuestionState, last_question_name, question_from
from landed.core.report import Report
from landed.core.scope import Answered, AskPerson, Planned, Revised, Told
from landed.core.session import Input, input_of, opening, saying, unacted
from landed.core.value import PlanValue
from landed.core.yes import Answer, read
from landed.runtime.performing import Performing
from landed.runtime.waiting import PlanWaiter

INPUT_MAX = 100_000  # characters
PLAN_PATIENCE_S = 300.0

_YES = {Answer.YES: True, Answer.NO: False, Answer.OTHER: None}


@dataclass(slots=True, eq=False)
class Runtime(Performing):
    """An open runtime: made by `landed.open`, entered with `async with`.

    It belongs to the event loop it was entered on; a verb called from another loop raises
    `WrongLoopError`. Every verb may raise `StoreError` when the store cannot do what was asked.
    """

    async def __aenter__(self) -> "Runtime":
        await self._enter()
        return self

    async def receive(
        self,
        text: str,
        *,
        session: str = "main",
        principal: str = "",
        tenant: str = "default",
        delivery: str = "",
        origin: str = "user",
    ) -> Input:
        """Make a delivery durable, open a turn for it, and return both ids.

        A strict yes or no answers the last question of the conversation, if it was put to this
        principal; any other words let that question lapse. `origin` says who started the turn
        (`user`, `timer`, …): only a user's words answer. The same `delivery` again, from any
        process, returns the input it made the first time. Raises `ProposalError` for a text longer
        than `INPUT_MAX` characters.
        """
        self._check_open()
        _check_length(text)
        received = Input(
            id=self.ids.new("input"),
            tenant=tenant,
            session=session,
            principal=principal,
            text=text,
            origin=origin,
            delivery=delivery,
            turn=self.ids.new("turn"),
            at=self._clock.now(),
        )
        try:
            await self._take_down(received)
        except StaleWriteError as stale:
            if not stale.name.startswith("delivery/"):
                raise
            (first,) = await self.driver.store.load(stale.holder)
            return input_of(first)
        return received

    async def propose(
        self,
        calls: Sequence[Wanted] = (),
        *,
        ask: Ask,
        intent: Mapping[str, Json] | None = None,
        origin: str = "user",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Carry out ordered calls as one unit, each step once, and return what it came to.

        With an `intent` and no calls, the application's `plan_for` makes the calls. Returns when
        the plan is over, or after `patience_s` seconds as it stands. The same ask again joins the
        same plan. Raises `ProposalError` for what cannot be carried out; nothing was sent then.
        """
        self._check_open()
        planned = self.planner.proposed(ask, calls, intent or {}, origin)
        return await self._carry_out(planned, patience_s)

    async def revise(
        self,
        turn: str,
        heard: Input,
        *,
        wanted: Sequence[Wanted] | None = None,
        change: Mapping[str, Json] | None = None,
        drop: Sequence[str] = (),
        call_id: str = "revise",
        patience_s: float = PLAN_PATIENCE_S,
    ) -> PlanValue:
        """Change what `turn` wants to what `heard` asks for, and carry that out.

        Give the calls that are `wanted` now, or the `change` to the turn's intent. What is equal is
        kept; what changed is released once its replacement holds, or corrected where it cannot be
        taken back; what is left out is a question, unless `drop` names it (by operation or tool).
        Returns when all that is done, but for what waits for a person. Raises `ProposalError` for a
        turn that is unknown, has ended, or was revised already.
        """
        self._check_open()
        revised = await self.planner.revised(
            turn, heard, wanted=wanted, change=change or {}, drop=drop, call_id=call_id
        )
        return await self._carry_out(revised, patience_s)

    async def ask(
        self, heard: Input, text: str, *, turn: str = "", claim: str = "", operation: str = ""
    ) -> str:
        """Put a question to the person, and return its id; nothing is interrupted by it.

        With `turn` it asks what was meant for that turn, which can then be revised also when it
        ends before the answer comes. With `operation` and `claim` it asks whether what somebody
        says is to be taken for true: that an operation in doubt made the thing of that id. Only the
        person's yes settles it. The same text for the same input is asked once. Raises
        `ProposalError` for an operation that is settled already.
        """
        self._check_open()
        if before := await self._asked(heard, text):
            return before
        if operation:
            held = await self.driver.reader.operation(operation)
            if held.final:
                raise ProposalError(f"{operation} is {held.state} already; nothing is in doubt")
        subject = operation
        if turn:
            subject = await self.planner.plan_of(turn, tenant=heard.tenant, session=heard.session)
        asked = AskPerson(
            turn=heard.turn,
            tenant=heard.tenant,
            session=heard.session,
            principal=heard.principal,
            text=text,
            about=About.CLAIM if operation else About.UNSURE,
            subject=subject,
            claim=claim,
        )
        loop = self.driver.loop_of(tenant=heard.tenant, session=heard.session)
        await loop.hand_in(asked)
        return await self._asked(heard, text)

    async def approve(self, question: str, *, principal: str) -> None:
        """Say yes to a question, as the person it was put to.

        Raises `ProposalError`, the same for a question that does not exist, is answered, or was put
        to somebody else.
        """
        await self._answer(question, principal, yes=True)

    async def decline(self, question: str, *, principal: str) -> None:
        """Say no to a question, as the person it was put to; raises as `approve` does."""
        await self._answer(question, principal, yes=False)

    async def unacted(self, session: str = "main", *, tenant: str = "default") -> tuple[Input, ...]:
        """Return the inputs that were acknowledged and that nothing was done for yet.

        An application asks for them when it takes a session up again after a crash.
        """
        self._check_open()
        return unacted(await self.driver.reader.records(tenant=tenant, session=session))

    async def history(
        self, session: str = "main", *, tenant: str = "default", view: View = View.CACHE
    ) -> tuple[Item, ...]:
        """Return what a model is shown of a session, computed from the records.

        What is still open is kept as told in this state, so that these words stay where they are
        when more is known: that is appended.
        """
        self._check_open()
        await self._tell_open(session, tenant)
        return await self.driver.reader.history(session, tenant=tenant, view=view)

    async def report(self, turn: str, *, language: str = "") -> Report:
        """Return what the person is told of a turn, and keep that it was told.

        `turn` is the id that `receive` gave, or the id of an operation that was performed without
        an input. Raises `ProposalError` for an unknown id.
        """
        self._check_open()
        spoken = language or self.settings.language
        told = await self.driver.reader.report(turn, language=spoken)
        await self._keep_said(told)
        return told

    # What these verbs share.

    async def _tell_open(self, session: str, tenant: str) -> None:
        """Keep of what is open and held here that a model was shown it as it stands."""
        records = await self.driver.reader.records(tenant=tenant, session=session)
        held = [from_record(r) for r in records if r.kind is Kind.OPERATION and r.open]
        told = [
            Told(operation=operation.id, state=operation.state)
            for operation in held
            if operation.worker == self.driver.worker and operation.told != operation.state
        ]
        if told:
            loop = self.driver.loop_of(tenant=tenant, session=session)
            await asyncio.gather(*map(loop.hand_in, told))

    async def _take_down(self, received: Input) -> None:
        last = None
        if received.origin == "user":
            last = await self._last_question(received.tenant, received.session)
        if last is None or last.principal not in ("", received.principal):
            await self.driver.store.commit(opening(received))
            return
        answered = Answered(
            question=last.id,
            yes=_YES[read(received.text)],
            principal=received.principal,
            heard=received,
            at=received.at,
        )
        await self.driver.loop_of(tenant=last.tenant, session=last.session).hand_in(answered)

    async def _asked(self, heard: Input, text: str) -> str:
        """Return the question of that text which was put for an input, "" for none."""
        records = await self.driver.reader.records(tenant=heard.tenant, session=heard.session)
        asked = [question_from(r) for r in records if r.kind is Kind.QUESTION]
        return next((q.id for q in asked if (q.turn, q.text) == (heard.turn, text)), "")

    async def _last_question(self, tenant: str, session: str) -> Question | None:
        name = last_question_name(tenant=tenant, session=session)
        holders = await self.driver.store.holders(name)
        if name not in holders:
            return None
        (record,) = await self.driver.store.load(holders[name])
        last = question_from(record)
        return last if last.state is QuestionState.OPEN else None

    async def _answer(self, question: str, principal: str, *, yes: bool) -> None:
        self._check_open()
        records = await self.driver.store.load(question)
        asked = question_from(records[0]) if records and _is_question(records[0].kind) else None
        if (
            asked is None
            or asked.state is not QuestionState.OPEN
            or asked.principal not in ("", principal)
        ):
            raise ProposalError(f"there is no open question {question!r} for you to answer")
        answered = Answered(
            question=question, yes=yes, principal=principal, heard=None, at=self._clock.now()
        )
        await self.driver.loop_of(tenant=asked.tenant, session=asked.session).hand_in(answered)

    async def _carry_out(self, planned: Planned | Revised, patience_s: float) -> PlanValue:
        plan = planned.plan
        waiter = PlanWaiter(
            plan=plan.id,
            future=asyncio.get_running_loop().create_future(),
            until=self._clock.now() + patience_s,
        )
        self.driver.loop_of(tenant=plan.tenant, session=plan.session).plan(planned, waiter)
        answer = await waiter.future
        return await self._plan_value(answer.plan, replayed=answer.replayed)

    async def _plan_value(self, plan: Plan, *, replayed: bool) -> PlanValue:
        told = await self.driver.reader.report(plan.turn, language=self.settings.language)
        return PlanValue(
            plan=plan.id,
            turn=plan.turn,
            state=plan.state,
            text=told.text,
            operations=told.operations,
            questions=told.questions,
            replayed=replayed,
        )

    async def _keep_said(self, told: Report) -> None:
        """Keep what was told of a turn, once for each text."""
        (turn,) = await self.driver.store.load(told.turn)
        every = await self.driver.reader.records(tenant=turn.tenant, session=turn.session)
        said = [r for r in every if r.kind is Kind.MESSAGE and r.frozen["turn"] == told.turn]
        if said and said[-1].frozen["text"] == told.text:
            return
        await self.driver.store.commit(
            saying(
                id=self.ids.new("message"),
                tenant=turn.tenant,
                session=turn.session,
                turn=told.turn,
                text=told.text,
                at=self._clock.now(),
            )
        )


def _check_length(text: str) -> None:
    if len(text) > INPUT_MAX:
        raise ProposalError(
            f"the input has {len(text)} characters; at most {INPUT_MAX} are taken: send the rest"
            " as a file and name it"
        )


def _is_question(kind: Kind) -> bool:
    return kind is Kind.QUESTION
