"""The verbs for what is in doubt: look now, what waits for a person, rulings, sweeps."""

import asyncio
import re
from dataclasses import dataclass, replace

from landed.core.absorb import Looked, Question
from landed.core.case import (
    Case,
    CaseEvent,
    Ruling,
    Standing,
    Why,
    case_from,
    case_record,
)
from landed.core.changes import Changes, Kind, Move
from landed.core.errors import ProposalError, StaleWriteError
from landed.core.event import Event
from landed.core.operation import Operation, State
from landed.core.operation_record import from_record
from landed.core.outcome import Found, Listed, NoAnswer
from landed.core.scope import Arrival, CaseRuled, LookNow, Ruled
from landed.core.tool import Tool
from landed.core.value import Value
from landed.runtime.inbox import Inbox
from landed.runtime.performing import Performing
from landed.runtime.waiting import Answer, looked_enough

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep of one tool found: effects listed, settled by it, and put before a person."""

    tool: str
    listed: int = 0
    settled: int = 0
    cases: int = 0
    why_not: str = ""


@dataclass(slots=True, eq=False)
class Settling(Performing):
    """The verbs by which what is in doubt gets settled."""

    async def resolve(
        self,
        what: str,
        *,
        ruling: Ruling | None = None,
        by: str = "",
        note: str = "",
        made: str = "",
        patience_s: float | None = None,
    ) -> Value | None:
        """Look now, or say as a person how it is.

        Without a `ruling`: put the next question about an operation in doubt without waiting its
        turn, and return it as it stands after the answer, or after `patience_s` seconds. With one,
        `by` whom and with what `note`: settle an operation that cannot be found out (`landed`, then
        with the id of what it `made`, or `absent`), leave it open (`hold`), let go of what it holds
        (`lift`), or close a case (`sign_off`). Returns None for a case about no operation. Raises
        `ProposalError` for an id that is none, and for a ruling that does not fit.
        """
        self._check_open()
        if ruling is None:
            return await self._look_now(what, patience_s)
        if not by:
            raise ProposalError("a ruling needs a name: say by= whom it is")
        (record,) = await self.driver.store.load(what) or (None,)
        if record is not None and record.kind is Kind.CASE:
            return await self._rule_case(case_from(record), ruling, by, note)
        held = await self.driver.reader.operation(what)
        arrival = Ruled(operation=held.id, ruling=ruling, by=by, note=note, made=made)
        await self._hand_in(held.tenant, held.session, arrival, f"{what} is {held.state}")
        return await self.status(what)

    async def inbox(self, *, tenant: str = "default") -> tuple[Standing, ...]:
        """Return the cases that wait for a person, oldest first; nothing is claimed."""
        self._check_open()
        return await Inbox(reader=self.driver.reader, tenant=tenant).cases()

    async def sweep(self, tool: str, *, since: float = 0.0, tenant: str = "default") -> Swept:
        """Compare what a service holds with what is recorded here.

        What is in doubt and listed is settled by it. What was settled as without effect and is
        listed contradicts that, and an effect that no record speaks of is a case: both are put in
        front of a person. `since` is UTC, seconds since the epoch. Two sweeps at once find the same
        cases once. Raises `ProposalError` for a tool that cannot list what its service holds.
        """
        self._check_open()
        known = self.driver.tool(tool)
        if not known.contract.list_effects:
            raise ProposalError(f"{tool} cannot list what its service holds: no list_effects")
        came = await self._listed(known, since)
        if isinstance(came, NoAnswer):
            return Swept(tool=tool, why_not=came.reason)
        settled = cases = 0
        for effect in came.effects:
            held = await self.operation_by_key(effect.key)
            if held is None or held.tool != tool:
                case = Case(
                    why=Why.UNRECORDED,
                    subject=effect.key or effect.id,
                    tenant=tenant,
                    session="",
                    tool=tool,
                    says=effect.says,
                    opened_at=self._clock.now(),
                )
                cases += await self._open(case)
            elif not held.final or held.state is State.FAILED:
                settled += await self._found(held, effect.result)
        return Swept(tool=tool, listed=len(came.effects), settled=settled, cases=cases)

    async def operation_by_key(self, key: str) -> Operation | None:
        """Return the operation of a key, by the id that stands in it; None for a key of others."""
        parts = ID.findall(key)
        for record in await self.driver.store.load(*dict.fromkeys([key, *parts])) if key else ():
            if record.kind is Kind.OPERATION and record.frozen["key"] in ("", key):
                return await self.driver.reader.operation(record.id)
        return None

    # What these verbs share.

    async def _look_now(self, operation: str, patience_s: float | None) -> Value:
        held = await self.driver.reader.operation(operation)
        contract = self.driver.reader.contracts[held.contract]
        settled = held.final or held.state is State.ASSUMED
        if settled or (held.open and held.worker != self.driver.worker):
            return self.driver.reader.value(held)
        seconds = contract.deadline_s if patience_s is None else patience_s
        loop = self.driver.loop_of(tenant=held.tenant, session=held.session)
        waiter = self._waiter(held.id, enough=looked_enough(held.looks), seconds=seconds)
        loop.wait_for(waiter)
        loop.tell(LookNow(operation=held.id))
        answer: Answer = await waiter.future
        return self.driver.reader.value(answer.operation)

    async def _rule_case(self, case: Case, ruling: Ruling, by: str, note: str) -> Value | None:
        arrival = CaseRuled(case=case.id, ruling=ruling, by=by, note=note)
        what = f"{case.id} is {case.state}"
        await self._hand_in(case.tenant, case.session or case.id, arrival, what)
        return None if case.why is Why.UNRECORDED else await self.status(case.subject)

    async def _hand_in(self, tenant: str, session: str, arrival: Arrival, what: str) -> None:
        refused = await self.driver.loop_of(tenant=tenant, session=session).hand_in(arrival)
        if refused:
            raise ProposalError(f"{what}: {refused}")

    async def _listed(self, tool: Tool, since: float) -> Listed | NoAnswer:
        try:
            async with asyncio.timeout(tool.contract.deadline_s):
                return await tool.list_effects(since)
        except TimeoutError:
            return NoAnswer(reason=f"no answer within {tool.contract.deadline_s:g} s")

    async def _found(self, held: Operation, result: object) -> bool:
        """Hand a listed effect to the loop of its operation, as what a look found."""
        now = self._clock.now()
        back = Looked(
            operation=held.id,
            question=Question.LOOKUP,
            attempt=held.tries,
            outcome=Found(result=result),  # type: ignore[arg-type]
            asked_at=now,
            at=now,
        )
        await self.driver.loop_of(tenant=held.tenant, session=held.session).hand_in(back)
        (record,) = await self.driver.store.load(held.id)
        return from_record(record).state is not held.state

    async def _open(self, case: Case) -> bool:
        """Open a case, unless the same thing was noticed before; return whether it is new."""
        after = case_record(replace(case, version=1))
        opened = Event(name=CaseEvent.OPENED, record=case.id, at=case.opened_at)
        move = Move(after=after, event=opened)
        try:
            await self.driver.store.commit(Changes(moves=(move,)))
        except StaleWriteError:
            return False
        return True
