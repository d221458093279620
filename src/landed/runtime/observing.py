"""Calls without an effect: retried in bounds, journaled as observations, dropped on interrupt.

They are no operations: they have no key, hold nothing, and are simply run again after a crash.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.declared import digest_of
from landed.core.doubt import pause_s
from landed.core.key import Ask
from landed.core.outcome import Acknowledged, AnswerLost, NotSent, Refused, SendOutcome
from landed.core.sentences import observed, sentence
from landed.core.session import Observation, observing
from landed.core.store import Store
from landed.core.tool import Call, Tool
from landed.core.value import Answered, Unanswered
from landed.runtime.clock import Clock, Ids
from landed.runtime.sending import sent

log = logging.getLogger("landed")

TRIES_MAX = 3


async def looked(
    tool: Tool, arguments: Mapping[str, Json], ask: Ask, *, id: str, clock: Clock
) -> SendOutcome:
    """Call a tool without an effect, at most `TRIES_MAX` times; return the last outcome."""
    outcome: SendOutcome = NotSent(reason="")
    for tries in range(1, TRIES_MAX + 1):
        now, seconds = clock.now(), tool.contract.deadline_s
        call = Call(
            operation=id,
            tool=tool.name,
            key="",
            arguments=arguments,
            ask=ask,
            epoch=0,
            attempt=tries,
            sent_at=now,
            deadline_at=now + seconds,
        )
        outcome = await sent(tool, call, seconds=seconds, lingers=lambda _: None)
        asked_to_wait = isinstance(outcome, NotSent) and outcome.wait_s > 0
        if isinstance(outcome, Acknowledged | Refused) or asked_to_wait or tries == TRIES_MAX:
            break
        await asyncio.sleep(pause_s(tries))
    return outcome


@dataclass(slots=True, eq=False)
class Observer:
    """Runs calls without an effect and keeps what they came back with."""

    store: Store
    clock: Clock
    ids: Ids
    let_go_s: float

    async def observe(
        self, tool: Tool, arguments: Mapping[str, Json], ask: Ask
    ) -> Answered | Unanswered:
        """Call a tool without an effect, at most `TRIES_MAX` times, and record the result."""
        id = self.ids.new("observation")
        try:
            outcome = await looked(tool, arguments, ask, id=id, clock=self.clock)
        except asyncio.CancelledError:
            seen = self._seen(tool, arguments, ask, id, state="dropped", why="stopped waiting")
            await self._keep_dropped(seen)
            raise
        match outcome:
            case Acknowledged(result=result):
                seen = self._seen(tool, arguments, ask, id, state="answered", result=result)
            case Refused(reason=why) | NotSent(reason=why) | AnswerLost(reason=why):
                seen = self._seen(tool, arguments, ask, id, state="unanswered", why=why)
        await self.store.commit(observing(seen))
        return self._value(tool, seen)

    async def _keep_dropped(self, seen: Observation) -> None:
        """Record it, but hold the caller no longer than that takes, and never for an error."""
        keeping = asyncio.ensure_future(self.store.commit(observing(seen)))
        done, _ = await asyncio.wait({keeping}, timeout=self.let_go_s)
        if any(kept.exception() for kept in done):
            log.warning("a dropped call of %s was not recorded", seen.tool)

    def _seen(
        self,
        tool: Tool,
        arguments: Mapping[str, Json],
        ask: Ask,
        id: str,
        *,
        state: str,
        result: Json = None,
        why: str = "",
    ) -> Observation:
        return Observation(
            id=id,
            ask=ask,
            tool=tool.name,
            contract=digest_of(tool.contract),
            arguments=arguments,
            state=state,
            result=result,
            why=why,
            at=self.clock.now(),
        )

    def _value(self, tool: Tool, seen: Observation) -> Answered | Unanswered:
        said = observed(
            tool.contract,
            tool=tool.name,
            arguments=seen.arguments,
            state=seen.state,
            result=seen.result,
            why=seen.why,
        )
        text = sentence(said)
        if seen.state == "answered":
            return Answered(operation=seen.id, text=text, result=seen.result)
        return Unanswered(operation=seen.id, text=text, reason=seen.why)
