"""Functions that block run in threads of their own: bounded, and never waited for at exit."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading

import pytest

from landed.core.errors import NotSentError
from landed.tools.threads import Threads

BOUND_S = 20.0
WHO = contextvars.ContextVar("who", default="nobody")


class Blocking:
    """A function that says when it started, and returns once it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self) -> str:
        self.calls += 1
        self.thread = threading.current_thread()
        self.started.set()
        assert self.go_on.wait(BOUND_S)
        return "done"

    def end(self) -> None:
        self.go_on.set()
        assert self.thread is not None
        self.thread.join(BOUND_S)
        assert not self.thread.is_alive()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, BOUND_S)


def test_it_runs_in_a_daemon_thread_of_its_own_and_not_in_the_loops_pool() -> None:
    async def main() -> threading.Thread:
        return await Threads("book", at_most=1).run(threading.current_thread, wait_s=1.0)

    thread = asyncio.run(main())
    assert thread.daemon
    assert thread.name == "landed book"


def test_the_callers_context_variables_are_seen_in_the_thread() -> None:
    async def main() -> str:
        WHO.set("ana")
        return await Threads("book", at_most=1).run(WHO.get, wait_s=1.0)

    assert asyncio.run(main()) == "ana"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError, ValueError),
        (StopIteration, RuntimeError),
        (asyncio.CancelledError, asyncio.CancelledError),
    ],
)
def test_what_the_function_raises_is_raised(
    error: type[BaseException], seen: type[BaseException]
) -> None:
    def fails() -> None:
        raise error("from the thread")

    async def main() -> None:
        await Threads("book", at_most=1).run(fails, wait_s=1.0)

    with pytest.raises(seen):
        asyncio.run(main())


def test_an_exit_in_the_thread_is_the_programs_exit() -> None:
    async def main() -> None:
        await Threads("book", at_most=1).run(lambda: sys.exit(3), wait_s=1.0)

    with pytest.raises(SystemExit):
        asyncio.run(main())


def test_no_more_than_the_bound_run_at_once_and_the_rest_is_not_called() -> None:
    async def main() -> None:
        threads, blocking = Threads("book", at_most=1), Blocking()
        first = asyncio.create_task(threads.run(blocking, wait_s=BOUND_S))
        await until(blocking.started)
        with pytest.raises(NotSentError, match="all 1 threads of book were busy"):
            await threads.run(blocking, wait_s=0.01)
        assert blocking.calls == 1
        waiting = asyncio.create_task(threads.run(blocking, wait_s=BOUND_S))
        blocking.go_on.set()
        assert [await first, await waiting] == ["done", "done"]

    asyncio.run(main())


def test_a_thread_goes_on_when_nobody_waits_and_keeps_its_place_until_it_ends() -> None:
    async def main() -> None:
        threads, blocking = Threads("book", at_most=1), Blocking()
        dropped = asyncio.create_task(threads.run(blocking, wait_s=BOUND_S))
        await until(blocking.started)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        with pytest.raises(NotSentError):
            await threads.run(lambda: "too early", wait_s=0.01)
        blocking.end()
        assert await threads.run(lambda: "free again", wait_s=BOUND_S) == "free again"

    asyncio.run(main())


def test_a_return_after_the_loop_was_closed_is_dropped_without_a_word() -> None:
    threads, blocking = Threads("book", at_most=1), Blocking()

    async def main() -> None:
        running = asyncio.create_task(threads.run(blocking, wait_s=BOUND_S))
        await until(blocking.started)
        running.cancel()

    asyncio.run(main())
    blocking.end()  # An error in the thread would be a warning, and warnings fail the test.

    async def another() -> str:
        return await threads.run(lambda: "on another loop", wait_s=1.0)

    assert asyncio.run(another()) == "on another loop"


def test_a_thread_that_cannot_be_started_means_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        threads = Threads("book", at_most=1)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuses)
            with pytest.raises(NotSentError, match="can't start new thread"):
                await threads.run(lambda: "never", wait_s=1.0)
        assert await threads.run(lambda: "the place was given back", wait_s=1.0)

    asyncio.run(main())


class Simulated(asyncio.SelectorEventLoop):
    runs_threads_inline = True


def test_a_simulation_runs_them_on_the_spot() -> None:
    async def main() -> int:
        return await Threads("book", at_most=1).run(threading.get_ident, wait_s=1.0)

    with asyncio.Runner(loop_factory=Simulated) as runner:
        assert runner.run(main()) == threading.get_ident()


HANGS = """
import asyncio, threading
from landed.tools.threads import Threads

started = threading.Event()

def hang():
    started.set()
    threading.Event().wait()

async def main():
    asyncio.create_task(Threads("book", at_most=1).run(hang, wait_s=9.0))
    await asyncio.to_thread(started.wait, 9.0)

asyncio.run(main())
print("ended", started.is_set())
"""


def test_the_end_of_the_process_waits_for_no_thread() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", HANGS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended True\n", "")
