"""A call that is cut off bricks no conversation, in three dialects that all refuse a hole."""

import asyncio
import json

import pytest

from landed.agent.bash import bash_tool
from landed.agent.harness import Harness
from landed.agent.repair import INTERRUPTED
from landed.testing.provider import Called, Protocol, Reply
from landed.testing.provider_inline import InlineProvider
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven, ticks
from landed.testing.workspace import FakeShell
from tests.agent.simulated import simulated
from tests.agent.speaking import PROTOCOLS, model_of

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

SLEEPS = Reply(
    text="I build.",
    calls=tuple(
        Called(id=id, name="bash", arguments={"command": command})
        for id, command in (("c1", "echo one"), ("c2", "sleep inf"), ("c3", "echo three"))
    ),
)


def harness_over(there: InlineProvider, protocol: Protocol) -> Harness:
    return Harness(model=model_of(protocol, there), tools=[bash_tool(FakeShell())], system="Build.")


async def cut(harness: Harness) -> None:
    """Begin a run, and cancel it while its second call is running."""
    background = Background(harness.prompt("Build."))
    await background.until("tool_execution_start", nth=2)
    await ticks(5)
    background.running.cancel()
    await asyncio.wait({background.running})
    await harness.aclose()
    assert shape(harness.messages) == "U A[c1,c2,c3] R(c1)"


@pytest.mark.field("E1")
@pytest.mark.req("S2-70", "S2-63")
@every_dialect
def test_after_a_cut_every_request_is_taken_and_says_what_is_known(protocol: Protocol) -> None:
    async def program() -> None:
        there = InlineProvider(SLEEPS, forever=Reply(text="Yes?"))
        harness = harness_over(there, protocol)
        await cut(harness)
        await driven(harness.prompt("Hello?"))
        await driven(harness.prompt("And now?"))

        assert shape(harness.messages) == "U A[c1,c2,c3] R(c1) U A U A"
        bodies = [json.dumps(received.body) for received in there.received[1:]]
        assert [body.count(INTERRUPTED) for body in bodies] == [2, 2]
        assert not any(word in body for body in bodies for word in ("cancelled", "aborted"))

    simulated(program())


@pytest.mark.field("E1")
@every_dialect
def test_without_the_repair_no_later_request_is_possible(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landed.agent.loop.messages_for_model", list)

    async def program() -> None:
        harness = harness_over(InlineProvider(SLEEPS, forever=Reply(text="Yes?")), protocol)
        await cut(harness)
        await driven(harness.prompt("Hello?"))
        await driven(harness.prompt("And now?"))

        assert shape(harness.messages) == "U A[c1,c2,c3] R(c1) U A(error) U A(error)"
        assert "no result of c2" in str(harness.messages[-1].get("error_message"))

    simulated(program())
