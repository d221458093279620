"""How long a model is waited for, how often it is asked, and that a Stop cuts both at once.

On virtual time: the figures are exact, and no second goes by.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from landed.agent.messages import AssistantMessage, calls_of, text_of
from landed.agent.providers.patience import Backoff, Patience
from landed.agent.signal import CancelToken
from landed.testing.provider import Protocol, Reply
from landed.testing.provider_inline import InlineProvider
from tests.agent.simulated import simulated
from tests.agent.speaking import ASKED, BOTH, BOTH_SAID, PROTOCOLS, model_of, said

every_dialect = pytest.mark.parametrize("protocol", PROTOCOLS)

BOUNDS = Patience(connect_s=3, first_byte_s=20, between_s=5, whole_s=100)
BUSY = Reply(status=529, says="Overloaded")


def timed(
    protocol: Protocol, there: InlineProvider, **options: Any
) -> tuple[AssistantMessage, float]:
    """Ask once; return the reply and how many seconds that took."""

    async def program() -> tuple[AssistantMessage, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = await said(protocol, there, **{"patience": BOUNDS, **options})
        return reply, round(loop.time() - began, 3)

    return simulated(program())


class Deaf(InlineProvider):
    """Takes the request, and never answers."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self.answer(request.url.path, {}, await request.aread())
        await asyncio.Event().wait()
        raise AssertionError("nothing ends this wait but who waits")


class Unreachable(InlineProvider):
    """Refuses so many connections before it takes one."""

    def __init__(self, refusals: int, *replies: Reply) -> None:
        super().__init__(*replies)
        self.refusals = refusals

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.refusals:
            self.refusals -= 1
            raise httpx2.ConnectError("connection refused")
        return await super().handle_async_request(request)


class Dripping(InlineProvider):
    """Sends a ping every second, for ever."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        return httpx2.Response(200, headers=response.headers, stream=_Pings())


class _Pings(httpx2.AsyncByteStream):
    async def __aiter__(self) -> Any:
        while True:
            yield b": ping\n\n"
            await asyncio.sleep(1)  # virtual time


@pytest.mark.req("S2-93")
@every_dialect
def test_a_provider_that_never_answers_is_given_up(protocol: Protocol) -> None:
    reply, took_s = timed(protocol, Deaf())

    assert (reply["stop_reason"], reply["content"], took_s) == ("error", [], 20)
    assert "nothing was heard for 20 s" in reply.get("error_message", "")


@pytest.mark.req("S2-93", "S2-102")
@every_dialect
def test_so_is_one_that_falls_silent_in_the_midst(protocol: Protocol) -> None:
    there = InlineProvider(replace(BOTH, silent_at=1200))

    reply, took_s = timed(protocol, there)

    assert (reply["stop_reason"], calls_of(reply), took_s) == ("error", [], 5)
    assert text_of(reply)
    assert "nothing was heard for 5 s" in reply.get("error_message", "")
    assert there.received[0].left.is_set()


@pytest.mark.req("S2-93")
@every_dialect
def test_so_is_one_that_only_says_that_it_is_alive(protocol: Protocol) -> None:
    reply, took_s = timed(protocol, Dripping(BOTH))

    assert (reply["stop_reason"], reply["content"], took_s) == ("error", [], 100)
    assert "no whole reply within 100 s" in reply.get("error_message", "")


@every_dialect
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_a_request_that_was_turned_away_is_sent_again(protocol: Protocol, status: int) -> None:
    there = InlineProvider(Reply(status=status), Reply(status=status), BOTH)

    reply, took_s = timed(protocol, there, backoff=Backoff(first_s=2))

    assert reply == BOTH_SAID
    assert len(there.received) == 3
    assert there.received[0].body == there.received[2].body
    assert 4.5 <= took_s <= 6  # 2 and 4 seconds, each less up to a quarter.


@every_dialect
def test_not_for_ever(protocol: Protocol) -> None:
    there = InlineProvider(forever=BUSY)

    reply, _ = timed(protocol, there, backoff=Backoff(tries=4))

    assert (reply["stop_reason"], len(there.received)) == ("error", 4)
    assert "HTTP 529" in reply.get("error_message", "")
    assert "Overloaded" in reply.get("error_message", "")


@every_dialect
@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_a_request_that_would_be_turned_away_again_is_not(protocol: Protocol, status: int) -> None:
    there = InlineProvider(Reply(status=status, says="Never."), BOTH)

    reply, took_s = timed(protocol, there)

    assert (reply["stop_reason"], len(there.received), took_s) == ("error", 1, 0)
    assert f"HTTP {status}" in reply.get("error_message", "")
    assert "Never." in reply.get("error_message", "")


def test_nor_one_for_which_the_money_has_run_out() -> None:
    spent = b'{"error": {"code": "insufficient_quota", "message": "You exceeded your quota."}}'
    there = InlineProvider(Reply(status=429, raw=spent), BOTH)

    reply, _ = timed("openai-chat", there)

    assert (reply["stop_reason"], len(there.received)) == ("error", 1)


@every_dialect
def test_a_connection_that_did_not_come_about_is_tried_again(protocol: Protocol) -> None:
    reply, _ = timed(protocol, Unreachable(2, BOTH))
    assert reply == BOTH_SAID

    reply, _ = timed(protocol, Unreachable(3, BOTH))
    assert "nothing answered (ConnectError)" in reply.get("error_message", "")


class Noted(InlineProvider):
    """Keeps the time-outs that a request tells its transport."""

    timeouts: Any = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.timeouts = request.extensions["timeout"]
        raise httpx2.ConnectTimeout("no connection")


@pytest.mark.req("S2-93")
def test_a_connection_is_waited_for_as_long_as_was_said() -> None:
    there = Noted()

    reply, _ = timed("anthropic", there)

    assert there.timeouts["connect"] == BOUNDS.connect_s
    assert "nothing answered (ConnectTimeout)" in reply.get("error_message", "")


@every_dialect
@pytest.mark.parametrize("asked", ["7", "date"])
def test_retry_after_is_kept_to(protocol: Protocol, asked: str) -> None:
    moment = datetime.fromtimestamp(1_790_000_007, UTC)
    header = format_datetime(moment, usegmt=True) if asked == "date" else asked
    there = InlineProvider(replace(BUSY, headers={"Retry-After": header}), BOTH)

    reply, took_s = timed(protocol, there, now=lambda: 1_790_000_000.0)

    assert (reply, took_s) == (BOTH_SAID, 7)


@every_dialect
def test_a_retry_after_that_is_too_long_is_not_waited_for(protocol: Protocol) -> None:
    there = InlineProvider(replace(BUSY, headers={"Retry-After": "3600"}), BOTH)

    reply, took_s = timed(protocol, there)

    assert (reply["stop_reason"], took_s, len(there.received)) == ("error", 0, 1)


@every_dialect
def test_a_failure_before_the_first_word_is_asked_again_and_one_after_it_is_not(
    protocol: Protocol,
) -> None:
    there = InlineProvider(replace(BOTH, fails_after=1), BOTH)
    assert timed(protocol, there)[0] == BOTH_SAID

    there = InlineProvider(replace(BOTH, fails_after=7), BOTH)
    assert timed(protocol, there)[0]["stop_reason"] == "error"
    assert len(there.received) == 1


def stopped_after(
    delay_s: float, protocol: Protocol, there: InlineProvider, signal: Any, **options: Any
) -> tuple[AssistantMessage, float]:
    """Ask once, stop after so many seconds; return the reply and when it came."""

    async def program() -> tuple[AssistantMessage, float]:
        loop = asyncio.get_running_loop()
        loop.call_later(delay_s, signal.cancel)
        began = loop.time()
        reply = await said(protocol, there, signal=signal, **{"patience": BOUNDS, **options})
        return reply, round(loop.time() - began, 3)

    return simulated(program())


class Foreign:
    """A signal that has to be looked at."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def is_cancelled(self) -> bool:
        return self.cancelled


