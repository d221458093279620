"""Keeps one loop running for each session in which something is open, and none for the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from landed.core.arrival import Checked
from landed.core.changes import Kind, Record
from landed.core.declared import digest_of
from landed.core.doubt import pause_s
from landed.core.errors import LandedError, ProposalError, StoreError
from landed.core.incarnation import Incarnation
from landed.core.next import what_next
from landed.core.onlooker import NOBODY, Onlooker
from landed.core.pacing import Pacing
from landed.core.rules import Rules
from landed.core.schedule import Place, Schedule
from landed.core.scope import Check
from landed.core.session import contract_id, contracts_of, seeing
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.clock import Clock, Ids
from landed.runtime.desk import Desk, Setting, WhatNext
from landed.runtime.loop import SessionLoop
from landed.runtime.paced import Paced
from landed.runtime.reader import Reader
from landed.runtime.sharing import ADOPT_AT_ONCE, ADOPT_MAX, TENANT_MAX, Sharing

log = logging.getLogger("landed")


@dataclass(slots=True, eq=False)
class Driver:
    """The loops of one runtime, and what they share.

    One that `decides_only` adopts nothing that others left.
    """

    store: Store
    tools: Mapping[str, Tool]
    rules: Rules
    clock: Clock
    worker: str
    ids: Ids
    check: Callable[[Check], Awaitable[Checked]]
    schedule: Schedule
    keys: tuple[bytes, ...] = (b"",)
    pacing: Pacing | None = None
    language: str = "en"
    what_next: WhatNext = what_next
    decides_only: bool = False
    onlooker: Onlooker = NOBODY
    adopt_max: int = ADOPT_MAX
    adopt_at_once: int = ADOPT_AT_ONCE
    tenant_max: int = TENANT_MAX
    reader: Reader = field(init=False)
    digests: dict[str, str] = field(default_factory=dict[str, str])
    unread: dict[str, Record] = field(default_factory=dict[str, Record])
    loops: dict[Place, SessionLoop] = field(default_factory=dict[Place, SessionLoop])
    setting: Setting = field(init=False)

    def __post_init__(self) -> None:
        self.schedule.begin(self)
        self.reader = Reader(store=self.store)
        bounded = {t.name: t.contract.concurrency for t in self.tools.values()}
        self.setting = Setting(
            store=self.store,
            tools=self.tools,
            digests=self.digests,
            contracts=self.reader.contracts,
            rules=self.rules,
            what_next=self.what_next,
            clock=self.clock,
            worker=self.worker,
            new_id=self.ids.new,
            language=self.language,
            keys=self.keys,
            paced=Paced(self.pacing, self.clock, self.ids),
            check=self.check,
            learn=self.learn,
            ring=self._ring,
            onlooker=self.onlooker,
            hear=[] if self.onlooker is NOBODY else [self.onlooker.stored],
            sharing=Sharing(
                slots={name: bound for name, bound in bounded.items() if bound},
                ring=self._rung,
                adopt_max=self.adopt_max,
                adopt_at_once=self.adopt_at_once,
                tenant_max=self.tenant_max,
            ),
        )

    async def register(self) -> None:
        """Keep the contracts of today's tools, so that doubt can be judged by them later."""
        for tool in self.tools.values():
            digest = self.digests[tool.name] = digest_of(tool.contract)
            self.reader.contracts[digest] = tool.contract
            if not await self.store.load(contract_id(digest)):
                await self._keep(tool)

    async def _keep(self, tool: Tool) -> None:
        try:
            await self.store.commit(seeing(tool.contract, tool=tool.name, at=self.clock.now()))
        except StoreError:
            # Another process may have kept the same contract meanwhile; anything else is told.
            if not await self.store.load(contract_id(self.digests[tool.name])):
                raise

    async def learn(self, record: Record) -> None:
        """Have the contracts at hand that a record was made under."""
        for digest in contracts_of(record):
            await self.reader.contract(digest, of=record.id)

    def tool(self, name: str) -> Tool:
        """Return a registered tool; raises `ProposalError` for a name that is none."""
        known = self.tools.get(name)
        if known is None:
            names = ", ".join(sorted(self.tools)) or "none"
            raise ProposalError(f"there is no tool {name!r}; registered: {names}")
        return known

    def loop_of(self, *, tenant: str, session: str) -> SessionLoop:
        """Return the loop of a session, made if there is none in memory."""
        place = (tenant, session)
        loop = self.loops.get(place)
        if loop is None:
            loop = self.loops[place] = SessionLoop(setting=self.setting, place=place)
        return loop

    async def adopt(self, records: Iterable[Record]) -> int:
        """Take over records that were claimed; return how many of them are operations.

        Where the contract of one cannot be read, the next call tries it again.
        """
        adopted: dict[Place, list[Record]] = {}
        for record in [*self.unread.values(), *records]:
            try:
                await self.learn(record)
            except StoreError as error:
                if record.id not in self.unread:
                    about = {"record": record.id, "session": record.session, "worker": self.worker}
                    said = "%s was claimed, but nothing is done with it yet: %s"
                    log.error(said, record.id, error, extra=about)
                self.unread[record.id] = record
                continue
            self.unread.pop(record.id, None)
            adopted.setdefault((record.tenant, record.session), []).append(record)
        for (tenant, session), theirs in adopted.items():
            self.loop_of(tenant=tenant, session=session).adopt(theirs)
        each = (record for theirs in adopted.values() for record in theirs)
        return sum(record.kind is Kind.OPERATION for record in each)

    def restored(self, incarnation: Incarnation) -> None:
        """Have every loop see that the store was restored, or that it is reconciled."""
        self.setting.incarnation = incarnation
        for loop in list(self.loops.values()):
            loop.ring()

    def stop_short(self, error: LandedError) -> None:
        """Leave everything as it is: what is known here is of another time than the store."""
        for loop in list(self.loops.values()):
            loop.give_up(error)

    async def drain(self, *, bound_s: float) -> None:
        """Start nothing new, and let what is out come back for at most `bound_s` seconds.

        What does not come back in time is recorded as in doubt, and still wanted.
        """
        for loop in self.loops.values():
            loop.draining = True
            loop.withdraw_blocked()
        await self._quiet(bound_s)
        for loop in self.loops.values():
            loop.shut_down()
        await self._quiet(bound_s)
        self.setting.listeners.end()
        await self.schedule.end(bound_s=bound_s)

    async def _quiet(self, bound_s: float) -> None:
        """Wait until nothing is out and nothing waits to be written, at most `bound_s` seconds."""
        now = asyncio.get_running_loop().time
        until = now() + bound_s
        while (left := until - now()) > 0:
            busy = next((loop for loop in self.loops.values() if loop.busy), None)
            if busy is None:
                return
            out = [*busy.calls.running.values()]
            resting = asyncio.ensure_future(busy.rest.wait())
            await asyncio.wait(out or [resting], timeout=left, return_when=asyncio.FIRST_COMPLETED)
            resting.cancel()
            await asyncio.sleep(0)

    # What the schedule calls.

    async def lap(self, place: Place) -> float | None:
        """Take a lap of a session; a loop in which nothing has been open for long is let go of."""
        loop = self.loops.get(place)
        if loop is None:
            return None
        try:
            due = await loop.step()
        except Exception as error:
            due = self._begin_anew(loop, error)
        if due is None:
            del self.loops[place]
        return due

    def _begin_anew(self, loop: SessionLoop, error: Exception) -> float:
        """Leave nobody waiting where a lap failed; return when the next reads everything anew.

        What is open is held here, so nobody else would see to it.
        """
        log.error("a session's lap failed: %s", error, exc_info=error, extra=loop.whose)
        known = isinstance(error, LandedError)
        troubles = loop.troubles + 1
        loop.give_up(error if known else LandedError(f"a lap failed by a bug: {error!r}"))
        loop.troubles = troubles
        return self.clock.now() + pause_s(troubles)

    async def last_lap(self, place: Place) -> None:
        """Write down what the end of this process leaves of a session."""
        if loop := self.loops.get(place):
            await loop.last()

    def give_up(self, place: Place) -> None:
        """Leave nobody waiting in a session whose loop ended."""
        if loop := self.loops.pop(place, None):
            loop.give_up(None)

    def _ring(self, desk: Desk) -> bool:
        """Have the desk's loop take a lap; return whether it will, for after the end none does."""
        there = self.loops.get(desk.place)
        if there is None and isinstance(desk, SessionLoop):
            self.loops[desk.place] = desk  # A late reply calls back a loop that was let go of.
        elif there is not None and there is not desk:
            desk.hand_over(there)
        return self.schedule.ring(desk.place)

    def _rung(self, place: Place) -> bool:
        """Ring a session that is there; return whether it is."""
        loop = self.loops.get(place)
        if loop is not None:
            loop.ring()
        return place in self.loops
