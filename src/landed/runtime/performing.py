"""Calls, one at a time: do it, look now, and how does it stand."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from landed.core.arrival import LetGo, Proposed
from landed.core.canonical import Json
from landed.core.contract import Effect, Risk
from landed.core.errors import ProposalError
from landed.core.key import Ask, ask_name, held_names, identity_of, key_for, unique_names
from landed.core.operation import Operation
from landed.core.tool import Tool
from landed.core.value import Value
from landed.runtime.observing import Observer
from landed.runtime.opened import Opened
from landed.runtime.waiting import Enough, Waiter, let_go_enough, settled_enough


@dataclass(slots=True, eq=False)
class Performing(Opened):
    """The verbs for a single call."""

    _observer: Observer = field(init=False)

    def __post_init__(self) -> None:
        self._observer = Observer(
            store=self.driver.store,
            clock=self.driver.clock,
            ids=self.ids,
            let_go_s=self.settings.let_go_s,
        )

    async def perform(
        self,
        tool: "str | Tool",
        arguments: Mapping[str, object] | None = None,
        *,
        ask: Ask | None = None,
        patience_s: float | None = None,
    ) -> Value:
        """Do one call, once, and return what it came to.

        Returns when the operation is settled, accepted without a read-back, or blocked; otherwise
        after `patience_s` seconds as it stands, while the runtime goes on finding out. The same ask
        again joins the same operation. When the caller is cancelled, the operation is no longer
        wanted, and `CancelledError` goes on only after what was sent is durably in doubt.

        Raises `ProposalError` for an unknown tool, arguments that do not fit, a call that needs a
        person's yes, or a call id used before with other arguments, and `BusyError` while too much
        of its tenant is in hand here. Nothing was sent then.
        """
        self._check_open()
        known = self._tool(tool)
        whom = ask or Ask()
        checked = dict(known.check(dict(arguments or {})))  # type: ignore[arg-type]
        if known.contract.effect is Effect.NONE:
            return await self._observer.observe(known, checked, whom)
        if known.contract.risk is Risk.CONFIRM:
            raise ProposalError(
                f"{known.name} needs a yes: a person has to approve it before it is sent, and"
                " `perform` asks nobody"
            )
        seconds = self._patience_s(known, patience_s)
        with self.driver.setting.sharing.call(whom.tenant):
            return await self._carried_out(self._made(known, checked, whom), seconds)

    async def status(self, operation: str) -> Value:
        """Return an operation as it stands. Raises `ProposalError` for an unknown id."""
        self._check_open()
        return self.driver.reader.value(await self.driver.reader.operation(operation))

    async def _carried_out(self, operation: Operation, seconds: float) -> Value:
        """Hand a call to its loop, and return what it came to, or how it stands in the end."""
        ask = operation.ask
        waiter = self._waiter(operation.id, enough=settled_enough, seconds=seconds)
        loop = self.driver.loop_of(tenant=ask.tenant, session=ask.session)
        loop.propose(Proposed(operation=operation, ask_name=ask_name(ask)), waiter)
        try:
            answer = await waiter.future
        except asyncio.CancelledError:
            await self._let_go(waiter.operation, ask)
            raise
        return self.driver.reader.value(answer.operation, replayed=answer.replayed)

    def _tool(self, tool: "str | Tool") -> Tool:
        name = tool if isinstance(tool, str) else getattr(tool, "name", repr(tool))
        known = self.driver.tool(name)
        if not isinstance(tool, str) and known is not tool:
            raise ProposalError(f"another tool is registered as {name!r}; perform it by name")
        return known

    def _made(self, tool: Tool, arguments: Mapping[str, Json], ask: Ask) -> Operation:
        contract, now = tool.contract, self._clock.now()
        id = self.ids.new("operation")
        identity = identity_of(contract, tool=tool.name, arguments=arguments)
        return Operation(
            id=id,
            tenant=ask.tenant,
            session=ask.session,
            turn=ask.turn,
            tool=tool.name,
            arguments=arguments,
            ask=ask,
            key=key_for(contract, operation=id, session=ask.session),
            contract=self.driver.digests[tool.name],
            identity=identity,
            names=held_names(
                contract, ask=ask, tool=tool.name, arguments=arguments, identity=identity
            ),
            unique=unique_names(contract, tenant=ask.tenant, arguments=arguments),
            made_at=now,
            send_by=now + self.settings.send_within_s if ask.send_by is None else ask.send_by,
            worker=self.driver.worker,
        )

    def _patience_s(self, tool: Tool, asked: float | None) -> float:
        for seconds in (asked, self.settings.patience_s):
            if seconds is not None:
                return seconds
        return 2 * tool.contract.deadline_s

    def _waiter(self, operation: str, *, enough: Enough, seconds: float) -> Waiter:
        assert self._loop is not None
        return Waiter(
            operation=operation,
            future=self._loop.create_future(),
            until=self._clock.now() + seconds,
            enough=enough,
        )

    async def _let_go(self, operation: str, ask: Ask) -> None:
        """Hold a cancelled caller until the doubt it leaves is durable, through more cancels.

        Where somebody else waits for the same operation, it stays wanted, and nothing is held up.
        """
        loop = self.driver.loop_of(tenant=ask.tenant, session=ask.session)
        if loop.is_wanted(operation):
            return
        seconds = self.settings.let_go_s
        waiter = self._waiter(operation, enough=let_go_enough, seconds=seconds)
        waiter.leaving = True
        loop.wait_for(waiter)
        reason = "the caller stopped waiting for it"
        loop.tell(LetGo(operation=operation, reason=reason, at=self._clock.now()))
        await waiter.stubbornly(seconds)
