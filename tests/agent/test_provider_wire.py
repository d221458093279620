"""Over real connections: a stop closes them, and a whole reply keeps them."""

import asyncio
import threading
from dataclasses import replace

import pytest

from landed.agent.messages import AssistantMessage, calls_of
from landed.agent.providers.patience import Backoff
from landed.agent.signal import CancelToken
from landed.testing.provider import Protocol, Reply, ScriptedProvider
from tests.agent.speaking import ASKED, BOTH, BOTH_SAID, PROTOCOLS, model_of, said

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.mark.req("S2-31", "S2-66")
@every_dialect
@pytest.mark.parametrize("silent_at", [0, 1200])
def test_a_stop_closes_the_connection(protocol: Protocol, silent_at: int) -> None:
    async def program() -> AssistantMessage:
        async with ScriptedProvider(replace(BOTH, silent_at=silent_at)) as there:
            signal = CancelToken()
            asking = asyncio.ensure_future(said(protocol, there, signal=signal))
            received = await there.came()
            signal.cancel()
            reply = await asking
            await received.left.wait()
            return reply

    reply = asyncio.run(program())

    assert (reply["stop_reason"], calls_of(reply)) == ("aborted", [])


@every_dialect
def test_so_does_the_cancellation_of_who_asks_and_it_goes_on(protocol: Protocol) -> None:
    async def program() -> None:
        async with ScriptedProvider(replace(BOTH, silent_at=1200)) as there:
            model = model_of(protocol, there)
            asking = asyncio.ensure_future(model("", ASKED, []))
            received = await there.came()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await received.left.wait()
            there.say(BOTH)
            assert await model("", ASKED, []) == BOTH_SAID
            await model.aclose()

    asyncio.run(program())


@every_dialect
def test_one_connection_serves_one_whole_reply_after_another(protocol: Protocol) -> None:
    async def program() -> None:
        async with ScriptedProvider(forever=BOTH) as there:
            model = model_of(protocol, there)
            for _ in range(3):
                assert await model("", ASKED, []) == BOTH_SAID
            await model.aclose()
            assert there.connections == 1

    asyncio.run(program())


@every_dialect
def test_a_refused_request_leaves_the_connection_for_the_next_try(protocol: Protocol) -> None:
    async def program() -> None:
        there = ScriptedProvider(Reply(status=503, headers={"Retry-After": "0"}), BOTH)
        async with there:
            assert await said(protocol, there) == BOTH_SAID
            assert (len(there.received), there.connections) == (2, 1)

    asyncio.run(program())


def serve(there: ScriptedProvider, listening: threading.Event, over: threading.Event) -> None:
    async def program() -> None:
        async with there:
            listening.set()
            await asyncio.to_thread(over.wait)

    asyncio.run(program())


def test_a_model_may_be_used_on_several_loops() -> None:
    there, listening, over = ScriptedProvider(forever=BOTH), threading.Event(), threading.Event()
    serving = threading.Thread(target=serve, args=(there, listening, over))
    serving.start()
    try:
        assert listening.wait(10)
        model = model_of("anthropic", there)
        with asyncio.Runner() as one, asyncio.Runner() as other:
            for runner in (one, other, one):
                assert runner.run(model("", ASKED, [])) == BOTH_SAID
            for runner in (one, other):
                runner.run(model.aclose())
    finally:
        over.set()
        serving.join(10)
    assert there.connections == 2


def test_nobody_there_is_an_error_message() -> None:
    async def program() -> AssistantMessage:
        async with ScriptedProvider() as there:
            model = model_of("anthropic", there, backoff=Backoff(tries=1))
        return await model("", ASKED, [])

    reply = asyncio.run(program())

    assert reply["stop_reason"] == "error"
    assert "nothing answered" in reply.get("error_message", "")
