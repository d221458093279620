"""The end of a real event loop while calls are out, threads that outlast it, and loops mixed up."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.core.errors import LandedError, WrongLoopError
from landed.core.operation import State
from landed.core.value import Confirmed, Unknown
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.stores.sqlite import open_sqlite
from tests.sampling import sampled

BOUND_S = 30.0


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def states(path: Path) -> list[str]:
    """Return the states of the operations in a file, as another process finds them."""

    async def read() -> list[str]:
        store = open_sqlite(str(path))
        records = await store.session_records(tenant="default", session="main")
        await store.close()
        return [record.state for record in records]

    return asyncio.run(read())


# Threads.


class Slow:
    """A synchronous tool that returns when the test lets it."""

    def __init__(self, **promises: Any) -> None:
        self.begun = threading.Event()
        self.goes_on = threading.Event()
        self.calls = 0

        @landed.tool(effect="irreversible", **promises)
        def pay(cents: int) -> str:
            """Pay, slowly."""
            self.calls += 1
            self.begun.set()
            assert self.goes_on.wait(BOUND_S)
            return "paid"

        self.tool = pay

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, BOUND_S)


@pytest.mark.field("D6")
def test_a_sync_tool_whose_caller_is_cancelled_is_unknown_until_it_returns(
    tmp_path: Path, quiet: None
) -> None:
    async def main() -> tuple[landed.Value, landed.Value]:
        slow = Slow()
        async with landed.open(url(tmp_path / "a.db"), tools=[slow.tool]) as rt:
            call = asyncio.ensure_future(rt.perform(slow.tool, {"cents": 1}))
            await slow.has_begun()
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled()
            (operation,) = await operations(rt)
            before = await rt.status(operation)
            slow.goes_on.set()
            return before, await until_settled(rt, operation)

    before, after = asyncio.run(main())
    assert isinstance(before, Unknown)
    assert isinstance(after, Confirmed)
    assert after.result == "paid"


@pytest.mark.field("A7", "A9")
def test_a_sync_tool_under_an_outer_deadline_keeps_its_row_and_its_late_result(
    tmp_path: Path, quiet: None
) -> None:
    async def main() -> tuple[landed.Value, int]:
        slow = Slow()
        async with landed.open(url(tmp_path / "a.db"), tools=[slow.tool]) as rt:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await rt.perform(slow.tool, {"cents": 1})
            (operation,) = await operations(rt)
            assert isinstance(await rt.status(operation), Unknown)
            slow.goes_on.set()
            return await until_settled(rt, operation), slow.calls

    value, calls = asyncio.run(main())
    assert isinstance(value, Confirmed)
    assert calls == 1


@pytest.mark.field("A7")
def test_past_its_own_deadline_one_truthful_line_and_then_the_late_answer(
    tmp_path: Path, quiet: None
) -> None:
    async def main() -> tuple[landed.Value, list[str]]:
        slow = Slow(deadline_s=0.05)
        async with landed.open(url(tmp_path / "a.db"), tools=[slow.tool]) as rt:
            early = await rt.perform(slow.tool, {"cents": 1})
            assert isinstance(early, Unknown)
            slow.goes_on.set()
            value = await until_settled(rt, early.operation)
            return value, [item.text for item in await rt.history()]

    value, told = asyncio.run(main())
    assert isinstance(value, Confirmed)
    assert "no answer" in told[0]
    assert told[1:] == [value.text]


def test_a_thread_that_never_returns_holds_up_neither_drain_nor_exit(tmp_path: Path) -> None:
    async def main() -> None:
        slow = Slow()
        settings = Settings(drain_s=0.1)
        async with landed.open(url(tmp_path / "a.db"), tools=[slow.tool], settings=settings) as rt:
            await rt.perform(slow.tool, {"cents": 1}, patience_s=0.05)
        slow.goes_on.set()

    asyncio.run(main())
    assert states(tmp_path / "a.db") == ["unknown"]


async def operations(rt: Runtime) -> list[str]:
    """Return the ids of the operations of a session."""
    return list(dict.fromkeys(item.record for item in await rt.history()))


async def until_settled(rt: Runtime, operation: str) -> landed.Value:
    """Wait for the next answer about an operation; bounded by the patience."""
    return await rt.resolve(operation, patience_s=BOUND_S)


# The end of `asyncio.run`, in a process of its own where every warning is an error.

PROGRAM = """
import asyncio, contextlib, os, signal, sys
import landed
from landed.stores.urls import open_store
from landed.runtime.parts import assemble, register

# A shell ignores it for what it starts in the background, and that is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)

@landed.tool(effect="irreversible", deadline_s=60.0)
async def pay(cents: int) -> str:
    "Pay, and never hear of it."
    out.set()
    await asyncio.get_running_loop().create_future()
    return "paid"

async def interrupt():
    await out.wait()
    os.kill(os.getpid(), signal.SIGINT)

async def entered():
    rt = assemble(await open_store(sys.argv[1]), tools=register([pay]))
    return await rt.__aenter__()

async def main():
    global out
    out = asyncio.Event()
    asyncio.get_running_loop().slow_callback_duration = 60.0
    {main}

try:
    asyncio.run(main())
except BaseException as error:
    print("ended by", type(error).__name__)
else:
    print("ended")
