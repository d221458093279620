"""The agent of the invoice demo: it hears, has its model read, and proposes through the `act` tool.

As in `landed.testing.acting` a script runs again from its start in every process. What the model
was sent is kept, byte for byte; the tokens are kept beside it, as a web page would have them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from landed.core.approval import Purpose
from landed.core.canonical import Json
from landed.core.errors import ApprovalError
from landed.core.plan import At, PlanState
from landed.core.session import Input
from landed.core.value import PlanValue, Undecided
from landed.runtime.acting import ModelTools
from landed.testing.acting import Agent
from landed.testing.invoices.words import ANA
from landed.testing.models import Wanted

Steps = tuple[Wanted, ...]
UNDER_WAY = frozenset(
    {PlanState.RUNNING, PlanState.IN_DOUBT, PlanState.STOPPING, PlanState.UNDOING}
)
# How often it is looked whether a plan is over: at first as a person who waits would.
TICK_S, LATER_S, SOON, LOOKS_MAX = 0.02, 1.0, 200, 1_000


async def through_act(tools: ModelTools, steps: Steps) -> str:
    """Propose as a model does: one call of `act`, as JSON text."""
    plan = {"steps": [{"tool": one.tool, "arguments": one.arguments} for one in steps]}
    return await tools.call("act", json.dumps(plan).encode())


def as_said(words: str) -> str:
    """Take words for what they are."""
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What the code around the runtime does; the defaults are ours.

    act         hands a plan that the model wants to the runtime, and returns what the model is told
    hears       what the user's words are taken for before the runtime gets them
    asks_each   a plan for each step, and a question with it
    plans_anew  a retry is another plan of the same steps
    drains      a process that is to end lets what is out come back
    """

    act: Callable[[ModelTools, Steps], Awaitable[str]] = through_act
    hears: Callable[[str], str] = as_said
    asks_each: bool = False
    plans_anew: bool = False
    drains: bool = True


OURS = Manner()


class LeavingError(Exception):
    """This process is to end, in good order, and another one goes on."""


@dataclass(slots=True, eq=False)
class Clerk(Agent):
    """What a script acts through; `principal` is whom it speaks for.

    `yes` is the word for it in the language spoken, `leave` has this process make room for the next
    one, `wire` is all that the model was sent, `tokens` are those of the plans, by plan.
    """

    manner: Manner = OURS
    yes: str = "yes"
    principal: str = ANA
    leave: Callable[[Manner], None] = lambda manner: None
    wire: list[str] = field(default_factory=list[str])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    handed: list[str] = field(default_factory=list[str])

    async def order(self, text: str, *, delivery: str) -> tuple[Input, PlanValue]:
        """Receive words that want something, and have the model propose it."""
        heard = await self.listen(text, delivery=delivery)
        return heard, await self.act(heard, self.read(heard, text))

    def read(self, heard: Input, text: str) -> Steps:
        """Have the model read some words."""
        steps = self.model.read(text)
        self.timeline.add("model.read", f"{heard.turn}: {', '.join(one.tool for one in steps)}")
        return steps

    async def act(self, heard: Input, steps: Steps) -> PlanValue:
        """Have the model call `act`; returns the plan as the code around it sees it."""
        seen: list[PlanValue] = []
        tools = ModelTools(rt=self.rt, heard=heard, seen=seen.append)
        self.wire.append(json.dumps(tools.specs()))
        told = await self.manner.act(tools, steps)
        self.wire.append(told)
        if not seen:
            raise AssertionError(f"the plan was not taken: {told}")
        self._keep(seen[-1])
        return seen[-1]

    async def listen(self, text: str, *, delivery: str) -> Input:
        """Receive words; a strict yes or no in them answers the question that is open."""
        return await self._listen(self.manner.hears(text), delivery=delivery)

    async def agree(self, plan: PlanValue, *, delivery: str) -> PlanValue:
        """Say yes in words, and wait until the plan is over or waits for a person."""
        await self.listen(self.yes, delivery=delivery)
        return await self.over(plan)

    async def over(self, plan: PlanValue) -> PlanValue:
        """Wait until nothing of a plan goes on without a person, and return it as it is then."""
        for looks in range(LOOKS_MAX):
            value = await self.rt.plan(plan.plan)
            if value.state not in UNDER_WAY or await self._is_stuck(value):
                return value
            await asyncio.sleep(TICK_S if looks < SOON else LATER_S)
        raise AssertionError(f"{plan.plan} does not come to rest")

    async def press(
        self, plan: PlanValue, purpose: Purpose = Purpose.CONFIRM, *, by: str = ""
    ) -> PlanValue | None:
        """Press the button of a plan; None, with what is said, where that is refused."""
        who = by or self.principal
        try:
            value = await self.rt.approve(
                token=await self._token(plan, purpose),
                purpose=purpose,
                principal=who,
                session=self.session,
            )
        except ApprovalError as error:
            self.timeline.add("button", f"{who} presses {purpose}: {error}")
            return None
        assert value is not None
        again = ", as it was for the first click" if value.replayed else ""
        self.timeline.add("button", f"{who} presses {purpose}: {value.plan} {value.state}{again}")
        return value

    async def stop(self, plan: PlanValue) -> PlanValue:
        """Press Stop, and wait until what was in flight is settled."""
        await self.rt.stop(plan.plan, principal=self.principal)
        return await self.over(plan)

    async def _is_stuck(self, value: PlanValue) -> bool:
        out = [step.operation for step in value.steps if step.at == At.OUT and step.operation]
        states = [await self.rt.status(operation) for operation in out]
        return bool(states) and all(isinstance(each, Undecided) for each in states)

    async def _token(self, plan: PlanValue, purpose: Purpose) -> str:
        """Return the token of a button; where this process never had it, a new one."""
        kept = self.tokens.get(f"{plan.plan}/{purpose}", "")
        if not kept and (offer := await self.rt.offer(plan.plan, purpose)) is not None:
            self._hold(plan.plan, purpose, offer.token)
        return self.tokens.get(f"{plan.plan}/{purpose}", "")

    def _keep(self, plan: PlanValue) -> None:
        if plan.offer is not None and plan.offer.token:
            self._hold(plan.plan, plan.offer.purpose, plan.offer.token)

    def _hold(self, plan: str, purpose: str, token: str) -> None:
        self.tokens[f"{plan}/{purpose}"] = token
        self.handed.append(token)


def arguments_with(steps: Steps, made: Mapping[int, Json]) -> Steps:
    """Return the steps with what earlier ones made in the place of `$n`."""
    known = {f"${n}": id for n, id in made.items()}
    return tuple(
        Wanted(
            tool=one.tool,
            arguments={
                name: known.get(value, value) if isinstance(value, str) else value
                for name, value in one.arguments.items()
            },
        )
        for one in steps
    )
