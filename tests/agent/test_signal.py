"""A stop is heard by whoever waits, from any signal, without polling where it is a token."""

import asyncio

import pytest

from landed.agent.signal import (
    CancelToken,
    StoppedError,
    pause,
    stopped_text,
    unless_cancelled,
)
from tests.agent.simulated import simulated


class Foreign:
    """A signal that knows one method."""

    def __init__(self) -> None:
        self.set = False

    def is_cancelled(self) -> bool:
        return self.set


@pytest.mark.req("S2-45", "S2-94")
def test_a_token_is_set_for_good_and_says_who_and_why() -> None:
    token = CancelToken()
    assert (token.is_cancelled(), token.by, token.reason) == (False, "", "")

    token.cancel(by="owner", reason="wrong branch")
    token.cancel(by="somebody else")

    assert (token.is_cancelled(), token.by, token.reason) == (True, "owner", "wrong branch")
    assert stopped_text(token) == "Operation aborted by owner: wrong branch"
    assert stopped_text(Foreign()) == "Operation aborted"


@pytest.mark.req("S2-95")
def test_a_pause_ends_at_once_when_its_token_is_cancelled() -> None:
    async def program() -> tuple[bool, float]:
        token = CancelToken()
        loop = asyncio.get_running_loop()
        loop.call_later(3.0, token.cancel)
        return await pause(30.0, token), loop.time()

    assert simulated(program()) == (False, 3.0)


@pytest.mark.parametrize("signal", [None, CancelToken(), Foreign()])
def test_a_pause_that_nobody_stops_is_waited_out(signal) -> None:
    async def program() -> tuple[bool, float]:
        return await pause(30.0, signal), asyncio.get_running_loop().time()

    assert simulated(program()) == (True, 30.0)


@pytest.mark.req("S2-101")
def test_a_signal_that_cannot_be_waited_for_is_looked_at() -> None:
    async def program() -> tuple[bool, float]:
        signal, loop = Foreign(), asyncio.get_running_loop()
        loop.call_later(3.0, setattr, signal, "set", True)
        return await pause(30.0, signal), round(loop.time(), 1)

    assert simulated(program()) == (False, 3.0)


def test_work_that_is_stopped_has_tidied_up_before_the_stop_is_told() -> None:
    tidied = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)  # virtual time
            tidied.append("up")

    async def program() -> None:
        token = CancelToken()
        asyncio.get_running_loop().call_soon(token.cancel)
        with pytest.raises(StoppedError):
            await unless_cancelled(work(), token)
        assert tidied == ["up"]

    simulated(program())


def test_work_is_not_begun_under_a_cancelled_signal() -> None:
    begun = []

    async def work() -> None:
        begun.append("work")

    async def program() -> None:
        token = CancelToken()
        token.cancel()
        with pytest.raises(StoppedError):
            await unless_cancelled(work(), token)

    simulated(program())
    assert begun == []


def test_work_that_is_done_counts_and_its_error_is_its_own() -> None:
    async def work(token: CancelToken) -> str:
        token.cancel()
        return "done"

    async def failing() -> str:
        raise ValueError("no")

    async def program() -> None:
        token = CancelToken()
        assert await unless_cancelled(work(token), token) == "done"
        with pytest.raises(ValueError, match="no"):
            await unless_cancelled(failing(), CancelToken())

    simulated(program())
