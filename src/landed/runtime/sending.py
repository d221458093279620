"""One send and one question, each bounded in time and turned into a value whatever happens."""

import asyncio
from collections.abc import Callable

from landed.core.absorb import Question
from landed.core.canonical import Json
from landed.core.outcome import AnswerLost, LookOutcome, NoAnswer, Prepared, SendOutcome
from landed.core.tool import Call, Tool

Lingering = asyncio.Future[SendOutcome]

REASON_MAX = 300


class Stop:
    """A stop token, as tools know it (`landed.core.tool.StopToken`), and the hand that sets it."""

    def __init__(self) -> None:
        self._asked = False
        self._event = asyncio.Event()

    def is_cancelled(self) -> bool:
        """Whether the tool may end early."""
        return self._asked

    async def wait(self) -> None:
        """Wait until it may."""
        await self._event.wait()

    def cancel(self) -> None:
        """Ask the tool to end early; on the event loop that the runtime belongs to."""
        self._asked = True
        self._event.set()


async def sent(
    tool: Tool, call: Call, *, seconds: float, lingers: Callable[[Lingering], None]
) -> SendOutcome:
    """Send, and wait at most `seconds` for the answer.

    A tool that can be interrupted is ended then. One that cannot (a thread) goes on, and is handed
    to `lingers`: what it comes back with after all is evidence.
    """
    if tool.interruptible:
        try:
            async with asyncio.timeout(seconds):
                return await _outcome(tool, call)
        except TimeoutError:
            return AnswerLost(reason=f"no answer within {round(seconds, 2):g} s")
    running = asyncio.ensure_future(_outcome(tool, call))
    done, _ = await asyncio.wait({running}, timeout=seconds)
    if done:
        return running.result()
    lingers(running)
    return AnswerLost(reason=f"no answer within {round(seconds, 2):g} s; it is still running")


async def prepared(tool: Tool, call: Call) -> Prepared | NoAnswer:
    """Have a tool compute what every send uses, within the time that one send has."""
    try:
        async with asyncio.timeout(tool.contract.deadline_s):
            return await tool.prepare(call)
    except TimeoutError:
        return NoAnswer(reason=f"no answer within {tool.contract.deadline_s:g} s")
    except (Exception, asyncio.CancelledError) as error:  # Nothing was sent by it.
        _let_through(error)
        return NoAnswer(reason=said(error))


async def answered(tool: Tool, call: Call, question: Question, result: Json) -> LookOutcome:
    """Put a question, and wait for the answer until the call's deadline."""
    try:
        async with asyncio.timeout(tool.contract.deadline_s):
            match question:
                case Question.LOOKUP:
                    return await tool.lookup(call)
                case Question.CLOSE:
                    return await tool.close(call)
                case Question.READ_BACK:
                    return await tool.read_back(call, result)
                case Question.RECEIPT:
                    return NoAnswer(reason="nobody asks for a receipt: the service sends it")
    except TimeoutError:
        return NoAnswer(reason=f"no answer within {tool.contract.deadline_s:g} s")
    except (Exception, asyncio.CancelledError) as error:  # Nothing was learnt by it.
        _let_through(error)
        return NoAnswer(reason=said(error))


async def _outcome(tool: Tool, call: Call) -> SendOutcome:
    try:
        return await tool.send(call)
    except (Exception, asyncio.CancelledError) as error:
        _let_through(error)
        return AnswerLost(reason=said(error))  # It must not raise; nobody knows what it did.


def _let_through(error: BaseException) -> None:
    """Raise a cancel that was meant for us; one that a tool raised by itself is only an error."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def said(error: BaseException) -> str:
    """Return an error as one bounded line of evidence."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:REASON_MAX]