@pytest.mark.req("S2-31", "S2-66")
@every_dialect
def test_a_stop_while_the_model_answers_is_an_aborted_reply_at_once(protocol: Protocol) -> None:
    there = InlineProvider(replace(BOTH, silent_at=1200))

    reply, took_s = stopped_after(2, protocol, there, CancelToken())

    assert (reply["stop_reason"], calls_of(reply), took_s) == ("aborted", [], 2)
    assert reply.get("error_message") == "Operation aborted"
    assert BOTH.text.startswith(text_of(reply))
    assert there.received[0].left.is_set()


@pytest.mark.req("S2-66", "S2-101")
def test_any_signal_will_do_one_without_a_wait_is_looked_at() -> None:
    reply, took_s = stopped_after(2, "anthropic", Deaf(), Foreign())

    assert (reply["stop_reason"], reply["content"]) == ("aborted", [])
    assert 2 <= took_s <= 2.1


@pytest.mark.req("S2-95")
@every_dialect
def test_a_stop_in_a_pause_between_two_tries_is_honoured_at_once(protocol: Protocol) -> None:
    there = InlineProvider(replace(BUSY, headers={"Retry-After": "30"}), BOTH)

    reply, took_s = stopped_after(4, protocol, there, CancelToken())

    assert (reply["stop_reason"], reply["content"], took_s) == ("aborted", [], 4)
    assert len(there.received) == 1


def test_a_stop_that_came_before_sends_nothing() -> None:
    there = InlineProvider(BOTH)
    signal = CancelToken()
    signal.cancel(by="owner", reason="wrong branch")

    reply = simulated(said("anthropic", there, signal=signal))

    assert (reply["stop_reason"], there.received) == ("aborted", [])
    assert reply.get("error_message") == "Operation aborted by owner: wrong branch"


def test_who_leaves_a_stream_early_closes_the_connection() -> None:
    async def program() -> None:
        there = InlineProvider(replace(BOTH, silent_at=1200))
        model = model_of("anthropic", there)
        stream = model.stream("", ASKED, [])
        assert (await anext(stream))["type"] == "text_delta"
        await stream.aclose()
        assert there.received[0].left.is_set()

    simulated(program())


@pytest.mark.req("S2-67")
@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_a_request_that_was_given_up_is_abandoned_and_never_called_cancelled(how: str) -> None:
    async def program() -> str:
        there, signal = Deaf(), CancelToken()
        model = model_of("anthropic", there)
        asking = asyncio.ensure_future(model("", ASKED, [], signal))
        await there.came()
        stop = signal.cancel if how == "stop" else asking.cancel
        stop()
        await asyncio.wait({asking})
        assert asking.cancelled() == (how == "cancel")
        return model.status

    assert simulated(program()) == "abandoned"
