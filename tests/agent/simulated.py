"""Runs a test's program on virtual time: turns and timers count, and no second goes by."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from landed.testing.loop import VirtualLoop

T = TypeVar("T")


def simulated(program: Coroutine[Any, Any, T]) -> T:
    """Run it on a loop of its own whose time jumps from timer to timer."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(program)
