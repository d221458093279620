"""How a stop is heard: a signal is anything that says if it was cancelled, and a token is ours.

Whoever waits looks at the signal, and nobody else does. There are three such places: the top of a
turn, `run_tool`, and what waits long inside a tool or a model. The last of these wait for their
work and for the signal together (`unless_cancelled`, `pause`): a token wakes them, without polling.
"""

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from landed.agent.messages import ABORTED
from landed.core.errors import LandedError

T = TypeVar("T")

LOOK_EVERY_S = 0.02
"""How often a foreign signal is looked at, which cannot be waited for, in seconds."""


class StoppedError(LandedError):
    """A wait ended because its signal was cancelled; its text is the one text of a stop."""

    def __init__(self) -> None:
        super().__init__(ABORTED)


class Signal(Protocol):
    """All that a tool or a model has to know of a stop."""

    def is_cancelled(self) -> bool:
        """Whether to stop."""
        ...


class CancelToken:
    """The signal of one run: clear at first, then cancelled for good.

    `by` and `reason` are those of the first who cancelled; later ones change nothing. It belongs to
    the event loop: from another thread, `loop.call_soon_threadsafe(token.cancel)`.
    """

    def __init__(self) -> None:
        self.by = ""
        self.reason = ""
        self._cancelled = asyncio.Event()

    def cancel(self, by: str = "", reason: str = "") -> None:
        """Ask for a stop, and say who asks and why."""
        if not self.is_cancelled():
            self.by, self.reason = by, reason
            self._cancelled.set()

    def is_cancelled(self) -> bool:
        """Whether somebody has asked for a stop."""
        return self._cancelled.is_set()

    async def wait(self) -> None:
        """Return when somebody has asked for a stop."""
        await self._cancelled.wait()


class AnyOf:
    """The signal that is cancelled as soon as one of several is; it says who asked and why."""

    def __init__(self, *signals: Signal | None) -> None:
        self._signals: Sequence[Signal] = [one for one in signals if one is not None]

    @property
    def by(self) -> str:
        """Who asked for the stop, "" where nobody did or the signal cannot tell."""
        return str(getattr(self._first(), "by", ""))

    @property
    def reason(self) -> str:
        """Why, in the same way."""
        return str(getattr(self._first(), "reason", ""))

    def is_cancelled(self) -> bool:
        """Whether one of them is cancelled."""
        return self._first() is not None

    async def wait(self) -> None:
        """Return when one of them is cancelled."""
        waiting = [asyncio.ensure_future(cancelled(one)) for one in self._signals]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    def _first(self) -> Signal | None:
        return next((one for one in self._signals if one.is_cancelled()), None)


async def cancelled(signal: Signal) -> None:
    """Return when the signal is cancelled: woken by one that has `wait()`, else by looking."""
    wait = getattr(signal, "wait", None)
    if inspect.iscoroutinefunction(wait):
        await wait()
    while not signal.is_cancelled():  # noqa: ASYNC110 - it offers nothing else
        await asyncio.sleep(LOOK_EVERY_S)


async def unless_cancelled(work: Coroutine[Any, Any, T], signal: Signal | None) -> T:
    """Wait for `work` and the signal together, and return what the work returns.

    When the signal is cancelled first, the work is, and `StoppedError` is raised once it is over.
    Work that returns all the same counts as done. If the caller is cancelled, so is the work.
    """
    if signal is None:
        return await work
    if signal.is_cancelled():
        work.close()
        raise StoppedError
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_cancel_with(signal, working))
    before = _cancellations()
    try:
        return await working
    except asyncio.CancelledError:
        if watching.done() and _cancellations() == before:
            raise StoppedError from None
        raise
    finally:
        watching.cancel()


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work` through any number of cancels; then let the first of them go on.

    For what has to be written down before anything else may happen, so only for work with a bound
    of its own. What it raises is raised, unless the caller was cancelled.
    """
    working = asyncio.ensure_future(work)
    cancel: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait({working})
        except asyncio.CancelledError as asked:
            cancel = cancel or asked
    if cancel is not None:
        if not working.cancelled():
            working.exception()  # Seen: the cancel that goes on says enough.
        raise cancel
    return working.result()


async def _cancel_with(signal: Signal, working: asyncio.Future[Any]) -> None:
    await cancelled(signal)
    working.cancel()


def _cancellations() -> int:
    """Return how often this coroutine's own caller has been cancelled."""
    current = asyncio.current_task()
    return 0 if current is None else current.cancelling()


async def pause(delay_s: float, signal: Signal | None) -> bool:
    """Wait for `delay_s` seconds; return False, at once, when the signal is cancelled before."""
    try:
        await unless_cancelled(asyncio.sleep(delay_s), signal)
    except StoppedError:
        return False
    return True


def stopped_text(signal: Signal) -> str:
    """Return the text of a stop, with who asked for it and why where the signal can tell."""
    by, reason = (str(getattr(signal, name, "")) for name in ("by", "reason"))
    return ABORTED + (f" by {by}" if by else "") + (f": {reason}" if reason else "")
