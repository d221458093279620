"""The verbs for what is in doubt: look now, what waits for a person, rulings, sweeps."""

import asyncio
import logging
import re
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from hashlib import sha256
from typing import cast, overload

from landed.core.absorb import Looked, Question
from landed.core.arrival import Arrival, CaseRuled, LookNow, Ruled
from landed.core.canonical import Json
from landed.core.case import Case, CaseEvent, Ruling, Standing, Why, case_from, case_record
from landed.core.census import IN_DOUBT
from landed.core.changes import Changes, Kind, Move
from landed.core.errors import LandedError, ProposalError, StaleWriteError
from landed.core.event import Event
from landed.core.operation import SAYS_MAX, Operation, State
from landed.core.outcome import Found, Listed, ListedEffect, NoAnswer
from landed.core.tool import Tool
from landed.core.value import Value
from landed.runtime.inbox import Inbox
from landed.runtime.lapsing import LAPSES_EVERY_S, Lapsing
from landed.runtime.notifying import Notifier
from landed.runtime.performing import Performing
from landed.runtime.reconciling import Reconciler
from landed.runtime.waiting import Answer, looked_enough

log = logging.getLogger("landed")

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")

LISTED_MAX = 100_000  # effects of one sweep that are compared
KEY_MAX = 300  # characters of a service's id
SWEEPS_BACK_S = 86_400.0  # how far a round of sweeps looks back behind the one before

# A service that holds the effect of one of these holds one that no record here speaks of.
UNSENT = (State.RECORDED, State.WITHDRAWN)


