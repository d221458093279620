"""What lies in front of a loop: its inbox, its memory, and everybody who waits for an answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from landed.core.arrival import (
    Arrival,
    AskedAgain,
    Checked,
    LetGo,
    Planned,
    Proposed,
    Revised,
    Told,
    Withdraw,
)
from landed.core.changes import Move, Record
from landed.core.contract import Contract
from landed.core.errors import LeaseLostError, StaleWriteError
from landed.core.incarnation import NEVER_RESTORED, Incarnation
from landed.core.onlooker import NOBODY, Noticed, Onlooker
from landed.core.operation import Operation, State
from landed.core.pacing import Leaving
from landed.core.plan import At, Plan, PlanState
from landed.core.rules import Rules
from landed.core.schedule import WHEN_RUNG, Place
from landed.core.scope import Asking, Check, Next, Scope, Send, Sending
from landed.core.store import Store
from landed.core.tool import Tool
from landed.core.undo import Release, ReleaseState
from landed.runtime.calls import Calls
from landed.runtime.clock import Clock
from landed.runtime.following import Following
from landed.runtime.listening import Listeners
from landed.runtime.memory import Memory, about, in_motion
from landed.runtime.paced import Paced
from landed.runtime.same import check_same
from landed.runtime.sharing import Sharing
from landed.runtime.waiting import PlanWaiter, Waiter, refuse

WhatNext = Callable[[Scope, Rules, float], Next]

SOON_S = 10.0  # what waits for longer than this is not in motion: others may be taken over
NOBODY_WAITS = "nobody waits for it any more, and it had not been sent"


@dataclass(slots=True, eq=False)
class Setting:
    """What all loops of a runtime share.

    `hear` are called with the moves of each unit once it is durable; `onlooker` hears of the rest.
    """

    store: Store
    tools: Mapping[str, Tool]
    digests: Mapping[str, str]
    contracts: dict[str, Contract]
    rules: Rules
    what_next: WhatNext
    clock: Clock
    new_id: Callable[[str], str]
    worker: str
    language: str
    keys: tuple[bytes, ...]
    paced: Paced
    check: Callable[[Check], Awaitable[Checked]]
    learn: Callable[[Record], Awaitable[None]]
    ring: Callable[["Desk"], bool]
    sharing: Sharing
    listeners: Listeners = field(default_factory=Listeners)
    onlooker: Onlooker = NOBODY
    incarnation: Incarnation = NEVER_RESTORED
    hear: list[Callable[[Sequence[Move]], None]] = field(
        default_factory=list[Callable[[Sequence[Move]], None]]
    )

    def noticed(self, moves: Sequence[Move]) -> None:
        """Tell whoever hears of it what was just stored."""
        for hear in self.hear:
            hear(moves)


@dataclass(slots=True, eq=False)
class Desk:
    """One session's inbox, memory and waiting callers; the loop over it is in `runtime.loop`."""

    setting: Setting
    place: Place
    memory: Memory = field(init=False)
    calls: Calls = field(init=False)
    following: Following = field(init=False)
    inbox: list[Arrival] = field(default_factory=list[Arrival])
    handed: dict[int, "asyncio.Future[str]"] = field(
        default_factory=dict[int, "asyncio.Future[str]"]
    )
    waiters: dict[str, list[Waiter]] = field(default_factory=dict[str, list[Waiter]])
    plan_waiters: list[PlanWaiter] = field(default_factory=list[PlanWaiter])
    asks: dict[str, Operation | Plan] = field(default_factory=dict[str, Operation | Plan])
    wakes: dict[str, float] = field(default_factory=dict[str, float])
    adopted: set[str] = field(default_factory=set[str])
    bites: int = 0
    starved: frozenset[str] = frozenset()
    rest: asyncio.Event = field(default_factory=asyncio.Event)
    draining: bool = False
    troubles: int = 0

    def __post_init__(self) -> None:
        setting = self.setting
        self.memory = Memory(worker=setting.worker)
        self.calls = Calls(
            tools=setting.tools,
            contracts=setting.contracts,
            clock=setting.clock,
            tell=self.tell,
            over=self.send_over,
            checker=setting.check,
            heard=setting.paced.heard,
            onlooker=setting.onlooker,
        )
        self.following = Following(
            store=setting.store,
            contracts=setting.contracts,
            waiters=self.waiters,
            over=self.ring,
        )

    # Write something down and ring.

    def tell(self, arrival: Arrival) -> None:
        """Put something in the inbox; the next lap absorbs it."""
        self.inbox.append(arrival)
        self.ring()

    def hand_in(self, arrival: Arrival) -> "asyncio.Future[str]":
        """Put something in the inbox; the future is done once what it changed is durable.

        Its result is what core answered to it, "" where there was nothing to say.
        """
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.handed[id(arrival)] = done
        self.tell(arrival)
        return done

    def ring(self) -> None:
        """Have the loop take another lap; where none can run any more, nobody is left waiting."""
        self.rest.clear()
        if not self.setting.ring(self):
            self.give_up(None)

    def hand_over(self, to: "Desk") -> None:
        """Give what came too late for this desk, which nobody sits at any more, to the next one."""
        to.inbox += self.inbox
        to.handed |= self.handed
        to.plan_waiters += self.plan_waiters
        for id, waiters in self.waiters.items():
            to.waiters.setdefault(id, []).extend(waiters)
        to.asks |= self.asks
        for emptied in (self.inbox, self.handed, self.plan_waiters, self.waiters, self.asks):
            emptied.clear()

    def propose(self, proposed: Proposed, waiter: Waiter) -> None:
        """Hand in a call; the same ask joins the operation that it made before.

        Raises `ProposalError` when the same ask comes with other arguments.
        """
        self.setting.onlooker.asked(proposed.operation.id)
        known = self.asks.get(proposed.ask_name)
        if known is not None:
            check_same(known, proposed.operation)
            waiter.operation, waiter.replayed = known.id, True
        elif proposed.ask_name:
            self.asks[proposed.ask_name] = proposed.operation
        self.wait_for(waiter)
        self.tell(proposed if known is None else AskedAgain(operation=known.id))

    def plan(self, planned: Planned | Revised, waiter: PlanWaiter) -> None:
        """Hand in a plan; the same ask joins the plan that it made before.

        Raises `ProposalError` when the same ask comes with another plan.
        """
        self.setting.onlooker.asked(planned.plan.id)
        known = self.asks.get(planned.ask_name)
        if known is not None:
            check_same(known, planned.plan)
            waiter.plan, waiter.replayed = known.id, True
        elif planned.ask_name:
            self.asks[planned.ask_name] = planned.plan
        self.plan_waiters.append(waiter)
        self._set_timer(waiter)
        if known is None:
            self.inbox.append(planned)
        self.ring()

    def is_wanted(self, operation: str) -> bool:
        """Whether somebody here waits for the effect of the operation."""
        return any(waiter.wants for waiter in self.waiters.get(operation, ()))

    def wait_for(self, waiter: Waiter) -> None:
        """Answer `waiter` as soon as its operation is far enough, or its time is over."""
        self.waiters.setdefault(waiter.operation, []).append(waiter)
        self._set_timer(waiter)

    def adopt(self, records: Iterable[Record]) -> None:
        """Take over what another worker left; what waits behind a block is withdrawn."""
        adopted = list(records)
        self.bites += 1
        self.adopted.update(record.id for record in adopted)
        for record in adopted:
            self.plan_waiters += self.following.leave_plan(record.id)
            self.memory.take(record)
        # All of it is in motion, until a lap has seen what it waits for.
        self._note(moving=len(self.adopted))
        held = (self.memory.operations.get(record.id) for record in adopted)
        self.withdraw_blocked([operation for operation in held if operation is not None])
        self.ring()

    @property
    def whose(self) -> dict[str, str]:
        """Say whose a line of the log is, in fields of their own."""
        tenant, session = self.place
        return {"tenant": tenant, "session": session, "worker": self.setting.worker}

    async def commit(self, decided: Next) -> tuple[Record, ...]:
        """Write what a lap decided; raises what the store raises."""
        try:
            return await self.setting.store.commit(decided.changes) if decided.changes else ()
        except StaleWriteError:
            self.setting.onlooker.noticed(Noticed.STALE_WRITE)
            raise
        except LeaseLostError:
            self.setting.onlooker.noticed(Noticed.CLAIM_LOST)
            raise

    def take_in(self, record: Record) -> None:
        """Take a record as the store has it; a send that others gave up is waited for no longer."""
        self.memory.take(record)
        operation = self.memory.operations.get(record.id)
        if operation is None or operation.wanted or operation.state in (State.SENT, State.RESENT):
            return
        self.calls.stop_midway(operation)
        self.calls.stop_waiting(operation)

    def withdraw_blocked(self, operations: Iterable[Operation] | None = None) -> None:
        """Take back what was not sent because something else stands in its way."""
        every = self.memory.operations.values() if operations is None else operations
        for operation in list(every):
            if operation.state is State.RECORDED and operation.blocked_by:
                self.tell(Withdraw(operation=operation.id, reason=NOBODY_WAITS))

    def shut_down(self) -> None:
        """Start nothing new, wait for nothing that is out, and tell everybody how it stands."""
        self.draining = True
        for operation in list(self.memory.operations.values()):
            if operation.state in (State.SENT, State.RESENT) and self.calls.is_out(operation.id):
                self.calls.shut_down(operation)
        for waiter in [each for waiters in self.waiters.values() for each in waiters]:
            self._expire(waiter)
        for planned in self.plan_waiters:
            self._expire(planned)

    @property
    def idle(self) -> bool:
        """Whether nothing is open and nobody waits: the loop may end."""
        waiting = self.inbox or self.waiters or self.plan_waiters or self.following.watches
        return not (waiting or self.troubles or self.memory.open)

    @property
    def busy(self) -> bool:
        """Whether something is out, or there is something to write down or to be done at once."""
        return bool(self.inbox or self.calls.running or not self.rest.is_set())

    def give_up(self, error: BaseException | None) -> None:
        """Leave nobody waiting: the loop ended by `error`, or was cancelled (None)."""
        self.refuse_all(error)
        self.memory.clear()
        self.inbox.clear()
        self.asks.clear()
        self.adopted.clear()
        self.setting.sharing.decide(self.place)
        self.pass_places_on(frozenset())
        self.setting.sharing.settle(self.place, ())  # Also of what is out: nobody hears of it.
        self._note(moving=0)
        self.troubles = 0
        self.rest.set()

    def refuse_all(self, error: BaseException | None) -> None:
        """Raise `error` where anybody waits."""
        for waiter in [each for waiters in self.waiters.values() for each in waiters]:
            waiter.refuse(error)
        for planned in self.plan_waiters:
            planned.refuse(error)
        for handed in self.handed.values():
            refuse(handed, error)
        self.waiters.clear()
        self.plan_waiters.clear()
        self.handed.clear()
        self.following.stop()

    async def holders_of(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return which operation holds each of those names that are held."""
        wanted = tuple(names)
        return await self.setting.store.holders(*wanted) if wanted else {}

    def occupy(self, decided: Next) -> list[Operation]:
        """Take the places of what is about to be sent, and return what that is."""
        sending = [c.operation for c in decided.commands if isinstance(c, Send)]
        for operation in sending:
            self.setting.sharing.occupy(self.place, operation.tool)
        return sending

    def send_over(self, operation: Operation) -> None:
        """Give the place of a send to the next one."""
        self.setting.sharing.free(operation.tool)

    # What is shared with other sessions.

    def turn(self, service: str, operation: Operation, kind: Leaving) -> float:
        """Return when it may leave; what was taken over waits for one of the few places first."""
        if operation.id in self.adopted or operation.plan in self.adopted:
            places = self.setting.sharing.places(service or operation.tool)
            if not places.take((*self.place, operation.id)):
                return WHEN_RUNG
        return self.setting.paced.turn(service, operation, kind)

    def take_stock(self, decided: Next) -> None:
        """Pass on the places that are not used here, and note what is open and in motion."""
        out = self.pass_places_on(decided.starved)
        self.adopted &= {one.id for one in self.memory.mine()}
        soon = self.setting.clock.now() + SOON_S
        resting = {id for id, at in self.wakes.items() if at > soon} - decided.queued
        moving = in_motion(self.memory, resting - out, set(map(about, self.calls.running)))
        self._note(moving=len(self.adopted & moving))

    def pass_places_on(self, starved: frozenset[str]) -> set[str]:
        """Keep the places in use and wait for those of these tools; return what is out."""
        out = {r.operation for r in self.calls.running if isinstance(r, Sending | Asking)}
        self.setting.sharing.starve(self.place, self.starved, starved)
        self.setting.sharing.settle(self.place, out)
        self.starved = starved
        return out

    def _note(self, *, moving: int) -> None:
        open = sum(1 for _ in self.memory.mine())
        self.setting.sharing.note(self.place, open=open, moving=moving)

    def _set_timer(self, waiter: Waiter | PlanWaiter) -> None:
        seconds = max(0.0, waiter.until - self.setting.clock.now())
        waiter.timer = asyncio.get_running_loop().call_later(seconds, self._expire, waiter)

    def _expire(self, waiter: Waiter | PlanWaiter) -> None:
        waiter.expired = True
        if isinstance(waiter, Waiter) and waiter.seen is not None:
            waiter.answer(waiter.seen)
        self.ring()

    # Answers.

    def let_go(self, id: str) -> bool:
        """Whether somebody let go of the operation while its record was being written."""
        return any(isinstance(a, LetGo) and a.operation == id for a in self.inbox)

    def answer_all(self) -> None:
        """Answer whoever can be answered, and forget what nobody needs any more."""
        for id, waiters in list(self.waiters.items()):
            operation = self.memory.operations.get(id)
            if operation is None:
                continue
            self.waiters[id] = [w for w in waiters if not self._answered(w, operation)]
            if not self.waiters[id]:
                del self.waiters[id]
        self.plan_waiters = [w for w in self.plan_waiters if not self._plan_answered(w)]
        self.memory.prune({*self.waiters, *(waiter.plan for waiter in self.plan_waiters)})
        if self.asks:
            # A proposal that came during the commit is still in the inbox, not in the memory.
            coming = {a.operation.id for a in self.inbox if isinstance(a, Proposed)}
            coming |= {a.plan.id for a in self.inbox if isinstance(a, Planned | Revised)}
            self.asks = {
                name: one
                for name, one in self.asks.items()
                if one.id in coming or self.memory.holds(one.id)
            }

    def _answered(self, waiter: Waiter, operation: Operation) -> bool:
        if waiter.gone:
            return True
        contract = self.setting.contracts[operation.contract]
        wake = self.wakes.get(operation.id, 0.0)
        if wake >= waiter.until and not self.calls.is_out(operation.id):
            waiter.expired = True  # Nothing can change before the caller's patience is over.
        if not waiter.expired and not waiter.enough(operation, contract):
            return False
        if operation.final or waiter.leaving or operation.state in (operation.told, waiter.told):
            waiter.answer(operation)
            return True
        waiter.told = operation.state
        self.tell(Told(operation=operation.id, state=operation.state))
        return False

    def _plan_answered(self, waiter: PlanWaiter) -> bool:
        if waiter.future.done():
            return True
        plan = self.memory.plans.get(waiter.plan)
        if plan is None or not (waiter.expired or self._is_at_rest(plan)):
            return False
        waiter.answer(plan)
        return True

    def _is_at_rest(self, plan: Plan) -> bool:
        """Whether nothing of a plan, or owed for it, goes on without a person's word."""
        if plan.state is PlanState.PROPOSED:
            return True
        if plan.open and plan.state is not PlanState.UNDOING:
            out = [plan.places[n].record for n in _at_work(plan)]
            if not out or not all(map(self._waits_for_a_person, out)):
                return False
        owed = (r for r in self.memory.releases.values() if plan.id in (r.plan, r.undoes))
        return all(
            self._waits_for_a_person(release.undo or release.operation)
            for release in owed
            if release.open and not self._waits_its_turn(release)
        )

    def _waits_its_turn(self, release: Release) -> bool:
        """Whether it waits for another that waits for a person."""
        later = self.memory.releases.get(release.after)
        return later is not None and later.state in WAITS_FOR_A_PERSON

    def _waits_for_a_person(self, operation: str) -> bool:
        held = self.memory.operations.get(operation)
        return held is not None and held.state is State.UNDECIDED


WAITS_FOR_A_PERSON = frozenset({ReleaseState.ASKED, ReleaseState.QUESTIONED})


def _at_work(plan: Plan) -> tuple[int, ...]:
    """Return the steps that something is, or is to be, done about."""
    if plan.state is PlanState.STOPPING:
        return tuple(n for n, place in enumerate(plan.places) if place.at is At.OUT)
    return plan.front
