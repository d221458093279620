"""Makes the calls that tests hand to a tool, and runs a coroutine on a loop of its own."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.tool import Call

T = TypeVar("T")

SENT_AT = 1_700_000_000.5


def call_of(
    arguments: Mapping[str, Json] | None = None,
    *,
    key: str = "op-1",
    epoch: int = 7,
    attempt: int = 1,
    deadline_s: float = 20.0,
    prepared: Json = None,
) -> Call:
    return Call(
        operation="op-1",
        tool="book",
        key=key,
        arguments=arguments or {},
        ask=Ask(principal="ana"),
        epoch=epoch,
        attempt=attempt,
        sent_at=SENT_AT,
        deadline_at=SENT_AT + deadline_s,
        prepared=prepared,
    )


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)
