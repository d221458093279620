"""Measures a turn of the agent's loop: its CPU besides the model and the tools, as messages grow.

    python -m bench.agent_turn

plays turns over a conversation of a hundred, a thousand and ten thousand messages, with a model and
a tool that return at once. The floor copies the list and makes JSON of it, as whoever sends a
request has to. The last line is a conversation of which a compaction left a hundred messages to be
sent, while its log holds ten thousand: what is stored must cost nothing.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.agent_log import message, written
from landed.agent.harness import Harness
from landed.agent.messages import (
    AssistantMessage,
    Message,
    assistant_message,
    text_block,
    tool_call,
)
from landed.agent.session_log import SessionLog, persist_to
from landed.agent.signal import Signal
from landed.agent.tool import AgentTool, ToolSpec

SENT = (100, 1_000, 10_000)
STORED = 10_000
TURNS = 20
ROUNDS = 7


class AtOnce:
    """A model that calls the tool for so many turns, and then answers; it waits for nothing."""

    def __init__(self, *, turns: int) -> None:
        self.left = turns

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Ask for the tool, or answer."""
        self.left -= 1
        if self.left <= 0:
            return assistant_message(text_block("It is done."))
        return assistant_message(tool_call(f"n{self.left}", "nothing", {}))


async def _nothing(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
    return "nothing"


NOTHING = AgentTool(
    name="nothing",
    description="Do nothing.",
    parameters={"type": "object", "properties": {}},
    execute=_nothing,
)


def turn_s(messages: Sequence[Message], log: SessionLog | None = None) -> float:
    """Return the seconds of CPU that one turn over these messages takes."""

    async def play() -> float:
        harness = Harness(model=AtOnce(turns=TURNS), tools=[NOTHING], messages=messages)
        if log is not None:
            harness.subscribe(persist_to(log))
        begun = time.process_time()
        async for _ in harness.prompt("Go on."):
            pass
        return time.process_time() - begun

    return asyncio.run(play()) / TURNS


def floor_s(messages: Sequence[Message]) -> float:
    """Return the seconds of CPU that copying the list and making JSON of it takes."""
    begun = time.process_time()
    for _ in range(TURNS):
        json.dumps([*messages])
    return (time.process_time() - begun) / TURNS


def compacted(folder: Path) -> SessionLog:
    """Return a log of `STORED` messages, of which the last compaction left the last hundred."""
    log = written(folder / "compacted.jsonl", count=STORED)
    first = f"e{STORED - SENT[0] + 2}"  # The summary is the first of the hundred.
    log.append_entry({"type": "compaction", "summary": "Parts.", "first_kept_id": first})
    return log


def main() -> None:
    """Print each number of messages, in turns with its floor."""
    talk = [message(number) for number in range(max(SENT))]
    for count in SENT:
        pairs = [(turn_s(talk[:count]), floor_s(talk[:count])) for _ in range(ROUNDS)]
        ours, floor = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(
            f"turn, {count:6,} messages sent: {ours / floor:.2f} of copying and json.dumps;"
            f" {ours * 1e3:.2f} ms of CPU against {floor * 1e3:.2f} ms"
        )
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as folder:
        log = compacted(Path(folder))
        sent, few = log.replay(), SessionLog(Path(folder) / "few.jsonl", sync=log.sync)
        short = talk[: SENT[0]]
        pairs = [(turn_s(sent, log), turn_s(short, few)) for _ in range(ROUNDS)]
        long, floor = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"turn, {len(sent):6,} sent of {STORED:,} stored: {long / floor:.2f} of one with nothing"
        f" else stored; {long * 1e3:.2f} ms with its two lines in the log"
    )


if __name__ == "__main__":
    main()
