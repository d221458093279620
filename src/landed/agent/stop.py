"""The stop button: ask first, wait for a moment, then cancel; afterwards the run is over.

A clean stop is one that the run answers itself: each call has a result, and the record ends with an
aborted message. A hard one may leave a call without a result. Nobody knows what that call did, and
no text says otherwise; the next request shows it as interrupted.
"""

import asyncio
from typing import Any, Literal

from landed.agent.harness import Harness

GRACE_S = 2.0
"""How long a run may take to answer a stop, unless told otherwise."""


async def stop_run(
    harness: Harness,
    running: asyncio.Task[Any],
    grace: int | None = None,
    *,
    grace_s: float = GRACE_S,
    by: str = "",
    reason: str = "",
) -> Literal["clean", "hard"]:
    """Stop the run that `running` drives; it is over on return. Say how it ended.

    The grace is `grace_s` seconds, or `grace` turns of the event loop. What the run itself died of
    is raised; its cancellation is not. If this call is cancelled, that is raised, and the run has
    been asked to stop.
    """
    harness.cancel(by, reason)
    if grace is None:
        await asyncio.wait({running}, timeout=grace_s)
    else:
        await _turns(running, grace)
    ending: Literal["clean", "hard"] = "clean"
    if not running.done():
        running.cancel()
        await asyncio.wait({running})
        ending = "hard"
    await harness.aclose()
    if running.cancelled():
        return "hard"
    running.result()
    return ending


async def _turns(running: asyncio.Task[Any], most: int) -> None:
    for _ in range(most):
        if running.done():
            return
        await asyncio.sleep(0)
