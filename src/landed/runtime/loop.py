"""The one loop: absorb what came back, decide, commit, start. One loop for each session.

A send is *started*, never waited for; what comes back stays in the inbox until the commit that
absorbed it succeeded. First run, retry, stop and recovery (its first lap) are this same loop.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field

from landed.core.absorb import Looked, Replied
from landed.core.arrival import (
    Answered,
    Arrival,
    AskedAgain,
    Heard,
    LetGo,
    Planned,
    Presenting,
    Proposed,
    Revised,
    Withdraw,
)
from landed.core.changes import Kind, Record
from landed.core.doubt import pause_s
from landed.core.errors import LeaseLostError, ProposalError, StaleWriteError, StoreError
from landed.core.operation import Operation
from landed.core.operation_record import from_record
from landed.core.plan import Plan, plan_from
from landed.core.revision import already_revised, revised_name
from landed.core.schedule import AT_ONCE, WHEN_RUNG
from landed.core.scope import (
    AskPrice,
    Check,
    Command,
    Next,
    Prepare,
    Put,
    Scope,
    Send,
    StopMidway,
    StopWaiting,
    Watch,
)
from landed.core.session import delivery_name
from landed.runtime.desk import Desk
from landed.runtime.memory import RULED_S, folded_in, needed_by
from landed.runtime.same import check_same
from landed.runtime.waiting import PlanWaiter, refuse

log = logging.getLogger("landed")

CONFLICTS_MAX = 100  # laps in a row that other writers may spoil before the caller is told
LINGER_S = 1.0  # how long a loop stays in memory after nothing is open in it any more
LAST_LAP_S = 5.0  # how long the end of a process is held up by what is still to be written
FOREIGN_S = 1.0  # how often an operation that matters here, but is held elsewhere, is read again
STOPPED_S = 1.0  # how often a plan with a send in flight is read again: was it stopped elsewhere?


@dataclass(slots=True, eq=False)
class SessionLoop(Desk):
    """The loop over one session's scope, in memory for as long as something is open in it."""

    holders: dict[str, str] = field(default_factory=dict[str, str])
    conflicts: int = 0
    looked_at: float = 0.0
    again: bool = False

    async def step(self) -> float | None:
        """Take a lap, and return when the next is due; None once nothing has been open for long."""
        if self.idle:
            self.rest.set()
            return None
        self.again = False
        self.rest.clear()
        try:
            await self.lap()
        except StoreError as error:
            self._put_off(error)
        return self._due()

    def _due(self) -> float:
        if self.again or (self.inbox and not self.troubles):
            return AT_ONCE
        if not self.inbox:
            self.rest.set()
        if self.idle:  # It stays for a moment, for a session that goes on with its next call.
            return self.setting.clock.now() + LINGER_S
        return min(self.wakes.values(), default=WHEN_RUNG)

    async def last(self) -> None:
        """Write down what the end of the process leaves, within a bound."""
        try:
            self.shut_down()
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(LAST_LAP_S):
                    await self.lap()
        finally:
            self.rest.set()

    def _put_off(self, error: StoreError) -> None:
        """The store is in trouble: say so to everybody, keep what came back, try again later."""
        log.warning("session %s could not be written: %s", self.place[1], error, extra=self.whose)
        self.refuse_all(error)
        self.setting.sharing.decide(self.place)
        self.pass_places_on(frozenset())  # Others may go first until the store is there again.
        self.asks.clear()
        self.inbox = [a for a in self.inbox if isinstance(a, Replied | Looked | LetGo | Withdraw)]
        self.conflicts = 0
        self.troubles += 1
        self.wakes = {"": self.setting.clock.now() + pause_s(self.troubles)}

    async def lap(self) -> None:
        """Absorb, decide, commit, start; what arrived is dropped only once it is durable."""
        if self.troubles:
            await self._load_open()
        if foreign := self.memory.foreign():
            await self._load(foreign)
        await self._look_for_stops()
        while missing := self.memory.missing(self.inbox):
            await self._load(missing)
            if missing <= self.memory.missing(self.inbox):
                names = ", ".join(sorted(missing))
                raise StoreError(f"the store has no {names}, which others name")
        self.holders |= await self.holders_of(self.memory.unprepared(self.setting.contracts))
        arrivals = self._arrivals()
        self.setting.sharing.decide(self.place)
        decided = self.setting.what_next(
            self._scope(arrivals), self.setting.rules, self.setting.clock.now()
        )
        occupied = self.occupy(decided)
        try:
            stored = await self.commit(decided)
        except BaseException as error:
            for operation in occupied:
                self.send_over(operation)
            if not isinstance(error, StaleWriteError | LeaseLostError):
                raise
            await self._read_again(error)
            return
        self._written(arrivals, decided, stored)

    def _arrivals(self) -> tuple[Arrival, ...]:
        """Return what this lap absorbs: all, but one change of mind, and one delivery of words."""
        seen: set[str] = set()
        for n, arrival in enumerate(self.inbox):
            if (one := _one_a_lap(arrival)) in seen:
                return tuple(self.inbox[:n])
            seen |= {one} - {""}
        return tuple(self.inbox)

    def _written(
        self, arrivals: tuple[Arrival, ...], decided: Next, stored: tuple[Record, ...]
    ) -> None:
        """What was decided is durable: keep it, start what follows, answer whoever waits."""
        self.conflicts = self.troubles = 0
        self.holders.clear()
        del self.inbox[: len(arrivals)]
        for arrival in arrivals:
            if (done := self.handed.pop(id(arrival), None)) is not None and not done.done():
                done.set_result(decided.answers.get(id(arrival), ""))
        self.wakes = dict(decided.wakes)
        self.memory.keep(decided, stored)
        self.setting.noticed(decided.changes.moves)
        self.setting.listeners.tell(self.memory.plans)
        for command in decided.commands:
            self._start(command)
        self.answer_all()
        self.take_stock(decided)
        if self.memory.foreign():
            self.wakes[""] = self.setting.clock.now() + FOREIGN_S
        if self.memory.out():
            often_s = STOPPED_S if self.calls.sends else RULED_S
            self.wakes["stops"] = max(self.looked_at + often_s, self.setting.clock.now())

    def _scope(self, arrivals: tuple[Arrival, ...]) -> Scope:
        memory, setting = self.memory, self.setting
        return Scope(
            operations=memory.operations,
            contracts=setting.contracts,
            arrivals=arrivals,
            plans=memory.plans,
            releases=memory.releases,
            questions=memory.questions,
            approvals=memory.approvals,
            cases=memory.cases,
            keys=setting.keys,
            last_question=memory.last_question,
            tools=setting.digests,
            new_id=setting.new_id,
            positions=memory.positions,
            worker=setting.worker,
            language=setting.language,
            holders=self.holders,
            running=frozenset(self.calls.running),
            slots=setting.sharing.slots_of(self.place),
            turn=self.turn,
            incarnation=setting.incarnation,
            draining=self.draining,
        )

    def _start(self, command: Command) -> None:
        match command:
            case Prepare() | Send() | Put() | StopWaiting() | StopMidway():
                self._call(command, self.memory.operations[command.operation.id])
            case Watch():
                self.calls.watch(command)
            case AskPrice():
                self.calls.price(command)
            case Check():
                self.calls.check(command)

    def _call(
        self, command: Prepare | Send | Put | StopWaiting | StopMidway, operation: Operation
    ) -> None:
        """Do what was decided about an operation, with the record as it is now stored."""
        match command:
            case Prepare():
                self.calls.prepare(operation)
            case Send():
                self._send(operation)
            case Put(question=question):
                self.calls.ask(operation, question)
            case StopWaiting():
                self.calls.stop_waiting(operation)
            case StopMidway():
                self.calls.stop_midway(operation)

    def _send(self, operation: Operation) -> None:
        if self.let_go(operation.id):
            self.calls.never_sent(operation, "it was let go before it left")
        else:
            self.calls.send(operation)

    async def wait_for_plan(self, waiter: PlanWaiter) -> None:
        """Answer `waiter` once its plan is at rest, whoever carries it out."""
        plan = self.memory.plans.get(waiter.plan)
        if plan is None:
            (record,) = await self.setting.store.load(waiter.plan)
            plan = plan_from(record)
        if not plan.open and waiter.plan not in self.memory.plans:
            waiter.answer(plan)
            return
        if plan.open and plan.worker != self.setting.worker:
            self._set_timer(waiter)
            self.following.follow_plan(plan, [waiter])
            return
        self.plan_waiters.append(waiter)
        self._set_timer(waiter)
        self.ring()

    # What other writers did.

    async def _load(self, ids: set[str]) -> None:
        """Bring back what something arrived for or speaks of; leave what others hold to them."""
        for record in await self.setting.store.load(*sorted(ids)):
            await self._take(record)
        for id in ids:
            if not self.memory.holds(id):
                self._drop_arrivals(id)

    async def _look_for_stops(self) -> None:
        """See whether a plan with a send in flight was stopped from elsewhere meanwhile.

        Before a step nobody has to look: its first send goes in with the plan as it is, or not at
        all. While one is out, only this tells.
        """
        now = self.setting.clock.now()
        if "stops" not in self.wakes or now < self.wakes["stops"]:
            return
        self.looked_at = now
        try:
            records = await self.setting.store.load(*sorted(self.memory.out()))
        except StoreError as error:
            log.warning("session %s could not be read: %s", self.place[1], error, extra=self.whose)
            return  # Nothing here depends on it: whatever is written next finds out.
        for record in records:
            if record.version > self.memory.version(record.id):
                await self.setting.learn(record)
                self.memory.leave(record.id)
                await self._take(record)

    async def _load_open(self) -> None:
        """Take everything as the store has it: a commit that failed may have gone in after all."""
        tenant, session = self.place
        while True:
            bites = self.bites
            records = await self.setting.store.open_records(
                tenant=tenant, session=session, worker=self.setting.worker
            )
            if bites == self.bites:  # Else what was taken over meanwhile may not be among them.
                break
        self.memory.clear()
        for record in records:
            await self._take(record)

    async def _take(self, record: Record) -> None:
        await self.setting.learn(record)
        if self.memory.is_past(record):
            return  # It was taken over while this was read.
        theirs = record.open and record.worker != self.setting.worker
        if theirs and record.kind is Kind.OPERATION and not self._speaks_of(record.id):
            self._drop_arrivals(record.id)
            self.following.follow(from_record(record))
            return
        self.take_in(record)

    def _speaks_of(self, id: str) -> bool:
        """Whether something here depends on an operation, whoever holds it."""
        told = any(folded_in(a) and id in needed_by(a) for a in self.inbox)
        return told or id in self.memory.spoken_of()

    def _drop_arrivals(self, id: str) -> None:
        kept: list[Arrival] = []
        for arrival in self.inbox:
            if id not in needed_by(arrival):
                kept.append(arrival)
            elif (handed := self.handed.pop(_key(arrival), None)) is not None:
                refuse(handed, ProposalError(f"there is no {id!r} any more; look at it again"))
        self.inbox = kept

    async def _read_again(self, conflict: StaleWriteError | LeaseLostError) -> None:
        """See what other writers did. A name that is taken is one call less to be decided."""
        match conflict:
            case StaleWriteError(name=name) if name.startswith("ask/"):
                await self._join()
            case StaleWriteError(name=name, holder=holder) if name.startswith("revised/"):
                await self._revised_before(name, holder)
            case StaleWriteError(name=name) if name.startswith(("delivery/", "commit/")):
                self._delivered_before(conflict)
            case StaleWriteError(name=name, holder=holder) if name.startswith("question/"):
                self.memory.last_question = holder
            case StaleWriteError(name=name, holder=holder) if name:
                self.holders[name] = holder
            case _:
                await self._refresh(conflict)
        self.again = True  # Also where nothing arrived.

    async def _refresh(self, conflict: StaleWriteError | LeaseLostError) -> None:
        """Take a record as another writer left it, or leave it to its new worker."""
        self.conflicts += 1
        if self.conflicts > CONFLICTS_MAX:
            raise conflict
        self.memory.leave(conflict.record)
        for record in await self.setting.store.load(conflict.record):
            await self._take(record)

    def _delivered_before(self, conflict: StaleWriteError) -> None:
        """It came before, or from elsewhere: whoever handed it in is told which one it is."""
        for arrival in list(self.inbox):
            if _one_a_lap(arrival) == conflict.name:
                self.inbox.remove(arrival)
                refuse(self.handed.pop(_key(arrival)), conflict)

    async def _revised_before(self, name: str, holder: str) -> None:
        """The turn was revised before: by this very ask, which joins, or by another."""
        await self._join()
        for arrival in list(self.inbox):
            if not isinstance(arrival, Revised) or _revises(arrival) != name:
                continue
            self.inbox.remove(arrival)
            self.asks.pop(arrival.ask_name, None)
            (record,) = await self.setting.store.load(holder)
            turn = plan_from(record).turn
            error = already_revised(arrival.plan.revises, turn)
            for waiter in self.plan_waiters:
                if waiter.plan == arrival.plan.id:
                    waiter.refuse(error)

    async def _join(self) -> None:
        """Have the calls whose ask was recorded before join what those made."""
        wanted = {
            a.ask_name: a
            for a in self.inbox
            if isinstance(a, Proposed | Planned | Revised) and a.ask_name
        }
        holders = await self.setting.store.holders(*wanted)
        records = await self.setting.store.load(*set(holders.values()))
        held = {r.id: plan_from(r) if r.kind is Kind.PLAN else from_record(r) for r in records}
        for name, id in holders.items():
            arrival = wanted[name]
            self.inbox.remove(arrival)
            self.asks.pop(name, None)
            if isinstance(arrival, Proposed):
                self._join_operation(arrival, held[id])
            else:
                self._join_plan(arrival, held[id])

    def _join_operation(self, proposed: Proposed, held: Operation | Plan) -> None:
        waiters = self.waiters.pop(proposed.operation.id, [])
        try:
            check_same(held, proposed.operation)
        except ProposalError as error:
            for waiter in waiters:
                waiter.refuse(error)
            return
        for waiter in waiters:
            waiter.operation, waiter.replayed = held.id, True
        self.waiters.setdefault(held.id, []).extend(waiters)
        self.tell(AskedAgain(operation=held.id))

    def _join_plan(self, planned: Planned | Revised, held: Operation | Plan) -> None:
        waiters = [w for w in self.plan_waiters if w.plan == planned.plan.id]
        try:
            check_same(held, planned.plan)
        except ProposalError as error:
            for waiter in waiters:
                waiter.refuse(error)
            return
        for waiter in waiters:
            waiter.plan, waiter.replayed = held.id, True
        if not isinstance(held, Plan) or held.id in self.memory.plans:
            return
        if held.open and held.worker != self.setting.worker:
            # Its own worker carries it out; here it is only watched, and never in memory.
            self.following.follow_plan(held, waiters)
            self.plan_waiters = [w for w in self.plan_waiters if w not in waiters]
        else:
            self.memory.plans[held.id] = held


def _one_a_lap(arrival: Arrival) -> str:
    """Return what there may be only one of in a lap, "" for what may come in any number."""
    if isinstance(arrival, Revised):
        return "revised"
    if isinstance(arrival, Presenting):
        return arrival.ask_name
    heard = arrival.heard if isinstance(arrival, Answered | Heard) else None
    if heard is None or not heard.delivery:
        return ""
    return delivery_name(tenant=heard.tenant, delivery=heard.delivery)


def _revises(arrival: Revised) -> str:
    """Return the name under which the turn it revises is revised once."""
    return revised_name(tenant=arrival.plan.tenant, turn=arrival.plan.revises)


def _key(arrival: Arrival) -> int:
    return id(arrival)  # What `hand_in` knows it by.
