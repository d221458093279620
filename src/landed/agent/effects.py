"""Effects as tools of the loop: what a model asks for is proposed, and told from the records.

A model is shown `act`, `revise`, `status` and `ask`, and each registered tool under its own name: a
call of one is a plan of one step. The loop's own rules go on to hold: one result for each call, and
a stop that is heard.

- A stop stops the plan: nothing more of it is begun, what is out obeys its contract, and the result
  says how each step stands. What nobody has answered is said to be unknown, never cancelled.
- A cancelled run stops it hard, and goes on only once that is durable. The call has no result then;
  the records have what became of it.
- The user's words end only the wait: the plan goes on, and the model decides about it.

Equal calls for the same words are one call, however often a model sends them. The agent's own
tools are otherwise (`landed.agent.owned`): a command is run again because a file has changed
meanwhile, so each call of one is its own, as soon as the one before it is over.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from landed.agent.messages import ToolCall
from landed.agent.signal import Signal, StoppedError, to_its_end, unless_cancelled
from landed.agent.tool import AgentTool, Execute, Telling, bounded
from landed.core.act import call_schema
from landed.core.canonical import Json
from landed.core.contract import Effect
from landed.core.errors import ContractError, ProposalError
from landed.core.key import ask_name
from landed.core.operation import State
from landed.core.plan import At, Plan, PlanState
from landed.core.session import Input
from landed.core.tool import Tool
from landed.core.value import Answered, PlanValue
from landed.runtime.acting import ModelTools
from landed.runtime.progress import Progress
from landed.runtime.proposing import PLAN_PATIENCE_S
from landed.runtime.runtime import Runtime

ACTING = ("act", "revise")
VERBS = (*ACTING, "status", "ask")
LOOK_S, LOOKS_MOST_S = 0.005, 0.25
"""How long it is waited between two looks at what a stop leaves out: at first, and at most."""

_ON_ITS_WAY = frozenset({State.RECORDED, State.SENT, State.RESENT})

NOT_WAITED_FOR = "The user said something, so this is not waited for; it goes on. "
_GOES_ON = frozenset(
    {PlanState.PROPOSED, PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.STOPPING}
)
_EQUAL_MAX = 1000  # equal calls for the same words; more are joined to the last of them

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Who is told of plans beside the model: as each stands (with its offer), and how it goes on.

    `PlanValue.offer` may hold a token, which no model sees.
    """

    plan: Callable[[PlanValue], object] = lambda value: None
    progress: Callable[[Progress], object] = lambda progress: None


