"""Tasks of a simulated loop: they hash by number, so that every run finds them in one order."""

import asyncio
import contextvars
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Numbered(asyncio.Task[T]):
    """A task that hashes by number instead of by address.

    asyncio keeps the tasks of a group, and those that `wait` found done, in sets. Without this,
    their order would differ from run to run.
    """

    def __init__(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
        name: object,
        context: contextvars.Context,
        serial: int,
    ) -> None:
        self._serial = serial
        name = f"task-{serial}" if name is None else str(name)
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        """Return its number in its loop."""
        return self._serial
