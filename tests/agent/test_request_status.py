"""What became of a request is told as it was: answered, failed, abandoned, or never sent."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from landed.agent.harness import Harness
from landed.agent.messages import error_message, user_message
from landed.agent.providers.model import ProviderModel
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.signal import CancelToken
from landed.testing.provider import Protocol, Reply
from landed.testing.provider_inline import InlineProvider
from landed.testing.scripted import (
    ScriptedReplies,
    answers_when_stopped,
    asks,
    call,
    never_answers,
    says,
)
from landed.testing.ticks import Background, driven
from tests.agent.simulated import simulated
from tests.agent.speaking import ASKED, BOTH, PROTOCOLS, model_of

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

YES = Reply(text="Yes, of course.")
BOUNDS = Patience(first_byte_s=20, between_s=5, whole_s=100)
OVER = {"patience": BOUNDS, "backoff": Backoff(tries=2)}

WIRE: dict[str, tuple[str, Reply, dict[str, Any]]] = {
    "a whole reply": ("answered", YES, {}),
    "turned away": ("failed", Reply(status=400), {}),
    "too busy, each time": ("failed", Reply(status=529), {}),
    "cut off at once": ("failed", replace(YES, cut_at=0), {}),
    "cut off halfway": ("failed", replace(BOTH, cut_at=1200), {}),
    "a failure in the midst": ("failed", replace(BOTH, fails_after=7), {}),
    "nonsense": ("failed", Reply(raw=b"<html>"), {}),
    "silent at once": ("abandoned", replace(YES, silent_at=0), {}),
    "silent halfway": ("abandoned", replace(BOTH, silent_at=1200), {}),
    "no key": ("unsent", YES, {"key": lambda: ""}),
}


@pytest.mark.req("S2-67")
@every_dialect
@pytest.mark.parametrize("case", WIRE)
def test_of_a_request_over_the_wire(protocol: Protocol, case: str) -> None:
    expected, reply, options = WIRE[case]

    async def program() -> list[str]:
        model = model_of(protocol, InlineProvider(forever=reply), **OVER, **options)
        harness = Harness(model=model)
        await driven(harness.prompt("Well?"))
        return [model.status, harness.request_status]

    assert simulated(program()) == [expected, expected]


@pytest.mark.req("S2-67")
@every_dialect
def test_nothing_leaves_after_a_stop_nor_where_it_would_be_refused(protocol: Protocol) -> None:
    async def program() -> None:
        there = InlineProvider(forever=YES)
        model = model_of(protocol, there)
        signal = CancelToken()
        signal.cancel()
        await model("", ASKED, [], signal)
        assert model.status == "unsent"
        await model("", [error_message("no"), user_message("?")], [])
        assert (model.status, there.received) == ("unsent", [])

    simulated(program())


def wrapped(model: ProviderModel) -> Any:
    """A model whose own word cannot be asked for."""

    async def ask(*asked: Any) -> Any:
        return await model(*asked)

    return ask


SCRIPTED: dict[str, tuple[str, Any]] = {
    "words": ("answered", says("Yes.")),
    "calls": ("answered", asks(call("c1", "act"))),
    "an error": ("failed", error_message("no")),
    "what it raises": ("failed", RuntimeError("no")),
    "no message": ("failed", {"role": "assistant"}),
    "a stop": ("abandoned", error_message("stopped", "aborted")),
}


@pytest.mark.req("S2-67")
@pytest.mark.parametrize("case", SCRIPTED)
def test_of_a_model_that_does_not_tell_it_is_what_came(case: str) -> None:
    expected, reply = SCRIPTED[case]
    harness = Harness(model=ScriptedReplies(reply, says("Over.")))
    seen: list[str] = []
    harness.observe(lambda event: seen.append(harness.request_status))

    simulated(driven(harness.prompt("Well?")))

    assert seen[0] == "none"
    reply_is_in = next(n for n, status in enumerate(seen) if status != "none")
    assert seen[reply_is_in] == expected


@pytest.mark.req("S2-67")
@pytest.mark.parametrize("model", [answers_when_stopped, never_answers])
def test_of_one_that_hangs_it_waits_and_is_then_abandoned(model: Any) -> None:
    async def program() -> list[str]:
        harness = Harness(model=ScriptedReplies(model))
        background = Background(harness.prompt("Well?"))
        await asyncio.sleep(1)  # virtual time
        waited = harness.request_status
        harness.cancel()
        background.running.cancel()
        await asyncio.wait({background.running})
        return [waited, harness.request_status]

    assert simulated(program()) == ["waiting", "abandoned"]


def test_a_status_that_means_something_else_is_not_taken_for_ours() -> None:
    class Fine(ScriptedReplies):
        status = "ok"

    harness = Harness(model=Fine(says("Yes.")))
    simulated(driven(harness.prompt("Well?")))
    assert harness.request_status == "answered"

    harness = Harness(model=wrapped(model_of("anthropic", InlineProvider(Reply(status=400)))))
    simulated(driven(harness.prompt("Well?")))
    assert harness.request_status == "failed"