@dataclass(slots=True, eq=False, kw_only=True)
class Effects:
    """The effectful tools of one conversation.

    rt         the open runtime
    whose      returns the input that the model acts on now, and in whose name
    offered    the names of the registered tools that it may use; None for all
    own_names  whether each of them is also a tool of its own, beside `act`
    stopping   says whether the run itself is to end, and not only the wait for one call
    nth        says which of the equal calls for the same words a call is, from 1; of None, the one
               that runs
    """

    rt: Runtime
    whose: Callable[[], Input]
    stopping: Callable[[], bool]
    offered: Collection[str] | None = None
    own_names: bool = True
    seen: Seen = Seen()
    patience_s: float = PLAN_PATIENCE_S
    nth: Callable[[ToolCall | None], int] = lambda call: 1

    def tools(self) -> tuple[AgentTool, ...]:
        """Return them for a harness; raises `ContractError` for a tool that cannot be shown."""
        specs = ModelTools(rt=self.rt, heard=_NOBODY, offered=self.offered).specs()
        verbs = [
            AgentTool(
                name=str(spec["name"]),
                description=str(spec["description"]),
                parameters=cast("Mapping[str, Any]", spec["parameters"]),
                execute=self._verb(str(spec["name"])),
            )
            for spec in specs
        ]
        own = [self._by_name(tool) for tool in self._registered()] if self.own_names else []
        if taken := [tool.name for tool in own if tool.name in VERBS]:
            raise ContractError(f"{taken[0]} is a verb of the model's; name the tool differently")
        return (*verbs, *own)

    def acts(self, name: str) -> bool:
        """Whether a call of that name may have an effect, which is recorded before it is sent."""
        own = {tool.name for tool in self._registered() if tool.contract.effect is not Effect.NONE}
        return name in own or name in ACTING

    async def plan_of(self, call: ToolCall, heard: Input) -> str:
        """Return the plan that a call of the model made for an input, "" where it made none."""
        try:
            call_id = self._call_id(call)
        except ProposalError:
            return ""
        return await self._asked(heard, call_id)

    async def told_of(self, plan: str, heard: Input, *, whole: bool = False) -> Telling:
        """Return what a model is told of a plan as it stands; `whole`: its first result, too."""
        values: list[PlanValue] = []
        tools = self._model_tools(heard, values)
        text = await tools.call("status", {"id": plan})
        result = await self._result(plan, heard) if whole else ""
        if result and result not in text:
            text = f"{text}\n{result}"
        return Telling(text=text, plans=_states(values))

    async def _result(self, plan: str, heard: Input) -> str:
        """Return what the first step of a plan came back with, bounded, "" for nothing (yet)."""
        held = await self._plan(plan, heard)
        operations = await self.rt.driver.reader.operations(held.places[0].record)
        return "".join(_whole(operation.result) for operation in operations.values())

    async def _asked(self, heard: Input, call_id: str) -> str:
        """Return the plan that an input has made under a call id, "" for none."""
        name = ask_name(heard.ask(call_id))
        return (await self.rt.driver.store.holders(name)).get(name, "")

    def _is_its_own(self, name: str) -> bool:
        """Whether each call of a tool is meant for itself, however often it is made."""
        tool = self.rt.driver.tools.get(name) if name not in VERBS else None
        return getattr(tool, "each_is_its_own", False) is True

    def _registered(self) -> Sequence[Tool]:
        every = self.rt.driver.tools.values()
        return [one for one in every if self.offered is None or one.name in self.offered]

    def _call_id(self, call: ToolCall) -> str:
        """Return the call id under which a call is proposed; raises `ProposalError`."""
        name, given = call["name"], call["arguments"]
        if name not in ACTING:
            name, given = "act", _one_step(name, given)
        again = _again(self.nth(call)) if self._is_its_own(call["name"]) else ""
        return self._model_tools(_NOBODY, [], again=again).call_id(name, cast("Json", given))

    def _model_tools(self, heard: Input, values: list[PlanValue], *, again: str = "") -> ModelTools:
        return ModelTools(
            rt=self.rt,
            heard=heard,
            offered=self.offered,
            seen=values.append,
            patience_s=0.0,
            again=again,
        )

    def _verb(self, name: str) -> Execute:
        async def execute(arguments: Arguments, signal: Signal | None = None) -> str | Telling:
            return await self._done(name, arguments, signal)

        return execute

    def _by_name(self, tool: Tool) -> AgentTool:
        is_read = tool.contract.effect is Effect.NONE

        async def execute(arguments: Arguments, signal: Signal | None = None) -> str | Telling:
            if is_read:
                return await self._looked_up(tool, arguments, signal)
            step = _one_step(tool.name, arguments)
            if not self._is_its_own(tool.name):
                return await self._done("act", step, signal, whole=True)
            try:
                again, going_on = await self._again(step)
            except ProposalError as error:
                return str(error)
            if going_on:
                return await self._told(going_on, self.whose(), signal, whole=True)
            return await self._done("act", step, signal, again=again, whole=True)

        return AgentTool(
            name=tool.name,
            description=str(tool.schema.get("description", "")),
            parameters=call_schema(tool),
            execute=execute,
        )

    async def _looked_up(self, tool: Tool, arguments: Arguments, signal: Signal | None) -> str:
        """Read, each time anew; a read that is stopped is dropped and changes nothing."""
        ask = self.whose().ask()
        value = await unless_cancelled(self.rt.perform(tool, arguments, ask=ask), signal)
        if isinstance(value, Answered):
            whole = _whole(value.result)
            return value.text if whole in value.text else f"{value.text}\n{whole}"
        return value.text

    async def _again(self, step: Mapping[str, Any]) -> tuple[str, str]:
        """Return by what a call is told apart from equal ones, and the one of them that goes on."""
        call_id = self._model_tools(_NOBODY, []).call_id("act", cast("Json", step))
        heard, nth = self.whose(), self.nth(None)
        for n in range(nth - 1, 0, -1):
            if plan := await self._asked(heard, call_id + _again(n)):
                if (await self._plan(plan, heard)).state in _GOES_ON:
                    return "", plan
                break
        while nth < _EQUAL_MAX and await self._asked(heard, call_id + _again(nth)):
            nth += 1
        return _again(nth), ""

    async def _done(
        self,
        verb: str,
        arguments: Arguments,
        signal: Signal | None,
        *,
        again: str = "",
        whole: bool = False,
    ) -> str | Telling:
        """Have a verb carried out, wait as long as that goes on, and say how it stands."""
        heard = self.whose()
        values: list[PlanValue] = []
        tools = self._model_tools(heard, values, again=again)
        try:
            text = await to_its_end(tools.call(verb, cast("Json", arguments)))
        except asyncio.CancelledError:
            if values and verb != "status":
                await to_its_end(self._stopped(values[-1].plan, heard, signal, hard=True))
            raise
        if not values or verb == "status":
            return Telling(text=text, plans=_states(values))
        self.seen.plan(values[-1])
        return await self._told(values[-1].plan, heard, signal, whole=whole)

    async def _told(
        self, plan: str, heard: Input, signal: Signal | None, *, whole: bool
    ) -> Telling:
        """Wait until a plan is at rest, and say how it stands."""
        opening = await self.at_rest(plan, heard, signal)
        told = await self.told_of(plan, heard, whole=whole)
        return Telling(text=opening + told.text, plans=told.plans)

    async def at_rest(
        self, plan: str, heard: Input, signal: Signal | None, *, patience_s: float | None = None
    ) -> str:
        """Wait until a plan is at rest, for as long as one may; return what is to be said first.

        A stop stops the plan. A cancel stops it hard, and goes on once that is durable.
        """
        seconds = self.patience_s if patience_s is None else patience_s
        try:
            return await self._waited(plan, heard, signal, seconds)
        except asyncio.CancelledError:
            await to_its_end(self._stopped(plan, heard, signal, hard=True))
            raise

    async def _waited(
        self, plan: str, heard: Input, signal: Signal | None, patience_s: float
    ) -> str:
        try:
            async with asyncio.timeout(patience_s):
                await unless_cancelled(self._followed(plan, heard), signal)
        except TimeoutError:
            return ""
        except StoppedError:
            if not self.stopping():
                return NOT_WAITED_FOR
            await self._stopped(plan, heard, signal)
        return ""

    async def _plan(self, plan: str, heard: Input) -> Plan:
        return await self.rt.driver.reader.plan(plan, tenant=heard.tenant)

    async def _followed(self, plan: str, heard: Input) -> None:
        async for progress in self.rt.progress(plan, tenant=heard.tenant):
            self.seen.progress(progress)

    async def _stopped(
        self, plan: str, heard: Input, signal: Signal | None, *, hard: bool = False
    ) -> None:
        """Stop a plan in the name of whoever it is for; a question about it stays as it is.

        What is out is waited for as its contract says, and no longer than until its doubt is
        durable: finding out goes on without anybody waiting. Where another worker has it in hand,
        that is waited for in bounds.
        """
        if (await self._plan(plan, heard)).state is PlanState.PROPOSED:
            return
        await self.rt.stop(
            plan,
            principal=heard.principal,
            tenant=heard.tenant,
            why=str(getattr(signal, "reason", "")),
            hard=hard,
            patience_s=0.0,
        )
        now, looks = asyncio.get_running_loop().time, 0
        until = now() + (self.rt.settings.let_go_s if hard else self.patience_s)
        while now() < until and await self._is_out(plan, heard):
            looks += 1
            await asyncio.sleep(min(LOOK_S * looks, LOOKS_MOST_S))

    async def _is_out(self, plan: str, heard: Input) -> bool:
        """Whether a call of a plan is on its way, and nobody has given it up."""
        held = await self._plan(plan, heard)
        out = [place.record for place in held.places if place.at is At.OUT and place.record]
        operations = await self.rt.driver.reader.operations(*out)
        return any(operation.state in _ON_ITS_WAY for operation in operations.values())


_NOBODY = Input(
    id="",
    tenant="",
    session="",
    principal="",
    text="",
    origin="",
    delivery="",
    turn="",
    at=0.0,
)


def _states(values: Sequence[PlanValue]) -> dict[str, str]:
    return {value.plan: str(value.state) for value in values}


def _one_step(name: str, arguments: Arguments) -> dict[str, Any]:
    return {"steps": [{"tool": name, "arguments": arguments}]}


def _again(nth: int) -> str:
    """Return what is added to the call id of the nth of equal calls."""
    return f"/{nth}" if nth > 1 else ""


def _whole(result: Json) -> str:
    """Return a result as a model reads it: the text that it is, or its JSON."""
    if isinstance(result, Mapping) and list(result) == ["output"]:
        result = result["output"]
    if result is None:
        return ""
    return bounded(
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    )