class Compared(Enum):
    """What comparing one effect with the records came to."""

    KNOWN = auto()
    SETTLED = auto()
    CASE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep of one tool found: effects listed, settled by it, and put before a person."""

    tool: str
    listed: int = 0
    settled: int = 0
    cases: int = 0
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """How much is in doubt here: operations being found out, and cases; ages in seconds."""

    unknown: int
    oldest_unknown_s: float
    cases: int
    oldest_case_s: float


@dataclass(slots=True, eq=False)
class Settling(Performing):
    """The verbs by which what is in doubt gets settled; `notifier` tells of cases that open."""

    notifier: Notifier | None = None

    @overload
    async def resolve(self, what: str, *, patience_s: float | None = None) -> Value: ...
    @overload
    async def resolve(
        self, what: str, *, ruling: Ruling | None, by: str = "", note: str = "", made: str = ""
    ) -> Value | None: ...
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
        cases once. What another worker has in hand is left to it. Raises `ProposalError` for a tool
        that cannot list what its service holds.
        """
        self._check_open()
        known = self.driver.tool(tool)
        if not known.contract.list_effects:
            raise ProposalError(f"{tool} cannot list what its service holds: no list_effects")
        came = await self._listed(known, since)
        if isinstance(came, NoAnswer):
            return Swept(tool=tool, why_not=came.reason)
        settled = cases = 0
        for effect in came.effects[:LISTED_MAX]:
            found = await self._compare(known, effect, tenant)
            settled += found is Compared.SETTLED
            cases += found is Compared.CASE
        every = len(came.effects)
        more = "" if every <= LISTED_MAX else f"only {LISTED_MAX} of {every} were compared"
        return Swept(tool=tool, listed=every, settled=settled, cases=cases, why_not=more)

    async def in_doubt(self, *, tenant: str = "default") -> InDoubt:
        """Return how much is in doubt, and for how long: what this process is finding out, and all
        that waits for a person.
        """
        self._check_open()
        now = self._clock.now()
        every = [one for loop in self.driver.loops.values() for one in loop.memory.mine()]
        unknown = [one for one in every if isinstance(one, Operation) and one.state in IN_DOUBT]
        asked = [one.since for one in await self.inbox(tenant=tenant)]
        since = [one.first_sent_at for one in unknown if one.tenant == tenant]
        return InDoubt(
            unknown=len(since),
            oldest_unknown_s=now - min(since, default=now),
            cases=len(asked),
            oldest_case_s=now - min(asked, default=now),
        )

    # What these verbs share.

    async def drain(self) -> None:
        """Start nothing new, let what is out come back, and let go of every claim."""
        await Performing.drain(self)
        if self.notifier is not None:
            await self.notifier.end()

    def _begun(self) -> Sequence[Coroutine[None, None, None]]:
        begun = [*Performing._begun(self)]
        if self.settings.sweep_every_s is not None:
            begun.append(self._sweeping(self.settings.sweep_every_s))
        if not self.driver.decides_only:
            begun.append(Reconciler(self.driver, self.worker.lookout, self._swept).rounds())
            begun.append(self._lapsing())
        if self.notifier is not None:
            self.driver.setting.hear.append(self.notifier.notice)
            begun.append(self.notifier.recall())
        return begun

    async def _sweeping(self, every_s: float) -> None:
        """Sweep each tool that can be swept, round after round; a round begins after the last."""
        since: dict[str, float] = {}
        can = [tool.name for tool in self.driver.tools.values() if tool.contract.list_effects]
        while self.worker.lost is None:
            await asyncio.sleep(every_s)
            for tool in can:
                began = self._clock.now()
                if await self._swept(tool, since.get(tool, 0.0)):
                    since[tool] = max(0.0, began - SWEEPS_BACK_S)

    async def _lapsing(self) -> None:
        """Let plans that nobody began in time lapse, round after round."""
        lapsing = Lapsing(self.driver, self.settings.tenants)
        while self.worker.lost is None:
            await asyncio.sleep(LAPSES_EVERY_S)
            await lapsing.round()

    async def _swept(self, tool: str, since: float) -> bool:
        """Sweep one tool in a round; whatever goes wrong is logged, and tried in the next one."""
        tenant = next(iter(self.settings.tenants), "default")
        try:
            swept = await self.sweep(tool, since=since, tenant=tenant)
        except LandedError as error:
            log.warning("the effects of %s could not be compared: %s", tool, error)
            return False
        if swept.why_not:
            log.warning("the effects of %s could not all be compared: %s", tool, swept.why_not)
        return not swept.why_not

    async def _compare(self, tool: Tool, effect: ListedEffect, tenant: str) -> Compared:
        """Compare one effect with what is recorded of it."""
        held = await self._by_key(effect.key)
        if held is None or held.state in UNSENT or not self._reaches(held, tool):
            case = Case(
                why=Why.UNRECORDED,
                subject=subject(effect.key or effect.id),
                tenant=tenant,
                session="",
                tool=tool.name,
                says=effect.says[:SAYS_MAX],
                opened_at=self._clock.now(),
            )
            return Compared.CASE if await self._open(case) else Compared.KNOWN
        if held.final and held.state is not State.FAILED:
            return Compared.KNOWN
        return await self._found(held, effect.result)

    def _reaches(self, held: Operation, tool: Tool) -> bool:
        """Whether an operation and a tool are of one service."""
        theirs = self.driver.reader.contracts[held.contract].service or held.tool
        return theirs == (tool.contract.service or tool.name)

    async def _by_key(self, key: str) -> Operation | None:
        """Return the operation of a key, by the id that stands in it; None for a key of others."""
        parts = ID.findall(key[:KEY_MAX])
        for record in await self.driver.store.load(*dict.fromkeys([key, *parts])) if key else ():
            if record.kind is Kind.OPERATION and record.frozen["key"] in ("", key):
                return await self.driver.reader.operation(record.id)
        return None

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
                came = await tool.list_effects(since)
        except TimeoutError:
            return NoAnswer(reason=f"no answer within {tool.contract.deadline_s:g} s")
        except Exception as error:
            return NoAnswer(reason=f"its list of effects raised {type(error).__name__}")
        if isinstance(came, Listed) and not all(map(_is_listed, came.effects)):
            return NoAnswer(reason="its list of effects is to hold ListedEffects with an id")
        return came

    async def _found(self, held: Operation, result: Json) -> Compared:
        """Hand a listed effect to the loop of its operation, as what a look found."""
        if held.open and held.worker != self.driver.worker:
            return Compared.KNOWN
        now = self._clock.now()
        back = Looked(
            operation=held.id,
            question=Question.LOOKUP,
            attempt=held.tries,
            outcome=Found(result=result),
            asked_at=now,
            at=now,
        )
        try:
            await self.driver.loop_of(tenant=held.tenant, session=held.session).hand_in(back)
        except ProposalError:
            return Compared.KNOWN  # Another worker has taken it over meanwhile.
        after = await self.driver.reader.operation(held.id)
        if after.contradicted and not held.contradicted:
            return Compared.CASE
        return Compared.SETTLED if after.state is not held.state else Compared.KNOWN

    async def _open(self, case: Case) -> bool:
        """Open a case, unless the same thing was noticed before; return whether it is new."""
        unit = Changes(moves=(opening_of(case),))
        try:
            await self.driver.store.commit(unit)
        except StaleWriteError:
            return False
        self.driver.setting.noticed(unit.moves)
        return True


def opening_of(case: Case) -> Move:
    """Return the move that opens a case which nobody noticed before."""
    after = case_record(replace(case, version=1))
    opened = Event(name=CaseEvent.OPENED, record=case.id, at=case.opened_at)
    return Move(after=after, event=opened)


def subject(id: str) -> str:
    """Return a service's id as the subject of a case; one that is too long keeps its digest."""
    if len(id) <= KEY_MAX:
        return id
    return id[:KEY_MAX] + sha256(id.encode("utf-8", "replace")).hexdigest()


def _is_listed(effect: object) -> bool:
    if not isinstance(effect, ListedEffect):
        return False
    texts = cast("tuple[object, ...]", (effect.id, effect.key, effect.says))
    return all(isinstance(one, str) for one in texts) and bool(effect.id or effect.key)
