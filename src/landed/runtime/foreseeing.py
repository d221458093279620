"""Looks ahead: previews of a plan's steps, what is alike, and whether it all still holds later.

Nothing here writes. A preview asks the tools, in order, each with what the earlier steps will make;
the check before a step asks its tool the very same question again, so that the two answers can be
compared.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

from landed.core.arrival import Checked
from landed.core.canonical import Json
from landed.core.contract import Freshness, LookAlike, Risk
from landed.core.key import Ask
from landed.core.outcome import NoAnswer
from landed.core.plan import Plan, Step
from landed.core.preview import (
    QUESTIONS_MAX,
    SUMMARY_MAX,
    Preview,
    Previewing,
    Similar,
    changed,
    risk_of,
)
from landed.core.scope import Check
from landed.core.sentences import call_text
from landed.core.tool import Tool
from landed.runtime.clock import Clock
from landed.runtime.permissions import Permissions, Permit, refusal
from landed.runtime.sending import said
from landed.runtime.touched import Touched

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What was seen of a plan before anything was done.

    `previews` is empty where there was nothing to be seen. `risky` says that a person has to agree,
    `missing` what has to be known, or to be gone, first.
    """

    previews: tuple[Preview, ...] = ()
    risky: bool = False
    missing: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Foreseer:
    """Asks tools and permissions before anything is sent."""

    tools: Mapping[str, Tool]
    permissions: Permissions
    clock: Clock
    language: str
    touched: Touched = field(default_factory=Touched)

    async def refused(self, steps: Sequence[Step], ask: Ask) -> str:
        """Return which step whoever asks is not allowed, and why; "" where all are."""
        for number, step in enumerate(steps, 1):
            permit = _permit(step.permission, step.tool, step.arguments, ask)
            if why := await refusal(self.permissions, permit):
                return f"step {number} ({step.tool}): {why}"
        return ""

    async def foresee(
        self,
        steps: Sequence[Step],
        ask: Ask,
        *,
        origin: str,
        there: Set[tuple[str, str]] = frozenset(),
        asks: bool = False,
    ) -> Foreseen:
        """Preview a plan: every step in order, with what the earlier ones will make.

        `there` are the calls (tool, identity) that were made already: nobody is asked about those.
        With `asks` a person has to agree, whatever the steps say of themselves.
        """
        contracts = [self.tools[step.tool].contract for step in steps]
        new = [(step.tool, step.identity) not in there for step in steps]
        plain = not any(c.preview or c.look_alike is not LookAlike.NONE for c in contracts)
        risky = asks or any(
            is_new
            and not step.reads
            and risk_of(contract, Risk(step.risk), origin=origin, similar=False) is Risk.CONFIRM
            for step, contract, is_new in zip(steps, contracts, new, strict=True)
        )
        if plain and not risky:
            return Foreseen()
        previews: list[Preview] = []
        missing: dict[str, int] = {}
        for number, (step, is_new) in enumerate(zip(steps, new, strict=True), 1):
            asked = self._asked(step, ask, previews, origin=origin)
            preview, lacks = await self._one(step, asked) if is_new else (_call(step), ())
            previews.append(preview)
            for each in lacks:
                missing.setdefault(each, number)  # What two steps lack is asked for once.
        alike = any(preview.similar for preview in previews)
        return Foreseen(
            previews=tuple(previews),
            risky=risky or alike,
            missing=_numbered(missing, alone=len(steps) == 1)[:QUESTIONS_MAX],
        )

    async def check(self, command: Check) -> Checked:
        """Say whether a step, or an undo, may still be carried out as it was approved."""
        permit = _permit(command.permission, command.tool, command.arguments, command.ask)
        why = await refusal(self.permissions, permit)
        checked = Checked(subject=command.subject, index=command.index, refused=why)
        if why or command.plan is None:
            return checked
        return await self._compare(command.plan, checked)

    async def _compare(self, plan: Plan, checked: Checked) -> Checked:
        """Ask a step's tool what it was asked for the preview, and compare the facts."""
        step, index = plan.steps[checked.index], checked.index
        tool = self.tools.get(step.tool)
        if tool is None:
            return replace(checked, refused=f"the tool {step.tool!r} is not registered here")
        contract = tool.contract
        if not contract.preview or not plan.answer_by or contract.freshness is Freshness.NONE:
            return checked
        asked = self._asked(step, plan.ask, plan.previews[:index], origin=plan.origin)
        if plan.previews[index].held and not plan.places[index].record:  # Else it was used.
            if written := self.touched.since(plan, index):
                return replace(checked, changed=written)
            asked = replace(asked, held=plan.previews[index].held)
        preview, lacks = await self._one(step, asked)
        if lacks:
            return replace(checked, refused=lacks[0])
        moved = changed(index + 1, plan.previews[index].basis, preview.basis, contract)
        return replace(checked, changed=moved)

    def _asked(self, step: Step, ask: Ask, before: Sequence[Preview], *, origin: str) -> Previewing:
        return Previewing(
            tool=step.tool,
            arguments=step.arguments,
            ask=ask,
            now=self.clock.now(),
            language=self.language,
            origin=origin,
            made={f"${n}": preview.makes for n, preview in enumerate(before, 1)},
        )

    async def _one(self, step: Step, asked: Previewing) -> tuple[Preview, tuple[str, ...]]:
        """Return the preview of one step, and what is missing."""
        tool = self.tools[step.tool]
        preview = _call(step)
        if tool.contract.preview:
            said_so = await _bounded(tool, lambda: tool.foresight.preview(asked))
            if isinstance(said_so, NoAnswer):
                return preview, (f"{step.tool} could not be previewed: {said_so.reason}",)
            preview = said_so
        if tool.contract.look_alike is LookAlike.NONE:
            return preview, preview.questions
        similar = await _bounded(tool, lambda: tool.foresight.look_alike(asked))
        if isinstance(similar, NoAnswer):
            return preview, (f"what is like {step.tool} could not be seen: {similar.reason}",)
        if similar and tool.contract.look_alike is LookAlike.BLOCK:
            return preview, (f"{step.tool}: there is one already: {_text(similar)}",)
        return replace(preview, similar=similar), preview.questions


def _numbered(missing: Mapping[str, int], *, alone: bool) -> tuple[str, ...]:
    """Return what is missing, each with the number of the step that lacks it."""
    return tuple(each if alone else f"{number}. {each}" for each, number in missing.items())


def _call(step: Step) -> Preview:
    """Return all that can be said of a step whose tool says nothing beforehand."""
    return Preview(summary=call_text(step.tool, step.arguments)[:SUMMARY_MAX])


def _text(similar: Sequence[Similar]) -> str:
    return "; ".join(each.text for each in similar)


async def _bounded(tool: Tool, ask: Callable[[], Awaitable[T | NoAnswer]]) -> T | NoAnswer:
    """Ask, for as long as a send would be waited for; whatever happens, a value comes back."""
    try:
        async with asyncio.timeout(tool.contract.deadline_s):
            return await ask()
    except TimeoutError:
        return NoAnswer(reason=f"no answer within {tool.contract.deadline_s:g} s")
    except Exception as error:
        return NoAnswer(reason=said(error))


def _permit(permission: str, tool: str, arguments: Mapping[str, Json], ask: Ask) -> Permit:
    return Permit(
        permission=permission,
        principal=ask.principal,
        tenant=ask.tenant,
        session=ask.session,
        tool=tool,
        arguments=arguments,
    )
