"""The verbs. Each writes one record, or hands one thing to a loop and rings; only loops act."""

import asyncio
import logging
from dataclasses import dataclass, replace

from landed.core.absorb import Looked
from landed.core.absorb import Question as Asked
from landed.core.approval import Problem, approval_from
from landed.core.arrival import Answered, AskPerson, Heard, Told
from landed.core.case import Case, Why
from landed.core.changes import Kind
from landed.core.errors import ProposalError, StaleWriteError, StoreError
from landed.core.history import Item, View
from landed.core.operation import SAYS_MAX, Operation
from landed.core.operation_record import from_record
from landed.core.outcome import Found
from landed.core.question import About, Question, QuestionState, last_question_name, question_from
from landed.core.report import Report
from landed.core.session import Input, input_of, opening, saying, unacted
from landed.core.value import Receipt
from landed.core.yes import Answer, read_answer
from landed.runtime.progress import Progressing
from landed.runtime.proposing import PLAN_PATIENCE_S
from landed.runtime.settling import UNSENT, opening_of, subject

log = logging.getLogger("landed")

INPUT_MAX = 100_000  # characters

_YES = {Answer.YES: True, Answer.NO: False, Answer.OTHER: None}


@dataclass(slots=True, eq=False)
class Runtime(Progressing):
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
        evidence: Receipt | None = None,
    ) -> Input:
        """Make a delivery durable, open a turn for it, and return both ids.

        A strict yes or no answers the last question of the conversation, if it was put to this
        principal; any other words let that question lapse. `origin` says who started the turn
        (`user`, `timer`, …): only a user's words answer. With `evidence`, which the caller has
        verified, the text is kept as it came and the operation that it is about is settled by it in
        the same unit; what is about nothing that is known here is a case. The same `delivery`
        again, from any process, returns the input it made the first time. Raises `ProposalError`
        for a text longer than `INPUT_MAX` characters, and `BusyError` while too much of its tenant
        is in hand here.
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
        with self.driver.setting.sharing.call(tenant):
            return await self._keep_once(received, evidence)

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
        told = await self.driver.reader.report(turn, language=spoken, now=self._clock.now())
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

    async def _witness(self, received: Input, evidence: Receipt) -> Input:
        """Take evidence down, and with it what it settles; return the input as it was stored."""
        held = await self._meant_by(evidence, received.tenant)
        landed = isinstance(evidence.outcome, Found)
        if held is None or (landed and held.state in UNSENT):
            await self._unrecorded(received, evidence)
            return received
        back = Looked(
            operation=held.id,
            question=Asked.RECEIPT,
            attempt=held.tries,
            outcome=evidence.outcome,
            asked_at=received.at,
            at=received.at,
        )
        heard = replace(received, session=held.session)
        loop = self.driver.loop_of(tenant=held.tenant, session=held.session)
        await loop.hand_in(Heard(heard=heard, back=back))
        return heard

    async def _unrecorded(self, received: Input, evidence: Receipt) -> None:
        """Take down what is about nothing that is known here: an input and a case, in one unit."""
        case = Case(
            why=Why.UNRECORDED,
            subject=subject(evidence.key or evidence.operation or received.id),
            tenant=received.tenant,
            session=received.session,
            tool=received.principal,
            says=received.text[:SAYS_MAX],
            opened_at=received.at,
        )
        heard = opening(received)
        unit = replace(heard, moves=(*heard.moves, opening_of(case)))
        try:
            await self.driver.store.commit(unit)
        except StaleWriteError as stale:
            if stale.record != case.id:
                raise
            await self.driver.store.commit(heard)  # It is a case already.
            return
        self.driver.setting.noticed(unit.moves)

    async def _meant_by(self, evidence: Receipt, tenant: str) -> Operation | None:
        """Return the operation that evidence is about; another tenant's is none."""
        held = None
        if evidence.operation:
            known = await self.driver.reader.operations(evidence.operation)
            held = known.get(evidence.operation)
        elif evidence.key:
            held = await self._by_key(evidence.key)
        return held if held is not None and held.tenant == tenant else None

    async def _keep_once(self, received: Input, evidence: Receipt | None) -> Input:
        """Make an input durable; a delivery that came before is the input it made then."""
        try:
            if evidence is None:
                await self._take_down(received)
                return received
            return await self._witness(received, evidence)
        except StaleWriteError as stale:
            if not stale.name.startswith("delivery/"):
                raise
            (first,) = await self.driver.store.load(stale.holder)
            return input_of(first)

    async def _take_down(self, received: Input) -> None:
        asked = None
        if received.origin == "user":
            asked = await self._answers(received)
        if asked is None:
            await self.driver.store.commit(opening(received))
            return
        question, yes = asked
        answered = Answered(
            question=question.id,
            yes=yes,
            principal=received.principal,
            heard=received,
            at=received.at,
        )
        loop = self.driver.loop_of(tenant=question.tenant, session=question.session)
        problem = await loop.hand_in(answered)
        if yes and problem == Problem.EXPIRED:
            await self._show_again(question, received)
        elif yes and not problem and question.about is About.PLAN:
            self._go_on_with(self._show_if_moved(question, received.tenant))

    async def _show_if_moved(self, asked: Question, tenant: str) -> None:
        """Preview a plan anew that a yes in words set going, where its facts have moved.

        Whoever pressed a button waits for the plan and sees to that; who said it in words waits for
        nothing.
        """
        (record,) = await self.driver.store.load(asked.subject)
        plan = await self.driver.reader.plan(approval_from(record).plan, tenant=tenant)
        if (await self._wait_for(plan, PLAN_PATIENCE_S)).changed:
            await self._once_more(plan.id, tenant)

    async def _show_again(self, asked: Question, received: Input) -> None:
        """Preview a plan anew whose yes came too late; the input is durable whatever happens."""
        (record,) = await self.driver.store.load(asked.subject)
        log.info("a yes to %s was refused: %s", asked.subject, Problem.EXPIRED)
        try:
            plan = approval_from(record).plan
            await self._once_more(plan, received.tenant, heard=received)
        except StoreError as error:
            log.warning("what was answered too late could not be shown again: %s", error)

    async def _answers(self, received: Input) -> tuple[Question, bool | None] | None:
        """Return which question these words answer, and how; None for words that answer none.

        A bare yes or no answers the last question of the conversation, one with a number the open
        question that was shown with it. Any other words let the last one lapse, and so does a
        number that no open question has, or a plain yes where words have to be typed.
        """
        last = await self._last_question(received.tenant, received.session)
        reading = read_answer(received.text, typed=last.typed if last else ())
        yes = _YES[reading.answer]
        if reading.number is not None:
            named = await self._numbered(received, reading.number)
            if named is None or (yes and named.typed):
                yes = None
            last = named or last
        if last is None or last.principal not in ("", received.principal):
            return None
        return last, yes

    async def _numbered(self, received: Input, number: int) -> Question | None:
        """Return the open question that was shown with a number in this conversation."""
        records = await self.driver.reader.records(tenant=received.tenant, session=received.session)
        every = [question_from(r) for r in records if r.kind is Kind.QUESTION]
        shown = [q for q in every if q.number == number and q.state is QuestionState.OPEN]
        return shown[-1] if shown else None

    async def _asked(self, heard: Input, text: str) -> str:
        """Return the question of that text which was put for an input, "" for none."""
        (words,) = await self.driver.store.load(heard.id)
        records = await self.driver.reader.records(
            tenant=heard.tenant, session=heard.session, after=words.made
        )
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

    async def _keep_said(self, told: Report) -> None:
        """Keep what was told of a turn, once for each text."""
        (turn,) = await self.driver.store.load(told.turn)
        every = await self.driver.reader.records(
            tenant=turn.tenant, session=turn.session, after=turn.made
        )
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
