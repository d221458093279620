"""Whole runs over the wire: a tool loop in each dialect, a cut, a stop, and the prompt after it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from landed.agent.harness import Harness
from landed.agent.messages import AssistantMessage, Message, text_of
from landed.agent.signal import Signal
from landed.agent.stop import stop_run
from landed.agent.tool import AgentTool, ToolSpec
from landed.agent.validate import transcript_problems
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider
from landed.testing.provider_inline import InlineProvider
from landed.testing.provider_streams import body_of
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven
from tests.agent.simulated import simulated
from tests.agent.speaking import BOTH, PROTOCOLS, model_of

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

READ = Reply(text="I look.", calls=(Called(id="c1", name="read", arguments={"path": "a.py"}),))


class Reader:
    """A tool that remembers what it was called with."""

    def __init__(self) -> None:
        self.read: list[Mapping[str, Any]] = []

    async def execute(self, arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        self.read.append(arguments)
        return "é = 1"

    def harness(self, model: Any) -> Harness:
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
        tools = [
            AgentTool(name=name, description="Reads.", parameters=parameters, execute=self.execute)
            for name in ("read", "ls")
        ]
        return Harness(model=model, tools=tools, system="Be brief.")


@every_dialect
def test_a_tool_is_called_and_its_result_goes_back(protocol: Protocol) -> None:
    async def program() -> None:
        reader = Reader()
        async with ScriptedProvider(READ, Reply(text="An é.")) as there:
            model = model_of(protocol, there)
            harness = reader.harness(model)
            await driven(harness.prompt("What is in a.py?"))
            await model.aclose()

        assert shape(harness.messages) == "U A[c1] R(c1) A"
        assert text_of(harness.messages[-1]) == "An é."
        assert reader.read == [{"path": "a.py"}]
        assert "é = 1" in str(there.received[1].body)

    asyncio.run(program())


@pytest.mark.req("S2-102")
@every_dialect
def test_a_reply_cut_within_the_arguments_calls_nothing(protocol: Protocol) -> None:
    whole = replace(READ, piece_chars=4)

    async def program(at: int) -> None:
        reader = Reader()
        there = InlineProvider(replace(whole, cut_at=at), Reply(text="Again."))
        harness = reader.harness(model_of(protocol, there))
        await driven(harness.prompt("What is in a.py?"))
        assert (shape(harness.messages, errors=True), reader.read) == ("U A(error)", []), at

        await driven(harness.prompt("Well?"))
        assert text_of(harness.messages[-1]) == "Again."
        assert transcript_problems(harness.messages) == []

    begun = b"".join(body_of(protocol, whole)).index(rb"{\"pa")
    for at in range(begun + 3, begun + 400, 30):
        simulated(program(at))


@pytest.mark.req("S2-31", "S2-66")
@every_dialect
def test_a_stop_while_the_model_hangs_is_clean(protocol: Protocol) -> None:
    async def program() -> None:
        there = InlineProvider(Reply(text="Hm", silent_at=0), Reply(text="Yes."))
        harness = Reader().harness(model_of(protocol, there))
        background = Background(harness.prompt("What is in a.py?"))
        await there.came()

        assert await stop_run(harness, background.running, grace_s=2.0) == "clean"
        assert shape(harness.messages) == "U A(aborted)"
        assert there.received[0].left.is_set()
        assert harness.request_status == "abandoned"

        await driven(harness.prompt("Are you there?"))
        assert shape(harness.messages) == "U A(aborted) U A"
        assert "aborted" not in str(there.received[1].body)

    simulated(program())


@pytest.mark.req("S2-66", "S2-67")
@every_dialect
def test_a_model_that_never_looks_is_stopped_hard_and_its_request_is_abandoned(
    protocol: Protocol,
) -> None:
    async def program() -> None:
        there = InlineProvider(replace(BOTH, silent_at=1200))
        inner = model_of(protocol, there)

        async def deaf(
            system: str,
            messages: Sequence[Message],
            tools: Sequence[ToolSpec],
            signal: Signal | None = None,
        ) -> AssistantMessage:
            return await inner(system, messages, tools)

        harness = Reader().harness(deaf)
        background = Background(harness.prompt("What is in a.py?"))
        await there.came()

        assert await stop_run(harness, background.running, grace_s=2.0) == "hard"
        assert shape(harness.messages) == "U"
        assert there.received[0].left.is_set()
        assert (harness.request_status, inner.status) == ("abandoned", "abandoned")

    simulated(program())
