"""A service that does a part of what it was asked: each item its own operation, or one in doubt."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from landed.core.outcome import AnswerLost, Refused
from landed.core.value import Confirmed, Failed, Unknown, Value
from landed.runtime.parts import assemble, register
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import open_sqlite
from landed.testing.sim import current_process
from landed.tools.classify import of_status
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import Rig

pytestmark = pytest.mark.fault("X67")

T = TypeVar("T")

ADDRESSES = ("ann@here.test", "nobody@here.test", "slow@here.test")


def carry_out(rig: Rig, tools: list[FunctionTool], act: Callable[[Runtime], Awaitable[T]]) -> T:
    async def agent() -> T:
        runtime = assemble(
            open_sqlite(":memory:"),
            tools=register(tools),
            clock=current_process().clock,
            ids=rig.world.ids,
            worker="w1",
        )
        async with runtime as rt:
            return await act(rt)

    process = rig.world.start(agent, name="w1")
    rig.world.wait(process)
    return process.result()


def test_of_items_that_are_operations_each_has_an_outcome_of_its_own(rig: Rig):
    sent: list[str] = []

    @tool(effect="irreversible")
    async def write_to(to: str) -> object:
        sent.append(to)
        match to.partition("@")[0]:
            case "nobody":
                return Refused(reason="550 no such mailbox")
            case "slow":
                return AnswerLost(reason="the connection was lost after DATA")
            case _:
                return {"id": to}

    async def all_of_them(rt: Runtime) -> tuple[list[Value], str]:
        heard = await rt.receive("write to all of them", delivery="message-1")
        calls = (
            rt.perform("write_to", {"to": to}, ask=heard.ask(to), patience_s=1.0)
            for to in ADDRESSES
        )
        values = list(await asyncio.gather(*calls))
        return values, (await rt.report(heard.turn)).text

    values, text = carry_out(rig, [write_to], all_of_them)
    assert [type(value) for value in values] == [Confirmed, Failed, Unknown]
    assert sorted(sent) == sorted(ADDRESSES)  # The one in doubt is not sent again.
    said = text.splitlines()
    assert [to for to in ADDRESSES if any(to in line for line in said)] == list(ADDRESSES)


def test_a_batch_that_says_only_some_is_one_operation_in_doubt(rig: Rig):
    sent: list[list[str]] = []

    @tool(effect="irreversible")
    async def write_to_all(to: list[str]) -> object:
        sent.append(to)
        return of_status(207, write_to_all.contract, says="2 of 3 accepted")

    async def once(rt: Runtime) -> Value:
        heard = await rt.receive("write to all of them", delivery="message-1")
        arguments = {"to": list(ADDRESSES)}
        return await rt.perform("write_to_all", arguments, ask=heard.ask("c1"), patience_s=1.0)

    value = carry_out(rig, [write_to_all], once)
    # Neither landed nor failed, as a whole: who was written to is for a person to find out.
    assert isinstance(value, Unknown)
    assert sent == [list(ADDRESSES)]