"""

# What `main` does, what is printed, and the states that the next process may find.
ENDS = {
    "main returns while a call is out": (
        """rt = await entered()
    call = asyncio.ensure_future(rt.perform(pay, {"cents": 1}))
    await out.wait()""",
        "ended",
        {"unknown"},
    ),
    "main returns before the call was sent": (
        """rt = await entered()
    call = asyncio.ensure_future(rt.perform(pay, {"cents": 1}))
    await asyncio.sleep(0)""",
        "ended",
        {"unknown", "failed", "withdrawn", "sent"},
    ),
    "main raises while a call is out": (
        """rt = await entered()
    call = asyncio.ensure_future(rt.perform(pay, {"cents": 1}))
    await out.wait()
    raise ValueError("of the program")""",
        "ended by ValueError",
        {"unknown"},
    ),
    "main raises inside the runtime's block": (
        """settings = landed.Settings(drain_s=0.1)
    async with landed.open(sys.argv[1], tools=[pay], settings=settings) as rt:
        call = asyncio.ensure_future(rt.perform(pay, {"cents": 1}))
        await out.wait()
        raise ValueError("of the program")""",
        "ended by ValueError",
        {"unknown"},
    ),
    "interrupted in the call": (
        """async with landed.open(sys.argv[1], tools=[pay]) as rt:
        interrupting = asyncio.ensure_future(interrupt())
        await rt.perform(pay, {"cents": 1})""",
        "ended by KeyboardInterrupt",
        {"unknown"},
    ),
    "interrupted beside the call": (
        """rt = await entered()
    call = asyncio.ensure_future(rt.perform(pay, {"cents": 1}))
    await interrupt()
    await asyncio.get_running_loop().create_future()""",
        "ended by KeyboardInterrupt",
        {"unknown"},
    ),
    "the tool exits the process": (
        """@landed.tool(effect="irreversible")
    async def leave(cents: int) -> str:
        "Leave."
        sys.exit(3)
    rt = assemble(await open_store(sys.argv[1]), tools=register([leave]))
    await rt.__aenter__()
    await rt.perform(leave, {"cents": 1})""",
        "ended by SystemExit",
        {"unknown", "sent"},
    ),
    "a call in the cleanup of a cancelled one": (
        """rt = await entered()
    async def stubborn():
        try:
            await rt.perform(pay, {"cents": 1})
        finally:
            with contextlib.suppress(landed.LandedError):
                await rt.perform(pay, {"cents": 2})
    call = asyncio.ensure_future(stubborn())
    await out.wait()""",
        "ended",
        {"unknown", "sent", "withdrawn", "failed"},
    ),
}


@pytest.mark.parametrize("name", sampled(ENDS, every=2))
def test_the_end_of_asyncio_run(tmp_path: Path, name: str) -> None:
    main, printed, found = ENDS[name]
    path = tmp_path / "a.db"
    ended = run_program(PROGRAM.replace("{main}", main), url(path))
    assert (ended.stdout, ended.stderr) == (f"{printed}\n", "")
    assert set(states(path)) <= found


def run_program(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in development mode, with every warning an error."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )


# Other loops.


@landed.tool(effect="none")
async def look() -> str:
    """Look."""
    return "seen"


VERBS: dict[str, Callable[[Runtime], Any]] = {
    "receive": lambda rt: rt.receive("hello"),
    "perform": lambda rt: rt.perform(look),
    "resolve": lambda rt: rt.resolve("op-1"),
    "status": lambda rt: rt.status("op-1"),
    "history": lambda rt: rt.history(),
    "report": lambda rt: rt.report("turn-1"),
    "drain": lambda rt: rt.drain(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_another_loop_is_a_typed_error(tmp_path: Path, verb: str) -> None:
    async def use(rt: Runtime) -> None:
        with pytest.raises(WrongLoopError):
            await VERBS[verb](rt)

    async def main() -> None:
        async with landed.open(url(tmp_path / "a.db"), tools=[look]) as rt:
            await asyncio.to_thread(lambda: asyncio.run(use(rt)))

    asyncio.run(main())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_after_its_loop_was_closed_is_a_typed_error(
    tmp_path: Path, verb: str, quiet: None
) -> None:
    opened: list[Runtime] = []

    async def enter() -> None:
        from landed.runtime.parts import assemble, register
        from landed.stores.urls import open_store

        store = await open_store(url(tmp_path / "a.db"))
        opened.append(await assemble(store, tools=register([look])).__aenter__())

    async def use() -> None:
        with pytest.raises(WrongLoopError):
            await VERBS[verb](opened[0])
        await opened[0].driver.store.close()

    asyncio.run(enter())
    asyncio.run(use())


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "drain"])
def test_a_verb_before_or_after_its_block_is_a_typed_error(tmp_path: Path, verb: str) -> None:
    async def main() -> None:
        async with landed.open(url(tmp_path / "a.db"), tools=[look]) as rt:
            pass
        with pytest.raises(LandedError, match="not open"):
            await VERBS[verb](rt)

    asyncio.run(main())


def test_a_send_is_recorded_as_sent_while_it_is_out(tmp_path: Path) -> None:
    """As another process finds it; so a process that dies now is still honest."""
    slow = Slow()

    async def main() -> list[str]:
        async with landed.open(url(tmp_path / "a.db"), tools=[slow.tool]) as rt:
            call = asyncio.ensure_future(rt.perform(slow.tool, {"cents": 1}))
            await slow.has_begun()
            found = await asyncio.to_thread(states, tmp_path / "a.db")
            slow.goes_on.set()
            assert isinstance(await call, Confirmed)
            return found

    assert asyncio.run(main()) == [State.SENT]
